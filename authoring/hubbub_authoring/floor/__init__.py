"""The least error that any epsilon-LDP mechanism can have; `programme` has the proof."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_authoring.floor.least import Floor, cumulative_floor, mean_floor, shares_floor
    from hubbub_authoring.floor.orbits import Weights, orbit_floor
    from hubbub_authoring.floor.patterns import pattern_floor
    from hubbub_authoring.floor.programme import Certificate

__all__ = [
    "Certificate",
    "Floor",
    "Weights",
    "cumulative_floor",
    "mean_floor",
    "orbit_floor",
    "pattern_floor",
    "shares_floor",
]

attach(
    __name__,
    {
        "hubbub_authoring.floor.least": (
            "Floor",
            "cumulative_floor",
            "mean_floor",
            "shares_floor",
        ),
        "hubbub_authoring.floor.orbits": (
            "Weights",
            "orbit_floor",
        ),
        "hubbub_authoring.floor.patterns": ("pattern_floor",),
        "hubbub_authoring.floor.programme": ("Certificate",),
    },
)
