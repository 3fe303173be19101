"""The gateway: admit reports, strip the sender, append to a log."""

from hubbub.lazy import attach

attach(__name__)
