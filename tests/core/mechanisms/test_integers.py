"""Designs in floats become integers that never exceed the declared epsilon."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hubbub.errors import ParameterError
from hubbub.mechanisms import integers
from hubbub.mechanisms.integers import integerise, with_missing


def worst_ratio(weights):
    return max(Fraction(int(column.max()), int(column.min())) for column in np.array(weights).T)


def epsilon_of(ratio):
    with localcontext() as context:
        context.prec = 50
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def design_of(seed, inputs, outputs, epsilon):
    """Random rows whose largest ratio within a column is e^epsilon, by bisection on a power."""
    rng = np.random.default_rng(seed)
    base, logs = rng.dirichlet(np.ones(outputs)), rng.normal(size=(inputs, outputs))

    def rows(power):
        weights = base * np.exp(power * logs)
        return weights / weights.sum(axis=1, keepdims=True)

    def own(power):
        return np.log(rows(power).max(axis=0) / rows(power).min(axis=0)).max()

    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if own(middle) <= epsilon else (low, middle)
    # Two rows of one shape need a power so large that most entries vanish: no mechanism looks like that.
    assume(own(low) >= epsilon * (1 - 1e-9) and rows(low).min() > 1e-7)
    return rows(low)


@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(2, 8),
    outputs=st.integers(2, 12),
    epsilon=st.floats(0.01, 8.0),
)
def test_certified_epsilon_is_just_below_the_declared_one(seed, inputs, outputs, epsilon):
    design = design_of(seed, inputs, outputs, epsilon)
    channel = integerise(design, epsilon=epsilon)
    weights = channel.weights()
    assert weights.min() >= 1
    assert {sum(row) for row in weights.tolist()} == {channel.total}
    certified = epsilon_of(worst_ratio(weights))
    assert certified <= Decimal(epsilon) - Decimal(2) ** -36
    assert certified >= Decimal(epsilon) * (1 - Decimal("2e-6")) - Decimal(2) ** -35
    assert channel.epsilon == pytest.approx(float(certified), abs=1e-15)
    # A unit at a column's least entry is worth e^epsilon units at its largest; and 2^-36 is kept free.
    moved = outputs * ((math.exp(epsilon) + 2) / channel.total + 2.0**-36)
    np.testing.assert_allclose(weights / channel.total, design, rtol=0, atol=moved)


def test_entries_too_fine_for_four_bytes_take_eight():
    # Both ratios are e^21: 2^32 leaves a minimum of three, too coarse to say so.
    small = 1 / (1 + math.exp(21.0))
    channel = integerise(np.array([[1 - small, small], [small, 1 - small]]), epsilon=21.0)
    assert channel.total == 2**62
    assert channel.epsilon == pytest.approx(21.0, abs=1e-9)


def test_design_whose_rows_cannot_be_filled_is_refused(monkeypatch):
    monkeypatch.setattr(integers, "DESIGN_EXCESS", 10.0)
    with pytest.raises(ParameterError, match=r"no total up to 2\^62 can express this design"):
        integerise(np.full((3, 3), 0.01) + 0.97 * np.eye(3), epsilon=1.0)


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ([[0.8, 0.2], [0.2, 0.8]], "epsilon must be at most 1, got 1.38"),
        ([[1.0, 0.0], [0.5, 0.5]], "epsilon must be at most 1, got inf"),
        ([[0.6, 0.5], [0.5, 0.5]], "must sum to one"),
        ([[-0.1, 1.1], [0.5, 0.5]], "must be at least 0"),
        ([[math.nan, 0.5], [0.5, 0.5]], "must be at least 0"),
        ([[0.5, 0.5]], "matrix of 2 x 2"),
        ([0.5, 0.5], "matrix of 2 x 2"),
    ],
)
def test_what_is_no_design_is_refused(design, message):
    with pytest.raises(ParameterError, match=message):
        integerise(np.array(design), epsilon=1.0)


@given(seed=st.integers(0, 10**6), epsilon=st.floats(0.05, 5.0), slack=st.floats(0.0, 1.0))
def test_missing_input_keeps_old_ratios_and_spends_epsilon_on_its_own_symbol(seed, epsilon, slack):
    design = design_of(seed, 4, 6, epsilon)
    extended = with_missing(design, epsilon=epsilon + slack)
    np.testing.assert_allclose(extended.sum(axis=1), 1.0)
    old = extended[:, :6]
    np.testing.assert_allclose(old[4], old[:4].min(axis=0))
    np.testing.assert_allclose(old[:4].max(axis=0) / old[4], design.max(axis=0) / design.min(axis=0))
    assert extended[4, 6] / extended[0, 6] == pytest.approx(math.exp(epsilon + slack))
    assert (extended[:4, 6] == extended[0, 6]).all()


def test_missing_refuses_a_design_of_larger_epsilon():
    with pytest.raises(ParameterError, match=r"epsilon must be at most 1, got 1\.38"):
        with_missing(np.array([[0.8, 0.2], [0.2, 0.8]]), epsilon=1.0)
