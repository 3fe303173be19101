"""A round counted again without an issuer: exact, said in name and content, beside the sealed release."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_aggregator.release import canonical_bytes
from hubbub_aggregator.stores import RecountFolder, SqliteArchive
from hubbub_deploy.cli import main
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import LOG_FILE
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
    (path,) = out.iterdir()
    return path.name, json.loads(path.read_bytes())


def test_a_recount_leaves_an_issuer_out_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / LOG_FILE).read_bytes()
    name, whole = released(folder)
    assert "recount" not in whole
    assert (name, whole["round"]) == (f"{HEALTH.id}-v1-round-1-of-{HEALTH.rounds}.json", 0)
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


def archived(folder: Path, capsys: pytest.CaptureFixture[str]) -> bytes:
    """Put the round's release into the folder's archive, as its node did when it was sealed."""
    _, whole = released(folder)
    data = canonical_bytes(whole)
    with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
        archive.put((HEALTH.digest, 0), data)
    capsys.readouterr()
    return data


def test_a_recount_is_published_beside_the_release_and_not_in_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = archived(folder, capsys)
    words = ["replay", str(folder), "--without-issuer", "leaky.example.org", "--publish"]
    for _ in range(2):  # the same bytes again are no other recount
        assert main(words) == 0
        assert "round 1: published as" in capsys.readouterr().err
    (recount,) = RecountFolder(folder).by_survey()[HEALTH.digest.hex()]
    assert recount["recount"] == {"without_issuers": ["leaky.example.org"]}
    assert (recount["devices"], recount["accounting"]["over_quota"]) == (300, 0)
    with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
        assert archive.get((HEALTH.digest, 0)) == kept
    # Without both nothing is left, and without it and nobody else a difference of two recounts is large, too.
    assert main([*words, "--without-issuer", "tokens.example.org"]) == 0
    assert [each["suppressed"] for each in RecountFolder(folder).by_survey()[HEALTH.digest.hex()]] == [
        False,
        True,
    ]


def test_a_recount_that_shows_few_reports_by_its_difference_is_not_published(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = json.loads(archived(folder, capsys))
    for line in kept["issuers"]:
        line["accepted"] = 60  # of a cohort of 100
    (folder / ARCHIVE_FILE).unlink()
    with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
        archive.put((HEALTH.digest, 0), canonical_bytes(kept))
    words = ["replay", str(folder), "--publish", "--without-issuer", "leaky.example.org"]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "at least the minimum cohort of 100 reports, got 60" in said
    assert "nothing is published" in said
    assert RecountFolder(folder).files() == []
    # Two issuers are far enough from the release; each alone then is not from what is published.
    assert main([*words, "--without-issuer", "tokens.example.org"]) == 0
    for line in kept["issuers"]:
        line["accepted"] = 100 if line["issuer"] == "leaky.example.org" else 60
    (folder / ARCHIVE_FILE).unlink()
    with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
        archive.put((HEALTH.digest, 0), canonical_bytes(kept))
    capsys.readouterr()
    assert main(words) == 1
    assert "got 60" in capsys.readouterr().err


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
