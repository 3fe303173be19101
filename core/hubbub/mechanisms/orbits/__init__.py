"""Orbit channels: sets of values drawn by how many of each category they hold, of the least error."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.orbits.channel import OrbitChannel
    from hubbub.mechanisms.orbits.estimator import OrbitEstimator
    from hubbub.mechanisms.orbits.integers import compiled
    from hubbub.mechanisms.orbits.sampling import Orbit
    from hubbub.mechanisms.orbits.short import ShortOrbitChannel

__all__ = ["Orbit", "OrbitChannel", "OrbitEstimator", "ShortOrbitChannel", "compiled"]

attach(
    __name__,
    {
        "hubbub.mechanisms.orbits.channel": ("OrbitChannel",),
        "hubbub.mechanisms.orbits.estimator": ("OrbitEstimator",),
        "hubbub.mechanisms.orbits.integers": ("compiled",),
        "hubbub.mechanisms.orbits.sampling": ("Orbit",),
        "hubbub.mechanisms.orbits.short": ("ShortOrbitChannel",),
    },
)
