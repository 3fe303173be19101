"""The simulator of many devices at once, by the agent's own decisions."""

from hubbub.lazy import attach

attach(__name__)
