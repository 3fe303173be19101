"""Every mechanism, by the function that compiles it: core's and those that compile to core's kinds."""

from hubbub.lazy import attach

attach(__name__)
