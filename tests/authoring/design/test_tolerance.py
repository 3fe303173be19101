"""Objectives of numbers beyond the mean: reports near their value, and the shape of a smooth crowd."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub_authoring import mechanisms as m
from hubbub_authoring.design import Objective, Workload, compare
from hubbub_authoring.design.expected_error import shape_error, tolerance_accuracy

POINTS = 17
GRID = np.append(np.linspace(-1.0, 1.0, POINTS), np.nan)


def asked(epsilon, objective, devices=10_000):
    return Workload.uniform(
        kind="grid",
        epsilon=epsilon,
        category_of=np.append(np.zeros(POINTS, dtype=np.intp), 1),
        devices=devices,
        points=GRID,
        objective=objective,
    )


def test_hits_are_counted_from_the_rows():
    """GRR on 18 inputs: within one step of 1/8, three symbols hit in the middle, two at an end."""
    channel = m.grr(POINTS + 1, epsilon=2.0)
    p, q = channel.weights()[0, 0] / channel.total, channel.weights()[0, 1] / channel.total
    assert tolerance_accuracy(channel, GRID, 0.125) == pytest.approx(p + q)
    assert tolerance_accuracy(channel, GRID, 0.12) == pytest.approx(p)
    boosted = m.boosted(POINTS, epsilon=2.0, region=m.Absolute(2.0), missing="input", objective="hits")
    whole = boosted.weights()[:POINTS, :-1] / boosted.total
    places = np.arange(whole.shape[1]) - boosted.design.margin
    near = np.abs(places - np.arange(POINTS)[:, None]) <= 2
    assert tolerance_accuracy(boosted, GRID, 0.25) == pytest.approx(float((whole * near).sum(axis=1).min()))
    duchi = m.duchi(POINTS, epsilon=2.0, missing="input")
    assert tolerance_accuracy(duchi, GRID, 0.1) == 0.0
    assert tolerance_accuracy(duchi, GRID, 10.0) == pytest.approx(1.0 - 1.0 / (1.0 + math.e**2 / 2), abs=0.2)
    assert tolerance_accuracy(m.unary(POINTS + 1, epsilon=1.0), GRID, 10.0) == 0.0


@pytest.mark.parametrize(("epsilon", "within"), [(1.0, 0.4), (4.0, 0.125)])
def test_auto_hits_at_least_as_often_as_every_mechanism_and_a_scan_of_splits(epsilon, within):
    question = asked(epsilon, Objective("hit", within=within))
    found = compare(question)
    chosen = found[0]
    steps = math.floor(within * 8 + 1e-9)
    for kernel in ("laplace", "staircase"):
        for share in (0.0, 0.3, 0.6, 0.9):
            other = m.boosted(
                POINTS,
                epsilon=epsilon,
                kernel=kernel,
                region=m.Absolute(float(steps)),
                kernel_epsilon=share * epsilon,
                missing="input",
            )
            assert 1.0 - chosen.cost >= tolerance_accuracy(other, GRID, within) * 0.999
    assert all(chosen.cost <= other.cost * 1.001 for other in found)
    assert chosen.cost == pytest.approx(1.0 - tolerance_accuracy(chosen.channel, GRID, within))
    assert chosen.channel.epsilon <= epsilon


def test_shape_is_the_risk_of_the_best_linear_estimate():
    """Posterior covariance written as L - L P' (P L P' + R)^-1 P L: another formula, the same number."""
    question = asked(2.0, Objective("shape"), devices=3000)
    channel = m.square_wave(POINTS, epsilon=2.0, missing="input")
    rows = channel.weights() / channel.total
    pi = question.prior @ rows
    place = np.arange(POINTS)
    centring = np.eye(POINTS) - 1 / POINTS
    before = np.zeros((POINTS + 1, POINTS + 1))
    smooth = np.exp(-0.5 * ((place[:, None] - place) / ((POINTS + 1) / 8)) ** 2) / POINTS**2
    before[:-1, :-1] = centring @ smooth @ centring
    away = np.append(np.full(POINTS, -0.25 / POINTS), 0.25)
    before += np.outer(away, away)
    seen = rows.T @ before @ rows + np.diag(pi) / 3000
    after = before - before @ rows @ np.linalg.solve(seen, rows.T @ before)
    sums = np.tril(np.ones((POINTS, POINTS)))[:-1]
    expected = math.sqrt(np.mean(np.diag(sums @ after[:-1, :-1] @ sums.T)))
    assert shape_error(channel, question) == pytest.approx(expected, rel=1e-6)


def test_more_devices_see_a_shape_better_and_duchi_hardly_sees_it():
    channel = m.square_wave(POINTS, epsilon=2.0, missing="input")
    errors = [shape_error(channel, asked(2.0, Objective("shape"), n)) for n in (100, 10_000, 1_000_000)]
    assert errors[0] > errors[1] > errors[2]
    few = m.duchi(POINTS, epsilon=2.0, missing="input")
    assert shape_error(few, asked(2.0, Objective("shape"))) > 2 * errors[1]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Objective("hit"), "within must be given for objective hit, and only there, got None"),
        (lambda: Objective("mean", within=1.0), "within must be given for objective hit, and only there"),
        (lambda: Objective("hit", within=0.0), "within must be a positive finite distance, got 0.0"),
    ],
)
def test_bad_objectives_name_the_rule(build, words):
    with pytest.raises(ParameterError, match=words):
        build()


@pytest.mark.parametrize("quantity", ["hit", "shape"])
def test_labels_have_neither(quantity):
    with pytest.raises(ParameterError, match=f"objective {quantity} must be asked of numbers"):
        Workload.uniform(
            kind="labels",
            epsilon=1.0,
            category_of=np.array([0, 0, 0, 1]),
            devices=10,
            points=None,
            objective=Objective(quantity, within=1.0 if quantity == "hit" else None),
        )
