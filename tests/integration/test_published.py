"""Results as their readers get them, from a real node: the API by its description, tables, sealed bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import matplotlib as mpl
import pytest
from command import hubbub
from matplotlib import pyplot
from node_fixture import PARTITIONS, World, wait_until
from published_node import DEVICES, SEALED, SURVEYS, published_node

from hubbub import Survey
from hubbub_aggregator.release import FleetStatement, canonical_bytes, release
from hubbub_aggregator.release.after_shuffling import ShufflingStatements
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web.openapi import openapi_document
from hubbub_deploy.cli import main
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import STORE_FILE
from hubbub_results import NotFoundError, connect

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with published_node(tmp_path_factory.mktemp("published")) as found:
        yield found


# Two releases that are there: of random numbers the tool would see nothing but 404.
CHANGE = """
[[operations]]
include-name = "GET /surveys/{survey}/change"
parameters = { "query.before" = 1, "query.after" = 2, "query.from" = "outpatient-visits" }

[[operations]]
include-name = "GET /surveys/{survey}/rounds/{round}/statistics"
parameters = { "path.survey" = "outpatient-visits", "path.round" = 1 }

[[operations]]
include-name = "GET /surveys/{survey}/rounds/{round}/statistics.csv"
parameters = { "path.survey" = "outpatient-visits", "path.round" = 1 }
"""


def schemathesis(world: World, folder: Path, *options: str, settings: str = "") -> str:
    """Return the output of the tool, which has found nothing wrong."""
    config = folder / "schemathesis.toml"
    config.write_text(settings + CHANGE, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", config),
            *("run", world.url + "/api/v1/openapi.json", "--seed", "1", "--no-color", *options),
        ],
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert "No issues found" in done.stdout
    operations = re.search(r"Selected: (\d+)/(\d+)\n\s+Tested: (\d+)", done.stdout)
    assert operations is not None
    assert set(operations.groups()) == {str(len(openapi_document()["paths"]) - 1)}, "all but the description"
    cases = re.search(r"(\d+) generated", done.stdout)
    assert cases is not None
    assert int(cases[1]) > 150
    return done.stdout


def copied(world: World, file: str, folder: Path) -> Path:
    """A copy of a file of the running node."""
    path = folder / file
    with (
        contextlib.closing(sqlite3.connect(f"file:{world.data / file}?mode=ro", uri=True)) as source,
        contextlib.closing(sqlite3.connect(path)) as copy,
    ):
        source.backup(copy)
    return path


def test_sealed_releases_are_recomputed_byte_for_byte_from_the_stored_counts(
    world: World, tmp_path: Path
) -> None:
    log = world.document()["log"]
    with (
        contextlib.closing(SqliteArchive(copied(world, ARCHIVE_FILE, tmp_path))) as archive,
        contextlib.closing(
            SqliteStore(copied(world, STORE_FILE, tmp_path), log_identity=log, partitions=PARTITIONS)
        ) as store,
    ):
        states = {partition: store.load(partition) for partition in range(PARTITIONS)}
        sealed = [(survey, n) for survey in SURVEYS for n in range(SEALED[survey.id])]
        assert archive.rounds() == sorted((survey.digest, n) for survey, n in sealed)
        for survey, number in sealed:
            made = release(survey, number, states)
            assert made is not None
            enrolled = max(release(survey, n, states).tally.n for n in range(number + 1))
            enrolment = FleetStatement().of(survey, counted=made.tally.n, enrolled=enrolled)
            document = replace(made, enrolment=enrolment).document()
            assert canonical_bytes(document) == archive.get((survey.digest, number))
            # The API shows these very facts: what it adds is a name for the error, the devices and views.
            shown = json.loads(world.get(f"/api/v1/surveys/{survey.digest.hex()}/rounds/{number + 1}"))
            assert shown.pop("as_of") == document["devices"] == DEVICES
            for cell in [*shown["values"], *shown["categories"], shown["mean"] or {}]:
                assert cell.pop("standard_error", None) == cell.get("error")
            for view in ("effective_sample_size", "empirical_bayes", "ranks"):
                assert shown.pop(view) is not None
            assert shown.pop("after_shuffling") == ShufflingStatements().of(survey, document)
            assert shown == document


def test_one_command_and_one_url_give_the_same_tables_and_the_page_query_runs_on_them(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for form in ("csv", "parquet"):
        out = tmp_path / f"releases.{form}"
        done = hubbub("export", world.data, "--out", out, "--survey", "outpatient-visits")
        assert done.returncode == 0, done.stderr
        served = world.get(f"/api/v1/surveys/outpatient-visits/releases.{form}")
        if form == "csv":
            assert served == out.read_bytes()
        else:
            (tmp_path / "served.parquet").write_bytes(served)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as database:
        assert "releases.parquet" in query
        answers = [
            database.execute(query.replace("releases.parquet", name)).fetchall()
            for name in ("releases.parquet", "served.parquet", "releases.csv")
        ]
    assert answers[0] == answers[1] == answers[2]
    shown = [world.get(f"/api/v1/surveys/outpatient-visits/rounds/{n}") for n in (1, 2)]
    wanted = {
        (n, cell["label"]): cell["estimate"]
        for n, body in enumerate(shown, start=1)
        for cell in json.loads(body)["categories"]
    }
    assert {(row[0], row[2]): row[3] for row in answers[0]} == wanted


def test_every_metric_of_the_board_is_exported_and_the_other_way_round(world: World) -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "hubbub.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(asked) > 12
    counted = f'hubbub_counted_reports_total{{verdict="accepted"}} {5 * DEVICES}.0'
    wait_until(lambda: counted in world.get("/metrics").decode())  # the open round's are counted last
    page = world.get("/metrics").decode()
    exported = set(re.findall(r"^# TYPE (hubbub_\w+)", page, re.MULTILINE))
    assert {name for expression in asked for name in re.findall(r"\bhubbub_\w+", expression)} == exported
    without = set()
    for expression in asked:
        for labels, metric in re.findall(r"by \(([^)]*)\) \((?:rate\()?(hubbub_\w+)", expression):
            lines = [line for line in page.splitlines() if line.startswith(metric + "{")]
            for name in set(labels.replace(" ", "").split(",")) - {"instance"}:  # Prometheus adds that one
                assert all(f'{name}="' in line for line in lines)
                if not lines:
                    without.add(metric)
    assert without == {"hubbub_issuer_reports"}  # nobody vouches for reports here
    assert counted in page
    assert 'hubbub_rounds{stage="open",survey="self-rated-health",version="1"} 1.0' in page


def test_the_notebook_runs_cell_by_cell(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code cells are executed as they stand, in one namespace: no package of notebooks is needed."""
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUBBUB_URL", world.url)
    monkeypatch.setenv("HUBBUB_SURVEY", "outpatient-visits")
    notebook = json.loads((ROOT / "docs" / "examples" / "results.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 7
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    found: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"cell {number}", "exec"), found)  # noqa: S102 - the notebook of this tree
    pyplot.close("all")
    shown = json.loads(world.get("/api/v1/surveys/outpatient-visits/rounds/2"))
    assert found["raw"]["estimate"].tolist() == [cell["estimate"] for cell in shown["values"]]
    assert len(found["history"]) == 3 * SEALED["outpatient-visits"]
    # Devices answer a static attribute once: the very same symbols came in both rounds.
    assert set(found["comparison"].frame()["change"]) == {0.0}
    assert len((tmp_path / "releases.csv").read_text(encoding="utf-8").splitlines()) == 1 + len(
        found["everything"]
    )


@pytest.mark.parametrize(
    "settings",
    [
        '[parameters]\n"query.from" = "outpatient-visits"\n',
        '[parameters]\n"path.survey" = "outpatient-visits"\n"path.round" = "1"\n'
        '"query.from" = "outpatient-visits"\n',
    ],
    ids=["any survey", "a survey that is there"],
)
def test_the_description_holds_for_a_real_node(world: World, tmp_path: Path, settings: str) -> None:
    schemathesis(world, tmp_path, "--max-examples", "5", settings=settings)


def test_every_release_of_a_server_is_made_again_from_its_counts(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", world.url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(SEALED.values())
    assert all("0 differ" in line for line in lines)
    survey = connect(world.url).survey("self-rated-health")
    counts = survey.counts(1)
    document = survey.document(1)
    assert document["counts"]["sha256"] == hashlib.sha256(counts).hexdigest()
    assert Survey.from_canonical(survey.canonical()).digest.hex() == survey.digest
    with pytest.raises(NotFoundError, match="public counts"):
        survey.counts(3)  # it is open
