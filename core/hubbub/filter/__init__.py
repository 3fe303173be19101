"""The Bayesian filter, which keeps the privacy loss of a record within a budget."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.filter.bayesian import MAX_BUDGET, BayesianFilter
    from hubbub.filter.query import MAX_CELLS, Joint, Likelihood, Query
    from hubbub.filter.regression.regression import MAX_NUMBERS, TOTAL, Box, Regression

__all__ = [
    "MAX_BUDGET",
    "MAX_CELLS",
    "MAX_NUMBERS",
    "TOTAL",
    "BayesianFilter",
    "Box",
    "Joint",
    "Likelihood",
    "Query",
    "Regression",
]

attach(
    __name__,
    {
        "hubbub.filter.bayesian": (
            "BayesianFilter",
            "MAX_BUDGET",
        ),
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
    },
)
