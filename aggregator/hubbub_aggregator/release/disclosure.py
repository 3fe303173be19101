"""The rule of publication: no combination of a round's counts depends on fewer reports than a cohort.

Readers add and subtract what they have seen: the steps of the open round, its release, what a release tells
of issuers, recounts without issuers. A step is of all reports up to a moment, everything else of all reports
of some issuers. So what a combination takes of a report is a number for its interval between two steps less a
number for its group, the issuers that all documents treat alike; it leaves a report out where both are equal.
Write intervals and groups as nodes and reports as edges between them: the fewest reports that any combination
depends on are the least cut of that graph which is not 0, and it must be a cohort at least.

Reports that a quota kept out of the release and a recount lets in are of no interval, and of a group that the
release does not have: their interval's number is 0, as is that of issuers that no document but the release
and its steps is about, and both are one node.

Groups count as if each had a number of its own. That is exact where recounts leave out issuers apart from
each other's or all of another's, and let nothing in; of others the cut may be less than what any combination
depends on, never more.

Everything that was shown while a round was open is kept, for what comes later: `Shown`. Where that may be
lost, nothing more of the round is published than its release.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.survey import MOST_STEPS, Survey
from hubbub_aggregator.counting.issuers import OTHERS

Weights = NDArray[np.int64]


def least_cut(weights: Weights) -> int | None:
    """Return the least weight, above 0, of all edges between two parts of a graph; None without an edge.

    It is the algorithm of Stoer and Wagner (1997) in a graph that may fall apart. Nodes are taken in the
    order of what ties them to those before; by their lemma no cut between a node and the one before it weighs
    less than that tie. So both become one node wherever the tie is at least the least cut so far, and what a
    node weighs alone is a cut.

    Args:
        weights: The weight of each pair's edges, shape (n, n), symmetric, >= 0, and 0 from a node to itself.
    """
    best: int | None = None
    while True:
        degrees = weights.sum(axis=1)
        kept = np.flatnonzero(degrees)
        if not len(kept):
            return best
        weights, least = weights[np.ix_(kept, kept)], int(degrees[kept].min())
        best = least if best is None else min(best, least)
        order, ties = _by_ties(weights)
        starts = np.flatnonzero(ties < best)  # a tie of 0 begins another part of the graph
        weights = np.add.reduceat(weights[np.ix_(order, order)], starts, axis=0)
        weights = np.add.reduceat(weights, starts, axis=1)
        np.fill_diagonal(weights, 0)


def _by_ties(weights: Weights) -> tuple[NDArray[np.intp], Weights]:
    """Return the nodes, each the one most tied to all before it, and the weight of its edges to them."""
    n = len(weights)
    order, ties = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.int64)
    left = np.zeros(n, dtype=np.int64)  # a node's tie to those taken; -1 once it is one of them
    taken = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        order[i] = node = int(left.argmax())
        ties[i], taken[node] = left[node], True
        left += weights[node]
        left[taken] = -1
    return order, ties


UNTESTED: Final = {"output": None, "share": None, "others_share": None, "p_value": None}
"""The rest of a line about an issuer whose reports are not compared."""

MOST_CUTS: Final = MOST_STEPS
"""The most cuts of a round that are kept, so the most steps that are shown: with 64 issuers about 1 MB."""


def cohort_of(survey: Survey) -> int:
    """Return the fewest reports that anything published of a round of a survey depends on."""
    return max(survey.minimum_cohort, 1)


@dataclass(frozen=True, slots=True)
class AcceptedSizes:
    """The sizes of an open round's accepted reports at one moment.

    Attributes:
        n: How many there are.
        offsets: The offset per partition up to which they were counted.
        issuers: How many of them each issuer vouched for.
    """

    n: int
    offsets: Mapping[int, int]
    issuers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """The cuts of a round that were shown while it was open.

    Attributes:
        cuts: The cuts that were shown, in order, and perhaps one that will be next.
        is_known: False where others may have been shown: the record of them is lost.
    """

    cuts: tuple[AcceptedSizes, ...] = ()
    is_known: bool = True

    def holds(self, n: int, offsets: Mapping[int, int]) -> bool:
        """Return whether a cut is one of these."""
        return any(cut.n == n and dict(cut.offsets) == dict(offsets) for cut in self.cuts)

    def may_add(self, n: int, offsets: Mapping[int, int], *, step: int) -> bool:
        """Return whether a cut may come next: in each partition past all others, by a step in all."""
        if not self.is_known or len(self.cuts) >= MOST_CUTS:
            return False
        last = self.cuts[-1] if self.cuts else AcceptedSizes(0, {})
        return n >= last.n + step and all(offsets.get(p, -1) >= each for p, each in last.offsets.items())

    def add(self, cut: AcceptedSizes) -> Self:
        """Return this with a further cut."""
        return replace(self, cuts=(*self.cuts, cut))

    def until(self, n: int) -> Self:
        """Return this without cuts of more reports: they were to be next, and were not shown."""
        return replace(self, cuts=tuple(cut for cut in self.cuts if cut.n <= n))

    def encode(self) -> bytes:
        """Return the bytes that `decode` reads."""
        cuts = [
            [cut.n, sorted(cut.offsets.items()), sorted((k, v) for k, v in cut.issuers.items() if v)]
            for cut in self.cuts
        ]
        return json.dumps({"known": self.is_known, "cuts": cuts}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what bytes hold; of bytes that are of another form, that it is not known."""
        try:
            found: Any = json.loads(data)  # Any stops here
            cuts = tuple(
                AcceptedSizes(n, dict(offsets), dict(issuers)) for n, offsets, issuers in found["cuts"]
            )
            return cls(cuts, found["known"] is True)
        except (ValueError, TypeError, LookupError):
            return cls(is_known=False)


