"""A round counted again without an issuer: exact, said in name and content, beside the sealed release."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_aggregator.runners import Worker
from hubbub_aggregator.stores import RecountFolder, SqliteArchive, SqliteStore
from hubbub_aggregator.web import LiveView
from hubbub_deploy.cli import main
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import LOG_FILE, STORE_FILE
from hubbub_topic.sqlite import SqliteLog

# So few that the forger's reports keep others out.
HEALTH = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 400"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A node's folder, of one round: 150 honest reports, 200 of a forger's, 150 honest ones."""
    symbols = np.random.default_rng(3).integers(0, HEALTH.channel.outputs, 500)
    honest, forged = Voucher("tokens.example.org"), Voucher("leaky.example.org")
    parts = [(honest, range(150)), (forged, range(150, 350)), (honest, range(350, 500))]
    with SqliteLog(tmp_path / LOG_FILE, 1) as log:
        log.append({0: [announcement(HEALTH)]})
        for voucher, numbers in parts:
            pairs = [(report_id(i), 2 if voucher == forged else int(symbols[i])) for i in numbers]
            log.append({0: [batch(segment(HEALTH, 0, pairs, voucher))]})
        log.append({0: [encode_record(SealRecord(HEALTH.digest, 0))]})
    return tmp_path


def released(folder: Path, *options: object) -> tuple[str, dict[str, object]]:
    out = folder / f"out-{len(list(folder.iterdir()))}"
    assert main(["replay", str(folder), "--out", str(out), *map(str, options)]) == 0
    (path,) = out.glob("*.json")
    return path.name, json.loads(path.read_bytes())


def test_a_recount_leaves_an_issuer_out_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / LOG_FILE).read_bytes()
    name, whole = released(folder)
    assert "recount" not in whole
    assert (name, whole["round"]) == (f"{HEALTH.id}-v1-round-1-of-{HEALTH.rounds}.json", 1)
    assert whole["accounting"]["over_quota"] == 100  # type: ignore[index]
    label, without = released(folder, "--without-issuer", "leaky.example.org")
    assert label == name.replace(".json", "-without-leaky.example.org.json")
    assert without["recount"] == {"without_issuers": ["leaky.example.org"]}
    # Not the difference of two histograms: the reports that found no room now do.
    assert (without["devices"], without["accounting"]["over_quota"]) == (300, 0)  # type: ignore[index]
    assert [line["issuer"] for line in without["issuers"]] == ["tokens.example.org"]  # type: ignore[attr-defined]
    assert (folder / LOG_FILE).read_bytes() == before
    capsys.readouterr()
    assert main(["replay", str(folder), "--without-issuer", "misspelt"]) != 0
    assert "no report of issuer misspelt" in capsys.readouterr().err


def node(folder: Path) -> None:
    """Count and release the folder's round as its node does."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(SqliteLog(folder / LOG_FILE, None))
        store = SqliteStore(folder / STORE_FILE, log_identity=log.identity, partitions=1)
        archive = SqliteArchive(folder / ARCHIVE_FILE)
        stack.callback(store.close)
        stack.callback(archive.close)
        worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: 0.0, read_records=1)
        while worker.step():
            pass


def kept(folder: Path) -> bytes:
    with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
        ((key),) = archive.rounds()
        found = archive.get(key)
    assert found is not None
    return found


def written(folder: Path, survey: Survey, parts: Sequence[tuple[str, int]]) -> Path:
    """A node's folder of one round of which each issuer sends so many reports, one after the other."""
    symbols, start = np.random.default_rng(3).integers(0, survey.channel.outputs, 9000), 0
    with SqliteLog(folder / LOG_FILE, 1) as log:
        log.append({0: [announcement(survey)]})
        for issuer, size in parts:
            pairs = [(report_id(i), int(symbols[i])) for i in range(start, start + size)]
            log.append({0: [batch(segment(survey, 0, pairs, Voucher(issuer)))]})
            start += size
        log.append({0: [encode_record(SealRecord(survey.digest, 0))]})
    node(folder)
    return folder


