"""Channels that mechanisms compile to: finite ones, sets, their divergences and descriptions."""

from hubbub.lazy import attach

attach(__name__)
