"""Statistics of a bundle's tables over the read API: of a real release, beside the truth of its crowd."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from asgi_reader import get
from bundles import bundle
from shown_view import ShownView, round_of, snapshot_of, survey_of

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_aggregator.release import round_views
from hubbub_aggregator.release.estimates import estimates
from hubbub_aggregator.release.parts import part_lines
from hubbub_aggregator.web import create_app, table_facts
from hubbub_aggregator.web.table_statistics import statistic_rows

SIZES = {"age": 3, "sex": 2, "job": 2}
SURVEY = bundle(SIZES, epsilon=2.0)
PAIRS = [("age", "sex"), ("age", "job"), ("sex", "job")]
CROWD = np.zeros((4, 3, 3))
CROWD[:3, :2, :2] = np.random.default_rng(6).dirichlet(np.full(12, 4.0)).reshape(3, 2, 2) * 0.94
CROWD[3, 0, 0] = CROWD[0, 2, 1] = CROWD[1, 1, 2] = 0.02
BASE = "/api/v1/surveys/bundle/rounds/1/statistics"


def drawn(devices: int, seed: int, survey: Survey = SURVEY, crowd: np.ndarray = CROWD) -> dict[str, Any]:
    inputs = np.random.default_rng(seed).choice(crowd.size, devices, p=crowd.ravel())
    counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(seed)))
    found = round_of(0, sealed=True, devices=devices)
    found |= estimates(survey, survey.estimator()(counts, devices), level=0.95, asked=None)
    return found | {"parts": part_lines(survey, counts)}


def asked(query: str, found: dict[str, Any], survey: Survey = SURVEY) -> Any:
    known = survey_of("bundle", found) | {"table": json.loads(json.dumps(table_facts(survey)))}
    known["attributes"] = [{"id": attribute.id, "kind": "static"} for attribute in survey.attributes]
    return get(create_app(ShownView(snapshot_of(known))), BASE + query)


def rows(query: str, devices: int = 40_000, seed: int = 1) -> list[dict[str, Any]]:
    answer = asked(query, drawn(devices, seed))
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["rows"]
    return found


def test_conditional_shares_are_the_crowd_s_whichever_attribute_comes_first() -> None:
    """Every one of 20 shares is within 5.2 errors: at most 4e-6 by chance."""
    for one, two in PAIRS:
        for of, given in ((one, two), (two, one)):
            axes = [list(SIZES).index(given), list(SIZES).index(of)]
            other = ({0, 1, 2} - set(axes)).pop()
            table = CROWD.sum(axis=other)
            table = (table if axes[0] < axes[1] else table.T)[:-1, :-1]
            truth = (table / table.sum(axis=1, keepdims=True)).ravel()
            found = rows(f"?kind=conditional&of={of}&given={given}")
            assert [(row["group"], row["reading"]) for row in found] == [
                (str(u), str(v)) for u in range(SIZES[given]) for v in range(SIZES[of])
            ]
            for row, due in zip(found, truth, strict=True):
                assert abs(row["estimate"] - due) < 5.2 * (row["high"] - row["low"]) / 3.92 < 0.2


def test_a_regression_on_two_attributes_is_put_together_from_tables_of_two() -> None:
    """Each of three coefficients is within 5.2 errors of least squares of the crowd: 1e-6 by chance."""
    cells = [(age, sex, job) for age in range(3) for sex in range(2) for job in range(2)]
    weights = np.sqrt([CROWD[cell] for cell in cells])
    design = np.array([[1.0, age, sex] for age, sex, _ in cells])
    truth = np.linalg.lstsq(design * weights[:, None], [c[2] for c in cells] * weights, rcond=None)[0]
    found = rows("?kind=regression&of=job&on=age,sex")
    assert [row["reading"] for row in found] == ["intercept", "age", "sex"]
    for row, due in zip(found, truth, strict=True):
        # A fiftieth is missing of one attribute and not of another: moments are of those who have both.
        assert abs(row["estimate"] - due) < 5.2 * (row["high"] - row["low"]) / 3.92 + 0.01
        assert row["high"] - row["low"] < 0.3


def test_intervals_of_all_rows_at_once_are_those_of_bonferroni_over_all_pairs() -> None:
    many = 2 * (3 * 2 + 3 * 2 + 2 * 2)
    narrow = rows("?kind=conditional&of=sex&given=age")
    wide = rows(f"?kind=conditional&of=sex&given=age&level={1 - 0.05 / many!r}")
    for one, other in zip(narrow, wide, strict=True):
        assert (one["simultaneous_low"], one["simultaneous_high"]) == pytest.approx(
            (other["low"], other["high"])
        )
        assert one["simultaneous_low"] < one["low"] < one["high"] < one["simultaneous_high"]


def test_every_pair_is_tested_and_holm_is_over_all_of_them() -> None:
    found = rows("")
    assert [(row["of"], row["given"]) for row in found] == PAIRS
    assert all(0.0 <= row["p_value"] <= 1.0 and row["low"] <= row["high"] for row in found)


def test_readings_that_hardly_anybody_has_are_named_where_strength_is_not_given() -> None:
    """A reading that nobody has is within 3 errors of nobody in all but .1 % of rounds."""
    crowd = CROWD.copy()
    crowd[:, :, 0] += crowd[:, :, 1]
    crowd[:, :, 1] = 0.0
    found = {(row["of"], row["given"]): row for row in asked("", drawn(40_000, 3, crowd=crowd)).json["rows"]}
    for pair in (("age", "job"), ("sex", "job")):
        assert found[pair]["estimate"] is None and (found[pair]["low"], found[pair]["high"]) == (0.0, 1.0)
        assert found[pair]["note"] == "within 3 errors of nobody, to be joined with others: job 1"
    assert found["age", "sex"]["note"] == ""


@pytest.mark.parametrize(
    "query", ["mean&of=age&given=sex", "difference&of=age&given=job", "odds_ratio&of=sex&given=age"]
)
def test_every_kind_of_pairs_has_rows(query: str) -> None:
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows(f"?kind={query}"))


def test_a_census_s_shares_reweight_and_too_few_devices_are_refused_by_the_plan_alone() -> None:
    query = "?kind=reweighted&of=job&given=age&census=0,0.3%0A1,0.3%0A2,0.4"
    table = CROWD.sum(axis=1)[:-1, :-1]
    due = (np.array([0.3, 0.3, 0.4])[:, None] * table / table.sum(axis=1, keepdims=True)).sum(axis=0)
    for row, truth in zip(rows(query), due, strict=True):
        assert abs(row["estimate"] - truth) < 5.0 * (row["high"] - row["low"]) / 3.92
    said = {rows(query, devices=100, seed=seed)[0]["note"].split(", got")[0] for seed in range(5)}
    assert said == {"group 0 of the census must have a share that 100 devices know to 30% of itself"}


def test_a_pair_that_is_in_no_table_is_a_problem() -> None:
    survey = bundle(SIZES, epsilon=2.0, tables='[["age", "sex"], ["job"]]')
    answer = asked("?kind=conditional&of=sex&given=job", drawn(4_000, 1, survey), survey)
    assert (answer.status, answer.json["subject"]) == (400, "attributes")
    answer = asked("", drawn(4_000, 1, survey), survey)
    assert [(row["of"], row["given"]) for row in answer.json["rows"]] == [("age", "sex")]


def test_a_table_that_no_report_told_is_said_to_be_and_the_others_have_their_tests() -> None:
    survey = bundle(SIZES, epsilon=2.0, tables='[["age", "sex"], ["job"]]')
    found = drawn(4_000, 1, survey)
    found["values"] = [
        cell | {"estimate": None} if cell["label"][:3] == "age" else cell for cell in found["values"]
    ]
    (row,) = asked("", found, survey).json["rows"]
    assert (row["estimate"], row["p_value"]) == (None, None) and "no report" in row["note"]


@pytest.mark.statistical
def test_intervals_of_a_bundle_hold() -> None:
    """200 rounds of 6,000 devices, 16 shares each: between .92 and .98 of the intervals hold.

    If half of the shares of a round are free of each other, that is more than 5.5 errors of the share from
    either end: below 1e-7 by chance. Control: intervals of the level .8 do not hold so often.
    """
    facts = table_facts(SURVEY)
    assert facts is not None
    held: list[bool] = []
    narrow: list[bool] = []
    for seed in range(200):
        found = drawn(6_000, 1_000 + seed)
        for level, kept in ((0.95, held), (0.8, narrow)):
            for given, of in (("age", "sex"), ("job", "age"), ("sex", "job")):
                axes = (list(SIZES).index(given), list(SIZES).index(of))
                table = np.moveaxis(CROWD, axes, (0, 1)).sum(axis=2)[:-1, :-1]
                truth = (table / table.sum(axis=1, keepdims=True)).ravel()
                made = statistic_rows(found, facts, "conditional", {"of": of, "given": given}, level=level)
                for row, due in zip(made, truth, strict=True):
                    assert row.low is not None and row.high is not None
                    kept.append(row.low <= due <= row.high)
    assert 0.92 < np.mean(held) < 0.98, np.mean(held)
    assert np.mean(narrow) < 0.85, np.mean(narrow)


def test_a_cell_is_ranked_among_those_of_its_own_table() -> None:
    # Cells of a table of four are larger than those of nine, whatever is asked.
    found = drawn(400_000, 3)
    for kind, sizes in (("values", [12, 12, 9]), ("categories", [4, 3, 3])):
        ends, first = np.cumsum(sizes), 0
        ranks = round_views(found)["ranks"][kind]
        for end in ends.tolist():
            own = [cell["estimate"] for cell in found[kind][first:end]]
            for place, (best, worst) in zip(
                np.argsort(np.argsort(own)[::-1]) + 1, ranks[first:end], strict=True
            ):
                assert 1 <= best <= place <= worst <= len(own)
            first = end
