"""The tallies of a round by the issuer that vouched for its reports, and an issuer's quota.

They are counted beside the round and change nothing in it but by quotas: a report that is beyond its issuer's
share is over quota, as one beyond the survey's. A quota travels with the reports, so that a replay comes to
the same whatever the gateways' settings are by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.wire import Segment, Voucher

MAX_ISSUERS: Final = 64
"""Issuers of one round that a partition tells apart: each costs as much memory as the round's counts."""

OTHERS: Final = ""
"""The name of all issuers beyond MAX_ISSUERS together; no issuer has it."""


@dataclass(frozen=True, slots=True, eq=False)
class IssuerTally:
    """The tally of one issuer's reports of a round, up to the seal.

    Attributes:
        counts: Accepted reports per bin, shape (bins,), int64.
        accepted: How many count.
        duplicate: How many had an id that had been accepted: second uses of a token, or retries.
        over_quota: How many were beyond the issuer's quota, or the survey's.
    """

    counts: NDArray[np.int64]
    accepted: int = 0
    duplicate: int = 0
    over_quota: int = 0

    def __add__(self, other: IssuerTally) -> IssuerTally:
        return IssuerTally(
            self.counts + other.counts,
            self.accepted + other.accepted,
            self.duplicate + other.duplicate,
            self.over_quota + other.over_quota,
        )

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The three tallies: accepted, duplicate, over quota."""
        return self.accepted, self.duplicate, self.over_quota


IssuerTallies = Mapping[str, IssuerTally]


def merged(known: IssuerTallies, new: IssuerTallies) -> dict[str, IssuerTally]:
    """Return the sum of two tallies by issuer; names known come first, in their order."""
    found = dict(known)
    for name, tally in new.items():
        found[name] = found[name] + tally if name in found else tally
    return found


class Vouched(NamedTuple):
    """The vouchers of a group of reports, and which is whose.

    Attributes:
        vouchers: The different vouchers, None among them for reports that nobody vouched for.
        places: The place of each report's, shape (n,).
    """

    vouchers: list[Voucher | None]
    places: NDArray[np.intp]


def vouched_by(
    segments: Sequence[Segment], known: IssuerTallies, valid: NDArray[np.bool_] | None
) -> Vouched | None:
    """Return who vouched for each valid report of some segments; None where nobody did for any.

    Args:
        segments: The segments, in order.
        known: The issuers that the round has: the names of new ones, beyond MAX_ISSUERS together, are OTHERS.
        valid: Which of their reports are valid; None for all.
    """
    if all(segment.voucher is None for segment in segments):
        return None
    numbers: dict[Voucher | None, int] = {}
    column = [numbers.setdefault(segment.voucher, len(numbers)) for segment in segments]
    lengths = [len(segment) for segment in segments]
    places = np.repeat(np.array(column, dtype=np.intp), lengths)
    if valid is not None:
        places = places[valid]
    vouchers, names = list(numbers), set(known) - {OTHERS}
    for place in _in_order(places):
        voucher = vouchers[place]
        if voucher is None or voucher.issuer in names:
            continue
        if len(names) < MAX_ISSUERS:
            names.add(voucher.issuer)
        else:
            vouchers[place] = voucher._replace(issuer=OTHERS)
    return Vouched(vouchers, places)


def _in_order(places: NDArray[np.intp]) -> list[int]:
    """Return the different places in the order of their first."""
    _, firsts = np.unique(places, return_index=True)
    ordered: list[int] = places[np.sort(firsts)].tolist()
    return ordered


def tallies_of(
    vouched: Vouched,
    symbols: NDArray[np.unsignedinteger],
    accepted: NDArray[np.bool_],
    over: NDArray[np.bool_],
    channel: Channel,
) -> dict[str, IssuerTally]:
    """Return the tallies of a group of valid reports by issuer, in the order of their first report.

    Args:
        vouched: Who vouched for each of n reports.
        symbols: The reports' symbols, n of them.
        accepted: Which of them count, shape (n,).
        over: Which are over a quota, shape (n,).
        channel: The survey's channel.
    """
    vouchers, places = vouched
    found: dict[str, IssuerTally] = {}
    for place in _in_order(places):
        voucher = vouchers[place]
        if voucher is None:
            continue
        mine = places == place
        counted = accepted & mine
        n, refused = int(np.count_nonzero(counted)), int(np.count_nonzero(over & mine))
        counts = channel.tally(symbols[counted]) if n else np.zeros(channel.bins, dtype=np.int64)
        tally = IssuerTally(counts, n, int(np.count_nonzero(mine)) - n - refused, refused)
        found = merged(found, {voucher.issuer: tally})
    return found