def test_a_recount_is_published_beside_the_release_and_not_in_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node(folder)
    before = kept(folder)
    words = ["replay", str(folder), "--without-issuer", "leaky.example.org", "--publish"]
    for _ in range(2):  # the same bytes again are no other recount
        assert main(words) == 0
        assert "round 1: published as" in capsys.readouterr().err
    (recount,) = RecountFolder(folder).by_survey()[HEALTH.digest.hex()]
    assert recount["recount"] == {"without_issuers": ["leaky.example.org"]}
    assert (recount["devices"], recount["accounting"]["over_quota"]) == (300, 0)
    assert [line["p_value"] for line in recount["issuers"]] == [None]
    assert kept(folder) == before
    # Without both nothing is left to be told.
    assert main([*words, "--without-issuer", "tokens.example.org"]) == 0
    assert [each["suppressed"] for each in RecountFolder(folder).by_survey()[HEALTH.digest.hex()]] == [
        False,
        True,
    ]


def test_the_release_compares_no_issuer_of_few_reports_and_a_replay_has_its_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, Survey.parse(LABELS), [("a", 600), ("b", 600), ("c", 1), ("d", 99)])
    release = json.loads(kept(folder))
    assert [line["accepted"] for line in release["issuers"]] == [600, 600, 1, 99]
    for line in release["issuers"]:
        told = [line[name] for name in ("output", "share", "others_share", "p_value")]
        assert (None not in told) == (line["issuer"] in "ab")
        assert told.count(None) in (0, 4)
    capsys.readouterr()
    assert main(["replay", str(folder)]) == 0
    assert "the same bytes" in capsys.readouterr().out


def test_recounts_whose_sums_and_differences_show_few_reports_are_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a, plus without b, less the release is c's five reports, which no pair of documents shows."""
    folder = written(tmp_path, Survey.parse(LABELS), [("a", 600), ("b", 600), ("c", 5)])
    words = ["replay", str(folder), "--publish", "--without-issuer"]
    published = {}
    for name in "cab":
        capsys.readouterr()
        published[name] = main([*words, name]) == 0
        said = capsys.readouterr().err
        assert ("the minimum cohort of 100 reports, however it is combined, got 5" in said) != published[name]
    assert published == {"c": False, "a": True, "b": False}
    (recount,) = RecountFolder(folder).of_round((Survey.parse(LABELS).digest, 0))
    assert recount["recount"] == {"without_issuers": ["a"]}


def test_a_recount_is_judged_beside_the_steps_of_its_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The step at 150 is all b's; the reports after it less a's are ten of b's."""
    survey = Survey.parse(LABELS)
    folder = written(tmp_path, survey, [("b", 150), ("a", 300), ("b", 10), ("a", 100)])
    with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
        shown = archive.shown((survey.digest, 0))
    assert shown is not None
    assert [cut[0] for cut in json.loads(shown)["cuts"]] == [150, 450]
    assert main(["replay", str(folder), "--publish", "--without-issuer", "b"]) == 1
    assert "the minimum cohort of 100 reports, however it is combined, got 10" in capsys.readouterr().err


def test_nothing_is_published_of_a_round_of_which_it_is_not_known_what_was_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node(folder)
    with contextlib.closing(sqlite3.connect(folder / ARCHIVE_FILE)) as db, db:
        db.execute("DELETE FROM shown")
    assert main(["replay", str(folder), "--publish", "--without-issuer", "leaky.example.org"]) == 1
    assert "what was shown of the round while it was open is not known here" in capsys.readouterr().err
    assert RecountFolder(folder).files() == []


def test_nothing_is_published_where_no_release_is_archived(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), "--publish", "--without-issuer", "leaky.example.org"]) == 1
    assert "nothing is published; no release there can be recounted so" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data", "--publish"], "--publish is about recounts, and needs --without-issuer"),
        (
            ["kafka://k:1/t", "--publish", "--without-issuer", "a"],
            "--publish of a topic's recounts needs --archive, the dashboard's folder",
        ),
    ],
)
def test_a_publication_without_what_it_needs_is_misuse(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
