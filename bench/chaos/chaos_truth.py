"""Reports that are known before they are sent, and what a log of them must be counted to.

Two truths that are found independently: the seed says which reports there are, and the log, read again record
by record, says in which order they lie and how often. Neither looks at an id's 64-bit key or at a store: a
report is a number here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import hubbub
from hubbub.errors import HubbubError
from hubbub.wire.record import NO_ROUND, ReportsRecord, SealRecord, Segment, decode_record, encode_record
from hubbub_aggregator.counting.verdict_counts import VerdictCounts

PARTITIONS: Final = 4
ROUNDS: Final = 4
# Reports of the last round that come too late are sent two stages after it.
STAGES: Final = ROUNDS + 2
START_S: Final = 1767225600
ROUND_S: Final = 86_400
LATENESS_S: Final = 3_600
RECORD_REPORTS: Final = 2_000

_COMMON: Final = """
minimum_cohort = 100
planned_devices = 100000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 4
lateness = "1h"
skew = "5m"
"""
_VISITS: Final = f"""
id = "visits"
version = 1
title = "Visits to a doctor in a year"
epsilon = 3.0{_COMMON}
[attribute]
id = "visits"
kind = "evolving"
type = "integer"
low = 0
high = 20

[mechanism]
name = "pbgrr"
boost_epsilon = 2.0

[[category]]
name = "none"
values = [0]

[[category]]
name = "some"
range = [1, 2]

[[category]]
name = "many"
range = [3, 20]
"""
_HEALTH: Final = f"""
id = "health"
version = 1
title = "Self-rated health"
epsilon = 1.0{_COMMON}
[attribute]
id = "health"
kind = "evolving"
type = "label"
labels = ["excellent", "good", "fair", "poor"]

