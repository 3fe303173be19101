"""The truth beside a release, on cases small enough to count by hand."""

from __future__ import annotations

import io
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console
from surveys import DISEASES, LABELS, VISITS

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_deploy.commands.replay.csv_replay import replay
from hubbub_lab.evaluation.evaluation import EvaluationRow, Truth, rows_of, truth_of
from hubbub_lab.evaluation.report import Evaluation, show

HEALTH, VISITED, ILL = Survey.parse(LABELS), Survey.parse(VISITS), Survey.parse(DISEASES)
GRID_STEP = 2.0  # 31 points from 0 to 60


def shares(survey: Survey, values: list[object]) -> dict[str, float]:
    """The truth's positive shares by label."""
    truth = truth_of(survey, values)
    assert truth.values.shape == (survey.channel.inputs,)
    assert truth.values.sum() == pytest.approx(1.0)
    assert truth.categories.sum() == pytest.approx(1.0)
    return {
        label: share for label, share in zip(survey.input_labels, truth.values, strict=True) if share > 0.0
    }


def test_labels_are_counted_and_the_rest_is_missing() -> None:
    values = ["good", "good", "poor", None, "splendid", "excellent", 3, "good"]
    assert shares(HEALTH, values) == {"excellent": 1 / 8, "good": 3 / 8, "poor": 1 / 8, "missing": 3 / 8}
    assert truth_of(HEALTH, values).mean is None


def test_integers_are_counted_by_value_and_by_category_and_averaged_over_those_present() -> None:
    values = [0, 0, 1, 2, 5, None, 99]
    assert shares(VISITED, values) == pytest.approx(
        {"0": 2 / 7, "1": 1 / 7, "2": 1 / 7, "5": 1 / 7, "missing": 2 / 7}
    )
    truth = truth_of(VISITED, values)
    assert VISITED.category_names == ("none", "1 or 2", "more than 2", "missing")
    assert truth.categories.tolist() == pytest.approx([2 / 7, 2 / 7, 1 / 7, 2 / 7])
    assert truth.mean == pytest.approx(8 / 5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, {"0": 1.0}),
        (60.0, {"60": 1.0}),
        (4, {"4": 1.0}),
        (3.0, {"2": 0.5, "4": 0.5}),
        (2.5, {"2": 0.75, "4": 0.25}),
        (59.5, {"58": 0.25, "60": 0.75}),
        (np.float64(3.0), {"2": 0.5, "4": 0.5}),
        (np.int64(4), {"4": 1.0}),
        (Fraction(5, 2), {"2": 0.75, "4": 0.25}),
        (60.001, {"missing": 1.0}),
        (-0.001, {"missing": 1.0}),
        (math.nan, {"missing": 1.0}),
        (math.inf, {"missing": 1.0}),
        (True, {"missing": 1.0}),
        ("4", {"missing": 1.0}),
        (None, {"missing": 1.0}),
    ],
)
def test_a_number_counts_at_the_points_beside_it_as_its_rounding_falls(
    value: object, expected: dict[str, float]
) -> None:
    assert shares(ILL, [value]) == pytest.approx(expected)
    # What a device does with the value lies among the same points.
    source = seeded(7)
    drawn = {ILL.input_labels[ILL.input_of(value, source=source)] for _ in range(64)}
    assert drawn == set(expected)


def test_the_mean_of_numbers_is_that_of_the_numbers_not_of_the_points() -> None:
    truth = truth_of(ILL, [2.5, 3.25, None, 70.0])
    assert truth.mean == pytest.approx(2.875)
    # 2 gets 3/4 and 3/8 of a device, 4 the rest; two of four are missing.
    assert truth.values[[1, 2, -1]].tolist() == pytest.approx([1.125 / 4, 0.875 / 4, 0.5])
    assert truth.categories[-1] == 0.5


def test_nobody_has_no_mean_and_no_shares() -> None:
    for survey in (HEALTH, VISITED, ILL):
        truth = truth_of(survey, [])
        assert truth.values.sum() == 0.0
        assert truth.mean is None


def entry(label: str, estimate: float | None, low: float | None, high: float | None) -> dict[str, object]:
    return {"label": label, "estimate": estimate, "error": 0.1, "low": low, "high": high}


def test_rows_set_the_truth_beside_each_entry_in_its_place() -> None:
    truth = Truth(np.array([0.25, 0.75]), np.array([1.0]), 3.5)
    release = {
        "values": [entry("a", 0.2, 0.1, 0.3), entry("b", None, None, None)],
        "categories": [entry("all", 1.3, 1.1, 1.5)],
        "mean": {"estimate": 3.0, "error": 0.2, "low": 2.6, "high": 3.5},
    }
    rows = rows_of(release, truth)
    assert [(row.kind, row.label, row.truth, row.estimate) for row in rows] == [
        ("category", "all", 1.0, 1.3),
        ("value", "a", 0.25, 0.2),  # b is not identifiable: no row
        ("mean", "mean", 3.5, 3.0),
    ]
    assert [row.covers_truth for row in rows] == [False, True, True]
    assert [row.kind for row in rows_of(release | {"mean": None}, truth)] == ["category", "value"]


def test_a_release_of_another_length_than_the_truth_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        rows_of({"values": [], "categories": [], "mean": None}, Truth(np.ones(1), np.ones(1), None))


@pytest.mark.parametrize(
    ("truth", "hit"), [(0.0999, False), (0.1, True), (0.2, True), (0.3, True), (0.31, False)]
)
def test_an_interval_holds_its_ends(truth: float, hit: bool) -> None:
    assert EvaluationRow("value", "a", truth, 0.2, 0.05, 0.1, 0.3).covers_truth is hit


