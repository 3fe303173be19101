"""Of region, confidence and epsilon any two give the third, and all three directions agree."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub_authoring import mechanisms as m
from hubbub_lab.continuous_noise import direction as d


def confidence_of(channel, inside):
    """From the integers alone."""
    return min(
        sum(w for w, yes in zip(row, wanted, strict=True) if yes) / channel.total
        for row, wanted in zip(channel.weights().tolist(), inside, strict=True)
    )


def absolute(points, width, margin):
    outputs = np.arange(-margin, points + margin)
    return np.abs(outputs - np.arange(points)[:, None]) <= width


@pytest.mark.parametrize("kernel", ["laplace", "uniform", "gaussian", "staircase"])
def test_three_directions_agree(kernel):
    one = d.most_confidence(17, region=m.Absolute(2), epsilon=2.0, kernel=kernel)
    assert one.channel.epsilon <= 2.0
    assert one.confidence == pytest.approx(
        confidence_of(one.channel, absolute(17, 2, one.channel.design.margin)), abs=1e-6
    )
    two = d.least_epsilon(17, region=m.Absolute(2), confidence=one.confidence, kernel=kernel)
    assert two.epsilon == pytest.approx(2.0, rel=3e-4)
    assert two.confidence >= one.confidence
    three = d.narrowest_region(17, region=m.Absolute(), confidence=one.confidence, epsilon=2.0, kernel=kernel)
    assert three.region == m.Absolute(2.0)


def test_least_epsilon_is_the_least():
    found = d.least_epsilon(17, region=m.Relative(0.1, 1.0), confidence=0.8, kernel="uniform")
    assert found.confidence >= 0.8
    less = d.most_confidence(
        17, region=m.Relative(0.1, 1.0), epsilon=found.epsilon * (1 - 3e-4), kernel="uniform"
    )
    assert less.confidence < 0.8


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.97])
def test_narrowest_region_is_the_narrowest(confidence):
    found = d.narrowest_region(33, region=m.Absolute(), confidence=confidence, epsilon=3.0, kernel="uniform")
    assert found.confidence >= confidence
    narrower = m.Absolute(found.region.half_width - 1)
    less = d.most_confidence(33, region=narrower, epsilon=3.0, kernel="uniform")
    assert less.confidence < confidence


def test_no_split_between_kernel_and_boost_hits_more_often():
    best = d.most_confidence(17, region=m.Absolute(3), epsilon=3.0, margin=60).confidence
    for share in np.linspace(0.0, 1.0, 41):
        split = m.boosted(17, epsilon=3.0, region=m.Absolute(3), margin=60, kernel_epsilon=2.999 * share)
        assert split.design.confidence <= best + 1e-6


@pytest.mark.parametrize(("epsilon", "width"), [(4.0, 25), (6.0, 15)])
def test_confidence_on_a_wide_window_is_the_continuous_optimum(epsilon, width):
    """On [0, R] with tails uncut: odds (e^(theta u) - 1) e^(eps - R u) at u = ln(R/(R - theta))/theta.

    A grid of 101 points has half a step more to each side, and its window ends after 4 lengths.
    """
    length, theta = 100.0, width + 0.5
    u = math.log(length / (length - theta)) / theta
    odds = math.expm1(theta * u) * math.exp(epsilon - length * u)
    found = d.most_confidence(101, region=m.Absolute(width), epsilon=epsilon, margin=400)
    assert found.confidence == pytest.approx(odds / (1 + odds), rel=0.02)


def test_boosting_a_region_in_the_middle_costs_nothing():
    found = d.most_confidence(17, region=m.Fixed(6, 10), epsilon=0.5)
    assert found.confidence > 1 - 1e-6
    assert found.channel.epsilon == pytest.approx(0.5, rel=1e-5)
    cheap = d.least_epsilon(17, region=m.Fixed(6, 10), confidence=0.999)
    assert cheap.epsilon == d.SMALLEST


def test_fixed_region_is_widened_about_its_middle():
    found = d.narrowest_region(17, region=m.Fixed(2, 2), confidence=0.7, epsilon=1.0)
    assert (found.region.low + found.region.high) / 2 == 2
    assert found.confidence >= 0.7


@pytest.mark.parametrize(
    "call",
    [
        lambda rho: d.least_epsilon(9, region=m.Absolute(2), confidence=rho),
        lambda rho: d.narrowest_region(9, region=m.Absolute(), confidence=rho, epsilon=1.0),
        lambda rho: d.least_epsilon_of_categories([3, 3], confidence=rho),
        lambda rho: d.most_boost_of_categories([3, 3], epsilon=1.0, confidence=rho),
    ],
)
@pytest.mark.parametrize("confidence", [0.0, 1.0, 1.2, -0.1, math.nan, True, "0.9"])
def test_confidence_outside_zero_and_one_is_refused(call, confidence):
    with pytest.raises(ParameterError, match=r"confidence must be within \(0, 1\), got"):
        call(confidence)


def test_unreachable_confidence_names_the_most_that_can_be_reached():
    with pytest.raises(ParameterError, match="confidence must be at most") as refusal:
        d.narrowest_region(9, region=m.Absolute(), confidence=0.99, epsilon=0.1, kernel="uniform")
    most = float(re.search(r"at most ([0-9.]+)", str(refusal.value))[1])
    found = d.narrowest_region(9, region=m.Absolute(), confidence=most, epsilon=0.1, kernel="uniform")
    assert found.confidence >= most
    with pytest.raises(ParameterError, match="confidence must be at most"):
        d.least_epsilon(9, region=m.Absolute(1), confidence=1 - 1e-10, kernel="uniform")


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            m.Fixed(20, 30),
            r"region must hold one of the inputs 0 to 8, got .*nearest: Fixed\(low=8, high=8\)",
        ),
        (
            m.Fixed(-9, -3),
            r"region must hold one of the inputs 0 to 8, got .*nearest: Fixed\(low=0, high=6\)",
        ),
        (m.Absolute(-1), "half_width must be a number in"),
        (m.Absolute(), "half_width must be given where hits are aimed at"),
        (m.Relative(0.1, -3.0), "region.half_width must be a number in"),
    ],
)
def test_region_that_misses_the_domain_or_is_none_is_refused(region, message):
    with pytest.raises(ParameterError, match=message):
        d.most_confidence(9, region=region, epsilon=1.0)


@pytest.mark.parametrize("confidence", [0.4, 0.8, 0.99])
def test_least_epsilon_of_categories_is_the_closed_form(confidence):
    """With the value hidden: rho = e^eps/(e^eps + m - 1)."""
    channel = d.least_epsilon_of_categories([5, 2, 9], confidence=confidence)
    assert channel.epsilon == pytest.approx(math.log(2 * confidence / (1 - confidence)), rel=2e-4)
    assert d.category_confidence(channel) >= confidence


def test_confidence_of_categories_is_that_of_the_rows():
    channel = m.pbgrr([3, 1, 4], epsilon=3.0, boost_epsilon=1.0)
    inside = channel.category_of[:, None] == channel.category_of[None, :]
    assert d.category_confidence(channel) == pytest.approx(confidence_of(channel, inside), rel=1e-12)


def test_largest_boost_that_keeps_a_confidence_is_found():
    sizes = [10] * 9
    found = d.most_boost_of_categories(sizes, epsilon=4.0, confidence=0.7)
    assert d.category_confidence(found) >= 0.7
    boost = math.log(found.t[0] / found.u[0])
    more = m.pbgrr(sizes, epsilon=4.0, boost_epsilon=boost * (1 + 1e-3))
    assert d.category_confidence(more) < 0.7
    assert d.most_boost_of_categories(sizes, epsilon=4.0, confidence=0.05).t[0] / found.u[0] > 1
    with pytest.raises(ParameterError, match=r"confidence must be at most 0\.87"):
        d.most_boost_of_categories(sizes, epsilon=4.0, confidence=0.9)
    with pytest.raises(ParameterError, match="confidence must be at most"):
        d.least_epsilon_of_categories([1] * 1000, confidence=1 - 1e-16)


def test_values_that_say_nothing_of_it_are_not_asked_more_epsilon():
    channel = d.least_epsilon_of_categories([50, 50], confidence=0.3)
    assert channel.epsilon < 2e-6
