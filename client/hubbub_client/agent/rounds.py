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
    if rotation == 1 and isinstance(query.channel, Regression):
        return True
    # Whole units below 2^52, which floats hold exactly.
    return count * round_units(query) <= int(headroom * UNITS_PER_NAT)


def round_units(query: Query) -> int:
    """Return what one round takes of the budget at its worst, units; more than any budget if none holds it.

    Args:
        query: On a fresh coordinate.
    """
    if isinstance(query.channel, Regression):
        return query.channel.worst + 1
    alone = BayesianFilter(MAX_BUDGET)
    if alone.reserve_all([query]) is None:
        return int(MAX_BUDGET * UNITS_PER_NAT) + 1
    return int(alone.committed * UNITS_PER_NAT)
