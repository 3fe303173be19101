"""What a record has lost: divergences, and the filter that keeps their sum within a budget."""

from hubbub.accounting.divergence import QUANTA_PER_NAT, QUANTUM, BlockDivergence, fixed_up, log_floor

__all__ = [
    "QUANTA_PER_NAT",
    "QUANTUM",
    "BlockDivergence",
    "fixed_up",
    "log_floor",
]
