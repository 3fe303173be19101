"""Confidence intervals that hold in small rounds: the law of a cell's score, and its inversion."""

from hubbub.lazy import attach

attach(__name__)
