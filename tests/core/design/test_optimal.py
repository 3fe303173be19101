"""Optimal channels of the mean: their integers, their error beside the floor, and what they leave visible."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub.design import Floors, Objective, Workload, choose
from hubbub.design.comparison import measured
from hubbub.design.floor.optimal_entry import optimal_mean
from hubbub.errors import ParameterError


def asked(points: int, epsilon: float) -> Workload:
    return Workload.uniform(
        kind="grid",
        epsilon=epsilon,
        category_of=np.append(np.zeros(points, dtype=np.intp), 1),
        devices=1000,
        points=np.append(np.linspace(-1.0, 1.0, points), np.nan),
        objective=Objective("mean"),
    )


@pytest.mark.parametrize(("points", "epsilon"), [(17, 0.5), (17, 1.0), (17, 2.0), (33, 4.0), (65, 6.0)])
def test_error_is_within_one_per_cent_of_the_floor_and_epsilon_is_kept(points, epsilon):
    channel, question = optimal_mean(points, epsilon=epsilon), asked(points, epsilon)
    assert channel.epsilon <= epsilon - 2.0**-36
    ratios = channel.weights().max(axis=0) / channel.weights().min(axis=0)
    assert math.log(ratios.max()) <= channel.epsilon + 1e-12
    above = Floors(question).above(measured("optimal", {}, question, channel).cost)
    assert 0.0 <= above <= 0.01


def test_mean_has_the_error_that_its_own_matrix_gives():
    """By the best linear unbiased estimate at a uniform population, from the integers and nothing else."""
    channel, question = optimal_mean(9, epsilon=1.0), asked(9, 1.0)
    rows, prior = channel.weights() / channel.total, question.prior
    sent = prior @ rows
    information = (rows / sent) @ rows.T
    functional = np.append(np.linspace(-1.0, 1.0, 9), 0.0)
    best = functional @ np.linalg.solve(information, functional) - prior @ functional**2
    known = measured("optimal", {}, question, channel).accuracy.errors
    gap = 0.25**2 / 4  # rounding to the grid, counted at its bound
    assert 1000 * known.mean**2 - gap == pytest.approx(best, rel=5e-3)
    assert math.isfinite(known.value)


def test_auto_takes_it_for_the_mean_and_gains():
    question = asked(17, 0.5)
    pick = choose(question)
    assert pick.mechanism == "optimal"
    assert Floors(question).above(pick.cost) <= 0.01


def test_too_many_points_are_refused():
    with pytest.raises(ParameterError, match="points must be 2 to 128"):
        optimal_mean(129, epsilon=1.0)
