"""Optimal channels of the mean: their integers, their error beside the floor, and what they leave visible."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import surveys

from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError, SurveyError
from hubbub.estimation import estimator_for
from hubbub.mechanisms import with_dummy_reports
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.mechanisms.tree import tree
from hubbub.survey import Survey
from hubbub_authoring.design import Floors, Objective, Workload, choose, compare
from hubbub_authoring.design.comparison import measured
from hubbub_authoring.mechanisms.optimal import optimal_categories, optimal_curve, optimal_mean


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


ALWAYS = {17, 26, 31, 40}
TWELVE = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.14, 6.0, 7.0, 8.0, 10.0, 12.0)


@pytest.mark.parametrize(
    "points",
    [pytest.param(n, marks=[] if n < 13 or n in ALWAYS else pytest.mark.only_long) for n in range(5, 41)],
)
def test_no_size_is_far_above_its_floor(points):
    """Each size at three of twelve epsilons, the next size at the next of them."""
    for epsilon in TWELVE[points % 4 :: 4]:
        question = asked(points, epsilon)
        cost = measured("optimal", {}, question, optimal_mean(points, epsilon=epsilon)).cost
        above = Floors(question).above(cost)
        assert 0.0 <= above <= 0.015, (points, epsilon)


@pytest.mark.parametrize("points", [9, 12, *(pytest.param(n, marks=pytest.mark.only_long) for n in (10, 11))])
def test_error_falls_with_epsilon(points):
    """Epsilon .01 apart, across the places where the best outputs change; fewer far away from them."""
    grid = np.concatenate([np.arange(0.5, 4.9, 0.4), np.arange(4.9, 5.3, 0.01), np.arange(5.4, 9.0, 0.2)])
    costs = [
        measured("optimal", {}, asked(points, epsilon), optimal_mean(points, epsilon=epsilon)).cost
        for epsilon in grid.tolist()
    ]
    assert (np.diff(costs) < 0.0).all()


def test_a_round_in_which_nobody_misses_is_not_estimated_as_if_many_did():
    """At 12 points and epsilon 8 the best output of missing people is that of a value, too."""
    question, channel = asked(12, 8.0), optimal_mean(12, epsilon=8.0)
    floors = Floors(question)
    alike = measured("optimal", {}, question, DenseChannel(channel.weights()))
    assert floors.above(alike.cost) > 0.9
    assert floors.above(measured("optimal", {}, question, channel).cost) < 0.005


def test_few_readings_hide_no_value():
    """At small epsilon the best channel has fewer outputs than inputs, which a search of zeros overlooks."""
    for epsilon in (1e-6, 1e-3, 0.01, 0.03):
        known = measured("optimal", {}, asked(9, epsilon), optimal_mean(9, epsilon=epsilon)).accuracy
        assert math.isfinite(known.errors.value) and math.isfinite(known.errors.mean)


def test_auto_takes_it_for_the_mean_and_gains():
    question = asked(17, 0.5)
    pick = choose(question)
    assert pick.mechanism == "optimal"
    assert Floors(question).above(pick.cost) <= 0.01


def test_too_many_points_are_refused():
    with pytest.raises(ParameterError, match="points must be 2 to 128"):
        optimal_mean(129, epsilon=1.0)


def curve_asked(points: int, epsilon: float, quantity: str) -> Workload:
    return replace(asked(points, epsilon), objective=Objective(quantity))


@pytest.mark.parametrize(
    ("points", "epsilon", "tuned_for", "most"),
    [(9, 1.0, "cdf", 0.19), (17, 1.0, "cdf", 0.14), (17, 2.0, "quantiles", 0.32)],
)
def test_curve_is_near_its_floor_and_far_better_than_a_tree(points, epsilon, tuned_for, most):
    """The floor is a bound by the trace, so a part of what is above it is the floor's own."""
    question = curve_asked(points, epsilon, tuned_for)
    channel = optimal_curve(points, epsilon=epsilon, tuned_for=tuned_for)
    assert channel.epsilon <= epsilon - 2.0**-36
    found = measured("optimal", {}, question, channel)
    above = Floors(question).above(found.cost)
    assert 0.0 <= above <= most
    assert found.accuracy.leverage < 12.0  # without a part for single values a report can stand for thousands
    branching = [tree(points, epsilon=epsilon, branching=b, tuned_for=tuned_for) for b in (2, 4)]
    assert found.cost < 0.8 * min(measured("tree", {}, question, each).cost for each in branching)
    again = channel_from_spec(channel.to_spec())
    assert again.shows_curve
    assert again == channel
    assert with_dummy_reports(channel, participation=Fraction(1, 2)).shows_curve


def test_auto_takes_the_curve_for_numbers_and_integers():
    question = curve_asked(9, 1.0, "quantiles")
    assert choose(question).mechanism == "optimal"
    integers = replace(question, kind="labels", points=np.append(np.arange(9.0), np.nan))
    assert choose(integers).parameters == {"tuned_for": "quantiles"}


