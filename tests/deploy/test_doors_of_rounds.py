"""Every door is asked for the first round, for the last, and for one before and beyond: they count from 1.

A round is known by its devices, of which every round has another number, and by the day on which it begins.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import pytest
from asgi_reader import Answer, get
from counting_logs import announcement, batch, report_id, segment
from starlette.applications import Starlette
from surveys import LABELS

from hubbub.survey import Survey
from hubbub.wire import SealRecord, encode_record
from hubbub_aggregator.runners import Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web import LiveView, create_app
from hubbub_deploy.cli import main
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import LOG_FILE, STORE_FILE
from hubbub_deploy.node import announcement as announced
from hubbub_results.connection import SurveyResults
from hubbub_topic.sqlite import SqliteLog

SURVEY = Survey.parse(LABELS)
D = SURVEY.digest.hex()
DEVICES = {1: 150, 2: 160, 3: 170}
"""Numbers of devices that answer the first round, the second and the last."""
FIRST, LAST, BEYOND = 1, 3, 4
V1 = f"/api/v1/surveys/{D}"


@dataclass(frozen=True)
class World:
    folder: Path
    view: LiveView
    app: Starlette

    def ask(self, path: str) -> Answer:
        return get(self.app, path)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A node's folder in which all rounds of a survey are released, and its page."""
    folder, view = tmp_path_factory.mktemp("rounds"), LiveView()
    with SqliteLog(folder / LOG_FILE, 1) as log, contextlib.ExitStack() as stack:
        log.append({0: [announcement(SURVEY)]})
        for day, count in enumerate(DEVICES.values()):
            pairs = [(report_id(1000 * day + i), i % 5) for i in range(count)]
            minute = SURVEY.round_start_s(day) // 60 + 30
            log.append({0: [batch(segment(SURVEY, day, pairs), minute=minute)]})
            log.append({0: [encode_record(SealRecord(SURVEY.digest, day))]})
        store = SqliteStore(folder / STORE_FILE, log_identity=log.identity, partitions=1)
        archive = SqliteArchive(folder / ARCHIVE_FILE)
        stack.callback(store.close)
        stack.callback(archive.close)
        worker = Worker(log, store, archive=archive, view=view, clock=lambda: 0.0)
        while worker.step():
            pass
    return World(folder, view, create_app(view))


def rows(body: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(body.decode(), newline="")))


def shown(found: list[dict]) -> dict[int, int]:
    """Round -> devices, of lines, rows or documents; a round begins on the day of its number."""
    for each in found:
        assert str(each.get("start", f"2026-01-0{each['round']}")).startswith(f"2026-01-0{each['round']}")
    return {int(each["round"]): int(each["devices"]) for each in found}


def test_a_release_and_its_key(world: World) -> None:
    """The bytes that are sealed count from 1; the archive's keys, as those of seals and counts, from 0."""
    with contextlib.closing(SqliteArchive(world.folder / ARCHIVE_FILE)) as archive:
        keys = archive.rounds()
        assert keys == [(SURVEY.digest, 0), (SURVEY.digest, 1), (SURVEY.digest, 2)]
        assert shown([json.loads(archive.get(key) or b"") for key in keys]) == DEVICES


def test_lists(world: World) -> None:
    live = world.ask("/api/live").json["surveys"][0]
    every = world.ask("/api/surveys").json["surveys"][0]
    lines = [live["rounds"], every["rounds"], world.ask(f"/api/surveys/{D}").json["rounds"]]
    assert [shown(found) for found in lines] == [DEVICES] * 3
    assert shown([live["shown"]]) == {LAST: DEVICES[LAST]}
    for line in every["rounds"]:
        assert shown([world.ask("/" + line["json"]).json]) == {line["round"]: line["devices"]}
        assert shown(rows(world.ask("/" + line["csv"]).body)) == {line["round"]: line["devices"]}
    assert world.ask(V1).json["rounds"] == {"answered": 3, "sealed": 3, "newest": LAST}


def test_pages_begin_after_round_0(world: World) -> None:
    found, path = [], f"{V1}/rounds?after=0&limit=1"
    while path:
        page = world.ask(path).json
        found += page["rounds"]
        path = page["next"] and urljoin(path, page["next"])
    assert shown(found) == DEVICES
    for after, left in ((FIRST, [2, LAST]), (LAST, []), (BEYOND, [])):
        assert [line["round"] for line in world.ask(f"{V1}/rounds?after={after}").json["rounds"]] == left


@pytest.mark.parametrize("base", [f"/api/surveys/{D}", V1])
def test_one_round(world: World, base: str) -> None:
    for number in (FIRST, LAST):
        told = {number: DEVICES[number]}
        assert shown([world.ask(f"{base}/rounds/{number}").json]) == told
        table = world.ask(f"{base}/rounds/{number}.csv")
        assert shown(rows(table.body)) == told
        assert f"-round-{number}" in table.headers["content-disposition"]
    for number in (0, BEYOND):
        for ending in ("", ".csv"):
            answer = world.ask(f"{base}/rounds/{number}{ending}")
            assert (answer.status, "from 1 to 3" in answer.json["rule"]) == (404, True)


