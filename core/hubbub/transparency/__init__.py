"""An append-only log that anybody can check: trees, notes and proofs of C2SP, and Hubbub's entries."""

from hubbub.lazy import attach

attach(__name__)
