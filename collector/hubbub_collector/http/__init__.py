"""The connections of the server: accepted many at a time, bounded each and all together, written at once."""

from hubbub.lazy import attach

attach(__name__)
