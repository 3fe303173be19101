"""The command that holds a server beside its log."""

from hubbub.lazy import attach

attach(__name__)
