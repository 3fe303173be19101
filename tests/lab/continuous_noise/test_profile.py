"""The exact profile: against quadrature that knows of no pieces, closed forms, and its own promises."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize

from hubbub.errors import ParameterError
from hubbub_authoring.mechanisms.boosted import scale_laws
from hubbub_lab.continuous_noise.boost import hardest
from hubbub_lab.continuous_noise.pair import PairSearch
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
    RandomScale,
    RelativeRegion,
    UniformNoise,
    boost_for,
    gaussian_sigma,
    largest_boost,
    noise_of,
)

KERNELS = [
    Laplace(1.3),
    Gaussian(1.7),
    UniformNoise(4.0),
    LaplaceMixture((0.5, 3.0), (0.7, 0.3)),
    GammaLaplace(4.0, 0.4),
]
RANDOM_SCALES = [
    RandomScale(scale_laws.UniformScale(0.3, 2.5)),
    RandomScale(scale_laws.TruncatedGaussian(0.9, 0.7, 0.2, 4.0)),
    RandomScale(scale_laws.TruncatedGaussian(-1.0, 0.8, 0.3)),
]
REGIONS = [AbsoluteRegion(1.2), RelativeRegion(0.4, 0.9), FixedRegion(-2.5, 1.5)]
PAIRS = [(0.0, 1.0), (1.0, 0.0), (-0.7, 0.9), (2.0, -0.5)]


def plain_density(kernel, w):
    """The density of a kernel, written anew."""
    w = abs(w)
    if isinstance(kernel, Laplace):
        return math.exp(-w / kernel.scale) / (2 * kernel.scale)
    if isinstance(kernel, Gaussian):
        return math.exp(-((w / kernel.sigma) ** 2) / 2) / (kernel.sigma * math.sqrt(2 * math.pi))
    if isinstance(kernel, UniformNoise):
        return (w <= kernel.half_width) / (2 * kernel.half_width)
    if isinstance(kernel, RandomScale):
        return plain_mixture(kernel.law, w)
    if isinstance(kernel, LaplaceMixture):
        return sum(p * u * math.exp(-u * w) / 2 for u, p in zip(kernel.rates, kernel.weights, strict=True))
    k, theta = kernel.shape, kernel.rate_scale
    return k * theta * (1 + theta * w) ** (-k - 1) / 2


@cache
def rates_of(law):
    """Many nodes of u, and their weights times its density: 24 panels of 12 nodes."""
    high = law.high if isinstance(law, scale_laws.UniformScale) else min(law.high, law.mean + 14 * law.sigma)
    ends = np.linspace(law.low, high, 25)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    u = (ends[:-1, None] + half * (nodes + 1)).ravel()
    weights = (half * weights).ravel()
    if isinstance(law, scale_laws.TruncatedGaussian):
        weights = weights * np.exp(-(((u - law.mean) / law.sigma) ** 2) / 2)
    return u, weights / weights.sum()


def plain_mixture(law, w):
    """E[u e^(-u w)] / 2, from its definition."""
    u, weights = rates_of(law)
    return float((weights * u * np.exp(-u * w)).sum()) / 2


def plain_law(kernel, region, boost, x):
    """The boosted density as a function of y, its normaliser by quadrature, and where it jumps or bends."""
    low, high = region.around(x)
    corners = {x, low, high, *((x - 4.0, x + 4.0) if isinstance(kernel, UniformNoise) else ())}

    def raw(y):
        return plain_density(kernel, y - x) * (1.0 if low <= y <= high else 1.0 - boost)

    total = integrated(raw, corners)
    return lambda y: raw(y) / total, corners


def integrated(function, corners):
    """Quadrature over the line, between all corners and out to where nothing is left."""
    ends = sorted({*corners, *(side * reach for reach in (8, 20, 60, 400, 1e4, 1e6) for side in (-1, 1))})
    return math.fsum(
        integrate.quad(function, a, b, epsabs=1e-17, epsrel=1e-13, limit=400)[0] for a, b in pairwise(ends)
    )


def brute_delta(law, x, other, epsilon):
    """The integral of (p - e^epsilon p')_+, split where a fine scan sees its integrand change sign."""
    p, corners = plain_law(law.kernel, law.region, law.boost, x)
    q, more = plain_law(law.kernel, law.region, law.boost, other)
    grown = math.exp(epsilon)
    breaks = sorted({*corners, *more})
    ends = [-60.0, *breaks, 60.0]
    roots = set()
    for a, b in pairwise(ends):
        if b - a < 1e-9:
            continue
        inner = np.linspace(a + 1e-10, b - 1e-10, 200)
        signs = [p(y) - grown * q(y) for y in inner]
        for left, right, here, there in zip(inner, inner[1:], signs, signs[1:], strict=False):
            if here * there < 0:
                roots.add(optimize.brentq(lambda y: p(y) - grown * q(y), left, right, xtol=1e-14, rtol=1e-14))
    return integrated(lambda y: max(0.0, p(y) - grown * q(y)), {*breaks, *roots})


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_delta_is_brute_force_quadrature_to_a_billionth(kernel, region):
    for boost in (0.0, 0.35, 0.9):
        for x, other in PAIRS[:: 1 if boost == 0.35 else 3]:
            for epsilon in (0.0, 0.4, 1.1):
                law = BoostedNoise(kernel, region, boost)
                found = PairLoss(law, x, other).delta(epsilon)
                wanted = brute_delta(law, x, other, epsilon)
                assert found == pytest.approx(wanted, rel=1e-9, abs=1e-13)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("kernel", RANDOM_SCALES, ids=["uniform", "cut", "half-line"])
@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_a_random_scale_costs_what_brute_force_finds_to_a_billionth(kernel, region):
    law = BoostedNoise(kernel, region, 0.35)
    for x, other, epsilon in ((-0.7, 0.9, 0.4), (1.0, 0.0, 0.0), (2.0, -0.5, 1.1)):
        wanted = brute_delta(law, x, other, epsilon)
        assert PairLoss(law, x, other).delta(epsilon) == pytest.approx(wanted, rel=1e-9, abs=1e-13)
    (p, corners), (q, more) = (plain_law(kernel, region, 0.35, x) for x in (-0.7, 0.9))
    moment = integrated(lambda y: p(y) ** 2 / q(y) if q(y) > 1e-60 else 0.0, {*corners, *more})
    assert PairLoss(law, -0.7, 0.9).renyi(2.0) == pytest.approx(math.log(moment), rel=1e-9)


@pytest.mark.parametrize("kernel", RANDOM_SCALES, ids=["uniform", "cut", "half-line"])
def test_the_worst_pair_of_a_random_scale_is_no_better_than_any_of_a_denser_scan(kernel):
    law, domain = BoostedNoise(kernel, RelativeRegion(0.4, 0.9), 0.35), (-2.0, 4.0)
    found = Profile(law, 3.0, domain).delta(0.8)
    scan = PairSearch(law, domain, 3.0, values=61, shifts=12).scanned
    assert max(pair.delta(0.8) for pair in scan) <= found * (1.0 + 1e-9)


@pytest.mark.parametrize("kernel", RANDOM_SCALES, ids=["uniform", "cut", "half-line"])
def test_many_epsilons_of_a_random_scale_give_what_each_gives_alone(kernel):
    """Among them the very limit of the loss far out, which no output reaches."""
    pair = PairLoss(BoostedNoise(kernel, FixedRegion(-2.5, 1.5), 0.7), 2.0, -0.5)
    limits = [piece.least for piece in pair._pieces] + [piece.most for piece in pair._pieces]
    epsilons = np.sort([-3.0, -0.5, 0.0, 0.3, 1.1, 2.0, *limits])
    alone = [pair.delta(epsilon) for epsilon in epsilons]
    np.testing.assert_allclose(pair.deltas(epsilons), alone, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("law", [scale_laws.UniformScale(0.0, 2.0), *(k.law for k in RANDOM_SCALES)])
def test_pure_epsilon_of_a_random_scale_is_the_laws_own(law):
    for sensitivity in (0.01, 1.0, 30.0):
        assert Profile(BoostedNoise(noise_of(law)), sensitivity).largest == pytest.approx(
            law.epsilon(sensitivity), rel=1e-11
        )


def test_a_random_scale_of_next_to_no_width_is_laplace_noise():
    plain = Profile(BoostedNoise(Laplace(0.5), AbsoluteRegion(1.0), 0.5), 1.0)
    for law in (scale_laws.UniformScale(2 - 1e-9, 2 + 1e-9), scale_laws.TruncatedGaussian(2.0, 1e-9, 1.0)):
        found = Profile(BoostedNoise(noise_of(law), AbsoluteRegion(1.0), 0.5), 1.0)
        assert found.delta(1.2) == pytest.approx(plain.delta(1.2), rel=1e-6)
        assert found.renyi(3.0) == pytest.approx(plain.renyi(3.0), rel=1e-6)


def test_tails_far_beyond_where_densities_underflow_keep_their_ratio():
    """All that is left at w is the least rate's exponential, for a Gaussian times w: a ratio of its own."""
    for law in (scale_laws.UniformScale(0.5, 3.0), scale_laws.TruncatedGaussian(3.0, 0.2, 0.5)):
        kernel = noise_of(law)
        assert kernel.log_ratio(1e6, 2.0) == pytest.approx(-2.0 * law.low, rel=1e-5)
        assert kernel.log_ratio(-1e6, 2.0) == pytest.approx(2.0 * law.low, rel=1e-5)
        assert kernel.log_ratio(math.inf, 2.0) == -2.0 * law.low


def test_every_law_of_r2dp_is_a_kernel():
    laws = [
        scale_laws.TwoPoint(3.0, 1.0, 0.2),
        scale_laws.TwoPoint(3.0, 1.0, 1.0),
        scale_laws.Gamma(2.0, 0.5),
        *(kernel.law for kernel in RANDOM_SCALES),
    ]
    for law in laws:
        assert noise_of(law).tail(0.7) == pytest.approx(law.moment(0, 0.7) / 2, rel=1e-13)
        assert noise_of(law).density(0.7) == pytest.approx(law.moment(1, 0.7) / 2, rel=1e-13)
        pair = PairLoss(BoostedNoise(noise_of(law), RelativeRegion(0.2, 0.5), 0.3), -2.0, -1.0)
        assert 0.0 < pair.delta(1.0) < pair.delta(0.5) < 1.0
    with pytest.raises(ParameterError, match="law must be"):
        noise_of(3)
    with pytest.raises(ParameterError, match="law must be uniform or a truncated Gaussian"):
        RandomScale(laws[0])


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("order", [1.5, 4.0])
@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if not isinstance(k, UniformNoise)], ids=lambda k: type(k).__name__
)
def test_renyi_is_brute_force_quadrature_to_a_billionth(kernel, order):
    for region in REGIONS:
        p, corners = plain_law(kernel, region, 0.6, 0.3)
        q, more = plain_law(kernel, region, 0.6, 1.4)

        def integrand(y, p=p, q=q):
            return p(y) ** order * q(y) ** (1 - order) if q(y) > 1e-60 else 0.0

        wanted = math.log(integrated(integrand, {*corners, *more})) / (order - 1)
        found = PairLoss(BoostedNoise(kernel, region, 0.6), 0.3, 1.4).renyi(order)
        assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_many_epsilons_at_once_give_what_each_gives_alone(kernel):
    epsilons = np.linspace(-7.0, 7.0, 113)
    for region, boost in ((None, 0.0), *((region, 0.7) for region in REGIONS)):
        for x, other in PAIRS:
            pair = PairLoss(BoostedNoise(kernel, region, boost), x, other)
            alone = [pair.delta(epsilon) for epsilon in epsilons]
            np.testing.assert_allclose(pair.deltas(epsilons), alone, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("cut", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_losses_within_hold_all_but_the_cut(kernel, cut):
    for region in REGIONS:
        for x, other in PAIRS:
            pair = PairLoss(BoostedNoise(kernel, region, 0.6), x, other)
            low, high = pair.within(cut)
            assert pair.smallest <= low <= high
            above = pair.masses_above(high)[0] - pair.infinite
            below = 1.0 - pair.masses_above(low - 1e-12)[0]
            assert max(above, 0.0) + max(below, 0.0) <= cut * (1 + 1e-6) + 1e-12


def test_renyi_of_plain_noise_is_the_closed_form_up_to_order_100():
    for order in (1.01, 2.0, 10.0, 100.0):
        for sigma, shift in ((1.0, 1.0), (2.0, 4.0), (0.2, 3.0)):
            found = Profile(BoostedNoise(Gaussian(sigma)), shift).renyi(order)
            assert found == pytest.approx(order * shift**2 / (2 * sigma**2), rel=1e-11)
        rate = 1 / 0.7
        closed = math.log(
            order / (2 * order - 1) * math.exp((order - 1) * rate)
            + (order - 1) / (2 * order - 1) * math.exp(-order * rate)
        ) / (order - 1)
        assert Profile(BoostedNoise(Laplace(0.7)), 1.0).renyi(order) == pytest.approx(closed, rel=1e-11)


def test_renyi_resolves_a_boosted_sliver_far_from_the_kernels_mass():
    sigma, tau, order = 1.0, 10.0, 60.0
    law = BoostedNoise(Gaussian(sigma), AbsoluteRegion(tau), 0.999)
    leap, z = -math.log1p(-0.999), law.normaliser(0.0)
    # f^a f'^(1-a) is e^(a (a-1) / 2) times a normal density about 1 - a: mass by piece, in logarithms

    def log_mass(low, high):
        shifted = np.array([low, high]) - (1 - order)
        from scipy.stats import norm

        a, b = norm.logsf(shifted[0]), norm.logsf(shifted[1])
        return (
            a + np.log1p(-np.exp(b - a))
            if shifted[0] > 0
            else np.log(norm.cdf(shifted[1]) - norm.cdf(shifted[0]))
        )

    parts = [
        log_mass(-np.inf, -tau) - leap,  # both outside
        log_mass(-tau, 1 - tau) + (order - 1) * leap,  # x in its region, x' not
        log_mass(1 - tau, tau),
        log_mass(tau, tau + 1) - order * leap,
        log_mass(tau + 1, np.inf) - leap,
    ]
    wanted = (order * (order - 1) / 2 + np.logaddexp.reduce(parts) - math.log(z)) / (order - 1)
    assert PairLoss(law, 0.0, 1.0).renyi(order) == pytest.approx(wanted, rel=1e-11)


def test_plain_gaussian_is_the_analytic_gaussian_mechanism():
    for sigma, epsilon in ((0.5, 3.0), (4.0, 0.2), (30.0, 0.1)):
        cdf = lambda t: 0.5 * math.erfc(-t / math.sqrt(2))  # noqa: E731
        wanted = cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * cdf(-0.5 / sigma - epsilon * sigma)
        assert Profile(BoostedNoise(Gaussian(sigma)), 1.0).delta(epsilon) == pytest.approx(wanted, rel=1e-9)
    assert gaussian_sigma(0.1, 1e-5, 1.0) == pytest.approx(30.74957, rel=1e-6)


def test_boosted_laplace_with_an_absolute_region_costs_length_over_scale_plus_the_leap():
    for scale, length, boost in ((1.0, 1.0, 0.5), (0.3, 2.0, 0.99), (2.0, 5.0, 0.0)):
        profile = Profile(BoostedNoise(Laplace(scale), AbsoluteRegion(0.4), boost), length)
        assert profile.largest == pytest.approx(length / scale - math.log1p(-boost), rel=1e-14)
        assert profile.epsilon(0.0) == profile.largest


def test_boosting_laplace_about_the_middle_of_the_domain_is_free_even_when_bounded():
    for boost in (0.3, 0.9, 1.0):
        law = BoostedNoise(Laplace(2.0), FixedRegion(-4.0, 4.0), boost)
        assert Profile(law, 2.0, (-1.0, 1.0)).largest == pytest.approx(1.0, rel=1e-12)
    off = BoostedNoise(Laplace(2.0), FixedRegion(-3.0, 4.0), 0.9)
    assert Profile(off, 2.0, (-1.0, 1.0)).largest > 1.01


def test_random_scale_laplace_costs_the_mean_rate_over_the_derivative_of_its_transform():
    two = Profile(BoostedNoise(LaplaceMixture((1.0, 3.0), (0.5, 0.5))), 0.1)
    assert two.largest == pytest.approx(
        math.log(2.0 / (0.5 * math.exp(-0.1) + 1.5 * math.exp(-0.3))), rel=1e-13
    )
    gamma = Profile(BoostedNoise(GammaLaplace(2.0, 0.3)), 1.5)
    assert gamma.largest == pytest.approx(3.0 * math.log(1.45), rel=1e-13)


def test_no_shift_below_the_sensitivity_is_worse_when_the_law_only_moves():
    for kernel in KERNELS:
        law = BoostedNoise(kernel, AbsoluteRegion(1.1), 0.8)
        for epsilon in (0.0, 0.3, 1.0, 2.0):
            deltas = [PairLoss(law, 0.0, shift).delta(epsilon) for shift in np.linspace(0.05, 3.0, 60)]
            assert all(later >= earlier - 1e-15 for earlier, later in pairwise(deltas))
            assert Profile(law, 3.0).delta(epsilon) == pytest.approx(deltas[-1], rel=1e-12)


@pytest.mark.parametrize(
    ("law", "sensitivity", "domain"),
    [
        (BoostedNoise(Gaussian(2.0), RelativeRegion(0.3, 1.0), 0.9), 1.0, (-5.0, 5.0)),
        (BoostedNoise(Gaussian(3.0), RelativeRegion(0.1, 10.0), 0.95), 4.0, (0.0, 20.0)),
        (BoostedNoise(Laplace(2.0), FixedRegion(-1.0, 3.0), 0.9), 3.0, (-5.0, 5.0)),
        (BoostedNoise(GammaLaplace(4.0, 0.4), FixedRegion(-2.0, 2.0), 0.7), 2.0, (-3.0, 3.0)),
    ],
)
def test_the_worst_pair_is_that_of_a_scan_a_hundred_times_denser(law, sensitivity, domain):
    profile = Profile(law, sensitivity, domain)
    dense = PairSearch(law, domain, sensitivity, values=101, shifts=80).scanned
    top = profile.epsilon(1e-9)
    for epsilon in (0.0, 0.5 * top, 0.9 * top, 0.99 * top, top):
        assert profile.delta(epsilon) >= max(pair.delta(epsilon) for pair in dense) * (1 - 1e-6)
    wanted = max(pair.largest for pair in dense)
    assert profile.largest >= wanted * (1 - 1e-6)


def test_the_search_would_miss_the_worst_pair_if_it_only_looked_at_one_direction():
    law = BoostedNoise(Laplace(2.0), FixedRegion(-1.0, 3.0), 0.9)
    pair, worst = Profile(law, 3.0, (-5.0, 5.0)).worst_delta(1.0)
    assert pair.swapped.delta(1.0) < 0.9 * worst


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_epsilon_is_the_least_that_delta_allows(delta):
    for profile in (
        Profile(BoostedNoise(Gaussian(1.5), AbsoluteRegion(1.0), 0.9), 1.0),
        Profile(BoostedNoise(Laplace(1.0), AbsoluteRegion(0.5), 0.5), 1.0),
        Profile(BoostedNoise(Gaussian(2.0), FixedRegion(-4.0, 4.0), 0.8), 1.0, (-4.0, 4.0)),
        Profile(BoostedNoise(Gaussian(2.0), RelativeRegion(0.3, 1.0), 0.9), 1.0, (-5.0, 5.0)),
    ):
        epsilon = profile.epsilon(delta)
        assert profile.delta(epsilon) <= delta
        assert profile.delta(epsilon * (1 - 1e-9)) > delta


def test_delta_one_way_below_zero_follows_from_the_other_way_above():
    pair = PairLoss(BoostedNoise(Gaussian(1.2), RelativeRegion(0.5, 0.4), 0.7), 0.2, 1.3)
    for epsilon in (0.1, 1.0, 2.5):
        back = pair.swapped.delta(epsilon)
        assert pair.delta(-epsilon) == pytest.approx(
            1 - math.exp(-epsilon) + math.exp(-epsilon) * back, rel=1e-12
        )


def test_bounded_noise_has_no_pure_epsilon_and_a_floor_of_delta():
    law = BoostedNoise(Gaussian(2.0), AbsoluteRegion(1.0), 1.0)
    profile = Profile(law, 0.5)
    assert math.isinf(profile.largest)
    assert math.isinf(profile.epsilon(1e-5))
    missed = law.kernel.mass(-1.0, -0.5) / law.normaliser(0.0)
    assert profile.delta(50.0) == pytest.approx(missed, rel=1e-12)
    assert math.isinf(profile.renyi(2.0))


def test_the_least_boost_reaches_the_confidence_everywhere_and_no_more():
    for kernel in (Laplace(3.0), Gaussian(4.0), GammaLaplace(3.0, 0.2)):
        for region, domain in (
            (AbsoluteRegion(2.0), None),
            (RelativeRegion(0.2, 1.0), (-3.0, 8.0)),
            (FixedRegion(-2.0, 5.0), (-2.0, 5.0)),
        ):
            boost = boost_for(kernel, region, 0.9, domain)
            law = BoostedNoise(kernel, region, boost)
            assert min(law.confidence(x) for x in hardest(region, domain)) == pytest.approx(0.9, rel=1e-12)
            values = np.linspace(*(domain or (0.0, 1.0)), 50)
            assert min(law.confidence(float(x)) for x in values) >= 0.9 - 1e-12
    assert boost_for(Laplace(0.1), AbsoluteRegion(2.0), 0.9) == 0.0


def test_the_largest_boost_spends_delta_and_not_more():
    kernel, region = Gaussian(2.0), AbsoluteRegion(1.0)
    boost = largest_boost(kernel, region, sensitivity=1.0, epsilon=2.0, delta=1e-5)
    assert boost is not None
    assert Profile(BoostedNoise(kernel, region, boost), 1.0).delta(2.0) <= 1e-5
    assert Profile(BoostedNoise(kernel, region, boost + 1e-6), 1.0).delta(2.0) > 1e-5
    assert largest_boost(Gaussian(0.1), region, sensitivity=1.0, epsilon=1.0, delta=1e-5) is None


def test_density_integrates_to_one_and_hit_rate_to_the_region():
    for kernel in KERNELS:
        law = BoostedNoise(kernel, RelativeRegion(0.4, 0.9), 0.6)
        low, high = law.around(0.8)
        ends = sorted({-4000.0, -40.0, 0.8, low, high, 4.8, -3.2, 40.0, 4000.0})
        pieces = {
            (a, b): integrate.quad(law.density, a, b, args=(0.8,), limit=200)[0] for a, b in pairwise(ends)
        }
        assert sum(pieces.values()) == pytest.approx(1.0, abs=1e-7)
        inside = sum(mass for (a, b), mass in pieces.items() if a >= low and b <= high)
        assert law.confidence(0.8) == pytest.approx(inside, rel=1e-7)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Laplace(0.0), "scale of a Laplace kernel must be a positive finite number, got 0.0"),
        (lambda: Gaussian(math.nan), "sigma of a Gaussian kernel"),
        (lambda: UniformNoise(-1.0), "half_width of a uniform kernel"),
        (lambda: LaplaceMixture((1.0,), (0.5, 0.5)), "rates and weights"),
        (lambda: LaplaceMixture((1.0, 2.0), (0.5, -0.5)), "a weight of a Laplace mixture"),
        (lambda: GammaLaplace(2.0, math.inf), "rate_scale of a Gamma-Laplace kernel"),
        (lambda: AbsoluteRegion(-1.0), "half_width of an absolute region must be at least 0, got -1.0"),
        (lambda: RelativeRegion(-0.1, 1.0), "ratio of a relative region"),
        (lambda: FixedRegion(2.0, 2.0), "low end of a fixed region must be below its high"),
        (lambda: BoostedNoise(Laplace(1.0), AbsoluteRegion(1.0), 1.5), "boost must be at most 1, got 1.5"),
        (lambda: BoostedNoise(Laplace(1.0), None, 0.5), "boost needs a region"),
        (lambda: BoostedNoise("laplace"), "kernel must be a noise kernel"),
        (lambda: BoostedNoise(Laplace(1.0), "window"), "region must be absolute, relative, fixed or None"),
        (lambda: Profile(BoostedNoise(Laplace(1.0)), 0.0), "sensitivity must be a positive finite number"),
        (lambda: Profile(BoostedNoise(Laplace(1.0), FixedRegion(0, 1), 0.5), 1.0), "domain must be given"),
        (lambda: Profile(BoostedNoise(Laplace(1.0)), 1.0, (1.0, 0.0)), "domain must be two finite values"),
        (lambda: Profile(BoostedNoise(Laplace(1.0)), 1.0).delta(-1.0), "epsilon must be a number in"),
        (lambda: Profile(BoostedNoise(Laplace(1.0)), 1.0).epsilon(1.5), "delta must be a number in [0, 1]"),
        (lambda: Profile(BoostedNoise(Laplace(1.0)), 1.0).renyi(1.0), "order of a Renyi divergence"),
        (lambda: PairLoss(BoostedNoise(Laplace(1.0)), 0.0, math.inf), "a pair must be two finite values"),
        (lambda: boost_for(Laplace(1.0), AbsoluteRegion(1.0), 1.0), "confidence must be strictly between"),
        (lambda: boost_for(Laplace(1.0), FixedRegion(0.0, 1.0), 0.9), "domain must be given for FixedRegion"),
        (lambda: gaussian_sigma(0.0, 1e-5, 1.0), "a Gaussian needs epsilon > 0"),
        (
            lambda: BoostedNoise(UniformNoise(1.0), FixedRegion(5.0, 6.0), 1.0).normaliser(0.0),
            "the kernel must reach the region",
        ),
    ],
)
def test_bad_parameters_name_subject_rule_and_value(build, words):
    with pytest.raises(ParameterError) as caught:
        build()
    assert words in str(caught.value)
