"""Exact rationals, outward rounding and randomness."""

from hubbub.lazy import attach

attach(__name__)
