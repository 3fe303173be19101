"""The command of a log, and the options about one that other commands share."""

from hubbub.lazy import attach

attach(__name__)
