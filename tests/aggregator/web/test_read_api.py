"""The read API, version 1: its documents, pages, tables and refusals, asked over ASGI without a socket."""

from __future__ import annotations

import csv
import gzip
import io
import json
from importlib import util
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import duckdb
import pytest
from asgi_reader import DIGEST, get
from shown_view import ShownView, round_of, snapshot_of, survey_of

from hubbub_aggregator.export import COLUMNS
from hubbub_aggregator.web.api import create_app
from hubbub_aggregator.web.openapi import openapi_document

BASE = "/api/v1/surveys"


def released(number: int, **more: Any) -> dict[str, Any]:
    found = round_of(number, sealed=True, mean=1.5, seed=number, **more)
    return found | {"consistent": {"values": [0.5, 0.3, 0.2], "categories": [0.5, 0.5]}}


def view_of(rounds: int = 3) -> ShownView:
    return ShownView(snapshot_of(survey_of("visits", *map(released, range(rounds)), round_of(rounds))))


def test_pages_give_every_survey_and_every_round_once() -> None:
    surveys = [survey_of(f"survey-{number}", digest=f"{number:032x}") for number in range(7)]
    app = create_app(ShownView(snapshot_of(*surveys)))
    path, found = BASE + "?limit=3", []
    sizes = []
    while path:
        page = get(app, path).json
        sizes.append(len(page["surveys"]))
        found += [survey["id"] for survey in page["surveys"]]
        path = page["next"] and urljoin(path, page["next"])
    assert found == [f"survey-{number}" for number in range(7)]
    assert sizes == [3, 3, 1]
    app = create_app(view_of(9))
    path, numbers = f"{BASE}/{DIGEST}/rounds?limit=4&sealed=true", []
    while path:
        page = get(app, path).json
        numbers += [line["round"] for line in page["rounds"]]
        path = page["next"] and urljoin(path, page["next"])
    assert numbers == list(range(1, 10))
    assert [line["round"] for line in get(app, f"{BASE}/visits/rounds?sealed=false").json["rounds"]] == [10]
    assert [line["round"] for line in get(app, f"{BASE}/visits/rounds?after=8").json["rounds"]] == [9, 10]


def test_a_survey_is_named_by_its_digest_or_by_its_id_for_the_newest_version() -> None:
    old, new = survey_of("visits", digest="1" * 32), survey_of("visits", round_of(0), digest="2" * 32)
    new["version"] = 2
    app = create_app(ShownView(snapshot_of(old, new)))
    assert get(app, f"{BASE}/visits").json["digest"] == "2" * 32
    assert get(app, f"{BASE}/{'1' * 32}").json["version"] == 1
    assert get(app, f"{BASE}/visits").json["rounds"] == {"answered": 1, "sealed": 0, "newest": 1}


def test_latest_is_the_newest_release_and_before_one_the_newest_round() -> None:
    assert get(create_app(view_of(3)), f"{BASE}/visits/rounds/latest").json["round"] == 3
    assert get(create_app(view_of(0)), f"{BASE}/visits/rounds/latest").json["round"] == 1
    none = get(create_app(ShownView(snapshot_of(survey_of("visits")))), f"{BASE}/visits/rounds/latest")
    assert none.status == 404
    assert none.json["rule"] == "must be one that has reports; none has"


def test_a_round_says_standard_error_and_the_older_error_with_the_same_number() -> None:
    view = view_of()
    found = get(create_app(view), f"{BASE}/visits/rounds/2").json
    kept = view.snapshot()["surveys"][0]["rounds"][1]
    cells = [*found["values"], *found["categories"], found["mean"]]
    wanted = [*kept["values"], *kept["categories"], kept["mean"]]
    assert [cell["standard_error"] for cell in cells] == [cell["error"] for cell in wanted]
    assert [cell["error"] for cell in cells] == [cell["error"] for cell in wanted]
    assert "standard_error" not in kept["values"][0]


def test_a_round_as_a_table_has_the_export_columns_and_the_views_asked_for() -> None:
    app = create_app(view_of())
    every = {"raw", "consistent", "empirical_bayes"}
    wanted = {"": every, "?view=all": every} | {f"?view={view}": {view} for view in every}
    for query, views in wanted.items():
        answer = get(app, f"{BASE}/visits/rounds/2.csv{query}")
        rows = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
        assert {row["view"] for row in rows} == views
        assert list(rows[0]) == [column.name for column in COLUMNS]
        assert {(row["start"], row["end"]) for row in rows} == {
            ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
        }
        assert {row["round"] for row in rows} == {"2"}
        # A file is for people: they see "round 2 of 4" on the page.
        assert answer.headers["content-disposition"].endswith('"visits-v1-round-2-of-4.csv"')
    lines = get(app, f"{BASE}/visits/rounds/2.ndjson")
    assert lines.headers["content-disposition"].endswith('"visits-v1-round-2-of-4.ndjson"')


