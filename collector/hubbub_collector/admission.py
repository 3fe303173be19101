"""Admission: one verdict per report, from the surveys served and the time.

The outcomes are accepted, unknown, invalid, early and late. An accepted report goes into the log, and the
aggregator judges it again (`hubbub_aggregator.counting.counting`): only there it can be a duplicate.

Pure: the clock is a number that the caller passes. The aggregator judges quotas: a gateway that granted them
would have to know what all others did, and could not tell a copy of a report from a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, Symbol
from hubbub.survey import Survey
from hubbub.wire import NO_ROUND, Malformed, Outcome, Report, Voucher
from hubbub_collector.errors import CollectorError

Key: TypeAlias = tuple[bytes, int]
"""(digest, round): where a report is tallied; NO_ROUND for a round that the schedule lacks or is far off."""


class Verdict(NamedTuple):
    """The verdict on one report.

    Attributes:
        outcome: What the device is told.
        key: Where the log tallies it; None where no survey is to be charged: unknown digests, and
            elements that are no reports at all.
        voucher: The issuer that vouched for it; None where no tokens are asked for.
    """

    outcome: Outcome
    key: Key | None
    voucher: Voucher | None = None


_MALFORMED: Final = Verdict("invalid", None)
_UNKNOWN: Final = Verdict("unknown", None)


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The rules by which reports of one survey are admitted.

    Attributes:
        channel: What a symbol must be one of.
        start_s: When round 0 begins, seconds since 1970.
        round_s: How long a round lasts, seconds.
        rounds: How many rounds there are.
        lateness_s: How long after its end a round still takes reports, seconds.
        skew_s: How far a device's clock may be ahead, seconds.
    """

    channel: Channel
    start_s: int
    round_s: int
    rounds: int
    lateness_s: int
    skew_s: int

    @classmethod
    def of(cls, survey: Survey) -> Self:
        """Return the rules of a compiled survey."""
        return cls(
            channel=survey.channel,
            start_s=survey.start_s,
            round_s=survey.round_s,
            rounds=survey.rounds,
            lateness_s=survey.lateness_s,
            skew_s=survey.skew_s,
        )


class _Open(NamedTuple):
    """The window of an open round, its channel, and the verdict on what fits both."""

    opens_s: int
    closes_s: int
    channel: Channel
    accepted: Verdict


