"""The owner's account of all that was sent, and the page that shows it."""

from hubbub.lazy import attach

attach(__name__)