def test_all_releases_come_as_one_csv_plain_or_compressed_and_open_rounds_where_asked() -> None:
    app = create_app(view_of(4))
    plain = get(app, f"{BASE}/visits/releases.csv")
    assert plain.headers["content-disposition"] == 'attachment; filename="visits-v1.csv"'
    rows = list(csv.DictReader(io.StringIO(plain.body.decode(), newline="")))
    assert [row["round"] for row in rows] == [str(n) for n in range(1, 5) for _ in range(14)]
    small = get(app, f"{BASE}/visits/releases.csv", accept_encoding="gzip")
    assert small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert small.headers["etag"] != plain.headers["etag"]
    everything = get(app, f"{BASE}/visits/releases.csv?stage=all").body.decode()
    assert {row["round"] for row in csv.DictReader(io.StringIO(everything, newline=""))} == set("12345")


def test_a_change_is_served_and_refused_with_its_reason() -> None:
    rounds = [released(0), released(1), released(2, suppressed=True), round_of(3)]
    app = create_app(ShownView(snapshot_of(survey_of("visits", *rounds))))
    found = get(app, f"{BASE}/visits/change?before=1&after=2").json
    for cell, before, after in zip(found["values"], rounds[0]["values"], rounds[1]["values"], strict=True):
        assert cell["estimate"] == after["estimate"] - before["estimate"]
        assert cell["low"] < cell["estimate"] < cell["high"]
    for query, status, subject in (
        ("before=1&after=3", 409, "rounds"),
        ("before=1&after=4", 404, "after"),
        ("before=10&after=1", 404, "before"),
        ("after=2", 400, "before"),
        ("before=x&after=2", 400, "before"),
    ):
        answer = get(app, f"{BASE}/visits/change?{query}")
        assert (answer.status, answer.json["subject"]) == (status, subject), query
    refused = get(app, f"{BASE}/visits/change?before=1&after=3").json
    assert refused["rule"] == "must be released with estimates to be compared"
    assert refused["value"] == "round 3 of 'visits' with too few devices"
    twice = get(app, f"{BASE}/visits/change?before=1&after=1").json
    assert twice["detail"] == "rounds must be two, got round 1 twice"


def test_a_change_reaches_over_two_surveys_of_the_same_attributes_and_no_others() -> None:
    names = ("visits", "later", "smoking")
    old, new, other = (survey_of(name, released(0), digest=f"{k}" * 32) for k, name in enumerate(names, 1))
    new["attributes"] = old["attributes"]
    app = create_app(ShownView(snapshot_of(old, new, other)))
    found = get(app, f"{BASE}/later/change?before=1&after=1&from=visits").json
    assert [found[name]["digest"] for name in ("before", "after")] == ["1" * 32, "2" * 32]
    assert found["answers"] == "fresh"
    refused = get(app, f"{BASE}/later/change?before=1&after=1&from=smoking")
    assert (refused.status, refused.json["value"]) == (409, "smoking and visits")
    assert refused.json["rule"] == "must ask for the same attributes"
    assert get(app, f"{BASE}/later/change?before=1&after=1&from=none").status == 409
    assert get(app, f"{BASE}/later/change?before=1&after=1").status == 409  # one round, named twice


def test_a_change_reads_open_rounds_where_asked() -> None:
    app = create_app(view_of(2))
    assert get(app, f"{BASE}/visits/change?before=2&after=3").status == 404
    found = get(app, f"{BASE}/visits/change?before=2&after=3&stage=all")
    assert (found.status, found.json["after"]["round"]) == (200, 3)
    assert get(app, f"{BASE}/visits/change?before=2&after=8&stage=all").status == 404


def test_a_history_has_every_release_with_estimates() -> None:
    rounds = [released(0), released(1), released(2, suppressed=True), round_of(3)]
    app = create_app(ShownView(snapshot_of(survey_of("visits", *rounds))))
    found = get(app, f"{BASE}/visits/history").json
    assert found["rounds"] == [1, 2]
    assert found["values"][0]["estimate"] == [each["values"][0]["estimate"] for each in rounds[:2]]
    assert found["mean"]["low"] == [each["mean"]["low"] for each in rounds[:2]]


