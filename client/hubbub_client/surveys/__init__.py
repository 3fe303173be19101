"""The lists of surveys that a device takes, and the schedule of what it reserves and answers."""

from hubbub.lazy import attach

attach(__name__)
