"""What a record has lost: divergences, and the filter that keeps their sum within a budget."""

from hubbub.accounting.divergence import QUANTA_PER_NAT, QUANTUM, BlockDivergence, fixed_up, log_floor
from hubbub.accounting.filter import MAX_BUDGET, BayesianFilter, Likelihood, Query

__all__ = [
    "MAX_BUDGET",
    "QUANTA_PER_NAT",
    "QUANTUM",
    "BayesianFilter",
    "BlockDivergence",
    "Likelihood",
    "Query",
    "fixed_up",
    "log_floor",
]
