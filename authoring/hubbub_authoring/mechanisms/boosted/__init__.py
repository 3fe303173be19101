"""Boosted mechanisms for numbers on a grid, with the scalar mechanisms built like them."""

from hubbub.lazy import attach

attach(__name__)