def test_what_stands_beside_one_round(world: World) -> None:
    for number in (FIRST, LAST):
        lines = world.ask(f"{V1}/rounds/{number}.ndjson").body.splitlines()
        assert shown([json.loads(line) for line in lines]) == {number: DEVICES[number]}
        assert world.ask(f"{V1}/rounds/{number}/recounts").json["round"] == number
    assert shown([world.ask(f"{V1}/rounds/latest").json]) == {LAST: DEVICES[LAST]}
    for number in (0, BEYOND):
        assert world.ask(f"{V1}/rounds/{number}.ndjson").status == 404
        assert world.ask(f"{V1}/rounds/{number}/recounts").status == 404


def test_tables_of_all_rounds(world: World) -> None:
    table = rows(world.ask(f"{V1}/releases.csv").body)
    assert shown(table) == DEVICES
    assert "round_from_1" not in table[0]
    lines = world.ask(f"{V1}/releases.ndjson").body.splitlines()
    assert shown([json.loads(line) for line in lines]) == DEVICES


def test_several_rounds(world: World) -> None:
    found = world.ask(f"{V1}/change?before={FIRST}&after={LAST}").json
    assert [found["before"]["round"], found["after"]["round"]] == [FIRST, LAST]
    assert found["devices"] == [DEVICES[FIRST], DEVICES[LAST]]
    for before, after, wrong in ((0, LAST, "before"), (FIRST, BEYOND, "after"), (FIRST, 0, "after")):
        answer = world.ask(f"{V1}/change?before={before}&after={after}")
        assert (answer.status, answer.json["subject"]) == (404, wrong)
    past = world.ask(f"{V1}/history").json
    assert dict(zip(past["rounds"], past["devices"], strict=True)) == DEVICES
    judged = world.ask(f"{V1}/alerts").json["rounds"]
    assert shown(judged) == DEVICES
    assert [line["since"] for line in judged] == [None, FIRST, 2]


def test_the_description_takes_the_first_round_and_no_0(world: World) -> None:
    described = world.ask("/api/v1/openapi.json").json
    pattern = described["components"]["parameters"]["round"]["schema"]["pattern"]
    assert pattern == "^([1-9][0-9]{0,17}|latest)$"
    schemas = described["components"]["schemas"]
    for name in ("Round", "Judged", "Recounts"):
        assert schemas[name]["properties"]["round"]["minimum"] == 1


class Asked:
    """The reader's transport, over the application."""

    def __init__(self, app: Starlette) -> None:
        self.app = app

    def get(self, *path: str, **query: object) -> dict:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        return get(self.app, "/api/v1/" + "/".join(path) + (f"?{asked}" if asked else "")).json

    def pages(self, name: str, *path: str) -> Iterator[dict]:
        yield from self.get(*path)[name]

    def rows(self, *path: str, **query: object) -> list[dict]:
        return [json.loads(line) for line in get(self.app, "/api/v1/" + "/".join(path)).body.splitlines()]


def test_the_reader(world: World) -> None:
    asked = Asked(world.app)
    survey = SurveyResults(asked.get("surveys", D), asked)  # type: ignore[arg-type]  # without a socket
    assert shown(survey.rounds()) == DEVICES
    for number in (FIRST, LAST):
        release = survey.release(number)
        assert (release.round, release.devices) == (number, DEVICES[number])
        assert release.table.title.endswith(f": round {number}")
        assert shown(list(release.table)) == {number: DEVICES[number]}
    assert shown(list(survey.table())) == DEVICES
    change = survey.compare(FIRST, LAST)
    assert change.title.endswith(f"round {FIRST} to {LAST}")


def test_commands(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(world.folder), "--out", str(tmp_path / "all.csv")]) == 0
    assert shown(rows((tmp_path / "all.csv").read_bytes())) == DEVICES
    capsys.readouterr()
    assert main(["replay", str(world.folder), "--json", "--out", str(tmp_path / "out")]) == 0
    assert shown(json.loads(capsys.readouterr().out)) == DEVICES
    files = {path.name: json.loads(path.read_bytes()) for path in (tmp_path / "out").glob("*.json")}
    names = {f"{SURVEY.id}-v1-round-{number}-of-3.json": count for number, count in DEVICES.items()}
    assert {name: found["devices"] for name, found in files.items()} == names
    assert main(["replay", str(world.folder)]) == 0
    table = capsys.readouterr().out
    assert [line.replace("│", " ").split()[2:4] for line in table.splitlines() if SURVEY.id in line] == [
        [str(number), str(count)] for number, count in DEVICES.items()
    ]


def test_what_a_node_says_as_it_starts(world: World) -> None:
    """A survey whose first round is open: what was accepted of it stands in the snapshot as round 1."""
    one = {"round": 1, "accounting": {"accepted": 500}}
    snapshot = {"surveys": [{"digest": D, "rounds": [one]}]}
    said = announced("http://here", [SURVEY], snapshot, SURVEY.start_s + 60)
    assert f"{SURVEY.id} version 1: round 1 of 3 ends in" in said
    assert "waiting" in announced("http://here", [SURVEY], snapshot, SURVEY.start_s + 90_000)
