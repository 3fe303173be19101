"""`hubbub agent`: the command, what it answers, and what its owner may know and say."""

from hubbub.lazy import attach

attach(__name__)
