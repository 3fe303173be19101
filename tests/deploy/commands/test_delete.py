"""`hubbub delete` on a node's folder: one survey is gone from every file, the others are as they were."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from counting_logs import MINUTE, announcement, batch, report_id, segment
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub_aggregator.counting.dedup import keys_of
from hubbub_aggregator.release import METHOD
from hubbub_aggregator.stores import RecountFolder, SqliteArchive
from hubbub_deploy import node
from hubbub_deploy.cli import main
from hubbub_deploy.node import NodeSettings

HEALTH, VISIT = Survey.parse(LABELS), Survey.parse(VISITS)
OTHER = HEALTH.digest.hex()
# Ids of the reports of VISIT, and the 64-bit keys that the store keeps of them.
IDS = [report_id(number) for number in range(1000, 1500)]
IDS += [key.tobytes() for key in keys_of(b"".join(IDS))]


def settings(folder: Path, now_s: float) -> NodeSettings:
    return NodeSettings(
        surveys=(), data_dir=folder, partitions=2, clock=lambda: now_s, boot_clock=lambda: 0.0
    )


def counted(folder: Path, now_s: float) -> dict[str, Any]:
    """Everything that a node shows once it has counted and sealed all that is due."""
    with node._parts(settings(folder, now_s)) as (_, worker, view):
        for _ in range(6):
            while worker.step():
                pass
        return view.snapshot()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two surveys with a sealed round and an open one each, mixed within records."""
    data = tmp_path / "data"
    with node._parts(settings(data, HEALTH.start_s)) as (log, _, _):
        for survey in (HEALTH, VISIT):
            log.publish_survey(survey.digest, announcement(survey))
        records: dict[int, list[bytes]] = {0: [], 1: []}
        for i in range(500):
            number = i // 250
            names = report_id(i), report_id(1000 + i)
            parts = [
                segment(survey, number, [(name, i % 5)], late=i % 3)
                for survey, name in zip((HEALTH, VISIT), names, strict=True)
            ]
            records[i % 2].append(batch(*parts, minute=MINUTE + 1440 * number, unknown=1))
        log.append(records)
    now_s = HEALTH.round_end_s(0) + HEALTH.lateness_s + 60
    shown = counted(data, now_s)
    assert [[each["sealed"] for each in survey["rounds"]] for survey in shown["surveys"]] == [
        [True, False]
    ] * 2
    return data


def survey_of(shown: dict[str, Any], digest: str) -> dict[str, Any]:
    return next(each for each in shown["surveys"] if each["digest"] == digest)


def contents(folder: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}


def traces(folder: Path, survey: Survey) -> list[str]:
    """The files that hold a survey's name, its digest, its canonical bytes or an id of its reports."""
    return holding(folder, [survey.id.encode(), survey.digest, survey.canonical, *IDS])


def holding(folder: Path, marks: list[bytes]) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if any(mark in file.read_bytes() for mark in marks))


def test_a_deletion_is_rehearsed_unless_it_is_meant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    assert main(["delete", str(folder), "--survey", "outpatient-visits"]) == 0
    said = capsys.readouterr().out
    assert VISIT.digest.hex() in said
    assert "500 records of reports, 2 that announce it, 2 that seal its rounds" in said
    assert "counts of 2 rounds" in said
    assert "1 release" in said
    assert "Nothing was deleted" in said
    # SQLite may have taken its log in; the databases hold what they held.
    assert {name: contents(folder)[name] for name in before if name.endswith(".sqlite")} == {
        name: found for name, found in before.items() if name.endswith(".sqlite")
    }
    assert traces(folder, VISIT) == ["archive.sqlite", "log.sqlite", "store.sqlite"]
    assert holding(folder, IDS) == ["log.sqlite", "store.sqlite"]  # so that their absence says something


def test_recounts_beside_the_archive_go_with_their_survey(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recounts = RecountFolder(folder)
    for survey in (VISIT, HEALTH):
        about = {"survey": {"digest": survey.digest.hex()}, "recount": {"without_issuers": ["leaky"]}}
        recounts.put(about | {"method": METHOD, "round": 1, "sealed": True})
    assert main(["delete", str(folder), "--survey", VISIT.id]) == 0
    assert "1 release, 1 recount beside it" in capsys.readouterr().out
    assert main(["delete", str(folder), "--survey", VISIT.id, "--yes"]) == 0
    assert list(recounts.by_survey()) == [HEALTH.digest.hex()]


def test_a_survey_is_gone_from_every_file_and_the_others_are_as_they_were(folder: Path) -> None:
    now_s = HEALTH.round_end_s(0) + HEALTH.lateness_s + 60
    kept = survey_of(counted(folder, now_s), OTHER)
    assert main(["delete", str(folder), "--survey", VISIT.digest.hex(), "--yes"]) == 0
    assert traces(folder, VISIT) == []
    shown = counted(folder, now_s)
    assert [survey["digest"] for survey in shown["surveys"]] == [OTHER]
    assert survey_of(shown, OTHER) == kept
    assert shown["unknown"] == 500
    # The log alone gives the same counts and the same release, byte for byte.
    (folder / "store.sqlite").unlink()
    again = survey_of(counted(folder, now_s), OTHER)
    for before, after in zip(kept["rounds"], again["rounds"], strict=True):
        assert after["accounting"] == before["accounting"]
    with_archive = SqliteArchive(folder / "archive.sqlite")
    assert [key[0] for key in with_archive.rounds()] == [HEALTH.digest]
    with_archive.close()


def test_a_deletion_that_stopped_half_way_is_finished_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SqliteArchive, digest: bytes) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr(SqliteArchive, "erase", broken)
        assert main(["delete", str(folder), "--survey", "outpatient-visits", "--yes"]) == 130
    assert traces(folder, VISIT) != []
    assert main(["delete", str(folder), "--survey", "outpatient-visits", "--yes"]) == 0
    assert traces(folder, VISIT) == []


def test_what_cannot_be_read_and_names_the_survey_goes_with_it(folder: Path) -> None:
    with node._parts(settings(folder, HEALTH.start_s)) as (log, worker, _):
        log.append({0: [b"\x00damaged" + VISIT.digest, b"\x00damaged"]})
        worker.step()
    assert main(["delete", str(folder), "--survey", "outpatient-visits", "--yes"]) == 0
    assert traces(folder, VISIT) == []
    with node._parts(settings(folder, HEALTH.start_s)) as (log, _, view):
        assert log.read(0, log.end(0) - 1, 1)[0][1] == b"\x00damaged"
        assert view.snapshot()["dead"] == 2  # counted when it came


def test_what_cannot_be_deleted_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", str(folder), "--survey", "none", "--yes"]) == 1
    assert "survey must be one of outpatient-visits, self-rated-health, got none" in capsys.readouterr().err
    assert main(["delete", str(tmp_path), "--survey", "none"]) == 1
    assert "must be the folder of a node" in capsys.readouterr().err
    with node._parts(settings(folder, HEALTH.start_s)):
        assert main(["delete", str(folder), "--survey", "outpatient-visits", "--yes"]) == 1
    assert "stop the node first" in capsys.readouterr().err
    assert json.dumps(traces(folder, VISIT)).count("sqlite") >= 3
