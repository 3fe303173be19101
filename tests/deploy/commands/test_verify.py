"""`hubbub verify`: what it reads, what it says, and the exit code of every case."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub_aggregator.release import canonical_bytes
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.cli import main
from hubbub_deploy.commands.verify import verify
from hubbub_deploy.commands.verify.verify import Printed
from hubbub_deploy.errors import DeployError
from hubbub_topic import SqliteLog

FORMATS = Path(__file__).parents[2] / "golden" / "formats"
END_S = 1767225600 + 40 * 86_400


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a node that released every round of the golden log: 12 surveys of every form."""
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(FORMATS / "log.db", folder / "log.sqlite")
    log = SqliteLog(folder / "log.sqlite", None)
    archive = SqliteArchive(folder / "archive.sqlite")
    store = SqliteStore(folder / "store.db", log_identity=log.identity, partitions=2)
    worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: END_S)
    while worker.step() or not worker.is_caught_up:
        pass
    for opened in (store, archive, log):
        opened.close()
    return folder


@pytest.fixture
def out(node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder that a replay of that node wrote."""
    assert main(["replay", str(node), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    return tmp_path / "out"


def test_every_release_of_a_node_is_as_its_counts_say(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(node)]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert len(lines) == 17
    assert sum("0 differ" in line for line in lines) == 16
    assert [line for line in lines if "0 differ" not in line] == [
        "self-rated-health v1, round 3: too few devices, no numbers to check"
    ]
    assert "not checked: cut (the collector's word)" in said.err


def test_a_replay_writes_what_anybody_can_check_alone(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(out)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 17
    path = out / "outpatient-visits-v1-round-1-of-2.json"
    assert main(["verify", str(path)]) == 0
    document = json.loads(path.read_bytes())
    document["values"][2]["estimate"] += 0.001
    path.write_bytes(canonical_bytes(document))
    capsys.readouterr()
    assert main(["verify", str(path)]) == 1
    said = capsys.readouterr().out
    assert "values[2].estimate is " in said
    assert main(["verify", str(out)]) == 1


def test_a_release_without_counts_or_survey_cannot_be_checked(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = out / "outpatient-visits-v1-round-1-of-2.json"
    path.with_suffix(".counts").rename(tmp_path / "kept")
    assert main(["verify", str(path)]) == 2
    assert "it has no public counts" in capsys.readouterr().out
    (tmp_path / "kept").rename(path.with_suffix(".counts"))
    (out / "outpatient-visits-v1.survey").unlink()
    assert main(["verify", str(path)]) == 2
    assert "its survey is not there" in capsys.readouterr().out
    survey = tmp_path / "visits.toml"
    survey.write_text(VISITS)
    assert Survey.parse(VISITS).digest.hex() == json.loads(path.read_bytes())["survey"]["digest"]
    assert main(["verify", str(path), "--survey", str(survey)]) == 0
    document = json.loads(path.read_bytes()) | {"method": 7}
    path.write_bytes(canonical_bytes(document))
    assert main(["verify", str(path), "--survey", str(survey)]) == 2
    assert "method must be 10" in capsys.readouterr().out


def test_a_round_that_hides_its_numbers_without_need_is_named(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator who does not like a release calls its devices too few, and keeps its counts back."""
    path = out / "outpatient-visits-v1-round-1-of-2.json"
    document = json.loads(path.read_bytes())
    document |= {"suppressed": True, "counts": None, "values": [], "categories": [], "mean": None}
    path.write_text(json.dumps(document))
    assert main(["verify", str(path)]) == 1
    assert "suppressed is True, should be False" in capsys.readouterr().out


def test_only_the_surveys_that_you_name_are_checked(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    survey = tmp_path / "labels.toml"
    survey.write_text(LABELS)
    assert main(["verify", str(node), "--survey", str(survey)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    survey.write_text(LABELS.replace("Self-rated health", "Another title"))
    assert main(["verify", str(node), "--survey", str(survey)]) == 2
    assert "must have sealed releases of these surveys, got none" in capsys.readouterr().err


def test_what_is_no_release_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With 2, for nothing differs: 1 says that somebody printed another number than the counts have."""
    texts = {"a": "[1]", "b": "{}", "c": "\x00", "d": '{"survey": 3}', "e": 100_000 * "["}
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
        assert main(["verify", str(tmp_path / f"{name}.json")]) == 2
        assert "must be a release" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert main(["verify", "http://127.0.0.1:9"]) == 2
    assert main(["verify", 300 * "n"]) == 2
    for command in (["verify"], ["monitor", "--state", str(tmp_path / "seen.json")]):
        for key in ("x", "a+b+c"):  # what was typed wrongly accuses nobody
            assert main([*command, "http://127.0.0.1:9", "--log-key", key]) == 2
            assert "key must be" in capsys.readouterr().err
    assert main(["verify", str(tmp_path), "--survey", str(tmp_path / "none.toml")]) == 2


def test_a_release_that_no_log_can_have_is_not_in_it(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a stranger printed: no traceback, and no sign that a terminal would obey."""
    document = json.loads((out / "outpatient-visits-v1-round-1-of-2.json").read_bytes())
    log: Any = SimpleNamespace(witnessed=SimpleNamespace(seen={}), of_key=lambda entry: None)
    about = document["survey"]
    for lie in (
        {"survey": about | {"digest": "x"}},
        {"survey": {}},
        {"round": "x"},
        {"round": -1},
        {"accounting": None},
        {"level": float("inf")},
        {"level": "\ud800"},
    ):
        printed = Printed("one", document | lie, None, None)
        digest = str(printed.document["survey"].get("digest"))
        assert verify._logged(printed, digest, log) == 1
        assert capsys.readouterr().out == "one: is not in the log\n"
    assert verify._name({"survey": {"id": "\x1b[2J\nv1, round 1: 0 differ"}, "sealed": True}).isprintable()
    with pytest.raises(DeployError, match="a document must be a release"):
        Printed(verify._name([1]), [1], None, None)  # type: ignore[arg-type]  # of a stranger


def test_counts_lie_in_the_archive_under_a_checksum_and_go_with_their_survey(
    node: Path, tmp_path: Path
) -> None:
    path = tmp_path / "archive.sqlite"
    shutil.copy(node / "archive.sqlite", path)
    digest = Survey.parse(VISITS).digest
    with contextlib.closing(SqliteArchive(path)) as archive:
        assert archive.counts((digest, 0)) is not None
        assert archive.counts((digest, -1)) == Survey.parse(VISITS).canonical
        archive.erase(digest)
        assert archive.counts((digest, 0)) is None
        assert archive.counts((digest, -1)) is None
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE counts SET data = x'00' WHERE rowid = 1")
        database.commit()
    with contextlib.closing(SqliteArchive(path)) as archive, pytest.raises(Exception, match="counts"):
        archive.check()
    assert main(["verify", str(tmp_path)]) == 2


def test_a_recount_without_an_issuer_has_no_counts(node: Path, tmp_path: Path) -> None:
    """Those of the release less its own would be the issuer's."""
    issuer = "tokens.example.org"
    assert main(["replay", str(node), "--without-issuer", issuer, "--out", str(tmp_path / "out")]) == 0
    found = [json.loads(path.read_bytes()) for path in (tmp_path / "out").glob("*.json")]
    assert found
    assert {str(each["counts"]) for each in found} == {"None"}
    assert not list((tmp_path / "out").glob("*.counts"))
