"""`hubbub replay`: the command, and what it does with a CSV and with a log."""

from hubbub.lazy import attach

attach(__name__)
