"""Proofs, simulation and evaluation; never on a device, never in a running server."""

from hubbub.lazy import attach

attach(__name__)
