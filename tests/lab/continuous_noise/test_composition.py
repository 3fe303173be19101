"""Composition: never below what is exact, at most 0.1 % above, for any delta, and as dp_accounting has it."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.composition import MAX_TIMES, Composition, loss_distribution, loss_grid
from hubbub_lab.continuous_noise.loss_sum import LossSum
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    GammaLaplace,
    Gaussian,
    Laplace,
    LaplaceMixture,
    PairLoss,
    Profile,
    RelativeRegion,
    UniformNoise,
    gaussian_sigma,
)


def gaussian(sigma):
    return Profile(BoostedNoise(Gaussian(sigma)), 1.0)


def within(found, exact, *, above=1e-3):
    """Whether a bound is one, and tight; equality up to the last digits counts as not below."""
    return exact * (1 - 1e-12) <= found <= exact * (1 + above)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-10, 1e-30, 1e-90])
@pytest.mark.parametrize(("sigma", "times"), [(30.74957, 1000), (5.0, 40), (1.0, 7), (400.0, 100_000)])
def test_gaussians_compose_to_the_gaussian_of_their_closed_form(sigma, times, delta):
    exact = gaussian(sigma / math.sqrt(times)).epsilon(delta)
    assert within(Composition([(gaussian(sigma), times)]).epsilon(delta), exact)


def test_different_gaussians_compose_to_the_root_sum_of_squares():
    sigmas = [2.0 + 0.5 * i for i in range(40)]
    together = 1 / math.sqrt(sum((i % 5 + 1) / sigma**2 for i, sigma in enumerate(sigmas)))
    parts = [(gaussian(sigma), i % 5 + 1) for i, sigma in enumerate(sigmas)]
    for delta in (1e-4, 1e-12):
        assert within(Composition(parts).epsilon(delta), gaussian(together).epsilon(delta))


def test_a_thousand_different_laws_compose_as_tightly_as_one():
    sigmas = [20.0 + 0.03 * i for i in range(1000)]
    together = 1 / math.sqrt(sum(sigma**-2 for sigma in sigmas))
    found = Composition([(gaussian(sigma), 1) for sigma in sigmas]).epsilon(1e-6)
    assert within(found, gaussian(together).epsilon(1e-6))


def test_laws_of_several_kinds_cost_what_a_grid_ten_times_finer_says():
    """No closed form is known: the finer grid is no bound from below, but nearer to the exact value."""
    kinds = [
        lambda s: BoostedNoise(Gaussian(s), AbsoluteRegion(1.0), 0.2),
        lambda s: BoostedNoise(Laplace(s), AbsoluteRegion(2.0), 0.1),
        lambda s: BoostedNoise(LaplaceMixture((1 / s, 3 / s), (0.5, 0.5))),
        lambda s: BoostedNoise(GammaLaplace(2.0, 0.5 / s)),
    ]
    parts = [(Profile(kinds[i % 4](10.0 * 1.05**i), 1.0), 1 + i % 3) for i in range(40)]
    composition = Composition(parts)
    extents = composition._extents(1e-6)
    finer = LossSum(composition._grids(extents, 0.1 * composition._first_interval(extents))).epsilon(1e-6)
    assert within(composition.epsilon(1e-6), finer)


def test_a_coarser_grid_is_the_one_made_at_twice_the_interval():
    for part in (gaussian(1.0), Profile(BoostedNoise(Laplace(0.7), AbsoluteRegion(0.5), 0.6), 1.0)):
        for interval in (0.05, 0.07):
            coarse, made = loss_grid(part, interval).coarser(), loss_grid(part, 2 * interval)
            low = max(coarse.lowest, made.lowest)
            for grid in (coarse, made):
                assert grid.masses.sum() + grid.infinite == pytest.approx(1.0, abs=1e-12)
            size = min(coarse.masses.size - (low - coarse.lowest), made.masses.size - (low - made.lowest))
            here, there = (grid.masses[low - grid.lowest :][:size] for grid in (coarse, made))
            np.testing.assert_allclose(here, there, atol=1e-12)


def test_a_thousand_laplace_reports_cost_what_the_reference_says():
    # references to seven digits, from dp_accounting at an interval of 1e-5
    composition = Composition([(Profile(BoostedNoise(Laplace(10.0)), 1.0), 1000)])
    assert within(composition.epsilon(1e-5), 17.42365 - 1e-5)
    assert within(composition.epsilon(1e-10), 23.94442 - 1e-5)
    wide = Composition([(gaussian(30.74957), 1000)])
    assert within(wide.epsilon(1e-5), 4.52155 - 1e-5)
    assert within(wide.epsilon(1e-10), 6.75240 - 1e-5)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_few_reports_of_two_outputs_cost_what_counting_them_says(times):
    # Laplace noise that is only looked at through its sign costs less than Laplace noise; through everything,
    # exactly the sum over the three stretches of its loss, which numerical integration of one report gives.
    profile = Profile(BoostedNoise(Laplace(1.0), AbsoluteRegion(0.5), 0.5), 1.0)
    for delta in (1e-1, 1e-3, 1e-6):
        found = Composition([(profile, times)]).epsilon(delta)
        assert found <= times * profile.largest * (1 + 1e-9)
        if times == 1:
            assert within(found, profile.epsilon(delta))


@pytest.mark.parametrize(
    "law",
    [
        BoostedNoise(Gaussian(2.0), AbsoluteRegion(1.0), 0.9),
        BoostedNoise(Laplace(1.0), AbsoluteRegion(1.0), 0.5),
        BoostedNoise(LaplaceMixture((1.0, 3.0), (0.5, 0.5))),
        BoostedNoise(GammaLaplace(2.0, 0.3), AbsoluteRegion(2.0), 0.3),
    ],
    ids=lambda law: type(law.kernel).__name__,
)
def test_one_report_costs_its_profile(law):
    profile = Profile(law, 0.7)
    for delta in (1e-2, 1e-5, 1e-9):
        assert within(Composition([(profile, 1)]).epsilon(delta), profile.epsilon(delta))


def test_delta_is_never_below_the_closed_form_and_close():
    for epsilon in (0.5, 2.0, 5.0, 9.0):
        exact = gaussian(30.0 / math.sqrt(1000)).delta(epsilon)
        found = Composition([(gaussian(30.0), 1000)]).delta(epsilon)
        assert exact * (1 - 1e-12) <= found <= exact * 1.01


@pytest.mark.parametrize("times", [10, 200])
@pytest.mark.parametrize("spare", [1e-3, 1e-5])
def test_an_epsilon_keeps_its_delta_where_infinite_losses_take_nearly_all_of_it(times, spare):
    law = BoostedNoise(Laplace(10.0), AbsoluteRegion(60.0), 1.0)
    infinite = -math.expm1(times * math.log1p(-PairLoss(law, 0.0, 1.0).infinite))
    composition = Composition([(Profile(law, 1.0), times)])
    epsilon = composition.epsilon(infinite * (1.0 + spare))
    assert 0.0 < epsilon < math.inf
    # by another grid, a bound as well; what the finite losses have of delta is a thousandth of it or less
    extents = composition._extents(infinite)
    finer = LossSum(composition._grids(extents, 0.25 * composition._first_interval(extents)))
    assert finer.delta(epsilon) - infinite <= spare * infinite * 1.01


@pytest.mark.parametrize(
    ("rates", "weights"),
    [((1.0, 2.0), (0.5, 0.5)), ((0.01, 1.0, 30.0), (0.2, 0.3, 0.5)), ((1.0, 1e6), (1e-9, 1.0))],
)
@pytest.mark.parametrize("shift", [1.0, -1.0, 0.01, 50.0])
def test_many_crossings_of_a_mixture_meet_their_targets(rates, weights, shift):
    kernel = LaplaceMixture(rates, weights)
    for low, high in pairwise((-math.inf, min(0.0, shift), max(0.0, shift), math.inf)):
        ends = sorted(kernel.log_ratio(end, shift) for end in (low, high))
        targets = np.linspace(*ends, 203)[1:-1]
        found = kernel.crossings(targets, low, high, shift)
        met = [kernel.log_ratio(w, shift) for w in found.tolist()]
        np.testing.assert_allclose(met, targets, rtol=0.0, atol=1e-8)


@pytest.mark.filterwarnings("ignore")  # dp_accounting's own
def test_dp_accounting_composes_the_same_grid_to_the_same_epsilon():
    law = BoostedNoise(Gaussian(6.0), AbsoluteRegion(1.0), 0.6)
    first, second = Profile(law, 1.0), Profile(BoostedNoise(Laplace(5.0)), 1.0)
    theirs = (
        loss_distribution(first, 2e-3)
        .self_compose(60)
        .compose(loss_distribution(second, 2e-3).self_compose(30))
    )
    ours = Composition([(first, 60), (second, 30)])
    for delta in (1e-3, 1e-6, 1e-9):
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-3)


def test_a_grid_dominates_the_exact_curve_everywhere_and_meets_it_on_the_grid():
    for part in (
        Profile(BoostedNoise(Gaussian(1.0), AbsoluteRegion(0.7), 0.8), 1.0),
        Profile(BoostedNoise(Laplace(0.7), FixedRegion(-1.0, 2.0), 0.6), 1.0, (-2.0, 2.0)),
        PairLoss(BoostedNoise(Gaussian(1.0), RelativeRegion(0.3, 0.5), 0.8), 0.4, 1.1),
    ):
        grid = loss_grid(part, 0.05)
        assert grid.masses.sum() + grid.infinite == pytest.approx(1.0, abs=1e-11)
        for epsilon in np.linspace(0.0, 2.0, 81 if isinstance(part, PairLoss) else 17):
            above = grid.losses > epsilon
            masses, losses = grid.masses[above], grid.losses[above]
            found = grid.infinite + float(masses @ -np.expm1(epsilon - losses))
            exact = part.delta(float(epsilon))
            assert found >= exact - 1e-13
            if abs(epsilon / 0.05 - round(epsilon / 0.05)) < 1e-9 and isinstance(part, PairLoss):
                assert found == pytest.approx(exact, abs=1e-12)


def test_an_optimistic_grid_would_be_noticed():
    grid = loss_grid(gaussian(1.0), 0.2)
    lowered = grid.losses - 0.2
    above = lowered > 1.0
    found = float(grid.masses[above] @ -np.expm1(1.0 - lowered[above]))
    assert found < 0.9 * gaussian(1.0).delta(1.0)


def test_order_and_grouping_do_not_matter():
    parts = [(gaussian(8.0), 3), (Profile(BoostedNoise(Laplace(4.0)), 1.0), 5), (gaussian(8.0), 2)]
    once = Composition(parts).epsilon(1e-6)
    assert Composition(parts[::-1]).epsilon(1e-6) == pytest.approx(once, rel=1e-9)
    merged = [(gaussian(8.0), 5), (Profile(BoostedNoise(Laplace(4.0)), 1.0), 5)]
    assert Composition(merged).epsilon(1e-6) == pytest.approx(once, rel=1e-9)


def test_more_reports_never_cost_less():
    profile = Profile(BoostedNoise(Laplace(6.0), AbsoluteRegion(1.0), 0.3), 1.0)
    costs = [Composition([(profile, times)]).epsilon(1e-6) for times in (1, 2, 5, 20, 100, 500)]
    assert all(later > earlier for earlier, later in pairwise(costs))


def test_one_pair_of_values_for_all_reports_costs_no_more_than_any_values():
    law = BoostedNoise(Gaussian(20.0), FixedRegion(-5.0, 5.0), 0.5)
    profile = Profile(law, 1.0, (-5.0, 5.0))
    free = Composition([(profile, 300)]).epsilon(1e-5)
    same = Composition([(profile, 300)], values="same").epsilon(1e-5)
    pairs = [PairLoss(law, x, x + sign) for x in (-4.0, 0.0, 4.0) for sign in (-1.0, 1.0)]
    assert same <= free * (1 + 1e-9)
    assert same >= max(Composition([(pair, 300)]).epsilon(1e-5) for pair in pairs) * (1 - 1e-3)


def test_a_thousand_reports_are_composed_in_under_a_second():
    boosted = Profile(BoostedNoise(Gaussian(31.0), AbsoluteRegion(1.0), 0.09), 1.0)
    parts = [(boosted, 500), (Profile(BoostedNoise(Laplace(10.0)), 1.0), 400), (gaussian(12.0), 100)]
    start = time.process_time()
    Composition(parts).epsilon(1e-6)
    assert time.process_time() - start < 1.0


def test_noise_without_overlap_has_no_epsilon_below_its_missing_mass():
    profile = Profile(BoostedNoise(UniformNoise(1e6)), 1.0)
    assert math.isinf(Composition([(profile, 1000)]).epsilon(1e-5))
    assert Composition([(profile, 1000)]).epsilon(1e-3) == 0.0
    assert Composition([(profile, 1000)]).delta(3.0) == pytest.approx(1 - (1 - 5e-7) ** 1000, rel=1e-6)


def test_the_boosted_gaussian_composes_worse_than_the_gaussian_of_equal_epsilon():
    law = BoostedNoise(Gaussian(31.0), AbsoluteRegion(1.0), 0.09)
    single = Profile(law, 1.0).epsilon(1e-5)
    plain = gaussian(gaussian_sigma(single, 1e-5, 1.0))
    boosted = Composition([(Profile(law, 1.0), 1000)]).epsilon(1e-5)
    assert boosted > 1.05 * Composition([(plain, 1000)]).epsilon(1e-5)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Composition([]), "at least one part, got none"),
        (lambda: Composition([(gaussian(1.0), 0)]), "whole number >= 1, got 0"),
        (lambda: Composition([(gaussian(1.0), 2.0)]), "whole number >= 1, got 2.0"),
        (lambda: Composition([("gaussian", 1)]), "must be a Profile or a PairLoss, got str"),
        (lambda: Composition([(gaussian(1.0), MAX_TIMES + 1)]), f"at most {MAX_TIMES} reports"),
        (lambda: Composition([(gaussian(1.0), 1)], values="some"), "values must be any or same"),
        (
            lambda: Composition([(PairLoss(BoostedNoise(Laplace(1.0)), 0.0, 1.0), 1)], values="same"),
            "must be profiles, got a pair",
        ),
        (lambda: Composition([(gaussian(1.0), 1)]).epsilon(0.0), "delta must be a number in"),
        (lambda: Composition([(gaussian(1.0), 1)]).delta(-1.0), "epsilon must be a finite number >= 0"),
        (lambda: loss_grid(gaussian(1.0), 0.0), "interval of a loss grid must be a positive number"),
        (lambda: loss_grid(gaussian(1.0), 1e-9), "interval of a loss grid must be >="),
        (lambda: loss_grid(gaussian(1.0), 0.1, cut=0.0), "cut must be strictly between 0 and 1"),
    ],
)
def test_bad_parameters_name_subject_rule_and_value(build, words):
    with pytest.raises(ParameterError) as caught:
        build()
    assert words in str(caught.value)
