"""Alerts on releases, bands that hold at every look, and the noise of a round's estimates behind both."""
