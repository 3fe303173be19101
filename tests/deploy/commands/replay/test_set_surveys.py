"""Surveys whose reports are sets, from the file to the estimates: every room takes them like numbers."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest
from counting_logs import MINUTE, MemoryStore, announcement, report_id
from devices import Clock, Collector, opener
from surveys import LABELS, START_S, VISITS

from hubbub import Survey, SurveyError
from hubbub.mechanisms import Levels, SetLevels, SubsetSelection, Unary
from hubbub.numeric.randomness import SYSTEM
from hubbub.testing import seeded
from hubbub.wire.record import ReportsRecord, Segment, decode_record, encode_record
from hubbub.wire.report import Malformed, Report, decode_report, decode_upload, encode_report, encode_upload
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.errors import CorruptStoreError
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.stores.store import check
from hubbub_collector.admission import Admission, AdmissionRules
from hubbub_collector.batching.batcher import Batch
from hubbub_deploy.commands.replay.csv_replay import replay
from hubbub_lab.simulation import DeviceSimulator

REGIONS = LABELS.replace(
    '["excellent", "good", "fair", "poor"]', str([f"region {i}" for i in range(20)]).replace("'", '"')
)
HEAD = VISITS.split("[mechanism]")[0].replace("epsilon = 3.0", "epsilon = 1.0")
CATEGORIES = """
[[category]]
name = "none"
values = [0]

[[category]]
name = "some"
range = [1, 20]
"""


def mechanism(text: str, name: str, extra: str = "") -> str:
    return text.split("[mechanism]", maxsplit=1)[0] + f'[mechanism]\nname = "{name}"\n{extra}\n'


TEXTS = {
    "subset": mechanism(REGIONS, "subset"),
    "unary": mechanism(REGIONS, "unary"),
    "levels": mechanism(HEAD, "levels", "category_share = 0.3" + CATEGORIES),
}


@pytest.fixture(params=list(TEXTS))
def survey(request) -> Survey:
    return Survey.parse(TEXTS[request.param])


def test_survey_file_names_the_mechanism():
    channel = Survey.parse(mechanism(LABELS, "unary", 'variant = "symmetric"')).channel
    assert isinstance(channel, Unary)
    assert channel.p_draws + channel.q_draws == 2**31
    assert isinstance(Survey.parse(TEXTS["subset"]).channel, SubsetSelection)
    levels = Survey.parse(TEXTS["levels"]).channel
    assert isinstance(levels, SetLevels)
    assert float(levels.levels[0].share) == pytest.approx(0.3)
    numbers = Survey.parse(mechanism(HEAD, "levels", 'oracles = "grr"' + CATEGORIES)).channel
    assert isinstance(numbers, Levels)
    by_category = mechanism(HEAD, "subset", 'reading = "category"' + CATEGORIES)
    assert Survey.parse(by_category).channel.inputs == 3


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (mechanism(HEAD, "levels", "category_share = 0.3"), "category"),
        (mechanism(HEAD, "levels", "category_share = 0.0" + CATEGORIES), "mechanism.category_share"),
        (mechanism(HEAD, "levels", "category_share = 1" + CATEGORIES), "mechanism.category_share"),
        (mechanism(HEAD, "levels", 'oracles = "olh"' + CATEGORIES), "mechanism.oracles"),
        (mechanism(HEAD, "levels", "boost_epsilon = 1.0" + CATEGORIES), "mechanism.boost_epsilon"),
        (mechanism(REGIONS, "unary", 'variant = "best"'), "mechanism.variant"),
        (mechanism(REGIONS, "subset", 'variant = "optimised"'), "mechanism.variant"),
        (mechanism(REGIONS, "unary").replace("epsilon = 1.0", "epsilon = 30.0"), "mechanism"),
    ],
)
def test_survey_that_asks_for_what_a_mechanism_is_not_is_refused(text, key):
    with pytest.raises(SurveyError) as refusal:
        Survey.parse(text)
    assert refusal.value.key == key


def test_levels_of_other_categories_than_the_survey_s_are_refused():
    survey = Survey.parse(TEXTS["levels"])
    other = Survey.parse(TEXTS["levels"].replace("[0]", "[0, 1]").replace("[1, 20]", "[2, 20]"))
    swapped = survey.canonical.replace(b"\xa4none\x01\x92\xa4some\x14", b"\xa4none\x02\x92\xa4some\x13")
    assert swapped != survey.canonical
    assert other.category_of.tolist() != survey.category_of.tolist()
    with pytest.raises(SurveyError, match="must be a level of its levels channel"):
        Survey.from_canonical(swapped)


def test_survey_survives_its_canonical_bytes(survey):
    copy = Survey.from_canonical(survey.canonical)
    assert copy == survey
    assert copy.channel == survey.channel


def test_report_of_a_set_is_its_bytes_and_two_more(survey):
    symbol = survey.channel.perturb(0)
    data = encode_report(Report(survey.digest, 0, report_id(1), symbol))
    assert len(data) == 36 + 2 + survey.channel.width
    assert decode_report(data) == Report(survey.digest, 0, report_id(1), symbol)


def judged(survey: Survey, symbols) -> tuple[list[str], ReportsRecord]:
    """The gateway's outcomes for reports of these symbols, and the record it writes."""
    body = encode_upload(
        [encode_report(Report(survey.digest, 0, report_id(i), symbol)) for i, symbol in enumerate(symbols)]
    )
    reports = decode_upload(body, max_reports=len(symbols))
    assert not any(isinstance(report, Malformed) for report in reports)
    verdicts = Admission({survey.digest: AdmissionRules.of(survey)}).judge(reports, START_S + 60.0)
    batch = Batch(1)
    batch.add(reports, verdicts, START_S + 60.0)
    return [verdict.outcome for verdict in verdicts], batch.records(SYSTEM)[0]


