"""Boosted noise spends no more than its epsilon, finds its own parameters, and says what it cannot do."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract

from hubbub.errors import ParameterError
from hubbub.estimation.inverses.inversion import invert
from hubbub.mechanisms.registry import channel_from_spec
from hubbub_authoring.mechanisms import Absolute, Fixed, boosted, brdp
from hubbub_authoring.mechanisms.boosted.boosted import mean_variance

CASES = [
    {"kernel": "laplace", "region": Absolute(2)},
    {"kernel": "laplace", "region": Absolute(2.5), "kernel_epsilon": 0.2},
    {"kernel": "laplace", "region": Absolute(0), "margin": 3, "kernel_epsilon": 0.1},
    {"kernel": "laplace", "region": Absolute(3), "margin": 0, "boost": 0.2},
    {"kernel": "laplace"},
    {"kernel": "uniform", "region": Absolute(2)},
    {"kernel": "uniform", "region": Absolute(2), "margin": 0},
    {"kernel": "uniform"},
    {"kernel": "laplace", "region": Fixed(2, 6), "boost": 0.5},
    {"kernel": "laplace", "region": Fixed(-4, 1), "boost": 0.9},
    {"kernel": "laplace", "region": Fixed(0, 2), "kernel_epsilon": 0.3},
    {"kernel": "laplace", "region": Fixed(0, 2), "margin": 0},
]


class TestBoosted(MechanismContract):
    cases: ClassVar = {
        "laplace, absolute": Case(
            lambda: boosted(17, epsilon=1.0, region=Absolute(4), kernel_epsilon=0.5),
            1.0,
            "5ca00bd547599fdc58ebf4d8f7e4cd39fa709752027a0b42417be7805c477476",
        ),
        "uniform, absolute, missing": Case(
            lambda: boosted(33, epsilon=2.0, kernel="uniform", region=Absolute(7), missing="input"),
            2.0,
            "7f94b6e7fd65051e5f9108ac517aaa899186da436ba4ef6dc024d0bc4c4d745d",
        ),
        "laplace, fixed, missing": Case(
            lambda: boosted(9, epsilon=1.5, region=Fixed(1, 5), boost=0.7, missing="input"),
            1.5,
            "bfeb6fb06b9c709f503a7c7194048e639a81b70d90f1e7e3ad4342c263c6287d",
        ),
        "eight bytes": Case(
            lambda: boosted(33, epsilon=10.5, kernel="uniform", region=Absolute(2)),
            10.5,
            "9c56ed91f928186f98d5eb34a47f42fce982a8faaddb2738b3a13fa8326c588f",
        ),
    }


def certified(weights):
    """The epsilon of integer rows, in 50 digits, by nothing but their ratios."""
    worst = max(Fraction(int(column.max()), int(column.min())) for column in weights.T)
    with localcontext() as context:
        context.prec = 50
        return (Decimal(worst.numerator) / Decimal(worst.denominator)).ln()


@pytest.mark.parametrize("missing", ["none", "input"])
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("case", CASES)
def test_certified_epsilon_is_just_below_the_declared_one(case, epsilon, missing):
    channel = boosted(9, epsilon=epsilon, missing=missing, **case)
    epsilon_of_weights = certified(channel.weights())
    assert epsilon_of_weights <= Decimal(epsilon) - Decimal(2) ** -36
    assert channel.epsilon == pytest.approx(float(epsilon_of_weights), abs=1e-14)
    if missing == "input":
        assert epsilon_of_weights >= Decimal(epsilon) * Decimal("0.999998")
    extra = missing == "input"
    assert channel.inputs == 9 + extra
    assert channel.outputs == 9 + 2 * channel.design.margin + extra


@pytest.mark.parametrize("case", [c for c in CASES if c != CASES[10]])
def test_epsilon_is_used_up(case):
    assert boosted(9, epsilon=1.0, **case).epsilon == pytest.approx(1.0, rel=2e-6)


@pytest.mark.parametrize("missing", ["none", "input"])
def test_rows_follow_the_formula(missing):
    channel = boosted(9, epsilon=1.5, region=Absolute(2), kernel_epsilon=0.5, margin=4, missing=missing)
    q = channel.design.boost
    for x in range(9):
        weights = []
        for y in range(-4, 13):
            kernel = math.exp(-0.5 * abs(y - x) / 8)
            weights.append(kernel if abs(y - x) <= 2 else kernel * (1 - q))
        seen = channel.row(x)[: len(weights)]
        np.testing.assert_allclose(seen / seen.sum(), np.array(weights) / sum(weights), rtol=1e-6)


def test_absolute_region_costs_the_kernel_plus_the_boost():
    """Far from the window's ends the interval's law holds: epsilon = kernel_epsilon + ln(1/(1-q))."""
    channel = boosted(9, epsilon=5.0, region=Absolute(1), kernel_epsilon=4.0, margin=60)
    assert -math.log1p(-channel.design.boost) == pytest.approx(1.0, abs=1e-6)


def test_boosting_a_region_in_the_middle_is_free():
    """Symmetric about the inputs, any q costs no epsilon: the kernel may spend all of it."""
    for boost in (0.0, 0.5, 0.99):
        design = boosted(9, epsilon=1.0, region=Fixed(2, 6), boost=boost).design
        assert design.kernel_epsilon == pytest.approx(1.0, rel=1e-6)
    assert boosted(9, epsilon=1.0, region=Fixed(2, 6), kernel_epsilon=1.0).epsilon <= 1.0


def test_boost_raises_the_hit_rate():
    rates = [boosted(9, epsilon=1.0, region=Fixed(2, 6), boost=q).design.confidence for q in (0.0, 0.5, 0.9)]
    assert rates == sorted(rates)
    assert rates[2] > 2 * rates[0]


def test_no_split_between_kernel_and_boost_hits_more_often():
    best = boosted(17, epsilon=3.0, region=Absolute(3), margin=60, objective="hits").design.confidence
    for share in np.linspace(0.0, 1.0, 41):
        split = boosted(17, epsilon=3.0, region=Absolute(3), margin=60, kernel_epsilon=2.999 * share)
        assert split.design.confidence <= best + 1e-6


@pytest.mark.parametrize(("epsilon", "width"), [(4.0, 25), (6.0, 15)])
def test_confidence_on_a_wide_window_is_the_continuous_optimum(epsilon, width):
    """On [0, R] with tails uncut: odds (e^(theta u) - 1) e^(eps - R u) at u = ln(R/(R - theta))/theta.

    A grid of 101 points has half a step more to each side, and its window ends after 4 lengths.
    """
    length, theta = 100.0, width + 0.5
    u = math.log(length / (length - theta)) / theta
    odds = math.expm1(theta * u) * math.exp(epsilon - length * u)
    found = boosted(101, epsilon=epsilon, region=Absolute(width), margin=400, objective="hits")
    assert found.design.confidence == pytest.approx(odds / (1 + odds), rel=0.02)


def test_kernel_spending_all_of_epsilon_leaves_no_boost_of_an_absolute_region():
    design = boosted(9, epsilon=1.0, region=Absolute(2), kernel_epsilon=1.0, margin=200).design
    assert design.boost == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_search_is_not_beaten_by_a_fine_grid_of_parameters(epsilon):
    points = 13
    found = boosted(points, epsilon=epsilon).design.mean_variance
    steps = np.abs(np.arange(points)[:, None] - np.arange(-12, points + 12))
    best = math.inf
    for width in range(points):
        window = slice(12 - width, 12 + points + width)
        for share in np.linspace(0.0, 1.0, 11):
            kernel = np.exp(-share * epsilon * steps[:, window] / (points - 1))
            low, high = 0.0, 3 * epsilon
            for _ in range(40):
                middle = (low + high) / 2
                rows = kernel * np.where(steps[:, window] <= width, 1.0, math.exp(-middle))
                rows /= rows.sum(axis=1, keepdims=True)
                own = np.log(rows.max(axis=0) / rows.min(axis=0)).max()
                low, high = (middle, high) if own <= epsilon else (low, middle)
            best = min(best, mean_variance(rows, points))
    assert found <= best * 1.02


# Worst-case variance of one report of a number in [-1, 1]: Duchi et al., Piecewise (Wang et al. 2019).
PUBLISHED = {1.0: (4.683, 5.224), 2.0: (1.724, 1.228), 4.0: (1.076, 0.2414)}


@pytest.mark.parametrize("epsilon", PUBLISHED)
def test_mean_of_33_points_is_better_than_duchi_and_piecewise_at_their_worst(epsilon):
    channel = boosted(33, epsilon=epsilon)
    points = np.linspace(-1.0, 1.0, 33)
    weights = invert(channel).pull_back(points)
    rows = channel.weights() / channel.total
    np.testing.assert_allclose(rows @ weights, points, atol=1e-9)
    variances = rows @ weights**2 - points**2
    assert variances.mean() == pytest.approx(channel.design.mean_variance, rel=1e-5)
    rounding = (2 / 32) ** 2 / 4
    assert variances.max() + rounding < min(PUBLISHED[epsilon])


def test_large_grid_is_searched_on_a_small_one():
    channel = boosted(257, epsilon=1.0, kernel="uniform")
    small = boosted(65, epsilon=1.0, kernel="uniform").design
    assert channel.design.region.half_width == 4 * small.region.half_width
    assert channel.design.mean_variance == pytest.approx(small.mean_variance, rel=0.05)
    assert channel.epsilon <= 1.0


def test_channel_survives_the_wire():
    channel = boosted(9, epsilon=1.0, missing="input")
    assert channel_from_spec(channel.to_spec()) == channel


def test_same_arguments_give_the_same_integers():
    assert boosted(9, epsilon=1.0).to_spec() == boosted(9, epsilon=1.0).to_spec()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 1}, "inputs must be an integer of at least 2, got 1"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        (
            {"kernel": "gauss"},
            "kernel must be one of gaussian, laplace, r2dp, staircase, uniform, got 'gauss'",
        ),
        ({"boost": 1.0}, r"boost must be a number in \[0, 1\), got 1.0"),
        ({"boost": -0.1}, r"boost must be a number in \[0, 1\), got -0.1"),
        ({"boost": math.nan}, r"boost must be a number in \[0, 1\), got nan"),
        ({"kernel_epsilon": -1.0}, r"kernel_epsilon must be a number in \[0, inf\)"),
        ({"kernel": "uniform", "kernel_epsilon": 0.5}, "kernel_epsilon must be 0 or left open"),
        ({"margin": -1}, "margin must be an integer of at least 0, got -1"),
        ({"margin": 1.5}, "margin must be an integer of at least 0, got 1.5"),
        ({"region": Absolute(-1)}, r"half_width must be a number in \[0"),
        ({"region": Fixed(5, 4)}, "region.low must be at most region.high, got 5 > 4"),
        ({"region": Fixed(900, 950)}, "region must meet the values, 0 to"),
        ({"region": Fixed(-9, -0.5)}, "region must meet the values, 0 to"),
        ({"region": Fixed(20, 30), "margin": 2}, "region must hold one of the outputs -2 to 10"),
        ({"region": Fixed(3.2, 3.8)}, "region must hold one of the outputs"),
        ({"region": Fixed(math.nan, 4)}, "region.low must be a number"),
        ({"region": Fixed(2, 4), "kernel": "uniform"}, "kernel must not be uniform for a fixed region"),
        ({"region": (2, 4)}, "region must be Absolute, Relative or Fixed, got tuple"),
        ({"missing": True}, "missing must be one of none, input, got True"),
        ({"objective": "median"}, "objective must be one of mean, hits, got 'median'"),
        ({"region": Absolute(30), "margin": 0, "kernel": "uniform"}, "outputs depend on the value"),
        (
            {"region": Absolute(30), "margin": 0, "kernel": "uniform", "missing": "input"},
            "outputs depend on the value",
        ),
        ({"margin": 10**7}, "inputs times outputs must be at most"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        boosted(**({"inputs": 9, "epsilon": 1.0} | arguments))


@pytest.mark.parametrize("recycling", [1.0, -0.1, 1.5])
def test_a_recycling_rate_that_is_none_is_refused_by_its_name(recycling):
    with pytest.raises(ParameterError, match=r"recycling must be a number in \[0, 1\), got"):
        brdp(17, epsilon=2.0, half_width=2.0, recycling=recycling)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("kernel_epsilon", {"kernel_epsilon": 5.0, "region": Absolute(2)}),
        ("kernel_epsilon", {"kernel_epsilon": 5.0, "boost": 0.2, "region": Absolute(2)}),
        ("kernel_epsilon", {"kernel_epsilon": 5.0, "boost": 0.9, "region": Fixed(2, 6)}),
        ("boost", {"boost": 0.99, "region": Absolute(2)}),
        ("boost", {"boost": 0.99, "kernel": "uniform", "region": Absolute(2)}),
    ],
)
def test_too_large_a_parameter_is_refused_with_the_largest_that_fits(name, arguments):
    with pytest.raises(ParameterError, match=rf"{name} must be at most") as refusal:
        boosted(9, epsilon=1.0, **arguments)
    nearest = float(re.search(r"at most ([0-9.e-]+)", str(refusal.value))[1])
    fitting = arguments | {name: nearest * (1 - 1e-5)}
    assert boosted(9, epsilon=1.0, **fitting).epsilon <= 1.0
    with pytest.raises(ParameterError):
        boosted(9, epsilon=1.0, **arguments | {name: nearest * (1 + 1e-4)})


@pytest.mark.parametrize("missing", ["none", "input"])
def test_search_passes_over_widths_that_say_nothing(missing):
    """Without a margin the widest region holds every output of every row."""
    design = boosted(9, epsilon=1.0, kernel="uniform", margin=0, missing=missing).design
    assert design.region.half_width < 8
    assert math.isfinite(design.mean_variance)


def test_mean_that_no_width_can_show_is_refused():
    with pytest.raises(ParameterError, match="no half_width lets the mean be estimated"):
        boosted(9, epsilon=1.0, kernel_epsilon=5.0)
