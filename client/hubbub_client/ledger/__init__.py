"""The ledger: all that a device must not forget, in one SQLite file."""

from hubbub.lazy import attach

attach(__name__)
