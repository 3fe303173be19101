"""Alerts on releases, and the noise of a round's estimates that bounds their false alarms."""

from hubbub.lazy import attach

attach(__name__)
