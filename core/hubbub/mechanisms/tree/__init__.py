"""Trees for numbers: a device reports the node of its value at one level of a tree of ranges."""

from hubbub.lazy import attach

attach(__name__)
