"""The comparison of estimates with a known truth, as tables and plots."""

from hubbub.lazy import attach

attach(__name__)
