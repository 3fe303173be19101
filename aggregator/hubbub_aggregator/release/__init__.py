"""The release of a round: publication gates while it is open, seals, estimates."""

from hubbub.lazy import attach

attach(__name__)