def test_replay_of_a_tree_compares_its_quartiles_with_those_of_the_devices() -> None:
    """2,000 devices by a tree: the truth by numpy, the interval that of the release."""
    text = """
    id = "minutes"
    version = 1
    title = "Minutes"
    epsilon = 2.0
    minimum_cohort = 100
    planned_devices = 2000
    schedule = { start = 2026-01-01T00:00:00Z, round = "1d", rounds = 1, lateness = "1h", skew = "5m" }
    attribute = { id = "minutes", kind = "evolving", type = "number", low = 0.0, high = 10.0 }
    mechanism = { name = "tree", points = 17 }
    """
    numbers = [float(number) for number in np.random.default_rng(3).beta(2, 5, 2000) * 10]
    found = replay(Survey.parse(text), [*numbers, *[None] * 100], source=seeded(12))
    rows = {row.label: row for row in found.rows if row.kind == "quantile"}
    for share, name in ((0.25, "first quartile"), (0.5, "median"), (0.75, "third quartile")):
        truth = float(np.quantile(numbers, share, method="inverted_cdf"))
        released = next(each for each in found.release["quantiles"] if each["share"] == share)
        assert rows[name].truth == truth
        assert (rows[name].low, rows[name].high) == (released["low"], released["high"])
    assert found.summary()["quantile"]["intervals"] == 3
    printed = io.StringIO()
    show([found], rows="all", console=Console(file=printed, width=120))
    assert "median" in printed.getvalue()
    assert json.dumps(found.as_json(), allow_nan=False)


def shown(survey: Survey, shares: list[float], rows: str, everyone: list[float] | None = None) -> list[str]:
    """The lines of a round's table, its estimates the truth itself."""
    entries = [
        {"label": label, "estimate": share, "error": 0.01, "low": share - 0.02, "high": share + 0.02}
        for label, share in zip(survey.input_labels, shares, strict=True)
    ]
    release = {"values": entries, "categories": [], "mean": None, "suppressed": False}
    truth = Truth(np.array(shares), np.empty(0), None)
    out = io.StringIO()
    all_ = None if everyone is None else Truth(np.array(everyone), np.empty(0), None)
    evaluation = Evaluation(survey, release | {"devices": 1000, "round": 2}, truth, everyone=all_)
    show([evaluation], rows=rows, console=Console(file=out, width=120))
    return out.getvalue().splitlines()


def test_labels_are_listed_by_share_with_missing_last_and_the_round_is_said() -> None:
    lines = shown(HEALTH, [0.1, 0.5, 0.02, 0.3, 0.08], "all")
    assert f"round 2 of {HEALTH.rounds}" in lines[0]
    labels = [line.split("│")[1].strip() for line in lines if line.startswith("│") and "%" in line]
    by_share = sorted(zip([0.1, 0.5, 0.02, 0.3], HEALTH.input_labels, strict=False), reverse=True)
    assert labels == [*(label for _, label in by_share), "missing"]
    ends = {line.index(" to ") for line in lines if " to " in line}
    assert len(ends) == 1  # decimals stand below each other


def test_the_truth_of_all_people_stands_beside_that_of_those_who_were_counted() -> None:
    counted, everyone = [0.1, 0.5, 0.02, 0.3, 0.08], [0.2, 0.4, 0.03, 0.3, 0.07]
    alone, both = shown(HEALTH, counted, "all"), shown(HEALTH, counted, "all", everyone)
    assert not any("all people" in line or "Compared is" in line for line in alone)
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in both if line.startswith("│")]
    found = {label: (all_, own) for label, all_, own in cells}
    for label, one, other in zip(HEALTH.input_labels, everyone, counted, strict=True):
        assert found[label] == (f"{100 * one:.2f} %", f"{100 * other:.2f} %")
    assert any(line.startswith("Compared is the truth of the devices that were counted") for line in both)


def test_a_table_of_shares_says_that_intervals_are_cut_and_estimates_are_not() -> None:
    printed = "\n".join(shown(HEALTH, [0.99, -0.02, 0.01, 0.01, 0.01], "all"))
    assert printed.count("cut at 0 and 100 %, estimates are not") == 1
    release = {"values": [], "categories": [], "mean": None, "suppressed": True, "devices": 3, "round": 1}
    out = io.StringIO()
    suppressed = Evaluation(HEALTH, release, Truth(np.zeros(5), np.empty(0), None))
    show([suppressed], rows="all", console=Console(file=out, width=120))
    assert "cut at" not in out.getvalue()  # nothing of that kind stands above


def test_missing_is_shown_however_rare_and_a_label_is_no_markup() -> None:
    survey = Survey.parse(
        LABELS.replace(
            'labels = ["excellent", ', 'labels = ["[red]", ' + "".join(f'"l{i}", ' for i in range(20))
        )
    )
    shares = [0.9 - 0.01 * i if i == 0 else 0.004 for i in range(len(survey.input_labels) - 1)] + [0.0]
    text = "\n".join(shown(survey, shares, "most frequent"))
    assert "[red]" in text and "│ missing" in text and "l19" not in text


def test_a_truth_of_one_that_is_a_sum_of_rounded_shares_is_within_an_interval_that_ends_at_one() -> None:
    survey = Survey.parse(DISEASES)
    truth = max(
        truth_of(survey, np.random.default_rng(seed).uniform(0.0, 60.0, 999).tolist()).categories[0]
        for seed in range(20)
    )
    assert 1.0 < truth < 1.0 + 1e-12
    assert EvaluationRow("category", "answered", truth, 1.003, 0.003, 0.993, 1.0).covers_truth
    assert not EvaluationRow("category", "answered", truth, 0.9, 0.003, 0.8, 1.0 - 1e-6).covers_truth
