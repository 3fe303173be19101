"""A round's reports by issuer, as a release and the view of an open round say them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hubbub.estimation import issuer_deviation
from hubbub_aggregator.counting.issuers import IssuerTally, merged
from hubbub_aggregator.counting.partition import RoundState
from hubbub_aggregator.release.disclosure import UNTESTED
from hubbub_aggregator.release.provisional import AcceptedCounts


def issuers_of(parts: Iterable[RoundState]) -> dict[str, IssuerTally]:
    """Return the tallies of a round's issuers in all partitions together, by name."""
    found: dict[str, IssuerTally] = {}
    for part in parts:
        found = merged(found, part.issuers)
    return dict(sorted(found.items()))


def accepted_by(issuers: Mapping[str, IssuerTally]) -> dict[str, int]:
    """Return how many reports of each issuer count."""
    return {name: tally.accepted for name, tally in issuers.items()}


def issuer_lines(
    issuers: Mapping[str, IssuerTally],
    tally: AcceptedCounts | None = None,
    compared: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return a line for each issuer as JSON types.

    Args:
        issuers: The tallies.
        tally: All counts of the round, to compare issuers' with; None compares nothing.
        compared: The issuers whose reports are compared with all others'; see `disclosure`.
    """
    return [
        {
            "issuer": name,
            "accepted": mine.accepted,
            "duplicate": mine.duplicate,
            "over_quota": mine.over_quota,
            **(_compared(mine, tally) if name in compared else UNTESTED),
        }
        for name, mine in issuers.items()
    ]


def _compared(mine: IssuerTally, tally: AcceptedCounts | None) -> dict[str, Any]:
    if tally is None or not len(tally.counts):
        return UNTESTED
    found = issuer_deviation(mine.counts, mine.accepted, tally.counts - mine.counts, tally.n - mine.accepted)
    return UNTESTED if found is None else found._asdict()
