"""The stores of counts and releases: SQLite, Redis and the archive."""

from hubbub.lazy import attach

attach(__name__)
