"""Floors beside a general convex solver, for few inputs in every grouping (the evidence `certificate`)."""

from __future__ import annotations

import numpy as np
import pytest
from floor_cases import floor_cases, label_questions
from general_solver import error_of, least_error, random_channel

from hubbub_authoring.floor import Weights, cumulative_floor, orbit_floor


@pytest.mark.parametrize("kind", ["labels", "numbers", "random"])
@pytest.mark.parametrize(("inputs", "epsilon"), [(2, 4.0), (3, 1.0), (4, 2.0), (5, 4.0), (6, 0.5)])
def test_a_floor_is_the_optimum_that_a_general_solver_finds(kind, inputs, epsilon):
    """To 1e-6; the solver has another formula of the error, and finds channel and estimates together."""
    compared = 0
    for missing in (False, True):
        for case in floor_cases(kind, inputs, epsilon, missing=missing):
            found = least_error(case.questions, case.prior, epsilon)
            assert found.distance(case.floor) <= 1e-6, (case.words, missing, case.floor, found)
            compared += 1
    assert compared >= 6


def test_a_floor_of_a_smaller_epsilon_is_not_the_optimum():
    """The control: an error of 0.1 % in epsilon is seen, in every kind of question."""
    for kind in ("labels", "numbers", "random"):
        for case in floor_cases(kind, 4, 0.999, missing=True):
            found = least_error(case.questions, case.prior, 1.0)
            assert case.floor > max(found) * (1.0 + 1e-4), case.words


@pytest.mark.parametrize(("points", "epsilon"), [(3, 6.0), (6, 4.0), (7, 4.0), (8, 6.0)])
def test_a_missing_value_costs_cumulative_shares_nothing(points, epsilon):
    """A channel that takes it for the last point has the same error; the search ended up to 40 % below."""
    beside = cumulative_floor(points, epsilon=epsilon, missing=True)
    alone = cumulative_floor(points, epsilon=epsilon, missing=False)
    assert (beside.proof, alone.proof) == ("patterns", "patterns")
    assert beside.error == pytest.approx(alone.error, rel=1e-7)


@pytest.mark.parametrize(
    ("sizes", "weights"), [([2, 2, 1], Weights(0.1, 0.9)), ([3, 1, 1], Weights(0.5, 0.5))], ids=str
)
def test_a_search_at_a_large_epsilon_ends_at_the_optimum(sizes, weights):
    """Mixture, floor and solver agree: 0.7 and 0.007 % were missing."""
    found = orbit_floor(sizes, epsilon=6.0, weights=weights, missing=True)
    known = least_error(*label_questions(sizes, weights, missing=True), 6.0)
    assert known.distance(found.floor) <= 2e-7
    assert found.floor <= found.reached <= found.floor * (1.0 + 1e-7)


def test_random_channels_of_any_shape_are_not_below_a_floor_of_their_question():
    """Twenty each of ten questions about three to seven inputs, two of them of random populations."""
    rng, told = np.random.default_rng(5), 0
    for inputs, kind in ((3, "labels"), (4, "random"), (5, "numbers"), (6, "random"), (7, "numbers")):
        for case in list(floor_cases(kind, inputs, 1.5, missing=inputs % 2 == 0))[:2]:
            left = 20
            while left:
                channel = random_channel(rng, len(case.prior), 1.5)
                if np.linalg.cond(channel @ channel.T) > 1e10:
                    continue  # it does not tell all inputs apart: its error is infinite
                assert error_of(channel, case.questions, case.prior) >= case.floor > 0.0
                left -= 1
                told += 1
    assert told == 200
