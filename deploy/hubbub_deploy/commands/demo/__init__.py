"""`hubbub demo`: the command, and the demonstration that it runs."""

from hubbub.lazy import attach

attach(__name__)
