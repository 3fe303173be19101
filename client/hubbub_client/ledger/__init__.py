"""The ledger: all that a device must not forget, in one SQLite file."""
