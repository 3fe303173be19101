"""The log between collector and aggregator: one port, kept in SQLite or in Kafka."""

from hubbub.lazy import attach

attach(__name__)
