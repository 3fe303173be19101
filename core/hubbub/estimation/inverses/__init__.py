"""Left inverses of channels: blocks, dense matrices, and which fits which channel."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.estimation.inverses.inverse import Arithmetic, Inverse, Numbers, Solution, excess, quotients
    from hubbub.estimation.inverses.inversion import invert, own_categories

__all__ = [
    "Arithmetic",
    "Inverse",
    "Numbers",
    "Solution",
    "excess",
    "invert",
    "own_categories",
    "quotients",
]

attach(
    __name__,
    {
        "hubbub.estimation.inverses.inverse": (
            "Arithmetic",
            "Inverse",
            "Numbers",
            "Solution",
            "excess",
            "quotients",
        ),
        "hubbub.estimation.inverses.inversion": (
            "invert",
            "own_categories",
        ),
    },
)
