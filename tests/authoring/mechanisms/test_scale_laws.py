"""Laws of a random inverse scale: expectations by quadrature, and the exact epsilon of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from hubbub.errors import ParameterError
from hubbub_authoring.mechanisms.boosted.scale_laws import Gamma, TruncatedGaussian, TwoPoint, UniformScale

TAIL = TruncatedGaussian(0.5223, 1.5454, 0.5223)
BOTH = TruncatedGaussian(2.0, 0.5, 1.0, 3.5)
BELOW = TruncatedGaussian(-3.0, 1.0, 0.25, 4.0)
ABOVE = TruncatedGaussian(9.0, 1.0, 0.25, 4.0)


def cut(law):
    low, high = (law.low - law.mean) / law.sigma, (law.high - law.mean) / law.sigma
    return stats.truncnorm(low, high, loc=law.mean, scale=law.sigma).pdf, law.low, min(law.high, 25.0)


DENSITIES = {
    "uniform": (UniformScale(0.5, 9.0), lambda u: 1 / 8.5, 0.5, 9.0),
    "gamma": (Gamma(2.5, 0.7), stats.gamma(2.5, scale=0.7).pdf, 0.0, 80.0),
    "gaussian cut below": (TAIL, *cut(TAIL)),
    "gaussian cut on both sides": (BOTH, *cut(BOTH)),
    "gaussian about a point below": (BELOW, *cut(BELOW)),
    "gaussian about a point above": (ABOVE, *cut(ABOVE)),
}
LAWS = {name: entry[0] for name, entry in DENSITIES.items()} | {"two points": TwoPoint(3.0, 1.0, 0.2)}


def quadrature(function, low, high):
    return integrate.quad(function, low, high, epsabs=0, epsrel=1e-11, limit=400)[0]


@pytest.mark.parametrize("name", DENSITIES)
def test_expectations_are_those_of_the_density(name):
    law, pdf, low, high = DENSITIES[name]
    for power in (0, 1, 2):
        for w in (0.0, 0.3, 4.0):
            truth = quadrature(lambda u, p=power, w=w: u**p * math.exp(-u * w) * pdf(u), low, high)
            assert law.moment(power, w) == pytest.approx(truth, rel=1e-9)


def test_many_distances_at_once_are_the_single_ones():
    w = np.array([0.0, 0.1, 3.0, 700.0])
    for law in LAWS.values():
        for power in (0, 1, 2):
            assert law.tilted(power, w).tolist() == [law.moment(power, one) for one in w.tolist()]


def test_epsilon_of_gamma_is_the_closed_form():
    assert Gamma(2.5, 0.7).epsilon(1.3) == pytest.approx(3.5 * math.log(1 + 0.7 * 1.3), rel=1e-13)


def test_epsilon_of_uniform_is_the_closed_form():
    a, b = 0.5 * 1.2, 9.0 * 1.2
    closed = math.log((a**2 - b**2) / (2 * ((1 + b) * math.exp(-b) - (1 + a) * math.exp(-a))))
    assert UniformScale(0.5, 9.0).epsilon(1.2) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("law", [TAIL, BOTH])
def test_epsilon_of_a_truncated_gaussian_is_the_closed_form(law):
    """E(u) = mu + sigma (phi(alpha) - phi(beta))/(Phi(beta) - Phi(alpha)); M' from the shifted Gaussian."""
    delta, unit = 0.6, stats.norm

    def mean(centre):
        alpha, beta = (law.low - centre) / law.sigma, (law.high - centre) / law.sigma
        mass = unit.cdf(beta) - unit.cdf(alpha)
        return centre + law.sigma * (unit.pdf(alpha) - unit.pdf(beta)) / mass, mass

    tilted = law.mean - law.sigma**2 * delta
    (first, whole), (second, left) = mean(law.mean), mean(tilted)
    mgf = math.exp(-law.mean * delta + (law.sigma * delta) ** 2 / 2) * left / whole
    assert law.epsilon(delta) == pytest.approx(math.log(first / (second * mgf)), rel=1e-11)


def test_printed_epsilon_of_two_points_is_below_the_truth():
    """r2dp, Theorem 4.4 claims .20499; the densities' own ratio is .24613."""
    law, delta = TwoPoint(3.0, 1.0, 0.5), 0.1
    assert law.epsilon(delta) == pytest.approx(0.24613, abs=5e-6)
    printed = math.log(0.5 * math.exp(3 * delta) + 0.5 * math.exp(delta))
    assert printed == pytest.approx(0.20499, abs=5e-6)
    ratio = law.moment(1, 0.0) / law.moment(1, delta)
    assert math.log(ratio) > printed + 0.04


@pytest.mark.parametrize("name", LAWS)
def test_no_output_is_less_likely_elsewhere_than_epsilon_says(name):
    law, delta = LAWS[name], 0.8
    y = np.linspace(-6.0, 7.0, 2001)
    density, shifted = law.tilted(1, np.abs(y)), law.tilted(1, np.abs(y - delta))
    worst = np.abs(np.log(density / shifted)).max()
    assert worst <= law.epsilon(delta) + 1e-12
    assert worst == pytest.approx(law.epsilon(delta), rel=0.02)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_fitted_law_has_the_epsilon_asked_for_and_the_same_shape(name, epsilon):
    law = LAWS[name]
    fitted = law.fitted(epsilon, 2.0)
    assert fitted.epsilon(2.0) == pytest.approx(epsilon, rel=1e-11)
    factor = fitted.moment(1) / law.moment(1)
    assert fitted.moment(2) == pytest.approx(factor**2 * law.moment(2), rel=1e-9)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TwoPoint(1.0, 2.0, 0.5), "fast must be finite and at least slow"),
        (lambda: TwoPoint(math.inf, 2.0, 0.5), "fast must be finite"),
        (lambda: TwoPoint(2.0, 0.0, 0.5), "slow must be a finite number above 0, got 0.0"),
        (lambda: TwoPoint(2.0, 1.0, 1.5), r"share must be within \[0, 1\], got 1.5"),
        (lambda: Gamma(-1.0, 1.0), "shape must be a finite number above 0"),
        (lambda: Gamma(1.0, math.nan), "scale must be a finite number above 0"),
        (lambda: UniformScale(-1.0, 1.0), "low must be a finite number of at least 0"),
        (lambda: UniformScale(1.0, 1.0), "high must be above low"),
        (lambda: UniformScale(1.0, math.inf), "high must be finite"),
        (lambda: TruncatedGaussian(math.nan, 1.0, 0.0), "mean must be finite"),
        (lambda: TruncatedGaussian(1.0, 0.0, 0.0), "sigma must be a finite number above 0"),
        (lambda: TruncatedGaussian(1.0, 1.0, 2.0, 1.0), "high must be above low"),
        (lambda: Gamma(1.0, 1.0).epsilon(0.0), "sensitivity must be a finite number above 0"),
        (lambda: Gamma(1.0, 1.0).fitted(-1.0, 1.0), "epsilon must be a finite number above 0"),
    ],
)
def test_what_is_no_law_is_refused(build, message):
    with pytest.raises(ParameterError, match=message):
        build()
