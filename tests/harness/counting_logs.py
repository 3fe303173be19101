"""A log and a store in memory for tests of the aggregator, and a way to write batches into the log."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from surveys import START_S

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap
from hubbub.wire.record import ReportsRecord, Segment, SurveyRecord, Voucher, encode_record
from hubbub_aggregator.counting.dedup import IdTable
from hubbub_aggregator.counting.issuers import merged
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundKey, RoundState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.errors import StoreConflictError
from hubbub_aggregator.release.provisional import PublicationGate
from hubbub_aggregator.stores.store import check

MINUTE = START_S // 60 + 30


def report_id(number: int) -> bytes:
    """The id of a test's report, uniform like a real one."""
    return hashlib.sha256(number.to_bytes(8, "big")).digest()[:16]


def segment(
    survey: Survey,
    number: int,
    reports: Sequence[tuple[bytes, int]],
    voucher: Voucher | None = None,
    **refused: int,
) -> Segment:
    """The segment of (id, symbol) pairs and what the gateway refused beside them."""
    symbols = np.array([symbol for _, symbol in reports], dtype=np.uint32)
    attempts = len(reports) + sum(refused.values())
    return Segment(
        survey.digest, number, b"".join(i for i, _ in reports), symbols, attempts, refused, voucher
    )


def batch(*segments: Segment, minute: int = MINUTE, unknown: int = 0) -> bytes:
    """The bytes of one Reports record."""
    return encode_record(ReportsRecord(minute, segments, unknown))


def announcement(survey: Survey) -> bytes:
    """The bytes of the survey's record."""
    return encode_record(SurveyRecord(survey.canonical))


class MemoryLog:
    """A log whose records live in lists."""

    def __init__(self, partitions: int = 2, identity: str = "memory-log") -> None:
        self.partitions, self.identity = partitions, identity
        self.partition_map = PartitionMap.of(partitions, identity=identity)
        self.records: dict[int, list[bytes]] = {p: [] for p in range(partitions)}
        self.begins = dict.fromkeys(self.records, 0)

    def append(self, records: Mapping[int, Sequence[bytes]]) -> None:
        for partition, new in records.items():
            self.records[partition].extend(new)

    def everywhere(self, record: bytes) -> None:
        self.append({p: [record] for p in self.records})

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        return list(enumerate(self.records[partition]))[offset : offset + limit]

    def begin(self, partition: int) -> int:
        return self.begins[partition]

    def end(self, partition: int) -> int:
        return len(self.records[partition])


class MemoryStore:
    """A store in memory that keeps keys, not tables: what it loads was rebuilt, as from a file."""

    def __init__(self) -> None:
        self._states: dict[int, PartitionState] = {}
        self._keys: dict[tuple[int, RoundKey], list[int]] = {}
        self._steps: dict[RoundKey, PublicationGate] = {}

    def load(self, partition: int) -> PartitionState:
        kept = self._states.get(partition, PartitionState())
        state = PartitionState(kept.offset, dict(kept.surveys), {}, kept.unknown, kept.dead, kept.lost)
        for key, known in kept.rounds.items():
            loaded = state.rounds[key] = copy.copy(known)
            keys = self._keys.get((partition, key))
            if keys:
                loaded.seen = table = IdTable()
                table.add(table.fresh_keys(np.array(keys, dtype=np.uint64)))
        return check(partition, state)

    def save(self, partition: int, change: Change) -> None:
        state = self._states.setdefault(partition, PartitionState())
        if state.offset != change.previous:
            raise StoreConflictError(f"partition {partition}: {state.offset} is not {change.previous}")
        for key, new in change.rounds.items():
            known = state.rounds.setdefault(key, RoundState())
            known.counts = (
                known.counts + new.counts
                if len(known.counts) and len(new.counts)
                else (new.counts if len(new.counts) else known.counts)
            )
            known.issuers = merged(known.issuers, new.issuers)
            known.verdicts += new.verdicts
            known.after_seal += new.after_seal
            self._keys.setdefault((partition, key), []).extend(new.keys.tolist())
            if new.sealed_at is not None:
                known.sealed_at = new.sealed_at
                self._keys.pop((partition, key))
        state.surveys.update(change.surveys)
        state.unknown, state.dead = state.unknown + change.unknown, state.dead + change.dead
        state.lost += change.lost
        state.offset = change.offset

    def verify(self) -> None:
        """Has nothing to do."""

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        return dict(self._steps)

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        for key, steps in changed.items():
            if steps is None:
                self._steps.pop(key, None)
            else:
                self._steps[key] = steps


def counted(
    state: PartitionState,
) -> dict[RoundKey, tuple[list[int], VerdictCounts, int | None, VerdictCounts, int, dict[str, list[int]]]]:
    """All of a state's rounds, comparable: counts, tallies, seal, those after it, ids, those by issuer."""
    return {
        key: (
            known.counts.tolist(),
            known.verdicts,
            known.sealed_at,
            known.after_seal,
            0 if known.seen is None else len(known.seen),
            {name: [*tally.numbers, *tally.counts.tolist()] for name, tally in known.issuers.items()},
        )
        for key, known in state.rounds.items()
    }