def strangers(survey: Survey) -> list[bytes | int]:
    """Symbols that the survey's channel cannot send, with the reason in their making."""
    channel = survey.channel
    good = channel.perturb(0)
    spare = int.from_bytes(good, "little") | 1 << channel.bins
    found: list[bytes | int] = [0, good + b"\0", good[:-1], spare.to_bytes(channel.width, "little")]
    if not isinstance(channel, Unary):
        found += [bytes(channel.width), ((1 << channel.bins) - 1).to_bytes(channel.width, "little")]
    if isinstance(channel, SetLevels):
        about_values = next(s for s in iter(lambda: channel.perturb(3), None) if s[0] & 3 == 2)
        both = int.from_bytes(about_values, "little") ^ 3  # names the other level
        found.append(both.to_bytes(channel.width, "little"))
    return found


def test_gateway_admits_the_channel_s_sets_and_nothing_else(survey):
    wrong = strangers(survey)
    right = [survey.channel.perturb(value % 20) for value in range(50)]
    outcomes, record = judged(survey, [*right, *wrong])
    assert outcomes == ["accepted"] * 50 + ["invalid"] * len(wrong)
    (segment,) = record.segments
    assert segment.symbols.shape == (50, survey.channel.width)
    assert sorted(row.tobytes() for row in segment.symbols) == sorted(right)
    assert decode_record(encode_record(record)) == record


def test_counting_takes_valid_sets_from_any_log_and_counts_supports(survey):
    channel = survey.channel
    sets = channel.perturb(np.arange(300) % 20, source=seeded(1))
    wrong = [row for row in strangers(survey) if isinstance(row, bytes) and len(row) == channel.width]
    column = np.concatenate([sets, np.frombuffer(b"".join(wrong), np.uint8).reshape(-1, channel.width)])
    ids = b"".join(report_id(i) for i in range(len(column)))
    numbers = np.zeros(7, dtype=np.uint8)
    state = PartitionState()
    log = [
        announcement(survey),
        record_of(Segment(survey.digest, 0, ids, column, len(column))),
        record_of(Segment(survey.digest, 0, ids[: 16 * 7], numbers, 7)),  # a column of numbers holds no sets
        record_of(Segment(survey.digest, 0, ids[: 16 * 40], column[:40], 40)),  # again
        record_of(Segment(survey.digest, 0, b"", np.zeros(0, np.uint8), 2, {"early": 2})),
    ]
    state.commit(apply_many(state, enumerate(log)))
    known = state.rounds[survey.digest, 0]
    assert known.counts.tolist() == channel.tally(sets).tolist()
    assert (known.verdicts.accepted, known.verdicts.duplicate) == (300, 40)
    assert (known.verdicts.invalid, known.verdicts.early) == (len(wrong) + 7, 2)
    assert known.verdicts.holds
    singly = PartitionState()
    for offset, data in enumerate(log):
        singly.commit(apply_many(singly, [(offset, data)]))
    assert singly.rounds[survey.digest, 0].counts.tolist() == known.counts.tolist()


def record_of(segment: Segment) -> bytes:
    return encode_record(ReportsRecord(MINUTE, (segment,)))