class Admission:
    """A judge of reports against surveys.

    Args:
        terms: Digest -> the rules by which reports of that survey are admitted.
    """

    def __init__(self, terms: Mapping[bytes, AdmissionRules]) -> None:
        self._terms = dict(terms)
        # Rounds that took a report: almost every report is of one of them.
        self._open: dict[Key, _Open] = {}

    def judge(self, reports: Sequence[Report | Malformed], now_s: float) -> list[Verdict]:
        """Return one verdict per report, in order.

        The order of the tests is: known survey, round and symbol valid, not early, not late. A round is open
        while its start is at most now + skew and its end at least now - lateness. What misses that by more
        than a round's length is tallied under NO_ROUND: a round that a tally names takes room in a partition
        for good, and anybody may send reports of any round.

        Args:
            reports: The reports of an upload.
            now_s: The time, seconds since 1970.
        """
        return [
            _MALFORMED if isinstance(report, Malformed) else self._verdict(report, now_s)
            for report in reports
        ]

    def judge_rows(
        self, rows: NDArray[np.void], times_s: NDArray[np.float64]
    ) -> tuple[list[Verdict], NDArray[np.intp]]:
        """Return one verdict per report for many reports side by side, at a fraction of the cost.

        Args:
            rows: The reports, shape (n,), of any form that has digest, id, round and symbol.
            times_s: When each came, shape (n,), seconds since 1970.

        Returns:
            The different verdicts that there are, and which of them each report gets, shape (n,).
        """
        places: dict[Verdict, int] = {}
        which = np.empty(len(rows), dtype=np.intp)
        for (digest, number), chosen in _by_round(rows):
            open_round = self._open.get((digest, number))
            if open_round is not None:
                opens_s, closes_s, channel, accepted = open_round
                came_s, symbols = times_s[chosen], rows["symbol"][chosen]
                good = (opens_s <= came_s) & (came_s <= closes_s) & channel.contains(symbols)
                if good.any():
                    which[chosen[good]] = places.setdefault(accepted, len(places))
                chosen = chosen[~good]  # noqa: PLW2901 - what is left
            for row in chosen.tolist():
                report = Report(digest, number, rows["id"][row].tobytes(), _symbol(rows["symbol"][row]))
                verdict = self._verdict(report, float(times_s[row]))
                which[row] = places.setdefault(verdict, len(places))
        return list(places), which

    def _verdict(  # noqa: PLR0911  # one return per test, in the order that judge promises
        self, report: Report, now_s: float
    ) -> Verdict:
        found = self._open.get((report.digest, report.round))
        if (
            found is not None
            and found.opens_s <= now_s <= found.closes_s
            and found.channel.admits(report.symbol)
        ):
            return found.accepted
        terms = self._terms.get(report.digest)
        if terms is None:
            return _UNKNOWN
        if not 0 <= report.round < terms.rounds:
            return Verdict("invalid", (report.digest, NO_ROUND))
        start_s = terms.start_s + report.round * terms.round_s
        end_s = start_s + terms.round_s
        ahead_s, behind_s = now_s + terms.skew_s, now_s - terms.lateness_s
        is_near = start_s - terms.round_s <= ahead_s and end_s + terms.round_s >= behind_s
        key = (report.digest, report.round if is_near else NO_ROUND)
        if not terms.channel.admits(report.symbol):
            return Verdict("invalid", key)
        if start_s > ahead_s:
            return Verdict("early", key)
        if end_s < behind_s:
            return Verdict("late", key)
        return self._remember(key, terms, start_s - terms.skew_s, end_s + terms.lateness_s, now_s)

    def _remember(
        self, key: Key, terms: AdmissionRules, opens_s: int, closes_s: int, now_s: float
    ) -> Verdict:
        """Keep an open round at hand, and let go of those that are over."""
        accepted = Verdict("accepted", key)
        if key not in self._open:
            self._open = {other: found for other, found in self._open.items() if found.closes_s >= now_s}
            self._open[key] = _Open(opens_s, closes_s, terms.channel, accepted)
        return accepted

    def withdraw(self, digests: Iterable[bytes]) -> None:
        """Take no more reports of some surveys: they are unknown from now on."""
        for digest in digests:
            if self._terms.pop(digest, None) is not None:
                self._open.clear()


def _symbol(field: NDArray[np.unsignedinteger]) -> Symbol:
    """Return the symbol of one row: bytes for a set."""
    return field.tobytes() if field.ndim else int(field)


def _by_round(rows: NDArray[np.void]) -> Iterator[tuple[Key, NDArray[np.intp]]]:
    """Return each (digest, round) that there is, and the places of its reports, in order."""
    keys = np.column_stack([rows["digest"], rows["round"]])
    if (keys == keys[0]).all():
        parts = [np.arange(len(keys))]
    else:
        order = np.lexsort(keys.T)
        parts = np.split(order, np.flatnonzero((keys[order[1:]] != keys[order[:-1]]).any(axis=1)) + 1)
    for chosen in parts:
        key = keys[chosen[0]]
        yield (key[:-1].astype(np.uint8).tobytes(), int(key[-1])), chosen


def index_surveys(surveys: Iterable[Survey]) -> dict[bytes, Survey]:
    """Return the surveys by digest.

    Raises:
        CollectorError: If two surveys share a digest, or an id and a version with different contents.
    """
    found: dict[bytes, Survey] = {}
    names: set[tuple[str, int]] = set()
    for survey in surveys:
        name = (survey.id, survey.version)
        if survey.digest in found or name in names:
            raise CollectorError(
                f"surveys must differ in id or version, got {name[0]} version {name[1]} twice"
            )
        found[survey.digest] = survey
        names.add(name)
    return found
