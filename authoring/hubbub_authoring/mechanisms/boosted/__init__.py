"""Boosted mechanisms for numbers on a grid, with the scalar mechanisms built like them."""
