"""The two channels of a key-value survey: known errors and floors, the choice between them, and contracts."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract
from surveys import MINUTES

from hubbub import Survey
from hubbub.mechanisms import grr
from hubbub.survey import Attribute, KeyValue
from hubbub_authoring.design import Crowd, better, candidates, survey_distances, survey_variance
from hubbub_authoring.design.key_value import boosted_on_grid, key_value_channel, mean_variance
from hubbub_authoring.floor.least import functional_floor
from hubbub_authoring.mechanisms.boosted.boosted import boosted

NUMBER = Attribute.number("minutes", 0.0, 1.0, kind="static", absent=True)

# f -> f^2 n Var at epsilon 1, 2, 4 for a number from 0 to 1, evenly on its points: the least of any channel
# over 7 points and absent, boosted noise on 9 points, and randomised response over three inputs.
LEAST = {0.1: (0.8381, 0.1358, 0.0240), 0.3: (0.9155, 0.1766, 0.0497), 0.8: (1.0648, 0.2742, 0.1132)}
BOOSTED = {0.1: (0.964, 0.158, 0.024), 0.3: (1.061, 0.200, 0.049), 0.8: (1.305, 0.306, 0.111)}
THREE = {0.1: (0.868, 0.152, 0.036), 0.3: (1.005, 0.225, 0.089), 0.8: (1.348, 0.409, 0.221)}


def crowd(points: int, share: float, rest: int = 1) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.append(np.linspace(0.0, 1.0, points), np.full(rest, np.nan))
    return numbers, np.append(np.full(points, share / points), [1.0 - share, *[0.0] * (rest - 1)])


def gls(rows: np.ndarray) -> np.ndarray:
    """(P W P')^-1 P W, W the inverse of the law of outputs when all inputs are equally common."""
    weighed = rows / rows.mean(axis=0)
    return np.linalg.solve(weighed @ rows.T, weighed)


@pytest.mark.parametrize("share", LEAST)
@pytest.mark.parametrize("place", range(3))
def test_variances_and_floors_are_those_that_are_known(share, place):
    epsilon = (1.0, 2.0, 4.0)[place]
    for channel, points, known in (
        (boosted(9, epsilon=epsilon, kernel="uniform", missing="input"), 9, BOOSTED),
        (grr(3, epsilon=epsilon), 2, THREE),
    ):
        rows = channel.probabilities()
        found = share**2 * mean_variance(gls(rows), rows, *crowd(points, share))
        assert found == pytest.approx(known[share][place], abs=6e-4)
    numbers, prior = crowd(7, share)
    influence = np.where(np.isnan(numbers), 0.0, numbers - 0.5) / share
    floor = functional_floor(influence, prior, epsilon=epsilon).error + influence**2 @ prior
    assert 0.998 * LEAST[share][place] - 5e-5 < share**2 * floor < LEAST[share][place] + 5e-5


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_the_better_of_two_is_taken_and_neither_is_below_the_floor(share, epsilon):
    both = candidates(NUMBER, share, 9, epsilon)
    assert [form.grid for form, _ in both] == [2, 9]
    errors = [survey_variance(*each) for each in both]
    form, channel = better(NUMBER, share, 9, epsilon)
    assert survey_variance(form, channel) == errors[int(errors[1] < 0.99 * errors[0])]
    assert channel.epsilon <= epsilon
    planned = Crowd.of(NUMBER, share)
    floor = functional_floor(planned.gradient(), planned.prior(), epsilon=epsilon)
    assert min(errors) > floor.error + planned.sampling
    # The ends are randomised response over four inputs, by its formula.
    a = math.exp(epsilon)
    p, q = a / (a + 3.0), 1.0 / (a + 3.0)
    told = 2.0 * q * (1.0 - share) + (p + q) * share
    assert errors[0] == pytest.approx(told / (4.0 * share**2 * (p - q) ** 2), rel=1e-7)


def test_the_ends_win_where_few_have_a_number_or_epsilon_is_small_and_the_grid_elsewhere():
    assert [better(NUMBER, share, 32, 1.0)[0].grid for share in (0.05, 0.1, 0.8)] == [2, 2, 32]
    assert [better(NUMBER, 0.1, 32, epsilon)[0].grid for epsilon in (0.5, 4.0)] == [2, 32]


def test_the_grid_has_the_best_half_width_of_all():
    for share, epsilon in ((0.1, 1.0), (0.5, 2.0)):
        form = KeyValue(NUMBER, 33, share)
        least = min(survey_variance(form, boosted_on_grid(form, epsilon, width)) for width in range(32))
        assert survey_variance(form, key_value_channel(form, epsilon)) == pytest.approx(least, rel=1e-9)


def test_an_even_grid_is_never_worse_than_the_ends_and_an_odd_one_may_be():
    for share, epsilon in ((0.05, 0.5), (0.1, 1.0), (0.3, 1.0), (0.8, 2.0)):
        ends, even = (survey_variance(*each) for each in candidates(NUMBER, share, 32, epsilon))
        assert even < ends
    ends, odd = (survey_variance(*each) for each in candidates(NUMBER, 0.05, 33, 0.5))
    assert odd > 1.01 * ends


def test_integers_are_all_of_the_crowd_and_one_that_falls_between_points_is_shared_by_both():
    whole = Attribute.integer("steps", 0, 4, kind="static", absent=True)
    assert Crowd.of(whole, 0.5).shares(5).tolist() == [0.1] * 5 + [0.5, 0.0]
    assert Crowd.of(whole, 0.5).shares(2).tolist() == [0.25, 0.25, 0.5, 0.0]
    assert Crowd.of(whole, 0.5).shares(3).tolist() == pytest.approx([0.15, 0.2, 0.15, 0.5, 0.0])


def test_distances_name_the_crowd_and_never_say_how_far_above_the_floor_a_skewed_one_is():
    for epsilon in ("1.0", "3.0"):
        mean, share = survey_distances(Survey.parse(MINUTES.replace("epsilon = 1.0", f"epsilon = {epsilon}")))
        assert "10 % have a number" in mean.crowd == share.crowd
        assert mean.above is share.above is None
        assert mean.total > mean.floor > 0.0 and share.total > share.floor > 0.0


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_planned_variance_is_that_of_simulated_crowds(share):
    """Of 3,000 crowds of 4,000 the variance has a standard error of 2.6 %; 15 % is 5.8 of them.

    A false alarm has a chance of 1e-8 or so. Both variances are of the gradient, which is linear.
    """
    form, channel = better(NUMBER, share, 9, 2.0)
    rows, rng = channel.probabilities(), np.random.default_rng(8)
    told = rng.multinomial(4_000, Crowd.of(NUMBER, share).shares(form.grid) @ rows, size=3_000)
    influence = np.where(np.isnan(form.points), 0.0, form.points - 0.5) / share
    found = told @ (influence @ form.estimator(channel).inverse.matrix()) / 4_000
    assert 4_000 * found.var() == pytest.approx(survey_variance(form, channel), rel=0.15)


def grid(points: int, epsilon: float):
    return key_value_channel(KeyValue(NUMBER, points, 0.25), epsilon)


class TestKeyValue(MechanismContract):
    cases: ClassVar = {
        "the ends": Case(
            partial(grid, 2, 1.0),
            epsilon=1.0,
            digest="7ab07a17e0d29a0846b017550cdf906b538db253c7756039d6d1ce43c90c6981",
        ),
        "a grid": Case(
            partial(grid, 5, 2.0),
            epsilon=2.0,
            digest="7643589d0ec6fd664477f5699dc14911987a8e86a8d76cccdce551a088a805ad",
        ),
    }
