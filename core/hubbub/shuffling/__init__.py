"""The privacy that shuffling among many devices adds to a report's own."""

from hubbub.lazy import attach

attach(__name__)
