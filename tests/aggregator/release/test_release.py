"""What is published: the archive's bytes, accounting at the cut, the minimum cohort, provisional steps."""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import DISEASES, LABELS, VISITS

from hubbub.errors import ParameterError
from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.errors import AccountingError, ArchiveError, ArchiveFullError, DivergedError
from hubbub_aggregator.release.disclosure import UNKNOWN, AcceptedSizes, Shown
from hubbub_aggregator.release.estimates import METHOD
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate, advance
from hubbub_aggregator.release.round_release import (
    Release,
    archived_release,
    canonical_bytes,
    gather,
    release,
    require_method,
)
from hubbub_aggregator.stores.archive import SqliteArchive

HEALTH = Survey.parse(LABELS)


def states(survey: Survey, per_partition: int, *, sealed: bool = True) -> dict[int, PartitionState]:
    """Two partitions with `per_partition` accepted reports each."""
    made = {}
    for partition in range(2):
        pairs = [
            (report_id(2 * i + partition), (7 * i) % survey.channel.outputs) for i in range(per_partition)
        ]
        records = [announcement(survey), batch(segment(survey, 0, [*pairs, *pairs[:5]], late=2))]
        if sealed:
            records += [encode_record(SealRecord(survey.digest, 0)), batch(segment(survey, 0, pairs))]
        made[partition] = PartitionState()
        made[partition].commit(apply_many(made[partition], enumerate(records)))
    return made


def document(survey: Survey, per_partition: int) -> dict[str, object]:
    made = release(survey, 0, states(survey, per_partition))
    assert made is not None
    return json.loads(canonical_bytes(made.document()))


def test_round_is_not_released_until_every_partition_has_its_seal() -> None:
    sealed, open_round = states(HEALTH, 100), states(HEALTH, 100, sealed=False)
    assert release(HEALTH, 0, {0: sealed[0], 1: open_round[1]}) is None
    assert release(HEALTH, 0, {0: sealed[0], 1: PartitionState()}) is None
    assert release(HEALTH, 0, sealed) is not None


def test_release_holds_the_accounting_at_the_cut_and_nothing_after_it() -> None:
    found = document(HEALTH, 100)
    assert found["cut"] == {"0": 2, "1": 2}
    assert found["accounting"] == {
        "attempts": 214,
        "accepted": 200,
        "duplicate": 10,
        "early": 0,
        "late": 4,
        "invalid": 0,
        "over_quota": 0,
    }
    assert (found["devices"], found["sealed"], found["suppressed"]) == (200, True, False)


@pytest.mark.parametrize("text", [LABELS, VISITS, DISEASES])
def test_release_gives_the_estimators_own_numbers(text: str) -> None:
    survey = Survey.parse(text)
    made = states(survey, 400)
    counts = made[0].rounds[survey.digest, 0].counts + made[1].rounds[survey.digest, 0].counts
    estimate = survey.estimator()(counts, 800)
    spans, band = estimate.intervals(0.95), estimate.simultaneous(0.95)
    found = document(survey, 400)
    assert [cell["label"] for cell in found["values"]] == list(survey.input_labels)
    assert [cell["estimate"] for cell in found["values"]] == estimate.values.tolist()
    assert found["method"] == METHOD
    assert [cell["error"] for cell in found["values"]] == estimate.printed_errors[0].tolist()
    assert [cell["simultaneous_low"] for cell in found["values"]] == band.values_low.tolist()
    assert [cell["simultaneous_high"] for cell in found["categories"]] == band.categories_high.tolist()
    assert [cell["low"] for cell in found["values"]] == spans.values_low.tolist()
    assert [cell["high"] for cell in found["values"]] == spans.values_high.tolist()
    assert [cell["category"] for cell in found["values"]][-1] == "missing"
    assert [cell["label"] for cell in found["categories"]] == list(survey.category_names)
    assert [cell["estimate"] for cell in found["categories"]] == estimate.categories.tolist()
    assert found["consistent"]["values"] == estimate.consistent().values.tolist()
    margin = estimate.poison_margin()
    assert found["poison_margin"] == {
        "values": [None if np.isinf(count) else count for count in margin.values.tolist()],
        "categories": [None if np.isinf(count) else count for count in margin.categories.tolist()],
    }
    assert min(found["poison_margin"]["values"]) >= 1
    assert found["epsilon"] == {"declared": survey.epsilon, "certified": survey.channel.epsilon}
    if text is LABELS:
        assert found["mean"] is None
    else:
        assert found["mean"]["estimate"] == estimate.mean
        assert found["mean"]["error"] == estimate.printed_mean_error


