"""Stochastic rounding is unbiased to the last bit and stays on the two neighbouring points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import ParameterError
from hubbub.mechanisms import rounding
from hubbub.mechanisms.rounding import stochastic, stochastic_many
from hubbub.testing import seeded


def expectation(value, low, high, points):
    """The index's expectation, from the coin that the code asks for, exactly."""
    coins = []

    def coin(numerator, denominator, source):
        coins.append(Fraction(numerator, denominator))
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "bernoulli", coin)
        index = stochastic(value, low, high, points)
    assert 0 <= index + bool(coins) <= points - 1
    return index + sum(coins)


@given(value=st.floats(-3.0, 7.5), points=st.integers(2, 1000))
def test_expectation_of_a_float_is_the_float_exactly(value, points):
    expected = (Fraction(value) + 3) * (points - 1) / Fraction(10.5)
    assert expectation(value, -3.0, 7.5, points) == expected


@given(value=st.fractions(0, 1), points=st.integers(2, 50))
def test_expectation_of_a_fraction_is_the_fraction_exactly(value, points):
    assert expectation(value, 0, 1, points) == value * (points - 1)


def test_tiny_and_subnormal_numbers_are_not_lost():
    assert expectation(5e-324, 0.0, 1.0, 33) == Fraction(5e-324) * 32


@pytest.mark.parametrize("point", range(5))
def test_grid_points_stay_where_they_are(point):
    assert stochastic(Fraction(point, 4), 0, 1, 5) == point
    assert stochastic_many(np.array([point / 4]), 0.0, 1.0, 5)[0] == point


def test_both_neighbours_are_drawn():
    source = seeded(1)
    assert {stochastic(0.3, 0.0, 1.0, 2, source=source) for _ in range(100)} == {0, 1}


@pytest.mark.parametrize("value", [-0.001, 1.001, float("nan"), float("inf"), "0.5", None])
def test_what_is_no_number_of_the_grid_is_refused_without_being_repeated(value):
    with pytest.raises(ParameterError, match="value must be a number within 0 to 1") as refusal:
        stochastic(value, 0, 1, 5)
    assert str(value) not in str(refusal.value)


@pytest.mark.parametrize("value", [-0.001, 1.001, float("nan")])
def test_simulation_refuses_numbers_outside_the_grid(value):
    with pytest.raises(ParameterError, match="values must be numbers within"):
        stochastic_many(np.array([0.5, value]), 0.0, 1.0, 5)


@pytest.mark.parametrize(
    ("low", "high", "points", "message"),
    [
        (1.0, 1.0, 5, "low < high"),
        (0.0, float("inf"), 5, "finite ends"),
        (float("nan"), 1.0, 5, "finite ends"),
        (0.0, 1.0, 1, "points must be an integer of at least 2"),
        (0.0, 1.0, 2.5, "points must be an integer of at least 2"),
    ],
)
def test_what_is_no_grid_is_refused(low, high, points, message):
    with pytest.raises(ParameterError, match=message):
        stochastic(0.5, low, high, points)
    with pytest.raises(ParameterError, match=message):
        stochastic_many(np.array([0.5]), low, high, points)


def test_no_values_round_to_none():
    assert stochastic_many(np.array([]), 0.0, 1.0, 5).shape == (0,)
