"""The views of a release: from the release alone, as the estimator gives them, and in every table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from surveys import AGE_BY_SEX, LABELS, VISITS

from hubbub.survey import Survey
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.export import tidy_rows
from hubbub_aggregator.release import AcceptedCounts, Release, canonical_bytes, round_views

TREE = VISITS[: VISITS.index("[mechanism]")] + '[mechanism]\nname = "tree"\n'


def released(text: str, devices: int) -> tuple[Survey, np.ndarray, dict[str, Any]]:
    survey = Survey.parse(text)
    inputs = np.random.default_rng(3).integers(0, survey.channel.inputs, devices) // 2
    counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(6)))
    verdicts = VerdictCounts(attempts=devices, accepted=devices)
    made = Release(survey, 0, "sealed", AcceptedCounts({0: 1}, counts, devices), verdicts)
    return survey, counts, json.loads(canonical_bytes(made.document()))


@pytest.mark.parametrize("text", [LABELS, VISITS])
def test_views_of_a_release_are_those_of_its_estimate(text: str) -> None:
    survey, counts, document = released(text, 3000)
    estimate = survey.estimator()(counts, 3000)
    found = round_views(document)
    assert found["empirical_bayes"]["values"] == pytest.approx(estimate.empirical_bayes().values.tolist())
    low, high = (
        np.array([cell[f"simultaneous_{end}"] for cell in document["values"][:-1]]) for end in ("low", "high")
    )
    wanted = [
        [1 + int((low > h).sum()), len(low) - int((high < lo).sum())] for lo, h in zip(low, high, strict=True)
    ]
    assert found["ranks"]["values"] == [*map(tuple, wanted), None]
    assert found["ranks"]["categories"][-1] is None


def test_every_panel_has_the_effective_size_that_its_estimate_has() -> None:
    """The page's own figure: squares of the estimates less those of their errors."""
    survey, counts, document = released(VISITS, 3000)
    estimate = survey.estimator()(counts, 3000)
    found = round_views(document)
    sizes = found["effective_sample_size"]
    for kind in ("values", "categories"):
        cells = document[kind]
        noise = sum(cell["error"] ** 2 for cell in cells)
        squares = sum(cell["estimate"] ** 2 - cell["error"] ** 2 for cell in cells)
        assert sizes[kind] == pytest.approx((1 - squares) / noise)
        assert sizes[kind] == pytest.approx(estimate.effective_size(kind))
    assert sizes["cumulative"] is None
    assert 10 < sizes["values"] < sizes["categories"] < 3000


def test_a_curve_has_an_effective_size_of_its_own() -> None:
    """Of devices with a value: a plain answer of one knows a point by F (1 - F). The last is always 1."""
    survey, counts, document = released(TREE, 3000)
    curve = document["cumulative"]
    rows = list(zip(curve["shares"], curve["errors"], strict=True))[:-1]
    wanted = 1 + sum(f * (1 - f) for f, _ in rows) / sum(error**2 for _, error in rows)
    sizes = round_views(document)["effective_sample_size"]
    found = survey.estimator()(counts, 3000).cumulative()
    assert sizes["cumulative"] == pytest.approx(wanted) == pytest.approx(found.effective_size)
    assert sizes["values"] < sizes["cumulative"] < 3000


def test_the_margins_of_a_cross_table_are_as_many_panels_in_one() -> None:
    """Each adds up to one: their squares are taken off two."""
    _, _, document = released(AGE_BY_SEX, 3000)
    cells = document["categories"]
    noise = sum(cell["error"] ** 2 for cell in cells)
    squares = sum(cell["estimate"] ** 2 - cell["error"] ** 2 for cell in cells)
    assert sum(cell["estimate"] for cell in cells) == pytest.approx(2.0)
    found = round_views(document)["effective_sample_size"]["categories"]
    assert found == pytest.approx((2.0 - squares) / noise)


def test_rows_of_a_table_have_the_view_and_the_ranks() -> None:
    _, _, document = released(LABELS, 3000)
    rows = list(tidy_rows([document]))
    view = [row["estimate"] for row in rows if row["view"] == "empirical_bayes"]
    assert view == round_views(document)["empirical_bayes"]["values"]
    ranked = [
        (row["best_rank"], row["worst_rank"])
        for row in rows
        if row["view"] == "raw" and row["kind"] == "value"
    ]
    assert ranked == [pair or (None, None) for pair in round_views(document)["ranks"]["values"]]
    assert all(row["best_rank"] is None for row in rows if row["view"] != "raw")


def test_suppressed_rounds_and_those_with_an_error_of_0_have_no_views() -> None:
    _, _, few = released(LABELS, 20)
    assert few["suppressed"]
    nothing = {"empirical_bayes": {"values": []}, "ranks": {"values": [], "categories": []}}
    sizes = {"values": None, "categories": None, "cumulative": None}
    assert round_views(few) == nothing | {"effective_sample_size": sizes}
    _, _, old = released(LABELS, 3000)
    old["values"][0]["error"] = 0.0
    assert round_views(old)["empirical_bayes"]["values"] == []