def test_curve_of_a_channel_has_the_errors_that_its_matrix_gives():
    """At the expected counts of even shares: from rows, weights and nothing else."""
    channel, question = optimal_curve(9, epsilon=1.0), curve_asked(9, 1.0, "cdf")
    estimator = estimator_for(
        channel, category_of=question.category_of, points=question.points, missing=9, rounding="none"
    )
    found = estimator.expected_estimate(question.prior, 1000)
    curve = found.cumulative()
    rows, prior = channel.weights() / channel.total, question.prior
    inverse = estimator.inverse.matrix()
    functionals = np.tril(np.ones((8, 10)))
    functionals[:, 9] = 0.0
    for v in range(8):
        functionals[v, :9] -= (v + 1) / 9.0  # the share of those who answered
    covariance = inverse @ np.diag(prior @ rows) @ inverse.T - np.diag(prior)
    expected = np.sqrt(np.diag(functionals @ covariance @ functionals.T) / 1000)
    np.testing.assert_allclose(curve.errors[:-1], expected, rtol=1e-9)


def test_band_and_quartiles_of_a_curve_hold():
    """300 rounds of 2,000 devices with a peak: 95 % at once, binomial bound 1e-6; half the band does not."""
    channel = optimal_curve(9, epsilon=1.0)
    points = np.append(np.arange(9.0), np.nan)
    estimator = estimator_for(
        channel,
        category_of=np.append(np.zeros(9, dtype=np.intp), 1),
        points=points,
        missing=9,
        rounding="none",
    )
    shares = np.array([0.02, 0.03, 0.05, 0.45, 0.2, 0.1, 0.05, 0.03, 0.02, 0.05])
    truth = np.cumsum(shares[:9]) / shares[:9].sum()
    rows, rng, held, quartiles, narrow = channel.weights() / channel.total, np.random.default_rng(5), 0, 0, 0
    for _ in range(300):
        people = rng.multinomial(2000, shares)
        counts = sum(rng.multinomial(many, row) for many, row in zip(people, rows, strict=True))
        own = np.cumsum(people[:9]) / people[:9].sum()
        found = estimator(counts, 2000).cumulative(0.95)
        held += bool(((found.low <= own + 1e-9) & (own <= found.high + 1e-9)).all())
        narrow += bool((np.abs(found.shares - own)[:8] <= 0.5 * 2.77 * found.errors[:8]).all())
        of = [found.quantile(share) for share in (0.25, 0.5, 0.75)]
        true = [float(np.searchsorted(own, share)) for share in (0.25, 0.5, 0.75)]
        quartiles += all(each.low <= at <= each.high for each, at in zip(of, true, strict=True))
    assert truth[3] > 0.5
    assert held >= 266  # P(Binomial(300, 0.95) < 266) < 1e-6
    assert quartiles >= held
    assert narrow < 266


def category_asked(sizes: list[int], epsilon: float) -> Workload:
    return Workload.uniform(
        kind="labels",
        epsilon=epsilon,
        category_of=np.repeat(np.arange(len(sizes) + 1), [*sizes, 1]),
        devices=1000,
        points=None,
        objective=Objective("category"),
    )


@pytest.mark.parametrize(("sizes", "epsilon"), [([2, 1, 8], 1.591), ([2, 15], 4.721), ([3, 4, 1], 2.401)])
def test_categories_of_different_sizes_are_asked_at_their_floor(sizes, epsilon):
    """Every other mechanism asks categories as if they were equal, and is 1 to 4 % above."""
    question = category_asked(sizes, epsilon)
    pick, *rest = compare(question)
    assert pick.mechanism == "optimal"
    assert pick.channel.inputs == len(sizes) + 1
    floors = Floors(question)
    assert 0.0 <= floors.above(pick.cost) <= 1e-6
    assert min(floors.above(other.cost) for other in rest if math.isfinite(other.cost)) > 0.01


def test_survey_files_name_optimal_channels(tmp_path):
    """Each of the three questions compiles from a file; others are refused by rule."""
    number = surveys.DISEASES.split("[mechanism]")[0]
    file = tmp_path / "survey.toml"
    file.write_text(number + '[mechanism]\nname = "optimal"\npoints = 9\ntuned_for = "cdf"\n')
    assert Survey.load(file).channel == optimal_curve(9, epsilon=Survey.load(file).epsilon)
    file.write_text(number + '[mechanism]\nname = "optimal"\npoints = 34\ntuned_for = "cdf"\n')
    with pytest.raises(SurveyError, match="must be 2 to 33 for an optimal channel of the cdf, got 34"):
        Survey.load(file)
    visits = surveys.VISITS.replace('"pbgrr"\nboost_epsilon = 2.0', '"optimal"\nreading = "category"')
    file.write_text(visits)
    assert Survey.load(file).channel == optimal_categories([1, 2, 18], epsilon=3.0)
    file.write_text(visits.replace('reading = "category"\n', ""))
    with pytest.raises(SurveyError, match='must be "category" for an optimal channel'):
        Survey.load(file)
    file.write_text(visits.replace('"category"\n', '"category"\ntuned_for = "cdf"\n', 1))
    with pytest.raises(SurveyError, match="must be absent for categories"):
        Survey.load(file)
