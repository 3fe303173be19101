"""(epsilon, delta): of region, confidence and epsilon two give the third, as well as brute force does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise import NoiseDesign
from hubbub_lab.continuous_noise.mixtures import GammaLaplace, LaplaceMixture
from hubbub_lab.continuous_noise.noise import Gaussian, Laplace
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    PairLoss,
    RelativeRegion,
    largest_boost,
)
from hubbub_lab.continuous_noise.scaled import Scaled, scaled

KERNELS = [Gaussian(1.0), Laplace(1.0), LaplaceMixture((1.0, 4.0), (0.6, 0.4))]
DELTA = 1e-5


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_three_directions_agree(kernel):
    design, region = NoiseDesign(kernel, DELTA, 1.0), AbsoluteRegion(0.5)
    most = design.most_confidence(region, 2.0)
    assert most.profile.delta(2.0) <= DELTA
    assert most.profile.law.confidence(0.0) == most.confidence
    least = design.least_epsilon(region, most.confidence)
    assert least.epsilon == pytest.approx(2.0, rel=1e-3)
    assert least.profile.delta(least.epsilon) <= DELTA
    narrow = design.narrowest_region(AbsoluteRegion(9.0), most.confidence, 2.0)
    assert narrow.region.half_width == pytest.approx(0.5, rel=1e-3)
    assert narrow.confidence == pytest.approx(most.confidence, rel=1e-9)
    assert narrow.profile.delta(2.0) <= DELTA


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_no_scale_and_boost_of_a_dense_scan_is_better(kernel):
    region = AbsoluteRegion(0.5)
    found = NoiseDesign(kernel, DELTA, 1.0).most_confidence(region, 2.0).confidence
    best = 0.0
    for factor in np.geomspace(0.1, 8.0, 60).tolist():
        wide = scaled(kernel, factor)
        boost = largest_boost(wide, region, sensitivity=1.0, epsilon=2.0, delta=DELTA)
        if boost is not None:
            best = max(best, BoostedNoise(wide, region, boost).confidence(0.0))
    assert best * (1 - 1e-9) <= found <= best * 1.01


def test_pure_laplace_hits_as_often_as_the_closed_form_says():
    """Odds (e^(theta u) - 1) e^(epsilon - R u) at u = ln(R / (R - theta)) / theta, R the sensitivity."""
    for theta, epsilon in ((0.3, 2.0), (0.5, 3.0)):
        u = math.log(1.0 / (1.0 - theta)) / theta
        odds = math.expm1(theta * u) * math.exp(epsilon - u)
        found = NoiseDesign(Laplace(1.0), 0.0, 1.0).most_confidence(AbsoluteRegion(theta), epsilon)
        assert found.confidence == pytest.approx(odds / (1 + odds), rel=1e-5)
        assert found.profile.largest <= epsilon


def test_a_relative_region_is_as_good_as_brute_force_over_pairs_scales_and_boosts():
    region, domain = RelativeRegion(0.2, 0.3), (-2.0, 3.0)
    design = NoiseDesign(Gaussian(1.0), 1e-4, 1.0, domain)
    found = design.most_confidence(region, 3.0)
    assert found.profile.delta(3.0) <= 1e-4
    values = np.linspace(-2.0, 3.0, 21)
    pairs = [(x, y) for x in values for y in values if 0.0 < abs(x - y) <= 1.0 + 1e-9]
    best = 0.0
    for sigma in np.geomspace(0.7, 3.0, 8).tolist():
        low, high = 0.0, 1.0
        for _ in range(9):
            boost = 0.5 * (low + high)
            law = BoostedNoise(Gaussian(sigma), region, boost)
            fits = all(PairLoss(law, x, y).delta(3.0) <= 1e-4 for x, y in pairs)
            low, high = (boost, high) if fits else (low, boost)
        law = BoostedNoise(Gaussian(sigma), region, low)
        if low > 0.0:
            best = max(best, law.confidence(0.0))
    assert 0.99 * best <= found.confidence <= 1.03 * best
    least = design.least_epsilon(region, found.confidence)
    assert least.epsilon == pytest.approx(3.0, rel=5e-3)


def test_confidence_of_a_fixed_region_is_free():
    """Noise that is confined to the region whatever the value has it: nothing of the value is told."""
    design = NoiseDesign(Laplace(1.0), DELTA, 1.0, (-2.0, 3.0))
    assert design.least_epsilon(FixedRegion(-1.0, 2.0), 0.9).epsilon < 0.05


def test_a_scaled_kernel_is_the_kernel_of_that_scale():
    plain, wide = GammaLaplace(2.0, 0.3), Scaled(GammaLaplace(2.0, 0.9), 3.0)
    for region, boost in ((None, 0.0), (AbsoluteRegion(0.7), 0.5)):
        one, other = (PairLoss(BoostedNoise(kernel, region, boost), 0.2, 1.1) for kernel in (plain, wide))
        epsilons = np.linspace(-1.0, 1.0, 9)
        np.testing.assert_allclose(one.deltas(epsilons), other.deltas(epsilons), rtol=1e-10)
        assert one.delta(0.3) == pytest.approx(other.delta(0.3), rel=1e-10)
        assert one.renyi(3.0) == pytest.approx(other.renyi(3.0), rel=1e-9)


DESIGN = NoiseDesign(Gaussian(1.0), DELTA, 1.0)
ON_A_DOMAIN = NoiseDesign(Gaussian(1.0), DELTA, 1.0, (0.0, 4.0))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: NoiseDesign(Gaussian(1.0), 1.0, 1.0), r"delta must be within \[0, 1\), got 1.0"),
        (lambda: NoiseDesign(Gaussian(1.0), -0.1, 1.0), "got -0.1; nearest: 0"),
        (lambda: NoiseDesign(Gaussian(1.0), 0.1, 0.0), "sensitivity must be a positive finite number"),
        (lambda: NoiseDesign("gaussian", 0.1, 1.0), "kernel must be a noise kernel, got str"),
        (
            lambda: DESIGN.least_epsilon(AbsoluteRegion(1.0), 1.0),
            r"confidence must be within \(0, 1\), got 1",
        ),
        (
            lambda: DESIGN.least_epsilon(AbsoluteRegion(1.0), 0.0),
            r"confidence must be within \(0, 1\), got 0",
        ),
        (lambda: DESIGN.most_confidence(AbsoluteRegion(-1.0), 1.0), "half_width .* at least 0, got -1.0"),
        (lambda: DESIGN.most_confidence(AbsoluteRegion(1.0), 0.0), "epsilon must be"),
        (lambda: DESIGN.most_confidence(FixedRegion(0.0, 1.0), 1.0), "domain must be given for FixedRegion"),
        (
            lambda: ON_A_DOMAIN.most_confidence(FixedRegion(5.0, 6.0), 1.0),
            r"must overlap the domain \[0, 4\], got \[5, 6\]; nearest: \[3, 4\]",
        ),
        (lambda: DESIGN.most_confidence("wide", 1.0), "region must be absolute, relative or fixed, got str"),
    ],
)
def test_bad_parameters_name_the_rule_and_the_nearest_value(build, words):
    with pytest.raises(ParameterError, match=words):
        build()


def test_an_unreachable_confidence_names_the_most_that_can_be_reached():
    design, region = NoiseDesign(Laplace(1.0), 0.0, 1.0), AbsoluteRegion(1e-13)
    with pytest.raises(ParameterError, match=r"confidence must be at most 0\.\d+ .* epsilon 40") as caught:
        design.least_epsilon(region, 0.999999)
    nearest = float(str(caught.value).split("at most ")[1].split()[0])
    assert design.least_epsilon(region, nearest).epsilon <= 40.0


def test_a_pure_epsilon_is_kept_to_its_last_digit():
    """A law above what was asked for by one in 10^12 is not returned: what is, is a promise."""
    design, region = NoiseDesign(Laplace(1.0), 0.0, 1.0), AbsoluteRegion(0.4)
    near, safe = (design.most_confidence(region, epsilon).profile for epsilon in (2.0, 1.8))
    asked = near.largest * (1.0 - 5e-13)
    kept = design._kept(lambda step: safe.law if step else near.law, asked)
    assert kept is safe.law and safe.largest <= asked < near.largest