def test_sets_are_not_numbers_and_a_survey_of_numbers_takes_none():
    survey = Survey.parse(LABELS)
    outcomes, _ = judged(survey, [b"\x01", 1])
    assert outcomes == ["invalid", "accepted"]
    state = PartitionState()
    sets = Segment(survey.digest, 0, report_id(1), np.ones((1, 1), dtype=np.uint8), 1)
    state.commit(apply_many(state, enumerate([announcement(survey), record_of(sets)])))
    assert state.rounds[survey.digest, 0].verdicts.invalid == 1


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_stores_keep_supports_and_notice_when_they_cannot_be(survey, kind, tmp_path: Path):
    sets = survey.channel.perturb(np.arange(100) % 20, source=seeded(1))
    ids = b"".join(report_id(i) for i in range(100))
    log = [announcement(survey), record_of(Segment(survey.digest, 0, ids, sets, 100))]
    state = PartitionState()
    change = apply_many(state, enumerate(log))
    state.commit(change)
    store = (
        MemoryStore()
        if kind == "memory"
        else SqliteStore(tmp_path / "store.db", log_identity="log", partitions=1)
    )
    with closing(store) if isinstance(store, SqliteStore) else nullcontext():
        store.save(0, change)
        loaded = store.load(0)
    assert loaded.rounds[survey.digest, 0].counts.tolist() == state.rounds[survey.digest, 0].counts.tolist()
    state.rounds[survey.digest, 0].counts[-1] += 101
    with pytest.raises(CorruptStoreError):
        check(0, state)


def test_agent_answers_with_a_set_and_keeps_the_same_for_a_pinned_value(tmp_path: Path):
    survey = Survey.parse(TEXTS["levels"])
    clock, collector = Clock(float(START_S)), Collector()
    with opener(tmp_path, clock, collector) as make:
        agent = make()
        agent.set("visits", 3)
        assert agent.enrol(survey).accepted
        for _ in range(2):
            agent.answer()
            agent.upload()
            clock.now_s += survey.round_s
            agent.close()
            agent = make()
        first, second = collector.received
        assert survey.channel.admits(first.symbol)
        assert (first.symbol, first.round, second.round) == (second.symbol, 0, 1)
        assert first.id != second.id
        assert [decode_report(kept.data) for kept in agent.sent()] == [first, second]
        logs = survey.channel.log_likelihood(first.symbol)
        assert agent.status().loss == pytest.approx(np.ptp(logs), abs=1e-9)


def test_fleet_reports_sets_as_an_agent_would(survey):
    fleet = DeviceSimulator(30, budget=10.0, source=seeded(3))
    fleet.register(survey.attribute)
    attribute = survey.attribute
    fleet.set(attribute.id, [None if i % 5 == 0 else i % 20 for i in range(30)])
    assert fleet.enrol(survey, now_s=START_S).accepted.all()
    (column,) = fleet.answer(now_s=START_S)
    assert column.symbols.shape == (30, survey.channel.width)
    for row in (0, 29):
        report = decode_report(column.report(row).data)
        assert report.symbol == column.symbols[row].tobytes()
    losses = [np.ptp(survey.channel.log_likelihood(symbol.tobytes())) for symbol in column.symbols]
    np.testing.assert_allclose(fleet.loss, losses, atol=1e-9)


@pytest.mark.statistical
def test_replay_of_sets_estimates_the_truth(survey):
    """n = 20,000 devices, seed 4: every value and category within 6.5 standard errors of the truth.

    At most 30 cells, each normal to well within its tail: false alarm below 30 * 8e-11. Control: the truth of
    a crowd whose values are shifted by one is beyond that for some cell.
    """
    rng = np.random.default_rng(4)
    held = np.minimum(rng.geometric(0.25, 20_000) - 1, 19)
    labels = survey.attribute.to_spec()[2] == "label"
    values = [f"region {i}" if labels else int(i) for i in held]
    document = replay(survey, values, source=seeded(4)).release
    shares = np.bincount(held, minlength=20) / 20_000
    for cells, shift in ((shares, 0), (np.roll(shares, 1), 1)):
        z = [
            abs(entry["estimate"] - cells[i]) / entry["error"]
            for i, entry in enumerate(document["values"][:20])
        ]
        assert (max(z) > 6.5) == bool(shift)
    for entry in document["categories"]:
        truth = {"none": shares[0], "some": 1 - shares[0], "answered": 1.0, "missing": 0.0}[entry["label"]]
        assert abs(entry["estimate"] - truth) < 6.5 * entry["error"] + 1e-9
