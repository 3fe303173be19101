"""Local hashing, its pool of hash functions and its inverse."""

from hubbub.lazy import attach

attach(__name__)
