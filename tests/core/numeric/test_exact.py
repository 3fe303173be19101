"""Exponentials and logarithms that are rounded outward, against bounds by integers alone."""

import math
from fractions import Fraction

import pytest
from exponentials import exp_bounds

from hubbub.errors import ParameterError
from hubbub.numeric.exact import MAX_EPSILON, MIN_EPSILON, checked_epsilon, exp_below, log_above, log_bounds

EXPONENTS = [1e-9, 1e-6, 0.1, math.log(2), 0.5, 1.0, 2.5, 10.0, MAX_EPSILON]
RATIOS = [
    (2, 1),
    (3, 2),
    (10**9 + 1, 10**9),
    (2**63 - 1, 2**63 - 2),
    (2**63 - 1, 1),
    (125918333, 46322766),
    (10**400 + 1, 10**400),
    (1, 3),
]


@pytest.mark.parametrize("epsilon", EXPONENTS)
def test_exponential_is_below_the_truth_and_within_a_unit_of_60_bits(epsilon):
    low, high = exp_bounds(Fraction(epsilon))
    value = exp_below(epsilon)
    assert low * (1 - Fraction(1, 2**60)) <= value < high
    assert value <= low or value * (1 - Fraction(1, 2**150)) <= low


def test_exponential_of_zero_is_one():
    assert exp_below(0.0) == 1


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf, MAX_EPSILON * 1.001])
def test_exponential_outside_its_range_is_refused(epsilon):
    with pytest.raises(ParameterError):
        exp_below(epsilon)


@pytest.mark.parametrize(("numerator", "denominator"), RATIOS)
def test_logarithm_is_above_the_truth_by_less_than_a_step_of_the_float_grid(numerator, denominator):
    ratio, value = Fraction(numerator, denominator), log_above(numerator, denominator)
    assert ratio < exp_bounds(Fraction(value))[1]
    assert exp_bounds(Fraction(math.nextafter(value, -math.inf)))[0] < ratio


@pytest.mark.parametrize(("numerator", "denominator"), RATIOS)
def test_decimal_bounds_enclose_the_logarithm(numerator, denominator):
    low, high = (Fraction(bound) for bound in log_bounds(numerator, denominator))
    # The low end rounded down and the high end rounded up to 2^-200 lose nothing that matters at 2^-190.
    width = Fraction(1, 2**190)
    assert exp_bounds(low - width)[0] < Fraction(numerator, denominator) < exp_bounds(high + width)[1]
    assert 0 < high - low < Fraction(1, 10**70)


def test_logarithm_of_one_is_nothing():
    assert log_above(5, 5) == 0.0


def test_float_logarithm_of_the_same_ratio_is_sometimes_below_the_truth():
    # Why log_above exists: the control that the comparison above can see a wrong rounding.
    ratios = [(n, n - 1) for n in range(3, 60)]
    below = [exp_bounds(Fraction(math.log(n / d)))[1] < Fraction(n, d) for n, d in ratios]
    assert any(below)


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 0), (-2, 1), (3, -1)])
def test_logarithm_of_what_is_no_ratio_of_weights_is_refused(numerator, denominator):
    with pytest.raises(ParameterError, match="at least 1"):
        log_above(numerator, denominator)


def test_epsilon_is_named_in_its_refusal():
    with pytest.raises(ParameterError, match=r"^kernel_epsilon must be within 1e-06 to 40, got -1\.0$"):
        checked_epsilon(-1.0, subject="kernel_epsilon")
    assert checked_epsilon(Fraction(1, 2)) == 0.5
    assert checked_epsilon(MIN_EPSILON) == MIN_EPSILON
