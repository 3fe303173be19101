"""Subsampling: the amplification, the error of the sample, the acceptance, and that the best rate is one."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import subsampling
from scipy import integrate, stats
from subsampling import AggregateQuery as Query
from subsampling import acceptance, amplified, best_rate, sampled, spendable

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.profile import AbsoluteRegion, BoostedNoise, Gaussian, Laplace, Profile


def test_what_may_be_spent_is_what_amplification_brings_back():
    for epsilon in (0.01, 0.5, 3.0):
        for rate in (0.001, 0.3, 1.0):
            own = spendable(epsilon, 1e-6, rate)
            assert amplified(*own, rate) == pytest.approx((epsilon, 1e-6), rel=1e-12)
    assert spendable(0.7, 1e-5, 1.0) == pytest.approx((0.7, 1e-5), rel=1e-12)


def test_a_mixture_of_the_sample_with_and_without_a_record_keeps_within_the_amplified_profile():
    law, rate, epsilon = BoostedNoise(Gaussian(1.0), AbsoluteRegion(0.8), 0.6), 0.2, 1.3
    delta = Profile(law, 1.0).delta(epsilon)
    bound_epsilon, bound_delta = amplified(epsilon, delta, rate)

    def gap(y):
        without, with_record = law.density(y, 0.0), law.density(y, 1.0)
        mixed = (1 - rate) * without + rate * with_record
        return max(0.0, mixed - math.exp(bound_epsilon) * without)

    ends = [-12.0, -0.8, 0.2, 0.8, 1.8, 14.0]
    found = sum(integrate.quad(gap, a, b, limit=300)[0] for a, b in pairwise(ends))
    assert 0.0 < found <= bound_delta * (1 + 1e-6)
    assert found == pytest.approx(bound_delta, rel=1e-6)  # for adding a record it is attained


def test_the_error_of_a_sample_is_that_of_drawing_it():
    """20,000 draws of 40 of 200 without replacement, seed 5; the statistic is their standard deviation.

    The totals are nearly normal, so it is within 6 of its standard errors, 1 / sqrt(2 n) relative each, with
    a false alarm probability of 2e-9. deviation * sqrt(N (1 - p) / p) is exact for such draws if the
    deviation of the 200 has the divisor N - 1. Negative control: a deviation 20 % too large must fail.
    """
    rng = np.random.default_rng(5)
    values = rng.normal(3.0, 2.0, 200)
    spread = float(values.std(ddof=1))
    totals = np.array([rng.choice(values, 40, replace=False).sum() / 0.2 for _ in range(20_000)])
    wanted = Query("sum", 200, spread, 10.0).sampling_error(0.2)
    assert abs(totals.std() / wanted - 1) < 6 / math.sqrt(2 * totals.size)
    assert abs((totals / 200).std() / Query("average", 200, spread, 0.05).sampling_error(0.2) - 1) < 0.03
    assert abs(totals.std() / (1.2 * wanted) - 1) > 6 / math.sqrt(2 * totals.size)


def test_acceptance_is_that_of_the_sum_of_both_errors():
    for sigma, boost, error, half_width in (
        (2.0, 0.7, 1.5, 1.0),
        (0.5, 0.9, 3.0, 2.0),
        (3.0, 0.2, 0.01, 1.0),
    ):
        law = BoostedNoise(Gaussian(sigma), AbsoluteRegion(1.0), boost)

        def accepted(n, law=law, error=error, half_width=half_width):
            normal = stats.norm(0.0, error)
            return law.density(n, 0.0) * (normal.cdf(half_width - n) - normal.cdf(-half_width - n))

        ends = sorted({-30.0, -1.0, 1.0, 30.0, half_width, -half_width, -1.05, -0.95, 0.95, 1.05})
        wanted = sum(integrate.quad(accepted, a, b, limit=400)[0] for a, b in pairwise(ends))
        assert acceptance(law, half_width, error) == pytest.approx(wanted, rel=1e-7)
    law = BoostedNoise(Gaussian(1.0), AbsoluteRegion(0.7), 0.4)
    assert acceptance(law, 0.7, 0.0) == pytest.approx(law.confidence(0.0), rel=1e-12)
    assert acceptance(law, 0.7, 1e-6) == pytest.approx(law.confidence(0.0), rel=1e-5)


def test_the_noise_of_a_sample_spends_what_everybody_was_promised():
    query = Query("count", 5000, 0.3, 1.0)
    design = sampled(query, 10.0, epsilon=0.3, delta=1e-5, rate=0.4)
    assert design.sensitivity == 2.5
    own = Profile(design.law, design.sensitivity)
    assert own.delta(design.epsilon) <= design.delta
    assert amplified(design.epsilon, design.delta, 0.4) == pytest.approx((0.3, 1e-5), rel=1e-9)


@pytest.mark.parametrize(
    ("query", "half_width"),
    [
        (Query("sum", 2000, 10.0, 50.0), 400.0),
        (Query("average", 2000, 10.0, 0.025), 0.2),
        (Query("count", 2000, 0.3, 1.0), 10.0),
    ],
    ids=["sum", "average", "count"],
)
def test_scaling_the_sensitivity_leaves_nothing_to_gain_from_a_smaller_sample(query, half_width):
    found = {
        rate: sampled(query, half_width, epsilon=0.1, delta=1e-5, rate=rate).acceptance
        for rate in (0.05, 0.3, 1.0)
    }
    assert found[0.05] < found[0.3] < found[1.0]


@pytest.mark.parametrize(
    ("query", "half_width"),
    [
        (Query("sum", 2000, 10.0, 50.0), 400.0),
        (Query("average", 2000, 10.0, 0.025), 0.2),
        (Query("count", 500, 0.5, 1.0), 15.0),
    ],
    ids=["sum", "average", "count"],
)
def test_the_best_rate_of_every_query_is_no_worse_than_those_about_it(query, half_width, monkeypatch):
    """A coarser search, of the same steps as the whole one below."""
    for name, steps in (("_RATES", 5), ("_SIGMAS", 3), ("_GOLDEN_STEPS", 3)):
        monkeypatch.setattr(subsampling, name, steps)
    best = best_rate(query, half_width, epsilon=0.1, delta=1e-5)
    assert best.sensitivity == query.sensitivity / best.rate
    assert best.sampling_error == query.sampling_error(best.rate)
    for rate in (0.01, 0.1, 0.5, 0.9 * best.rate, 1.0):
        other = sampled(query, half_width, epsilon=0.1, delta=1e-5, rate=rate)
        assert best.acceptance >= other.acceptance - 1e-9


def test_an_average_is_sampled_as_its_sum_is():
    whole = sampled(Query("sum", 2000, 10.0, 50.0), 400.0, epsilon=0.1, delta=1e-5, rate=0.3)
    average = sampled(Query("average", 2000, 10.0, 0.025), 0.2, epsilon=0.1, delta=1e-5, rate=0.3)
    assert average.acceptance == pytest.approx(whole.acceptance, rel=1e-9)
    assert average.law.boost == pytest.approx(whole.law.boost, rel=1e-9)
    assert average.law.kernel.sigma == pytest.approx(whole.law.kernel.sigma / 2000, rel=1e-9)


def test_the_best_rate_is_no_worse_than_any_other():
    query = Query("count", 2000, 0.3, 1.0)
    best = best_rate(query, 10.0, epsilon=0.1, delta=1e-5)
    assert best.rate > 0.9
    for rate in (0.01, 0.2, 0.7, 1.0):
        other = sampled(query, 10.0, epsilon=0.1, delta=1e-5, rate=rate)
        assert best.acceptance >= other.acceptance - 1e-9


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: amplified(1.0, 1e-5, 0.0), "a sampling rate must be above 0, got 0.0"),
        (lambda: amplified(1.0, 1e-5, 1.5), "a sampling rate must be a number in [0, 1], got 1.5"),
        (lambda: spendable(-1.0, 1e-5, 0.5), "epsilon must be a number in"),
        (lambda: spendable(1.0, 2.0, 0.5), "delta must be a number in [0, 1], got 2.0"),
        (
            lambda: Query("mode", 10, 1.0, 1.0),
            "kind of a query must be sum, average or count, got 'mode'",
        ),
        (lambda: Query("sum", 0, 1.0, 1.0), "people of a query must be a whole number >= 1, got 0"),
        (
            lambda: Query("sum", 10, 0.0, 1.0),
            "deviation of a query must be a positive finite number",
        ),
        (
            lambda: acceptance(BoostedNoise(Laplace(1.0)), 1.0, 1.0),
            "a Gaussian kernel and an absolute region",
        ),
    ],
)
def test_bad_parameters_name_subject_rule_and_value(build, words):
    with pytest.raises(ParameterError) as caught:
        build()
    assert words in str(caught.value)
