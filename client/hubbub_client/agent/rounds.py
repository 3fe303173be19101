"""The quick test before the filter: a schedule of rounds against what is left, by the cost of one round.

Every round of an evolving attribute is a coordinate of its own, on which nothing else is ever asked. So its
cost is that of one query by itself, and the losses add: rounds times one cost, compared in whole units, is
what the filter would come to after it had built every query.
"""

from __future__ import annotations

from hubbub.channels import UNITS_PER_NAT
from hubbub.filter import MAX_BUDGET, BayesianFilter, Query, Regression


def rounds_fit(query: Query, count: int, headroom: float, *, rotation: int = 1) -> bool:
    """Return whether the filter would reserve `count` queries like `query`, each on a fresh coordinate.

    A score's rounds are left to the filter: it may prove that some answer costs less than its epsilon. Not
    those of a rotating survey, of which the filter is asked for the drawn ones alone.

    Args:
        query: One of them.
        count: How many.
        headroom: What the filter has left, nats.
        rotation: The survey's.
    """
    if isinstance(query.channel, Regression):
        if rotation == 1:
            return True
        each = query.channel.worst + 1
    else:
        alone = BayesianFilter(MAX_BUDGET)
        if alone.reserve_all([query]) is None:
            return False
        each = int(alone.committed * UNITS_PER_NAT)
    # Both are whole units below 2^52, which floats hold exactly.
    return count * each <= int(headroom * UNITS_PER_NAT)
