"""A round's reports by issuer, as a release and the view of an open round say them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hubbub.estimation import issuer_deviation
from hubbub_aggregator.counting.issuers import IssuerTally, merged
from hubbub_aggregator.counting.partition import RoundState
from hubbub_aggregator.release.provisional import AcceptedCounts

_UNTESTED: Final = {"output": None, "share": None, "others_share": None, "p_value": None}


def issuers_of(parts: Iterable[RoundState]) -> dict[str, IssuerTally]:
    """Return the tallies of a round's issuers in all partitions together, by name."""
    found: dict[str, IssuerTally] = {}
    for part in parts:
        found = merged(found, part.issuers)
    return dict(sorted(found.items()))


def issuer_lines(
    issuers: Mapping[str, IssuerTally], tally: AcceptedCounts | None = None
) -> list[dict[str, Any]]:
    """Return a line for each issuer as JSON types.

    Args:
        issuers: The tallies.
        tally: All counts of the round, to compare each issuer's with; None compares nothing.
    """
    return [
        {
            "issuer": name,
            "accepted": mine.accepted,
            "duplicate": mine.duplicate,
            "over_quota": mine.over_quota,
            **_compared(mine, tally),
        }
        for name, mine in issuers.items()
    ]


def _compared(mine: IssuerTally, tally: AcceptedCounts | None) -> dict[str, Any]:
    if tally is None or not len(tally.counts):
        return _UNTESTED
    found = issuer_deviation(mine.counts, mine.accepted, tally.counts - mine.counts, tally.n - mine.accepted)
    return _UNTESTED if found is None else found._asdict()
