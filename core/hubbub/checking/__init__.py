"""The recomputation of releases from their public counts, by none of the code that made them."""

from hubbub.lazy import attach

attach(__name__)
