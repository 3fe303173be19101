"""Utility first: from what an analyst wants to know to a mechanism and its parameters."""

from hubbub.lazy import attach

attach(__name__)
