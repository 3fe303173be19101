"""Floors of workloads: the units of costs, coins, rounding; and what `survey design` says of them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import surveys

from hubbub.mechanisms import levels, subset_selection
from hubbub.survey import Survey
from hubbub_authoring.design import (
    ASKED,
    Floors,
    Objective,
    Workload,
    compare,
    expected_error,
    frontier,
    measured,
)
from hubbub_authoring.floor import mean_floor, pattern_floor
from hubbub_authoring.floor.linear import linear_floor, reading_floor, searched_floor
from hubbub_authoring.floor.readings import best_readings
from hubbub_deploy.cli import main
from hubbub_deploy.commands.survey.design import SurveyDesign


def asked(sizes, *, epsilon=1.0, objective="both", devices=1000, participation=1.0, points=None) -> Workload:
    return Workload.uniform(
        kind="labels" if points is None else "grid",
        epsilon=epsilon,
        category_of=np.repeat(np.arange(len(sizes) + 1), [*sizes, 1]),
        devices=devices,
        points=points,
        objective=Objective(objective),
        participation=participation,
    )


def test_costs_of_known_channels_are_above_their_floor_and_near_it():
    """Subset selection attains the floor of values but for the missing input, levels that of both to 4 %."""
    question = asked([30, 30, 30], objective="value")
    cost = measured("subset", {}, question, subset_selection(91, epsilon=1.0)).cost
    assert 0.0 <= Floors(question).above(cost) < 0.002
    question = asked([10] * 9)
    cost = measured("levels", {}, question, levels([*[10] * 9, 1], epsilon=1.0)).cost
    assert 0.0 < Floors(question).above(cost) < 0.04


@pytest.mark.parametrize("quantity", ["value", "category", "both"])
def test_no_mechanism_compared_is_below_its_floor_at_any_coin(quantity):
    for participation in (1.0, 0.4):
        question = asked([3, 4, 1], epsilon=2.0, objective=quantity, participation=participation)
        floors = Floors(question)
        above = [floors.above(c.cost) for c in compare(question) if math.isfinite(c.cost)]
        assert min(above) >= 0.0
        # A mechanism does not tell who answered, so behind a coin it is farther from its floor.
        assert min(above) < (0.25 if participation == 1.0 else 2.5)


def test_a_channel_of_more_epsilon_than_declared_is_seen_below_the_floor():
    """The control: a floor that nothing could be below would pass the test above."""
    question = asked([4, 4], epsilon=1.0, objective="value")
    liar = min(
        expected_error(subset_selection(9, epsilon=1.1, size=d), question).cost(question) for d in (2, 3, 4)
    )
    assert Floors(question).above(liar) < -0.05


def test_floor_behind_a_coin_is_that_of_the_best_channel_whose_coin_is_known():
    """From the definition: dummy reports have an output of their own; best linear unbiased estimates."""
    question = asked([2], epsilon=1.5, objective="value")
    prior, half = np.array([0.5, 0.5]), math.exp(1.5) / (1.0 + math.exp(1.5))
    answers = np.array([[half, 1.0 - half], [1.0 - half, half]])
    for share in (1.0, 0.3):
        rows = np.column_stack([share * answers, np.full(2, 1.0 - share)])
        rows = rows[:, rows.max(axis=0) > 0.0]
        information = (rows / (prior @ rows)) @ rows.T
        error = float(np.trace(np.linalg.inv(information) - np.diag(prior))) / 2.0
        floor = pattern_floor(np.eye(2) / math.sqrt(2.0), prior, epsilon=1.5).floor
        sampling = 0.25
        assert (floor + sampling) / share - sampling == pytest.approx(error, rel=1e-8)
        found = Floors(replace(question, participation=share)).of("value").error
        with_missing = Floors(question).of("value").error
        assert found == pytest.approx((with_missing + sampling) / share - sampling, rel=1e-9)


def test_rounding_to_the_grid_is_counted_as_costs_count_it():
    points = np.append(np.linspace(-1.0, 1.0, 9), np.nan)
    question = asked([9], epsilon=4.0, objective="mean", points=points)
    plain = mean_floor(points[:-1], epsilon=4.0)
    assert Floors(question).of("mean").error == pytest.approx(plain.error + 0.25**2 / 4, rel=1e-9)
    best = min(c.cost for c in compare(question))
    assert Floors(question).above(best) >= 0.0


def test_quantities_without_a_floor_have_none():
    question = asked([3, 3])
    assert Floors(question).of("mean") is None
    assert Floors(question).of("hit") is None
    assert Floors(replace(question, epsilon=17.0)).objective is None


def test_a_crowd_that_is_not_uniform_has_a_floor_and_no_distance_from_it():
    """Of few inputs the optimum over all sets, of more below it; nothing is claimed to be near it."""
    question = asked([2, 2], epsilon=1.0)
    rows = np.concatenate(
        [np.eye(4, 5) / math.sqrt(8.0), np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]) / math.sqrt(4.0)]
    )
    for shares in ([0.5, 0.2, 0.1, 0.2, 0.0], [0.2, 0.2, 0.2, 0.2, 0.2]):
        floors = Floors(replace(question, prior=np.array(shares)))
        optimum = pattern_floor(rows, shares, epsilon=1.0).floor
        assert floors.objective.error == pytest.approx(optimum, rel=1e-9)
        assert floors.above(1.0) is None
    assert floors.crowd == "devices of which 20 % have no value, the others spread evenly over 4"
    more = asked([5, 6], epsilon=1.0)
    for absent in (0.1, 0.4):
        prior = np.append(np.full(11, (1.0 - absent) / 11), absent)
        rows = np.concatenate([np.eye(11, 12) / math.sqrt(22.0), np.zeros((2, 12))])
        rows[11, :5] = rows[12, 5:11] = 0.5
        found = Floors(replace(more, prior=prior)).objective
        optimum = pattern_floor(rows, prior, epsilon=1.0).floor
        assert found.proof == "spectral" and 0.6 * optimum < found.error <= optimum


def test_the_mean_of_those_who_have_a_number_has_the_floor_of_its_gradient():
    points = np.append(np.linspace(-1.0, 1.0, 7), np.nan)
    question = asked([7], epsilon=2.0, objective="mean", points=points)
    prior = np.append(np.full(7, 0.1), 0.3)
    gradient = np.append(points[:-1] / 0.7, 0.0)
    floors = Floors(replace(question, prior=prior, kind="labels"))
    assert floors.of("mean").error == pytest.approx(
        pattern_floor(gradient[None], prior, epsilon=2.0).floor, rel=1e-9
    )
    for candidate in compare(replace(question, prior=prior)):
        assert not candidate.cost * 1000 < floors.of("mean").error


@pytest.mark.parametrize("points", [np.linspace(-1.0, 1.0, 13), np.append(np.arange(9.0), 12.0)], ids=len)
def test_mean_floor_by_readings_is_that_of_column_generation(points):
    """Two searches of different kinds, one certificate; with the missing input, to 1 %."""
    for epsilon in (0.5, 2.0):
        functional = np.append(np.array(points) - np.mean(points), 0.0)
        prior = np.append(np.full(len(points), 1 / len(points)), 0.0)
        slow = linear_floor(functional, prior, epsilon=epsilon, gap=1e-4)
        fast = mean_floor(points, epsilon=epsilon).error
        assert fast <= slow.reached * (1 + 1e-9)
        assert fast >= slow.floor * (1 - 1e-2)


def test_readings_are_a_channel_of_the_error_that_they_claim():
    """The matrix from the definition: rows sum to one, ratios within e^epsilon, unbiased, its variance."""
    functional = np.append(np.linspace(-1.0, 1.0, 11), 0.0)
    prior = np.append(np.full(11, 1 / 11), 0.0)
    a = math.exp(1.5)
    found = best_readings(functional, prior, a)
    rows = found.rows[:, found.rows.max(axis=0) > 1e-9]
    numbers = found.numbers[found.rows.max(axis=0) > 1e-9]
    np.testing.assert_allclose(found.rows.sum(axis=1), 1.0, atol=1e-7)
    assert (rows.max(axis=0) <= a * rows.min(axis=0) * (1 + 1e-9)).all()
    np.testing.assert_allclose(rows @ numbers, functional, atol=1e-6)
    error = prior @ (rows @ numbers**2) - prior @ functional**2
    assert found.error == pytest.approx(error, rel=1e-6)


def test_frontier_is_below_every_mechanism_and_touches_the_optimum():
    question = asked([10] * 9, epsilon=2.0)
    pairs = [
        (1000 * c.accuracy.errors.value**2, 1000 * c.accuracy.errors.category**2)
        for c in compare(question)
        if c.accuracy is not None and math.isfinite(c.accuracy.errors.value)
    ]
    values = np.array([value for value, _ in pairs])
    least = frontier(question, values)
    assert (least <= [category for _, category in pairs]).all()
    # Level sampling is 3 % above the floor of both, so at its own value error the line cannot be far.
    nearest = min(range(len(pairs)), key=lambda i: sum(pairs[i]))
    assert least[nearest] >= 0.9 * pairs[nearest][1]
    # Its ends: no smaller value error, whatever is given up, and no smaller category error.
    floors = Floors(question)
    value, category = (floors.of(quantity).error for quantity in ("value", "category"))
    ends = frontier(question, np.array([0.999 * value, value, 1e6 * value]))
    assert ends[0] == np.inf and category < ends[1] < np.inf and ends[2] == category
    assert frontier(asked([500, 499]), values) is None


def test_design_says_the_floor_in_table_sentence_and_json(tmp_path, capsys):
    file = tmp_path / "survey.toml"
    file.write_text(surveys.VISITS)
    assert main(["survey", "design", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["floor"]) == set(ASKED)
    assert found["above_floor"] == pytest.approx(found["cost"] / found["floor"]["both"] - 1.0, rel=1e-6)
    assert all(other["above_floor"] is None or other["above_floor"] >= 0.0 for other in found["alternatives"])
    assert main(["survey", "design", str(file)]) == 0
    said = capsys.readouterr().out
    assert "above floor" in said
    number = float(re.search(r"No mechanism at epsilon 3 can have less than ±([0-9.]+) points", said)[1])
    truth = 196 * math.sqrt(found["floor"]["both"])
    assert 0.99 * truth < number <= truth  # a printed floor is a floor
    percent = float(re.search(r"this survey is ([0-9.]+) % above", said)[1])
    assert 100 * found["above_floor"] <= percent < 100 * found["above_floor"] + 1.0


def test_design_of_what_has_no_floor_says_nothing_of_it(tmp_path, capsys):
    file = tmp_path / "survey.toml"
    file.write_text(surveys.VISITS)
    design = SurveyDesign.of(Survey.load(file), file.read_text(), "hit", 2.0)
    assert design.least() == ""
    assert design.as_json()["above_floor"] is None
    capsys.readouterr()


@pytest.mark.parametrize(
    ("points", "epsilon"),
    [
        pytest.param(n, epsilon, marks=pytest.mark.only_long if n == 400 and epsilon < 8.0 else [])
        for n in (12, 25, 78, 400)
        for epsilon in (0.5, 1.0, 3.0, 8.0)
    ],
)
def test_a_floor_without_scipy_is_a_floor_and_not_far_below(points: int, epsilon: float) -> None:
    """Of more than two dozen inputs its dual point is that of two dozen: a search of all took minutes."""
    functional = np.append(np.arange(points) - (points - 1) / 2.0, 0.0)
    prior = np.append(np.full(points, 1.0 / points), 0.0)
    sharp = reading_floor(functional, prior, epsilon=epsilon)
    # Both end within .1 % of the optimum where nothing is interpolated.
    assert 0.55 * sharp <= searched_floor(functional, prior, epsilon=epsilon) <= 1.003 * sharp