def test_a_history_of_one_cell_is_the_same_line_alone() -> None:
    app = create_app(view_of(4))
    whole = get(app, f"{BASE}/visits/history").json
    for query, name, line in (
        ("kind=value&label=1", "values", whole["values"][1]),
        ("kind=category&label=some", "categories", whole["categories"][1]),
    ):
        found = get(app, f"{BASE}/visits/history?{query}").json
        parts = {"values": [], "categories": [], "mean": None} | {name: [line]}
        assert found == {**whole, **parts}
    assert get(app, f"{BASE}/visits/history?kind=mean").json == {**whole, "values": [], "categories": []}
    for query, status, subject in (
        ("kind=value&label=9", 404, "label"),
        ("label=1", 404, "label"),
        ("kind=mean&label=1", 404, "label"),
        ("kind=x", 400, "kind"),
        ("season=-7", 400, "season"),
    ):
        answer = get(app, f"{BASE}/visits/history?{query}")
        assert (answer.status, answer.json["subject"]) == (status, subject), query


def test_json_lines_hold_the_same_rows_typed() -> None:
    app = create_app(view_of(3))
    for path in ("rounds/2", "releases"):
        lines = [json.loads(line) for line in get(app, f"{BASE}/visits/{path}.ndjson").body.splitlines()]
        table = get(app, f"{BASE}/visits/{path}.csv").body.decode()
        rows = list(csv.DictReader(io.StringIO(table, newline="")))
        assert len(lines) == len(rows) > 10
        for line, row in zip(lines, rows, strict=True):
            assert list(line) == list(row)
            assert line["sealed"] is True
            assert line["estimate"] == float(row["estimate"])
            assert (line["low"] is None) == (row["low"] == "") == (line["view"] != "raw")


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_releases_keep_their_tag_until_one_is_added(form: str) -> None:
    path, view = f"{BASE}/visits/releases.{form}", view_of(2)
    first = get(create_app(view), path)
    # Another process over the same archive, and another open round.
    view.publish(snapshot_of(survey_of("visits", released(0), released(1), round_of(2, devices=1500))))
    app = create_app(view)
    again = get(app, path, if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    head = get(app, path, method="HEAD")
    assert (head.status, head.headers["etag"]) == (200, first.headers["etag"])
    view.publish(snapshot_of(survey_of("visits", released(0), released(1), released(2))))
    assert get(app, path, if_none_match=first.headers["etag"]).status == 200
    open_rounds = get(create_app(view_of(2)), path + "?stage=all").headers["etag"]
    assert get(create_app(view_of(2)), path + "?stage=all").headers["etag"] != open_rounds


def test_releases_as_parquet_hold_what_the_csv_holds(tmp_path: Path) -> None:
    app = create_app(view_of(3))
    answer = get(app, f"{BASE}/visits/releases.parquet")
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert int(answer.headers["content-length"]) == len(answer.body)
    (tmp_path / "a.parquet").write_bytes(answer.body)
    (tmp_path / "a.csv").write_bytes(get(app, f"{BASE}/visits/releases.csv").body)
    with duckdb.connect() as database:
        names = 'round, view, kind, label, estimate, standard_error, "start"'
        tables = [
            database.execute(f"SELECT {names} FROM '{tmp_path}/a.{form}'").fetchall()  # noqa: S608
            for form in ("parquet", "csv")
        ]
    assert len(tables[0]) == 42
    assert tables[0] == tables[1]


def test_the_description_counts_rounds_as_the_api_does() -> None:
    first = openapi_document()["components"]["schemas"]["Round"]["properties"]["round"]["minimum"]
    assert f"Round numbers begin at {first}." in openapi_document()["info"]["description"]


def test_every_path_of_the_description_refuses_other_methods_as_a_problem() -> None:
    app = create_app(view_of())
    for path in openapi_document()["paths"]:
        where = "/api/v1" + path.format(survey="visits", round="0")
        answer = get(app, where, method="POST")
        assert (answer.status, answer.headers["content-type"]) == (405, "application/problem+json"), path
        assert answer.headers["allow"].replace(" ", "").split(",") in (["GET", "HEAD"], ["HEAD", "GET"])
        assert answer.json["detail"] == "method must be GET or HEAD, got POST"
        missing = get(app, where + "/none")
        assert (missing.status, missing.headers["content-type"]) == (404, "application/problem+json"), path


def test_without_duckdb_parquet_is_501_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    real = util.find_spec
    monkeypatch.setattr(
        "hubbub_aggregator.export.parquet.find_spec", lambda name: None if name == "duckdb" else real(name)
    )
    answer = get(create_app(view_of()), f"{BASE}/visits/releases.parquet")
    assert (answer.status, answer.headers["content-type"]) == (501, "application/problem+json")
    assert "pip install 'hubbub[export]'" in answer.json["rule"]
    # The page asks by HEAD, and offers no link to it.
    assert get(create_app(view_of()), f"{BASE}/visits/releases.parquet", method="HEAD").status == 501


@pytest.mark.parametrize(
    ("path", "status", "subject", "value"),
    [
        ("?limit=0", 400, "limit", "0"),
        ("?limit=1001", 400, "limit", "1001"),
        ("?limit=-1", 400, "limit", "-1"),
        ("?limit=", 400, "limit", ""),
        ("?limit=5&limit=6", 400, "limit", "limit=5&limit=6"),
        ("?after=visits", 400, "after", "visits"),
        ("?after=" + "0" * 32, 404, "after", "0" * 32),
        ("?offset=1", 400, "query parameter", "offset"),
        ("/nobody", 404, "survey", "nobody"),
        ("/visits?view=raw", 400, "query parameter", "view"),
        ("/visits/rounds?sealed=1", 400, "sealed", "1"),
        ("/visits/rounds?after=x", 400, "after", "x"),
        ("/visits/rounds/10", 404, f"round of survey {DIGEST}", "10"),
        ("/visits/rounds/2.csv?view=smooth", 400, "view", "smooth"),
        ("/visits/releases.csv?stage=open", 400, "stage", "open"),
        ("/visits/releases.xlsx", 404, "path", "/api/v1/surveys/visits/releases.xlsx"),
        ("/nobody/releases.parquet", 404, "survey", "nobody"),
    ],
)
def test_what_is_wrong_is_a_problem_with_its_rule(path: str, status: int, subject: str, value: str) -> None:
    answer = get(create_app(view_of()), BASE + path)
    assert (answer.status, answer.json["subject"], answer.json["value"]) == (status, subject, value)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_sealed_round_keeps_its_tag_over_processes_and_a_suppressed_one_gives_nothing() -> None:
    path = f"{BASE}/visits/rounds/2"
    tags = {get(create_app(view_of()), path).headers["etag"] for _ in range(2)}
    assert len(tags) == 1
    hidden = snapshot_of(survey_of("visits", released(0) | {"suppressed": True}))
    app = create_app(ShownView(hidden))
    shown = get(app, f"{BASE}/visits/rounds/1").json
    assert (shown["values"], shown["mean"], shown["consistent"]["values"]) == ([], None, [])
    assert get(app, f"{BASE}/visits/releases.csv").body.count(b"\r\n") == 1


def recount(number: int, *without: str, **more: Any) -> dict[str, Any]:
    found = survey_of("visits", released(number, **more))["rounds"][0]
    return {key: value for key, value in found.items() if key != "as_of"} | {
        "recount": {"without_issuers": list(without)}
    }


def test_recounts_stand_beside_their_release_and_change_nothing_in_it() -> None:
    view = view_of()
    paths = [f"{BASE}/visits/{end}" for end in ("rounds/2.csv", "releases.csv", "history", "rounds/latest")]
    app = create_app(view)
    before = {path: get(app, path).body for path in [*paths, f"{BASE}/visits/rounds/2"]}
    assert get(app, f"{BASE}/visits/rounds/2/recounts").json == {
        "survey": json.loads(before[f"{BASE}/visits/rounds/2"])["survey"],
        "round": 2,
        "recounts": [],
    }
    snapshot = view.snapshot()
    snapshot["surveys"][0]["recounts"] = [
        recount(1, "a.example", devices=700),
        recount(1, "a.example", "b.example", suppressed=True),
        recount(3, "a.example"),  # of a round that is open still
        recount(9, "a.example"),  # and of none
    ]
    view.publish(snapshot)
    assert {path: get(app, path).body for path in paths} == {path: before[path] for path in paths}
    lines = [
        {"without_issuers": ["a.example"], "devices": 700, "suppressed": False},
        {"without_issuers": ["a.example", "b.example"], "devices": 0, "suppressed": True},
    ]
    shown = get(app, f"{BASE}/visits/rounds/2").json
    assert shown == json.loads(before[f"{BASE}/visits/rounds/2"]) | {"recounts": lines}
    assert [line.get("recounts") for line in get(app, f"{BASE}/visits/rounds").json["rounds"]] == [
        None, lines, None, None,
    ]  # fmt: skip
    found = get(app, f"{BASE}/visits/rounds/2/recounts").json["recounts"]
    assert [each["recount"]["without_issuers"] for each in found] == [
        line["without_issuers"] for line in lines
    ]
    assert found[0]["values"][0]["standard_error"] == found[0]["values"][0]["error"]
    assert (found[0]["as_of"], found[1]["as_of"], found[1]["values"]) == (700, 0, [])
    for number in (4, 1):
        assert get(app, f"{BASE}/visits/rounds/{number}/recounts").json["recounts"] == []
    assert get(app, f"{BASE}/visits/rounds/10/recounts").status == 404
    assert "recounts" not in get(app, "/api/surveys").json["surveys"][0]
