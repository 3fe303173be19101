"""The command that makes releases again from their public counts."""

from hubbub.lazy import attach

attach(__name__)
