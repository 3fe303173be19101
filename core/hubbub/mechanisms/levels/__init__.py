"""Reports about one level of a hierarchy of categories."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.levels.levels import Levels, levels
    from hubbub.mechanisms.levels.set_levels import SetLevels

__all__ = [
    "Levels",
    "SetLevels",
    "levels",
]

attach(
    __name__,
    {
        "hubbub.mechanisms.levels.levels": (
            "Levels",
            "levels",
        ),
        "hubbub.mechanisms.levels.set_levels": ("SetLevels",),
    },
)
