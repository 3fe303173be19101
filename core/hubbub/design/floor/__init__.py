"""The least error that any epsilon-LDP mechanism can have; `programme` has the proof."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.design.floor.asked import ASKED, Floors, frontier
    from hubbub.design.floor.least import Floor, cumulative_floor, mean_floor, shares_floor
    from hubbub.design.floor.orbits import Weights, orbit_floor
    from hubbub.design.floor.patterns import pattern_floor
    from hubbub.design.floor.programme import Certificate

__all__ = [
    "ASKED",
    "Certificate",
    "Floor",
    "Floors",
    "Weights",
    "cumulative_floor",
    "frontier",
    "mean_floor",
    "orbit_floor",
    "pattern_floor",
    "shares_floor",
]

attach(
    __name__,
    {
        "hubbub.design.floor.asked": ("ASKED", "Floors", "frontier"),
        "hubbub.design.floor.least": ("Floor", "cumulative_floor", "mean_floor", "shares_floor"),
        "hubbub.design.floor.orbits": ("Weights", "orbit_floor"),
        "hubbub.design.floor.patterns": ("pattern_floor",),
        "hubbub.design.floor.programme": ("Certificate",),
    },
)
