"""A user's text where it enters another tool's language: a function for each of them."""

from hubbub.lazy import attach

attach(__name__)
