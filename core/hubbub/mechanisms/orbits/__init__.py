"""Orbit channels: sets of values drawn by how many of each category they hold, of the least error."""