[mechanism]
name = "grr"
"""
SURVEYS: Final = (hubbub.Survey.parse(_VISITS), hubbub.Survey.parse(_HEALTH))
_NUMBER_OF: Final = {survey.digest: number for number, survey in enumerate(SURVEYS)}
_OUTPUTS: Final = np.array([survey.channel.outputs for survey in SURVEYS])

VALID, INVALID, EARLY, LATE = range(4)
VERDICTS: Final = (*VerdictCounts._fields, "unknown", "dead")
Key = tuple[int, int]
"""(number of the survey, round)."""


def clock_in(stage: int) -> float:
    """Return the time while a stage is sent: every round before it is due to be sealed, its own is open."""
    return START_S + stage * ROUND_S + (LATENESS_S + 31.0 if stage else 60.0)


class Crowd:
    """All reports of a run: `reports` that must be counted, and a fiftieth each of those that must not.

    Arrays over all of them, by the report's number.

    Attributes:
        reports: How many must be counted.
        survey, round, symbol, kind, stage, partition: What each is, and when and where it is sent.
        over_http: Which go through collectors; the others lie in the log as collectors write them.
    """

    def __init__(self, reports: int, *, seed: int, over_http: float) -> None:
        self._rng = rng = np.random.default_rng(seed)
        self.reports, wrong = reports, max(1, reports // 50)
        n = reports + 3 * wrong
        self.kind = np.repeat([VALID, INVALID, EARLY, LATE], [reports, wrong, wrong, wrong]).astype(np.uint8)
        self.ids = np.frombuffer(rng.bytes(16 * n), dtype=np.uint8).reshape(n, 16)
        self.survey = rng.integers(0, len(SURVEYS), n).astype(np.uint8)
        self.round = rng.integers(0, ROUNDS, n).astype(np.uint8)
        self.round[self.kind == EARLY] = rng.integers(1, ROUNDS, wrong)
        self.symbol = (rng.random(n) * _OUTPUTS[self.survey]).astype(np.uint8)
        self.symbol[self.kind == INVALID] += _OUTPUTS[self.survey[self.kind == INVALID]].astype(np.uint8)
        self.stage = self.round.copy()
        self.stage[self.kind == EARLY] -= 1
        self.stage[self.kind == LATE] += 2
        halves = self.ids.view(">u8")
        self.partition = (halves[:, 1] % PARTITIONS).astype(np.uint8)
        self.over_http = rng.random(n) < over_http
        keys = halves[:, 0].astype(np.uint64)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        if (self._keys[1:] == self._keys[:-1]).any():
            raise ValueError("two reports begin alike: take another seed")

    def numbers(self, ids: bytes) -> NDArray[np.int64] | None:
        """Return the numbers of reports by their ids, or None where one is nobody's."""
        wanted = np.frombuffer(ids, dtype=np.uint8).reshape(-1, 16)
        keys = np.ascontiguousarray(wanted).view(">u8")[:, 0].astype(np.uint64)
        found = self._order[np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)]
        return found if np.array_equal(self.ids[found], wanted) else None

    def counts(self, key: Key, partition: int) -> NDArray[np.int64]:
        """Return what must be counted of a round in a partition, per symbol: the seed's word."""
        mine = (self.kind == VALID) & (self.survey == key[0]) & (self.round == key[1])
        symbols = self.symbol[mine & (self.partition == partition)]
        return np.bincount(symbols, minlength=int(_OUTPUTS[key[0]])).astype(np.int64)

    def sent_in(self, stage: int, *, over_http: bool) -> NDArray[np.int64]:
        """Return the reports of a stage, in random order."""
        mine = np.flatnonzero((self.stage == stage) & (self.over_http == over_http))
        return self._rng.permutation(mine)

    def records(self, stage: int, again: float) -> tuple[list[tuple[int, bytes]], dict[str, int]]:
        """Return a stage as collectors write it: (partition, record) in random order, and their counts.

        Args:
            stage: Which.
            again: The share of the reports that are to be counted which come twice.
        """
        once, rng = self.sent_in(stage, over_http=False), self._rng
        valid = once[self.kind[once] == VALID]
        twice = rng.choice(valid, int(again * len(valid)), replace=False)
        numbers = rng.permutation(np.concatenate([once, twice]))
        sent = dict.fromkeys(VERDICTS, 0)
        made: list[tuple[int, bytes]] = []
        minute = int(clock_in(stage) // 60)
        for partition in range(PARTITIONS):
            mine = numbers[self.partition[numbers] == partition]
            for place, part in enumerate(np.array_split(mine, max(1, len(mine) // RECORD_REPORTS))):
                segments = list(self._segments(part))
                # Refusals of a gateway, of a round that it knows and of none; a survey that nobody knows.
                segments.append(_refusals(SURVEYS[0].digest, NO_ROUND, invalid=1))
                refused = {"late": 1, "early": 2, "invalid": 3, "over_quota": 4}
                segments.append(_refusals(SURVEYS[place % 2].digest, min(stage, ROUNDS - 1), **refused))
                for what, count in (refused | {"invalid": 4, "attempts": 11, "unknown": 1}).items():
                    sent[what] += count
                if place % 16 == 0:
                    segments.append(_refusals(bytes(16), 0, late=5))
                    sent["unknown"] += 5
                made.append((partition, encode_record(ReportsRecord(minute, tuple(segments), 1))))
            made.append((partition, b"neither ours nor anybody's"))
            sent["dead"] += 1
        for what, kind in (("accepted", VALID), ("invalid", INVALID), ("early", EARLY), ("late", LATE)):
            sent[what] += int(np.count_nonzero(self.kind[once] == kind))
        sent["duplicate"] += len(twice)
        sent["attempts"] += len(numbers)
        return [made[place] for place in rng.permutation(len(made))], sent

    def _segments(self, numbers: NDArray[np.int64]) -> Iterator[Segment]:
        places = self.survey[numbers] * ROUNDS + self.round[numbers]
        for place in np.unique(places).tolist():
            mine = numbers[places == place]
            digest = SURVEYS[place // ROUNDS].digest
            yield Segment(digest, place % ROUNDS, self.ids[mine].tobytes(), self.symbol[mine], len(mine))


def _refusals(digest: bytes, number: int, **refused: int) -> Segment:
    return Segment(digest, number, b"", np.empty(0, np.uint8), sum(refused.values()), refused)


@dataclass
class RoundInLog:
    """The counts of one round that a partition's records amount to.

    Attributes:
        counts: Reports that count, per symbol.
        tally: Verdicts up to the seal, in the order of Accounting.
        after_seal: Verdicts after it.
        sealed_at: Where the first seal lies.
    """

    counts: NDArray[np.int64]
    tally: NDArray[np.int64] = field(default_factory=lambda: np.zeros(7, np.int64))
    after_seal: NDArray[np.int64] = field(default_factory=lambda: np.zeros(7, np.int64))
    sealed_at: int | None = None


@dataclass
class PartitionInLog:
    """The counts that a partition's records amount to.

    Attributes:
        until: Everything in the order of VERDICTS before each offset, shape (records + 1, 9).
        rounds: By survey and round.
    """

    until: NDArray[np.int64]
    rounds: dict[Key, RoundInLog]


class Audit:
    """A reader of a log that knows the crowd alone, and gives a verdict for each report in turn.

    Attributes:
        partitions: What each holds.
        faults: Reports that lie there and should not, and those that should and do not.
    """

    def __init__(self, crowd: Crowd, log: Any) -> None:
        self._crowd = crowd
        self._seen = np.zeros(len(crowd.kind), dtype=np.bool_)
        self.faults: list[str] = []
        self.partitions = [self._partition(partition, log) for partition in range(PARTITIONS)]
        if missing := int(np.count_nonzero(self._seen != (crowd.kind == VALID))):
            self.faults.append(f"{missing} reports are not in the log as they were sent")

    def total(self, offsets: tuple[int, ...]) -> list[int]:
        """Return the counts of everything before these offsets, in the order of VERDICTS."""
        found: list[int] = sum(
            part.until[offset] for part, offset in zip(self.partitions, offsets, strict=True)
        ).tolist()
        return found

    def _partition(self, partition: int, log: Any) -> PartitionInLog:
        rounds: dict[Key, RoundInLog] = {}
        steps = [np.zeros(len(VERDICTS), np.int64)]
        offset, end = 0, log.end(partition)
        while offset < end:
            for _, body in log.read(partition, offset, 256):
                steps.append(self._record(partition, offset, body, rounds))
                offset += 1
        return PartitionInLog(np.cumsum(steps, axis=0), rounds)

    def _record(
        self, partition: int, offset: int, body: bytes, rounds: dict[Key, RoundInLog]
    ) -> NDArray[np.int64]:
        change = np.zeros(len(VERDICTS), np.int64)
        try:
            record = decode_record(body)
        except HubbubError:
            change[VERDICTS.index("dead")] = 1
            return change
        if isinstance(record, SealRecord):
            known = _round(rounds, (_NUMBER_OF[record.digest], record.round))
            known.sealed_at = offset if known.sealed_at is None else known.sealed_at
        elif isinstance(record, ReportsRecord):
            change[VERDICTS.index("unknown")] = record.unknown
            for segment in record.segments:
                if segment.digest not in _NUMBER_OF:
                    change[VERDICTS.index("unknown")] += segment.attempts
                    continue
                known = _round(rounds, (_NUMBER_OF[segment.digest], segment.round))
                tally = self._segment(partition, record.minute, segment, known)
                if known.sealed_at is None:
                    known.tally += tally
                else:
                    known.after_seal += tally
                change[:7] += tally
        return change

    def _segment(self, partition: int, minute: int, segment: Segment, known: RoundInLog) -> NDArray[np.int64]:
        crowd = self._crowd
        tally = dict.fromkeys(VerdictCounts._fields, 0) | dict(segment.refused)
        tally["attempts"] = segment.attempts
        numbers = crowd.numbers(segment.ids)
        if numbers is None:
            self.faults.append(f"partition {partition} holds reports that nobody sent")
            numbers = np.empty(0, np.int64)
        elif not (
            np.array_equal(crowd.symbol[numbers], segment.symbols)
            and (crowd.partition[numbers] == partition).all()
            and (crowd.round[numbers] == segment.round).all()
            and (crowd.survey[numbers] == _NUMBER_OF[segment.digest]).all()
        ):
            self.faults.append(f"partition {partition} holds reports that were sent otherwise")
        kinds = crowd.kind[numbers]
        tally["invalid"] += int(np.count_nonzero(kinds == INVALID))
        tally["early"] += int(np.count_nonzero(kinds == EARLY))
        valid = numbers[(kinds == VALID) | (kinds == LATE)]
        if (kinds == EARLY).any() and START_S + segment.round * ROUND_S <= 60 * (minute + 1) + 300:
            self.faults.append(f"partition {partition}: an early report came in time")
        if known.sealed_at is not None:
            tally["late"] += len(valid)
        else:
            fresh = np.unique(valid[~self._seen[valid]])
            self._seen[fresh] = True
            known.counts += np.bincount(crowd.symbol[fresh], minlength=len(known.counts))
            tally["accepted"] += len(fresh)
            tally["duplicate"] += len(valid) - len(fresh)
        return np.array([tally[verdict] for verdict in VerdictCounts._fields], np.int64)


def _round(rounds: dict[Key, RoundInLog], key: Key) -> RoundInLog:
    if key not in rounds:
        rounds[key] = RoundInLog(np.zeros(int(_OUTPUTS[key[0]]), np.int64))
    return rounds[key]
