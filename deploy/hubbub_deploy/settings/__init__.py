"""The settings of processes: one table for file, environment and command line."""

from hubbub.lazy import attach

attach(__name__)