UNKNOWN: Final = Shown(is_known=False)
"""The value for a round of which the record is lost."""


@dataclass(frozen=True, slots=True)
class Recount:
    """A recount of a round, by the reports in it.

    Attributes:
        without: The issuers that it leaves out.
        devices: How many reports are in it.
    """

    without: frozenset[str]
    devices: int


def fewest(
    shown: Shown, sealed: AcceptedSizes, *, compared: Collection[str] = (), recounts: Sequence[Recount] = ()
) -> int | None:
    """Return the fewest reports that any combination of what is published of a round depends on.

    None where that cannot be told: what was shown is not known, or contradicts the release, or several
    recounts let in reports that the release does not have, which may be any part of each other.

    Args:
        shown: What was shown while it was open.
        sealed: The reports of its release.
        compared: Issuers of which the release tells more than how many reports.
        recounts: The recounts beside the release.
    """
    names: list[str | None] = [None, *sealed.issuers]
    groups: dict[tuple[str | None, tuple[int, ...]], int] = {(None, ()): 0}
    columns = [
        groups.setdefault(
            (
                name if name in compared else None,
                tuple(i for i, each in enumerate(recounts) if name not in each.without),
            ),
            len(groups),
        )
        for name in names
    ]
    added = [each.devices - _left(sealed, each.without) for each in recounts]
    if not shown.is_known or min(added, default=0) < 0 or sum(each > 0 for each in added) > 1:
        return None
    edges: list[tuple[int, int, int]] = []  # from a node above 0, or the first group's, to a group's
    before = dict.fromkeys(names, 0)
    for i, cut in enumerate((*shown.cuts, sealed), 1):
        sizes: dict[str | None, int] = {None: _left(cut, cut.issuers)}
        sizes.update(cut.issuers)
        parts = [sizes.get(name, 0) - before[name] for name in names]
        if min(parts) < 0 or not sizes.keys() <= before.keys():
            return None
        edges += [(-i, column, part) for column, part in zip(columns, parts, strict=True) if part]
        before = {name: sizes.get(name, 0) for name in names}
    edges += [(0, groups.setdefault((None, (i,)), len(groups)), each) for i, each in enumerate(added) if each]
    weights = np.zeros((len(groups) + len(shown.cuts) + 1,) * 2, dtype=np.int64)
    for one, other, part in edges:
        weights[one, other] += part
        weights[other, one] += part
    return least_cut(weights) or 0


def _left(cut: AcceptedSizes, without: Iterable[str]) -> int:
    """Return how many reports of a cut are of other issuers than these, or of none."""
    return cut.n - sum(cut.issuers.get(name, 0) for name in without)


def compared_issuers(shown: Shown, sealed: AcceptedSizes, *, cohort: int) -> frozenset[str]:
    """Return the issuers of which a release may tell more than how many reports; all others are one group.

    Each of them, the largest first, is taken where the rule holds with it and those before.
    """

    def holds(names: Collection[str]) -> bool:
        return (fewest(shown, sealed, compared=names) or 0) >= cohort

    large = [name for name, size in sealed.issuers.items() if size >= cohort]
    if holds(large):  # as it mostly does, and one look is enough
        return frozenset(large)
    found: frozenset[str] = frozenset()
    for name in sorted(large, key=lambda name: (-sealed.issuers[name], name)):
        if holds(found | {name}):
            found |= {name}
    return found


def why_no_recount(
    shown: Shown,
    sealed: AcceptedSizes,
    recounts: Sequence[Recount],
    *,
    compared: Collection[str],
    cohort: int,
) -> str | None:
    """Return why the last of some recounts may not be published beside the others, None where it may.

    One of fewer reports than a cohort states no counts and is left out of this; it may always be published.

    Args:
        shown: What was shown while the round was open.
        sealed: The reports of its release.
        recounts: Those published, and then the one in question.
        compared: Issuers of which the release tells more than how many reports.
        cohort: The fewest reports.
    """
    telling = [each for each in recounts if each.devices >= cohort]
    if recounts[-1].devices < cohort:
        return None
    if not shown.is_known:
        return "what was shown of the round while it was open is not known here"
    if sealed.issuers.get(OTHERS):
        return "more issuers vouched for its reports than are told apart"
    found = fewest(shown, sealed, compared=compared, recounts=telling)
    if found is None:
        return (
            "at most one recount of a round may hold reports that a quota kept out of its release, and none "
            "may lack reports of other issuers"
        )
    if found >= cohort:
        return None
    return (
        "what is published of a round must depend on at least the minimum cohort of "
        f"{cohort} reports, however it is combined, got {found}"
    )


def without_small(document: Mapping[str, Any], cohort: int | None) -> dict[str, Any]:
    """Return a release or a recount that says of small issuers how many reports they have and no more.

    Releases made before there was a rule say more, and stay as they are in the archive.

    Args:
        document: The document.
        cohort: The fewest reports of an issuer that is compared with all others; None compares none.
    """
    if "issuers" not in document:
        return dict(document)
    lines = [
        line if cohort is not None and line["accepted"] >= cohort else line | UNTESTED
        for line in document["issuers"]
    ]
    return {**document, "issuers": lines}
