"""One-time tokens that admit one report each and that nobody can trace: blind RSA, Privacy Pass."""

from hubbub.lazy import attach

attach(__name__)
