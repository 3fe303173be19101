"""Releases as tidy tables: CSV, JSON lines and Parquet."""

from hubbub.lazy import attach

attach(__name__)
