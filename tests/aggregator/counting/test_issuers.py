"""Tallies by issuer and issuers' quotas: the same as judged report by report, however records are grouped."""

from __future__ import annotations

import numpy as np
import pytest
from counting_logs import announcement, batch, counted, report_id, segment
from hypothesis import given
from hypothesis import strategies as st
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap
from hubbub.wire.record import ReportsRecord, SealRecord, Segment, Voucher, decode_record, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.issuers import MAX_ISSUERS, OTHERS
from hubbub_aggregator.counting.partition import PartitionState, share_of

HEALTH = Survey.parse(LABELS)
FEW = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 24"))
KEY = (HEALTH.digest, 0)

_VOUCHERS = st.one_of(
    st.none(),
    st.builds(Voucher, st.sampled_from(["a", "b"]), st.one_of(st.none(), st.integers(0, 30))),
)
# Few ids, so that copies are frequent, across issuers too; symbols of which some are invalid.
_SEGMENTS = st.tuples(_VOUCHERS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 13)), max_size=12))


def placed() -> PartitionState:
    state = PartitionState()
    state.place(PartitionMap.of(2), 1)
    return state


def judged_singly(
    survey: Survey, segments: list[tuple[Voucher | None, list[tuple[int, int]]]]
) -> tuple[dict[str, list[int]], list[int]]:
    """A reference in plain Python: accepted, duplicate and over quota by issuer, and the counts by symbol."""
    room = None if survey.quota is None else share_of(survey.quota, (1, 2))
    found: dict[str, list[int]] = {}
    counts = [0] * survey.channel.bins
    seen: set[int] = set()
    for voucher, reports in segments:
        for number, symbol in reports:
            if symbol >= len(counts):
                continue
            mine = [0, 0, 0] if voucher is None else found.setdefault(voucher.issuer, [0, 0, 0])
            most = None if voucher is None or voucher.quota is None else share_of(voucher.quota, (1, 2))
            if number in seen:
                mine[1] += 1
            elif (room is not None and len(seen) >= room) or (most is not None and mine[0] >= most):
                mine[2] += 1
            else:
                mine[0] += 1
                seen.add(number)
                counts[symbol] += 1
    return found, counts


@given(st.lists(_SEGMENTS, max_size=8), st.sets(st.integers(0, 8)), st.sampled_from([HEALTH, FEW]))
def test_issuers_are_counted_as_if_judged_one_by_one(
    segments: list[tuple[Voucher | None, list[tuple[int, int]]]], cuts: set[int], survey: Survey
) -> None:
    records = [announcement(survey)] + [
        batch(segment(survey, 0, [(report_id(i), symbol) for i, symbol in reports], voucher))
        for voucher, reports in segments
    ]
    state, begin = placed(), 0
    for end in sorted({*cuts, len(records)}):
        state.commit(apply_many(state, enumerate(records[begin:end], start=begin)))
        begin = max(begin, min(end, len(records)))
    known = state.rounds.get((survey.digest, 0))
    expected, counts = judged_singly(survey, segments)
    if known is None:
        assert not segments
        return
    assert {name: list(tally.numbers) for name, tally in known.issuers.items()} == expected
    assert list(known.issuers) == list(expected)
    assert sum(counts) == known.verdicts.accepted
    assert known.counts.tolist() == (counts if len(known.counts) else [])
    assert known.verdicts.holds
    assert state.counted((survey.digest, 0))
    for tally in known.issuers.values():
        assert tally.accepted == tally.counts.sum()
    whole = placed()
    whole.commit(apply_many(whole, enumerate(records)))
    assert counted(whole) == counted(state)


def test_nothing_is_added_to_an_issuer_after_the_seal() -> None:
    first = batch(segment(HEALTH, 0, [(report_id(1), 1)], Voucher("a")))
    second = batch(segment(HEALTH, 0, [(report_id(2), 1)], Voucher("a")))
    state = placed()
    records = [announcement(HEALTH), first, encode_record(SealRecord(*KEY)), second]
    state.commit(apply_many(state, enumerate(records)))
    assert state.rounds[KEY].issuers["a"].numbers == (1, 0, 0)
    assert state.rounds[KEY].after_seal.late == 1


def test_so_many_issuers_are_told_apart_and_the_others_are_one() -> None:
    names = [f"issuer-{number}" for number in range(MAX_ISSUERS + 3)]
    records = [announcement(HEALTH)] + [
        batch(segment(HEALTH, 0, [(report_id(number), 1)], Voucher(name)))
        for number, name in enumerate([*names, *names])
    ]
    together, apart = placed(), placed()
    together.commit(apply_many(together, enumerate(records)))
    for offset, record in enumerate(records):
        apart.commit(apply_many(apart, [(offset, record)]))
    assert counted(together) == counted(apart)
    issuers = together.rounds[KEY].issuers
    assert list(issuers) == [*names[:MAX_ISSUERS], OTHERS]
    assert issuers[OTHERS].accepted == 6
    assert issuers[names[0]].accepted == 2


def test_a_record_without_vouchers_has_the_bytes_that_it_always_had() -> None:
    plain = segment(HEALTH, 0, [(report_id(1), 1)])
    vouched = segment(HEALTH, 0, [(report_id(1), 1)], Voucher("tokens.example.org", 7))
    one, other = batch(plain), batch(vouched)
    assert decode_record(one) == ReportsRecord(decode_record(one).minute, (plain,))  # type: ignore[union-attr]
    found = decode_record(other)
    assert isinstance(found, ReportsRecord)
    assert found.segments == (vouched,)
    assert found.segments[0] != plain
    # A segment of eight begins as one of seven does.
    assert len(other) == len(one) + len(b"\x92\xb2tokens.example.org\x07")


@pytest.mark.parametrize("voucher", [Voucher(""), Voucher("é"), Voucher("x" * 256), Voucher("a", -2)])
def test_a_voucher_that_breaks_its_rule_is_no_segment(voucher: Voucher) -> None:
    from hubbub.errors import ParameterError

    bad = Segment(HEALTH.digest, 0, b"", np.empty(0, dtype=np.uint8), 0, {}, voucher)
    with pytest.raises(ParameterError, match="segment issuer"):
        encode_record(ReportsRecord(1, (bad,)))
