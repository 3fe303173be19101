"""The part of the filter that bounds the loss of answers about scores of several numbers."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.filter.regression.component import MAX_EVALUATIONS, RegressionComponent
    from hubbub.filter.regression.regression import MAX_NUMBERS, TOTAL, Box, Regression
    from hubbub.filter.regression.relaxation import WorkBudget

__all__ = [
    "MAX_EVALUATIONS",
    "MAX_NUMBERS",
    "TOTAL",
    "Box",
    "Regression",
    "RegressionComponent",
    "WorkBudget",
]

attach(
    __name__,
    {
        "hubbub.filter.regression.relaxation": ("WorkBudget",),
        "hubbub.filter.regression.component": (
            "MAX_EVALUATIONS",
            "RegressionComponent",
        ),
        "hubbub.filter.regression.regression": (
            "Box",
            "MAX_NUMBERS",
            "Regression",
            "TOTAL",
        ),
    },
)
