"""One verdict per report, said again in plain Python, for records that mix everything that a log may hold.

Numbers of every width and sets beside each other, rounds before their time, after their seal and outside the
schedule, refusals, repeats, a quota that runs out; and the same records grouped in every way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from counting_logs import MINUTE, announcement, report_id
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap
from hubbub.wire.record import NO_ROUND, ReportsRecord, SealRecord, Segment, encode_record
from hubbub_aggregator.counting.counting import apply, apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts

# Partition 1 of 3 takes 3 of them: 8 // 3, and one more.
NUMBERS = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 8"))
QUOTAS = {NUMBERS.digest: 3}
LAYOUT = PartitionMap.of(3)
SETS = Survey.parse(LABELS.replace('name = "grr"', 'name = "unary"').replace("self-rated", "self-seen"))
SURVEYS = {survey.digest: survey for survey in (NUMBERS, SETS)}

# (survey, round, width, [(id, symbol)], gateway's late). Width 0 means sets of one byte, -1 sets of two.
Part: TypeAlias = tuple[int, int, int, list[tuple[int, int]], int]
PARTS = st.tuples(
    st.integers(0, 1),
    st.integers(-1, 3),
    st.sampled_from([-1, 0, 1, 2, 4]),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), max_size=6),
    st.integers(0, 2),
)
RECORDS = st.lists(
    st.tuples(st.sampled_from([MINUTE, MINUTE + 1440]), st.lists(PARTS, max_size=4))
    | st.tuples(st.integers(0, 1), st.integers(0, 3)),
    max_size=12,
)


def segment_of(part: Part) -> Segment:
    index, number, width, reports, late = part
    if number == NO_ROUND:
        reports = []
    symbols = np.array([symbol for _, symbol in reports], dtype=np.uint32)
    if width <= 0:
        column = np.zeros((len(reports), 1 - width), dtype=np.uint8)
        column[:, 0] = symbols
    else:
        # A column of numbers takes the fewest bytes that hold them: the largest decides.
        column = symbols + np.uint32((0, 0, 2**8, 0, 2**16)[width] if width > 1 else 0)
    ids = b"".join(report_id(number) for number, _ in reports)
    digest = (NUMBERS, SETS)[index].digest
    return Segment(digest, number, ids, column, len(reports) + late, {"late": late} if late else {})


@dataclass
class Model:
    """What one round should hold."""

    seen: set[bytes]
    counts: Counter[int]
    accounting: VerdictCounts = NOTHING
    afterwards: VerdictCounts = NOTHING
    is_sealed: bool = False

    def add(self, tally: VerdictCounts) -> None:
        if self.is_sealed:
            self.afterwards += tally
        else:
            self.accounting += tally


def model_of(records: list[ReportsRecord | SealRecord]) -> tuple[dict[tuple[bytes, int], Model], int]:
    rounds: dict[tuple[bytes, int], Model] = {}
    dead = 0
    for record in records:
        if isinstance(record, SealRecord):
            if record.round < SURVEYS[record.digest].rounds:
                rounds.setdefault((record.digest, record.round), Model(set(), Counter())).is_sealed = True
            else:
                dead += 1
            continue
        for segment in record.segments:
            survey = SURVEYS[segment.digest]
            inside = 0 <= segment.round < survey.rounds
            key = segment.digest, segment.round if inside else NO_ROUND
            known = rounds.setdefault(key, Model(set(), Counter()))
            late = segment.refused.get("late", 0)
            known.add(VerdictCounts(attempts=late, late=late))
            is_early = (
                inside and survey.round_start_s(segment.round) > 60 * (record.minute + 1) + survey.skew_s
            )
            for place, symbol in enumerate(segment.symbols.tolist()):
                name = segment.ids[16 * place : 16 * place + 16]
                sent: object = bytes(symbol) if isinstance(symbol, list) else symbol
                if not inside or not survey.channel.admits(sent):
                    known.add(VerdictCounts(attempts=1, invalid=1))
                elif is_early:
                    known.add(VerdictCounts(attempts=1, early=1))
                elif known.is_sealed:
                    known.add(VerdictCounts(attempts=1, late=1))
                elif name in known.seen:
                    known.add(VerdictCounts(attempts=1, duplicate=1))
                elif len(known.seen) >= QUOTAS.get(segment.digest, 10**9):
                    known.add(VerdictCounts(attempts=1, over_quota=1))
                else:
                    known.seen.add(name)
                    cells = cells_of(sent)
                    known.counts.update(cells)
                    known.add(VerdictCounts(attempts=1, accepted=1))
    return rounds, dead


def cells_of(sent: object) -> list[int]:
    if isinstance(sent, bytes):
        return [cell for cell in range(8 * len(sent)) if sent[cell // 8] >> cell % 8 & 1]
    assert isinstance(sent, int)
    return [sent]


@given(records=RECORDS, groups=st.lists(st.integers(1, 5), max_size=6))
@settings(deadline=None, max_examples=150)
def test_every_report_gets_the_verdict_that_the_rules_say_however_records_are_grouped(
    records: list, groups: list[int]
) -> None:
    made: list[ReportsRecord | SealRecord] = []
    for first, second in records:
        if isinstance(second, list):
            made.append(ReportsRecord(first, tuple(map(segment_of, second))))
        else:
            made.append(SealRecord((NUMBERS, SETS)[first].digest, second))
    log = list(enumerate([*map(announcement, SURVEYS.values()), *map(encode_record, made)]))
    alone, grouped = PartitionState(), PartitionState()
    for state in (alone, grouped):
        state.place(LAYOUT, 1)
    for offset, record in log:
        alone.commit(apply(alone, offset, record))
    start = 0
    for size in [*groups, len(log)]:
        grouped.commit(apply_many(grouped, log[start : start + size]))
        start += size
    expected, dead = model_of(made)
    for state in (alone, grouped):
        assert state.dead == dead
        assert state.rounds.keys() == expected.keys()
        for key, model in expected.items():
            known = state.rounds[key]
            assert {c: n for c, n in enumerate(known.counts.tolist()) if n} == dict(model.counts)
            assert (known.verdicts, known.after_seal) == (model.accounting, model.afterwards)
            assert (known.sealed_at is not None) == model.is_sealed
            assert (0 if known.seen is None else len(known.seen)) == (
                0 if model.is_sealed else len(model.seen)
            )
