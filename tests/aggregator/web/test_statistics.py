"""Statistics of tables over the read API and its reader: rows of a real release, CSV, refusals, problems."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asgi_reader import get
from shown_view import ShownView, round_of, snapshot_of, survey_of
from surveys import ACTIVITY, AGE_BY_SEX, VISITS

from hubbub import Survey
from hubbub.estimation import TableNoise, TableShares, conditional_shares, independence
from hubbub_aggregator.release.estimates import estimates
from hubbub_aggregator.web import STATISTICS, create_app, table_facts

SURVEY = Survey.parse(AGE_BY_SEX.replace('name = "grr"', 'name = "subset"'))
DEVICES = 20000
SHARES = np.array([0.30, 0.15, 0.01, 0.15, 0.33, 0.02, 0.01, 0.02, 0.01])


def view_of(*, devices: int = DEVICES, sealed: bool = True, survey: Survey = SURVEY) -> ShownView:
    estimate = survey.estimator().expected_estimate(SHARES, devices)
    found = round_of(0, sealed=sealed, devices=devices)
    found |= estimates(survey, estimate, level=0.95, asked=None)
    known = survey_of("age-by-sex", found) | {"table": table_facts(survey)}
    known["attributes"] = [{"id": "age", "kind": "static"}, {"id": "sex", "kind": "static"}]
    return ShownView(snapshot_of(known, survey_of("visits", round_of(0, sealed=True), digest="2" * 32)))


BASE = "/api/v1/surveys/age-by-sex/rounds/1/statistics"


def rows(query: str = "", view: ShownView | None = None) -> list[dict[str, Any]]:
    answer = get(create_app(view or view_of()), BASE + query)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["rows"]
    return found


def table() -> TableShares:
    return TableShares(SHARES.reshape(3, 3), 1, DEVICES, TableNoise.of(SURVEY.channel))


def test_conditional_shares_are_those_of_the_release_s_own_estimates() -> None:
    """The core's own numbers, whose noise is not made of JSON, transposed: groups of the second attribute."""
    found = rows("?kind=conditional&of=age&given=sex")
    assert [(row["group"], row["reading"]) for row in found] == [
        (group, reading) for group in ("f", "m") for reading in ("child", "youth")
    ]
    known = [span for spans in conditional_shares(table().of([1, 0])) for span in spans]
    for row, span in zip(found, known, strict=True):
        assert (row["estimate"], row["low"], row["high"]) == pytest.approx(
            (span.estimate, span.low, span.high)
        )
        assert (row["statistic"], row["of"], row["given"], row["note"]) == ("conditional", "age", "sex", "")
    assert found[0]["estimate"] == pytest.approx(0.30 / 0.45)


def test_without_a_kind_it_is_the_test_of_all_pairs() -> None:
    (row,) = rows()
    assert (row["statistic"], row["of"], row["given"]) == ("independence", "age", "sex")
    assert row["p_value"] == pytest.approx(independence(table()).p_value)
    assert 0.0 < row["low"] < row["estimate"] < row["high"] < 1.0


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("difference&of=age&given=sex", [("f - m", "child"), ("f - m", "youth")]),
        ("odds_ratio&of=sex&given=age", [(a, s) for a in ("child", "youth") for s in ("f", "m")]),
        ("regression&of=sex&on=age", [(None, "intercept"), (None, "age: youth")]),
        ("reweighted&of=age&given=sex&census=f,0.51%0Am,0.49", [(None, "child"), (None, "youth")]),
    ],
)
def test_every_kind_has_rows_with_intervals(query: str, labels: list[tuple[str | None, str]]) -> None:
    found = rows(f"?kind={query}")
    assert [(row["group"], row["reading"]) for row in found] == labels
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in found)


def test_the_csv_has_the_same_rows() -> None:
    answer = get(create_app(view_of()), BASE + ".csv?kind=conditional&of=age&given=sex")
    assert answer.headers["content-type"].startswith("text/csv")
    assert 'filename="age-by-sex-v1-round-1-conditional.csv"' in answer.headers["content-disposition"]
    found = list(csv.DictReader(io.StringIO(answer.body.decode())))
    known = rows("?kind=conditional&of=age&given=sex")
    assert [float(row["estimate"]) for row in found] == [row["estimate"] for row in known]
    assert set(found[0]) == set(known[0])


def test_numbers_read_by_value_have_means() -> None:
    text = AGE_BY_SEX.split("[[attribute.category]]")[0].replace("high = 19", "high = 11") + (
        '[[attribute]]\nid = "sex"\nkind = "static"\ntype = "label"\nlabels = ["f", "m"]\n\n'
        '[mechanism]\nname = "grr"\n'
    )
    found = rows("?kind=mean&of=age&given=sex", view_of(survey=Survey.parse(text)))
    assert [row["group"] for row in found] == ["f", "m"]
    assert found[0]["estimate"] == pytest.approx(10 + 0.15 / 0.45)


def test_what_so_many_devices_cannot_give_is_refused_in_its_row() -> None:
    (row,) = rows("?kind=regression&of=sex&on=age", view_of(devices=20))
    assert (row["estimate"], row["low"]) == (None, None)
    assert row["note"].startswith("a regression needs a least eigenvalue of 4 errors")
    (row,) = rows("?kind=reweighted&of=age&given=sex&census=f,0.999%0Am,0.001")
    assert row["estimate"] is None and "20,000 devices" in row["note"]


@pytest.mark.parametrize(
    ("path", "status", "subject"),
    [
        (f"{BASE}?kind=median", 400, "kind"),
        (f"{BASE}?kind=conditional&of=age&given=height", 400, "attributes"),
        (f"{BASE}?kind=conditional&of=age&given=age", 400, "attributes"),
        (f"{BASE}?kind=conditional", 400, "attributes"),
        (f"{BASE}?kind=mean&of=age&given=sex", 400, "a mean"),
        (f"{BASE}?kind=regression&of=age", 400, "on"),
        (f"{BASE}?kind=reweighted&of=age&given=sex&census=f,1", 400, "a census"),
        (f"{BASE}?kind=reweighted&of=age&given=sex&census={'f' * 4097}", 400, "census"),
        (f"{BASE}?level=2", 400, "level"),
        (f"{BASE}?level=x", 400, "level"),
        (f"{BASE}?quiet=1", 400, "query parameter"),
        (BASE.replace("rounds/1", "rounds/7"), 404, None),
        (BASE.replace("age-by-sex", "visits"), 409, "statistics"),
    ],
)
def test_what_is_wrong_is_a_problem_with_its_rule(path: str, status: int, subject: str | None) -> None:
    answer = get(create_app(view_of()), path)
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    assert subject is None or answer.json["subject"] == subject


def test_a_suppressed_round_has_no_statistics() -> None:
    view = view_of()
    view.snapshot()["surveys"][0]["rounds"][0] |= {"suppressed": True}
    answer = get(create_app(view), BASE)
    assert (answer.status, answer.json["subject"]) == (400, "a round")


def test_only_tables_have_facts_of_tables() -> None:
    assert table_facts(Survey.parse(VISITS)) is None
    assert table_facts(Survey.parse(ACTIVITY)) is None
    facts = table_facts(SURVEY)
    assert json.loads(json.dumps(facts)) == facts
    assert [each["readings"] for each in facts["attributes"]] == [["child", "youth"], ["f", "m"]]


def test_the_page_and_the_guide_name_every_kind() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert [kind for kind in STATISTICS if f"`{kind}`" not in guide] == []
