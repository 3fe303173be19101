"""The command that witnesses logs."""

from hubbub.lazy import attach

attach(__name__)
