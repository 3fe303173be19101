"""The upload: decide when to send, send within a time limit, read the answer."""

from hubbub.lazy import attach

attach(__name__)
