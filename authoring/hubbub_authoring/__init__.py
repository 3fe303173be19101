"""From what an author asks for to the integers of a survey; never on a device."""

from hubbub.lazy import attach

attach(__name__)
