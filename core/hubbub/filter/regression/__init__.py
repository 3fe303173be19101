"""The part of the filter that answers about scores of several numbers."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.filter.regression.branching import Effort
    from hubbub.filter.regression.component import MAX_LOOKS, Numbers
    from hubbub.filter.regression.regression import MAX_NUMBERS, TOTAL, Box, Regression

__all__ = [
    "MAX_LOOKS",
    "MAX_NUMBERS",
    "TOTAL",
    "Box",
    "Effort",
    "Numbers",
    "Regression",
]

attach(
    __name__,
    {
        "hubbub.filter.regression.branching": ("Effort",),
        "hubbub.filter.regression.component": (
            "MAX_LOOKS",
            "Numbers",
        ),
        "hubbub.filter.regression.regression": (
            "Box",
            "MAX_NUMBERS",
            "Regression",
            "TOTAL",
        ),
    },
)