@pytest.mark.parametrize("method", [*range(1, 10), 11, "10", None])
def test_release_of_another_method_is_refused_in_one_sentence(method: object) -> None:
    found = document(Survey.parse(LABELS), 400)
    assert found["method"] == METHOD == 10
    key = bytes.fromhex(found["survey"]["digest"]), 0
    assert archived_release(key, canonical_bytes(found)) == found
    other = {name: value for name, value in found.items() if name != "method"}
    if method is not None:
        other["method"] = method
    said = f"a release's method must be 10, got {method!r}"
    with pytest.raises(ParameterError, match=f"^{said}$"):
        require_method(other)
    with pytest.raises(ArchiveError, match=f"^survey {key[0].hex()}, round 1: {said}$"):
        archived_release(key, canonical_bytes(other))


def test_small_round_has_no_cell_without_error_or_width() -> None:
    survey = Survey.parse(LABELS)
    found = document(survey, 400)
    for cell in found["values"] + found["categories"]:
        assert (
            0.0 <= cell["simultaneous_low"] <= cell["low"] < cell["high"] <= cell["simultaneous_high"] <= 1.0
        )
        assert cell["error"] > 0.0


def test_values_that_the_channel_hides_are_null() -> None:
    survey = Survey.parse(VISITS.replace("boost_epsilon = 2.0", "boost_epsilon = 0.0"))
    found = document(survey, 200)
    hidden = [cell for cell in found["values"] if cell["category"] == "more than 2"]
    assert hidden
    assert all(cell["estimate"] is None and cell["error"] is None for cell in hidden)
    assert all(cell["estimate"] is not None for cell in found["categories"])


def test_below_the_minimum_cohort_there_is_nothing_but_the_accounting() -> None:
    found = document(HEALTH, 49)
    assert found["suppressed"] is True
    assert (found["values"], found["categories"], found["mean"]) == ([], [], None)
    assert found["consistent"] == {"values": [], "categories": []}
    assert found["poison_margin"] is None
    assert found["accounting"]["accepted"] == 98
    assert document(HEALTH, 50)["suppressed"] is False


def test_round_that_nobody_answered_is_released_suppressed() -> None:
    empty = {}
    for partition in range(2):
        records = [announcement(HEALTH), encode_record(SealRecord(HEALTH.digest, 1))]
        empty[partition] = PartitionState()
        empty[partition].commit(apply_many(empty[partition], enumerate(records)))
    made = release(HEALTH, 1, empty)
    assert made is not None
    assert made.is_suppressed
    assert made.document()["accounting"]["attempts"] == 0
    assert made.document()["start"] == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize("fault", [VerdictCounts(attempts=1), VerdictCounts(1, 1)])
def test_accounting_that_does_not_hold_at_the_cut_is_refused(fault: VerdictCounts) -> None:
    made = states(HEALTH, 100)
    made[1].rounds[HEALTH.digest, 0].verdicts += fault
    with pytest.raises(AccountingError, match="partition 1"):
        gather((HEALTH.digest, 0), made)


def test_release_bytes_are_canonical_and_equal_for_equal_counts() -> None:
    one, two = release(HEALTH, 0, states(HEALTH, 100)), release(HEALTH, 0, states(HEALTH, 100))
    assert one is not None
    assert two is not None
    data = canonical_bytes(one.document())
    assert data == canonical_bytes(two.document(HEALTH.estimator()))
    text = data.decode()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteArchive]:
    archive = SqliteArchive(tmp_path / "archive.sqlite")
    yield archive
    archive.close()


def test_archive_keeps_the_first_version_and_refuses_another(archive: SqliteArchive) -> None:
    key = (HEALTH.digest, 0)
    assert archive.get(key) is None
    archive.put(key, b"one")
    archive.put(key, b"one")
    with pytest.raises(DivergedError, match="round 1:"):
        archive.put(key, b"two")
    assert archive.get(key) == b"one"
    assert archive.rounds() == [key]


def test_an_archive_of_schema_1_is_refused_in_one_sentence_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE release (digest BLOB, round INTEGER, document BLOB NOT NULL)")
        db.execute("PRAGMA user_version = 1")
    before = path.read_bytes()
    with pytest.raises(ArchiveError, match=r"^\S+ must be an archive of schema 2, got 1$"):
        SqliteArchive(path)
    assert path.read_bytes() == before


def test_archive_of_another_schema_or_no_archive_is_refused(tmp_path: Path) -> None:
    newer, other, text = tmp_path / "newer.sqlite", tmp_path / "other.sqlite", tmp_path / "text"
    for path, statement in ((newer, "PRAGMA user_version = 99"), (other, "CREATE TABLE cats (name)")):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(statement)
        db.close()
    text.write_bytes(b"not a database, but long enough to be taken for one " * 20)
    for path in (newer, other, text):
        with pytest.raises(ArchiveError):
            SqliteArchive(path)


