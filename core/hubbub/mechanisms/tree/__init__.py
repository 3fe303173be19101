"""Trees of ranges and of labels: a device reports the node of its value at one level."""

from hubbub.lazy import attach

attach(__name__)
