"""Filters and odometers to compare with the filter of devices."""

from hubbub.lazy import attach

attach(__name__)
