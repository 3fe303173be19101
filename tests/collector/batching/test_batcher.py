"""What a linger becomes: nothing lost, nothing added, no order of arrival, no bytes beyond the bound."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hubbub.numeric.randomness import SYSTEM, Source
from hubbub.testing import seeded
from hubbub.wire.record import NO_ROUND, ReportsRecord, decode_record, encode_record
from hubbub.wire.report import SHORT_REPORT, Malformed, Report, encode_report
from hubbub_collector.admission import Verdict
from hubbub_collector.batching.batcher import (
    LARGEST_ROW,
    MOST_SEGMENTS,
    Batch,
    ByteBudget,
    partition_of,
    parts_of,
    random_order,
)

DIGESTS = [b"a" * 16, b"b" * 16]


@st.composite
def judged_reports(draw: st.DrawFn) -> tuple[Report | Malformed, Verdict]:
    if draw(st.integers(0, 9)) == 0:
        return Malformed("x"), Verdict("invalid", None)
    digest = draw(st.sampled_from(DIGESTS))
    outcome = draw(st.sampled_from(["accepted", "invalid", "early", "late", "over_quota", "unknown"]))
    number = draw(st.integers(0, 2))
    symbol = draw(st.sampled_from([0, 1, 255, 256, 70_000]))
    report = Report(digest, number, draw(st.binary(min_size=16, max_size=16)), symbol)
    if outcome == "unknown":
        return report, Verdict("unknown", None)
    no_round = outcome == "invalid" and draw(st.booleans())
    return report, Verdict(outcome, (digest, NO_ROUND if no_round else number))


@given(st.lists(judged_reports(), max_size=40), st.integers(1, 5))
def test_every_report_is_in_the_record_of_its_partition_once(
    judged: list[tuple[Report | Malformed, Verdict]], partitions: int
) -> None:
    batch = Batch(partitions)
    for one, verdict in judged:
        batch.add([one], [verdict], 0.0)
    assert batch.attempts == len(judged)
    records = {p: decode_record(encode_record(r)) for p, r in batch.records(SYSTEM).items()}

    expected: Counter[object] = Counter()
    for one, verdict in judged:
        if isinstance(one, Malformed):
            expected[0, "unknown"] += 1
        elif verdict.key is None:
            expected[partition_of(one.id, partitions), "unknown"] += 1
        elif verdict.outcome == "accepted":
            expected[partition_of(one.id, partitions), verdict.key, one.id, one.symbol] += 1
        else:
            expected[partition_of(one.id, partitions), verdict.key, verdict.outcome] += 1

    found: Counter[object] = Counter()
    for partition, record in records.items():
        assert isinstance(record, ReportsRecord)
        found[partition, "unknown"] += record.unknown
        for segment in record.segments:
            key = (segment.digest, segment.round)
            for i, symbol in enumerate(segment.symbols.tolist()):
                found[partition, key, segment.ids[16 * i : 16 * i + 16], symbol] += 1
            for reason, count in segment.refused.items():
                found[partition, key, reason] += count
            assert segment.attempts == len(segment) + sum(segment.refused.values())
    assert +found == +expected


@given(st.lists(judged_reports(), max_size=40), st.integers(1, 5))
def test_rows_taken_together_are_stored_as_if_they_had_come_one_by_one(
    judged: list[tuple[Report | Malformed, Verdict]], partitions: int
) -> None:
    short = [
        (dataclasses.replace(one, symbol=one.symbol % 128), verdict)
        for one, verdict in judged
        if isinstance(one, Report) and isinstance(one.symbol, int)
    ]
    alone, together = Batch(partitions), Batch(partitions)
    for one, verdict in short:
        alone.add([one], [verdict], 200.0)
    data = b"".join(encode_report(one) for one, _ in short)
    verdicts = [*dict.fromkeys(verdict for _, verdict in short)]
    which = np.array([verdicts.index(verdict) for _, verdict in short], dtype=np.intp)
    together.add_rows(np.frombuffer(data, dtype=SHORT_REPORT), verdicts, which, 200.0)

    assert (together.attempts, together.size) == (alone.attempts, alone.size)
    assert together.size <= LARGEST_ROW * len(short)
    assert +together.outcomes() == +alone.outcomes() == Counter(verdict.outcome for _, verdict in short)
    assert in_any_order(together) == in_any_order(alone)


def in_any_order(batch: Batch) -> list[tuple[int, int, int, list[tuple[object, ...]]]]:
    """What a batch stores, but for the order of reports."""
    return [
        (
            partition,
            record.minute,
            record.unknown,
            [
                (
                    segment.digest,
                    segment.round,
                    segment.attempts,
                    {**segment.refused},
                    sorted(
                        (segment.ids[16 * i : 16 * i + 16], symbol)
                        for i, symbol in enumerate(segment.symbols.tolist())
                    ),
                )
                for segment in record.segments
            ],
        )
        for partition, record in batch.records(SYSTEM).items()
    ]


def test_what_is_no_report_is_counted_as_invalid() -> None:
    batch = Batch(1)
    batch.add([Malformed("x")] * 2, [Verdict("invalid", None)] * 2, 0.0)
    assert +batch.outcomes() == {"invalid": 2}


def test_a_batch_gives_one_record_per_partition_with_one_segment_per_round() -> None:
    batch = Batch(2)
    for i in range(100):
        key = (DIGESTS[i % 2], i % 3)
        batch.add([Report(*key, i.to_bytes(16, "big"), 0)], [Verdict("accepted", key)], 0.0)
    records = batch.records(SYSTEM)
    assert sorted(records) == [0, 1]
    for record in records.values():
        keys = [(s.digest, s.round) for s in record.segments]
        assert len(keys) == 3
        assert keys == sorted(set(keys))


@given(st.lists(judged_reports(), max_size=40), st.integers(1, 5))
def test_the_size_of_a_batch_is_never_less_than_its_segments_take(
    judged: list[tuple[Report | Malformed, Verdict]], partitions: int
) -> None:
    batch = Batch(partitions)
    for one, verdict in judged:
        batch.add([one], [verdict], 0.0)
    head = len(encode_record(ReportsRecord(0, (), 2**16))) + 10
    assert sum(len(encode_record(r)) - head for r in batch.records(SYSTEM).values()) <= batch.size


def test_the_size_of_a_batch_grows_with_its_sets_and_rounds() -> None:
    batch = Batch(1)
    for i in range(100):
        one = Report(DIGESTS[0], i, i.to_bytes(16, "big"), b"s" * 1000)
        batch.add([one], [Verdict("accepted", (DIGESTS[0], i))], 0.0)
    stored = len(encode_record(batch.records(SYSTEM)[0]))
    assert stored <= batch.size <= 1.1 * stored


def test_a_record_of_many_segments_is_written_as_several_that_add_up_to_it() -> None:
    """A store answers nobody else while it saves a record, some 65 us for each round that it touches."""
    batch = Batch(1)
    rounds = 2 * MOST_SEGMENTS + 1
    for i in range(rounds):
        one = Report(DIGESTS[0], i, i.to_bytes(16, "big"), i % 5)
        batch.add([one], [Verdict("accepted", (DIGESTS[0], i))], 90.0)
    batch.add([Malformed("x")] * 3, [Verdict("invalid", None)] * 3, 90.0)
    (whole,) = batch.records(SYSTEM).values()
    found = [decode_record(encode_record(part)) for part in parts_of(whole)]
    parts = [part for part in found if isinstance(part, ReportsRecord)]
    assert [len(part.segments) for part in parts] == [MOST_SEGMENTS, MOST_SEGMENTS, 1]
    assert [part.unknown for part in parts] == [3, 0, 0]
    assert {part.minute for part in parts} == {1}
    kept = [(one.digest, one.round, one.ids, one.symbols.tolist()) for part in parts for one in part.segments]
    assert kept == [(DIGESTS[0], i, i.to_bytes(16, "big"), [i % 5]) for i in range(rounds)]
    (empty,) = parts_of(ReportsRecord(7, (), 2))
    assert (empty.minute, empty.segments, empty.unknown) == (7, (), 2)


def test_a_partition_without_reports_gets_no_record() -> None:
    batch = Batch(4)
    key = (DIGESTS[0], 0)
    batch.add([Report(*key, (6).to_bytes(16, "big"), 0)], [Verdict("accepted", key)], 0.0)
    assert list(batch.records(SYSTEM)) == [2]
    assert Batch(4).records(SYSTEM) == {}


def test_the_partition_is_the_last_eight_bytes_of_the_id_modulo_their_number() -> None:
    assert partition_of(b"\xff" * 8 + (1001).to_bytes(8, "big"), 4) == 1
    assert partition_of(bytes(15) + b"\x07", 4) == 3


@pytest.mark.parametrize(
    ("times", "minute"),
    [([119.999], 1), ([120.0], 2), ([60.0, 185.0, 61.0], 3), ([1_800_000_059.9], 30_000_000)],
)
def test_a_record_knows_only_the_minute_of_its_newest_upload(times: list[float], minute: int) -> None:
    batch = Batch(1)
    for now_s in times:
        batch.add([Malformed("x")], [Verdict("invalid", None)], now_s)
    assert batch.records(SYSTEM)[0].minute == minute


def test_reports_lie_in_an_order_drawn_from_the_source_and_keep_their_symbols() -> None:
    key = (DIGESTS[0], 0)
    reports = [Report(*key, i.to_bytes(16, "big"), i) for i in range(200)]
    orders = []
    for seed in (1, 2, 1):
        batch = Batch(1)
        batch.add(reports, [Verdict("accepted", key)] * 200, 0.0)
        (segment,) = batch.records(seeded(seed))[0].segments
        order = [int.from_bytes(segment.ids[16 * i : 16 * i + 16], "big") for i in range(200)]
        assert segment.symbols.tolist() == order
        assert sorted(order) == list(range(200))
        orders.append(order)
    assert orders[0] == orders[2]
    assert orders[0] != orders[1]
    assert orders[0] != list(range(200))


def chi_square_of_orders(order: Callable[[Source], NDArray[np.intp]], n: int, seed: int) -> float:
    """Pearson's statistic of n orders of 4 things against the uniform law on all 24."""
    source = seeded(seed)
    counts = Counter(tuple(order(source).tolist()) for _ in range(n))
    observed = np.array([counts[order] for order in itertools.permutations(range(4))])
    return float(((observed - n / 24) ** 2 / (n / 24)).sum())


