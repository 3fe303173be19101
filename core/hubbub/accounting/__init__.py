"""What a record has lost: divergences, and the filter that keeps their sum within a budget."""

from hubbub.accounting.approximate import ApproximateFilter
from hubbub.accounting.divergence import QUANTA_PER_NAT, QUANTUM, BlockDivergence, fixed_up, log_floor
from hubbub.accounting.filter import MAX_BUDGET, BayesianFilter
from hubbub.accounting.odometer import Odometer
from hubbub.accounting.query import MAX_CELLS, Joint, Likelihood, Query, SparseColumn
from hubbub.accounting.regression import Box, Regression
from hubbub.accounting.simplified import SimplifiedFilter

__all__ = [
    "MAX_BUDGET",
    "MAX_CELLS",
    "QUANTA_PER_NAT",
    "QUANTUM",
    "ApproximateFilter",
    "BayesianFilter",
    "BlockDivergence",
    "Box",
    "Joint",
    "Likelihood",
    "Odometer",
    "Query",
    "Regression",
    "SimplifiedFilter",
    "SparseColumn",
    "fixed_up",
    "log_floor",
]
