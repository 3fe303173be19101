"""Unbiased linear estimation from counts of symbols, with its errors."""

from hubbub.lazy import attach

attach(__name__)
