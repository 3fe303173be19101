"""The publication gate: the counts of an open round are shown in steps of at least the minimum cohort.

Two views whose counts differ by one device would show that device's symbol to whoever compares them. So
what is shown moves in steps, and each step waits as a candidate until a whole one has come after it: the
sealed release, whenever it comes, is then at least a cohort past everything that was shown before. The price
is that live numbers lag by one to two steps. `disclosure` has the rule, and keeps what was shown.

A cohort counts reports, and no promise rests on it. It does not stop a reader who fills it with reports of
their own, nor one who compares two rounds of a static survey, which devices answer with the same symbol. Each
of these can single out a perturbed symbol, which is what the survey's epsilon is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.release.disclosure import Shown


@dataclass(frozen=True, slots=True, eq=False)
class AcceptedCounts:
    """The accepted reports of one round over all partitions, up to a cut.

    Attributes:
        cut: The offset per partition up to which the counts read.
        counts: Accepted reports per bin, shape (bins,), int64; empty where there are none.
        n: How many reports were accepted; of sets the counts sum to more.
    """

    cut: Mapping[int, int]
    counts: NDArray[np.int64]
    n: int

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AcceptedCounts)
            and self.n == other.n
            and dict(self.cut) == dict(other.cut)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]  # it holds an array: equal by content, so not a key


@dataclass(frozen=True, slots=True)
class PublicationGate:
    """The publication gate of an open round: what it shows, and what it will show next.

    Attributes:
        published: The counts behind the estimates that may be seen, or None before the first step.
        pending: The counts that are published once a step has come after them.
    """

    published: AcceptedCounts | None
    pending: AcceptedCounts


def advance(
    gate: PublicationGate | None, now: AcceptedCounts, *, shown: Shown, step: int
) -> PublicationGate | None:
    """Return the gate after the counts have grown to `now`; the same object when nothing moves.

    Args:
        gate: Where the round stands, None before its first pending counts.
        now: The counts so far.
        shown: What was shown of the round, and what is pending.
        step: The fewest reports that lie between two views.
    """
    if not shown.may_add(now.n, now.cut, step=step):
        return gate
    if gate is None:
        return PublicationGate(None, now)
    if not shown.holds(gate.pending.n, gate.pending.cut):  # of a store that came back older
        return PublicationGate(gate.published, now)
    return PublicationGate(gate.pending, now)
