"""The Bayesian filter, which keeps the privacy loss of a record within a budget."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.filter.approximate import ApproximateFilter
    from hubbub.filter.bayesian import MAX_BUDGET, BayesianFilter
    from hubbub.filter.odometer import Odometer
    from hubbub.filter.query import MAX_CELLS, Joint, Likelihood, Query
    from hubbub.filter.regression.regression import MAX_NUMBERS, TOTAL, Box, Regression
    from hubbub.filter.simplified import SimplifiedFilter

__all__ = [
    "MAX_BUDGET",
    "MAX_CELLS",
    "MAX_NUMBERS",
    "TOTAL",
    "ApproximateFilter",
    "BayesianFilter",
    "Box",
    "Joint",
    "Likelihood",
    "Odometer",
    "Query",
    "Regression",
    "SimplifiedFilter",
]

attach(
    __name__,
    {
        "hubbub.filter.approximate": ("ApproximateFilter",),
        "hubbub.filter.bayesian": (
            "BayesianFilter",
            "MAX_BUDGET",
        ),
        "hubbub.filter.odometer": ("Odometer",),
        "hubbub.filter.query": (
            "Joint",
            "Likelihood",
            "MAX_CELLS",
            "Query",
        ),
        "hubbub.filter.regression.regression": (
            "Box",
            "MAX_NUMBERS",
            "Regression",
            "TOTAL",
        ),
        "hubbub.filter.simplified": ("SimplifiedFilter",),
    },
)