@pytest.mark.statistical
def test_every_order_is_as_likely_as_every_other() -> None:
    """n = 24,000 orders of 4 things; Pearson's statistic against the uniform law on 24 orders, seed fixed.

    With 23 degrees of freedom it exceeds 75 with probability 2.0e-7 (scipy.stats.chi2.sf(75, 23)): the
    false-alarm probability. Negative control: 4-bit keys whose ties keep the order of arrival. They leave the
    reports as they came with probability C(19, 4) / 16^4 = 0.0591 instead of 1/24: that alone adds 176.
    """

    def coarse(source: Source) -> NDArray[np.intp]:
        keys = np.frombuffer(source.token_bytes(4), dtype=np.uint8) % 16
        return np.argsort(keys, kind="stable")

    assert chi_square_of_orders(lambda source: random_order(4, source), 24_000, 20260101) < 75.0
    assert chi_square_of_orders(coarse, 24_000, 20260101) > 75.0


def test_equal_keys_are_drawn_again_rather_than_kept_in_order_of_arrival() -> None:
    class Script:
        def __init__(self, *keys: list[int]) -> None:
            self.draws = [np.array(k, dtype=np.uint64).tobytes() for k in keys]

        def token_bytes(self, n: int, /) -> bytes:
            assert len(self.draws[0]) == n
            return self.draws.pop(0)

    source = Script([5, 1, 5], [2, 3, 1])
    assert random_order(3, source).tolist() == [2, 0, 1]
    assert source.draws == []


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_and_one_have_one_order(n: int) -> None:
    assert random_order(n, SYSTEM).tolist() == list(range(n))


def test_held_bytes_never_exceed_the_bound() -> None:
    budget = ByteBudget(100)
    assert budget.take(60)
    assert budget.take(40)
    assert not budget.take(1)
    assert budget.take(0)
    budget.give(40)
    assert not budget.take(41)
    assert budget.take(40)
    assert budget.held == 100


def test_a_batch_of_a_hundred_takes_at_most_twenty_bytes_a_report() -> None:
    key = (DIGESTS[0], 0)
    batch = Batch(1)
    batch.add(
        [Report(*key, i.to_bytes(16, "big"), i % 90) for i in range(100)],
        [Verdict("accepted", key)] * 100,
        0.0,
    )
    assert len(encode_record(batch.records(SYSTEM)[0])) <= 20 * 100
