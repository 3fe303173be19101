"""The JSON API and the page that show counts and releases."""

from hubbub.lazy import attach

attach(__name__)
