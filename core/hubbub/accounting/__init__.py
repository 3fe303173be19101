"""What a record has lost: divergences, and the filter that keeps their sum within a budget."""

from hubbub.accounting.divergence import QUANTA_PER_NAT, QUANTUM, BlockDivergence, fixed_up, log_floor
from hubbub.accounting.filter import MAX_BUDGET, BayesianFilter
from hubbub.accounting.query import MAX_CELLS, Joint, Likelihood, Query, SparseColumn
from hubbub.accounting.regression import Box, Regression

__all__ = [
    "MAX_BUDGET",
    "MAX_CELLS",
    "QUANTA_PER_NAT",
    "QUANTUM",
    "BayesianFilter",
    "BlockDivergence",
    "Box",
    "Joint",
    "Likelihood",
    "Query",
    "Regression",
    "SparseColumn",
    "fixed_up",
    "log_floor",
]