def test_no_flipped_bit_of_an_archive_changes_a_release(tmp_path: Path) -> None:
    """Bits of every page, one at a time: the same releases, none, or an error."""
    path, flipped = tmp_path / "archive.sqlite", tmp_path / "flipped.sqlite"
    put = {(HEALTH.digest, number): json.dumps({"round": number}).encode() * 20 for number in range(6)}
    with closing(SqliteArchive(path)) as archive:
        for key, data in put.items():
            archive.put(key, data)
    data, refused = path.read_bytes(), 0
    for bit in range(0, len(data) * 8, 331):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        flipped.write_bytes(changed)
        try:
            with closing(SqliteArchive(flipped)) as archive:
                for key in archive.rounds():
                    found = archive.get(key)
                    assert found == put.get(key), bit
        except ArchiveError:
            refused += 1
        for suffix in ("-wal", "-shm"):
            Path(f"{flipped}{suffix}").unlink(missing_ok=True)
    assert refused > 30


def tally(n: int) -> AcceptedCounts:
    return AcceptedCounts({0: n}, np.array([n], dtype=np.int64), n)


def test_nothing_is_shown_before_a_second_cohort_has_come() -> None:
    assert advance(None, tally(99), shown=Shown(), step=100) is None
    steps = advance(None, tally(100), shown=Shown(), step=100)
    assert steps == PublicationGate(None, tally(100))
    shown = Shown((AcceptedSizes(100, {0: 100}),))
    assert advance(steps, tally(199), shown=shown, step=100) is steps
    assert advance(steps, tally(200), shown=shown, step=100) == PublicationGate(tally(100), tally(200))
    assert advance(steps, tally(200), shown=UNKNOWN, step=100) is steps


def test_a_store_that_was_lost_or_is_older_begins_a_step_past_all_that_was_shown() -> None:
    shown = Shown((AcceptedSizes(100, {0: 100}), AcceptedSizes(230, {0: 230})))
    assert advance(None, tally(329), shown=shown, step=100) is None
    assert advance(None, tally(330), shown=shown, step=100) == PublicationGate(None, tally(330))
    older = PublicationGate(None, tally(100))
    assert advance(older, tally(229), shown=shown, step=100) is older
    assert advance(older, tally(330), shown=shown, step=100) == PublicationGate(tally(100), tally(330))
    other = PublicationGate(tally(100), tally(220))  # of a cut that was not shown: never published
    assert advance(other, tally(330), shown=shown, step=100) == PublicationGate(tally(100), tally(330))


def test_views_and_the_release_always_differ_by_a_cohort() -> None:
    rng = np.random.default_rng(6)
    for cohort in (1, 7, 100):
        steps, n, shown, kept = None, 0, [], Shown()
        for _ in range(500):
            n += int(rng.integers(0, 30))
            moved = advance(steps, tally(n), shown=kept, step=cohort)
            if moved is not steps:
                steps, kept = moved, kept.add(AcceptedSizes(n, {0: n}))
            if steps is not None and steps.published is not None and steps.published.n not in shown:
                shown.append(steps.published.n)
            views = [0, *shown, n]  # n: were the round sealed now
            if shown:
                assert min(b - a for a, b in itertools.pairwise(views)) >= cohort
        assert len(shown) > 3


def test_provisional_document_says_that_it_is_not_sealed() -> None:
    counts = np.array([100, 50, 25, 25, 0], dtype=np.int64)
    shown = Release(HEALTH, 0, "provisional", AcceptedCounts({0: 4}, counts, 200), VerdictCounts(300, 300))
    found = shown.document()
    assert (found["sealed"], found["devices"], found["accounting"]["accepted"]) == (False, 200, 300)


def test_archive_may_be_made_by_several_at_once(tmp_path: Path) -> None:
    def make(number: int) -> None:
        SqliteArchive(tmp_path / f"{number // 4}.sqlite").close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(200)))


@pytest.mark.parametrize("together", [False, True])
def test_an_archive_without_room_says_so_and_takes_the_release_when_there_is_some(
    tmp_path: Path, together: bool
) -> None:
    """SQLite's own bound on the pages of a file answers as a full disk does."""
    key, data = (bytes(16), 0), bytes(2**20)
    with closing(SqliteArchive(tmp_path / "archive.sqlite")) as archive:
        (pages,) = archive._db.execute("PRAGMA page_count").fetchone()
        archive._db.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(2):
            with (
                pytest.raises(ArchiveFullError, match="database or disk is full"),
                archive.together() if together else contextlib.nullcontext(),
            ):
                archive.put(key, data)
        assert archive.get(key) is None
        archive._db.execute("PRAGMA max_page_count = 1000000")
        with archive.together() if together else contextlib.nullcontext():
            archive.put(key, data)
        assert archive.get(key) == data
        archive._db.execute("DROP TABLE release")
        with pytest.raises(ArchiveError, match="no such table") as found:
            archive.get(key)
        assert type(found.value) is ArchiveError
