"""Score intervals: their check values, their laws by enumeration, and what they may never print."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
from former_intervals import one_gamma_interval
from scipy.stats import binom, hypergeom

from hubbub.channels.channel import Channel
from hubbub.estimation import estimator_for
from hubbub.estimation.intervals import MixedLaw, node_law, score_interval, skew_quantile, two_valued
from hubbub.estimation.intervals.population import population_law
from hubbub.estimation.inverses.block import BlockInverse
from hubbub.estimation.trees.set_moments import SetMoments
from hubbub.mechanisms import grr, levels, local_hashing, subset_selection, unary
from hubbub.mechanisms.tree import tree
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import boosted, duchi, pbgrr
from hubbub_authoring.mechanisms.orbits import orbits

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("z", "skewness", "quantile"),
    [(Z, 0.5, 2.185408), (Z, 3.0, 2.785037), (-Z, 0.5, -1.715123), (4.055627, 1.0, 6.954228)],
)
def test_skew_quantile_has_its_check_values(z: float, skewness: float, quantile: float) -> None:
    assert skew_quantile(z, skewness) == pytest.approx(quantile, abs=1e-5)
    assert skew_quantile(-z, -skewness) == pytest.approx(-quantile, abs=1e-5)


def test_skew_quantile_without_skewness_is_normal() -> None:
    np.testing.assert_allclose(skew_quantile(Z, np.array([0.0, 1e-7, -1e-7])), Z)


def test_intervals_of_one_gamma_law_have_their_check_values() -> None:
    estimate = estimator_for(grr(5, epsilon=1.0))(np.array([10, 15, 25, 40, 10]), 100)
    low, high = one_gamma_interval(estimate.values, estimate.laws.values, n=100, z=Z)
    np.testing.assert_allclose(low, [0, 0, 0.081840, 0.616388, 0], atol=2e-6)
    np.testing.assert_allclose(high, [0.320632, 0.325748, 0.764694, 1, 0.320632], atol=2e-6)


@pytest.mark.parametrize(("devices", "inputs"), [(50, 5), (100, 91), (100, 1000), (1000, 91)])
def test_exact_coverage_of_randomised_response(devices: int, inputs: int) -> None:
    """The count of a symbol is the sum of two binomials: their exact laws say how often intervals hold.

    Per cell .95 within .001 at the least; for all cells at once a miss each of at most .05 in K, likewise.
    """
    odds = np.e / (np.e + inputs - 1), 1.0 / (np.e + inputs - 1)
    counts = np.arange(devices + 1)
    shares = (counts / devices - odds[1]) / (odds[0] - odds[1])
    law = MixedLaw(
        devices,
        *two_valued(
            np.full(devices + 1, (1 - odds[1]) / (odds[0] - odds[1])),
            np.full(devices + 1, -odds[1] / (odds[0] - odds[1])),
        ),
        np.full(devices + 1, 1.0 / (odds[0] - odds[1])),
    )
    for cells, worst in ((1, 0.0501), (inputs, 0.0501)):
        z = -float(_normal_quantile(0.05 / (2 * cells)))
        low, high = score_interval(shares, law, n=devices, z=z)
        for held in sorted({0, 1, devices // 20, devices // 2, devices}):
            chance = np.convolve(
                binom.pmf(np.arange(held + 1), held, odds[0]),
                binom.pmf(np.arange(devices - held + 1), devices - held, odds[1]),
            )
            truth = held / devices
            missed = chance[(truth < low - 1e-12) | (truth > high + 1e-12)].sum()
            assert cells * missed <= worst, (held, cells)


def _normal_quantile(tail: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(tail)


@pytest.mark.parametrize("channel", [subset_selection(6, epsilon=1.0), unary(5, epsilon=1.0)])
def test_moments_of_sets_are_those_of_all_sets(channel: Channel) -> None:
    support = channel.levels[0].support  # type: ignore[attr-defined]  # both are set channels
    p, q, k = float(support.p), float(support.q), channel.inputs
    h = np.random.default_rng(5).normal(size=k)
    for v in (0, 3):
        expected = np.zeros(3)
        for bits in itertools.product((0, 1), repeat=k):
            if support.size is None:
                chance = np.prod([abs(1 - bit - (p if i == v else q)) for i, bit in enumerate(bits)])
            elif sum(bits) != support.size:
                continue
            else:
                chance = p / comb(k - 1, support.size - 1) if bits[v] else (1 - p) / comb(k - 1, support.size)
            score = float(h @ (np.array(bits) - q)) / (p - q)
            expected += chance * np.array([score, score**2, score**3])
        found = SetMoments(support, k).raw(
            h[v] ** np.arange(1, 4), (h ** np.arange(1, 4)[:, None]).sum(axis=1)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_three_laws_of_a_category_channel_are_those_of_its_rows() -> None:
    """For every value and every input: the moments of B[value, symbol] under the row, exactly."""
    sizes = [3, 4, 1]
    channel = pbgrr(sizes, epsilon=1.0, boost_epsilon=0.5)
    estimator = estimator_for(channel)
    rows = channel.weights() / channel.total
    weights = estimator.inverse.matrix()  # type: ignore[union-attr]  # a channel of symbols
    counts = np.array([40, 30, 20, 10, 10, 15, 10, 65])
    law = estimator(counts, 200).laws.values  # type: ignore[union-attr]  # it has laws
    category_of = np.repeat(np.arange(3), sizes)
    for value, x in itertools.product(range(8), repeat=2):
        mean = float(rows[x] @ weights[value])
        moments = [float(rows[x] @ (weights[value] - mean) ** power) for power in (2, 3)]
        if x == value:
            kind = law.own
        elif category_of[x] == category_of[value]:
            kind = law.near
        else:
            kind = law.far
        np.testing.assert_allclose(kind[:, value], moments, rtol=1e-9)


@pytest.mark.parametrize(
    "channel",
    [
        grr(91, epsilon=1.0),
        pbgrr([9] * 10 + [1], epsilon=1.0, boost_epsilon=0.5),
        subset_selection(91, epsilon=1.0),
        unary(91, epsilon=1.0),
        levels([9] * 10 + [1], epsilon=1.0),
        levels([[9] * 10, [1]], epsilon=1.0),
        local_hashing(91, epsilon=1.0),
        orbits([9] * 10, epsilon=1.0),
        boosted(30, epsilon=1.0, missing="input"),
    ],
    ids=lambda channel: type(channel).__name__,
)
def test_no_cell_is_printed_without_error_or_width(channel: Channel) -> None:
    """Twenty devices that all hold one input: nearly every cell is one that nobody reported."""
    symbols = channel.perturb(np.full(20, 7), source=seeded(3))
    estimate = estimator_for(channel)(channel.tally(symbols), 20)
    if np.isnan(estimate.values).any():
        pytest.fail("the round must have estimates")
    for spans in (estimate.intervals(), estimate.simultaneous()):
        for kind in ("values", "categories"):
            low, high = getattr(spans, f"{kind}_low"), getattr(spans, f"{kind}_high")
            assert ((low >= 0.0) & (high <= 1.0) & (high - low > 0.005)).all()
            inside = np.clip(getattr(estimate, kind), 0.0, 1.0)
            assert ((low <= inside) & (inside <= high)).all()
    assert all((errors > 0.01).all() for errors in estimate.printed_errors)


def test_category_of_everybody_is_certain() -> None:
    estimate = estimator_for(grr(4, epsilon=1.0), category_of=np.zeros(4, dtype=np.int64))(
        np.array([5, 1, 3, 1]), 10
    )
    spans = estimate.intervals()
    assert spans.categories_low[0] == pytest.approx(1.0)
    assert spans.categories_high[0] == 1.0


def test_means_stay_within_the_numbers_and_are_the_whole_range_where_few_answer() -> None:
    channel, points = grr(4, epsilon=0.5), np.array([10.0, 20.0, 30.0, np.nan])
    estimator = estimator_for(channel, points=points, missing=3)
    spans = estimator(np.array([5, 5, 5, 85]), 100).intervals()
    assert (spans.mean_low, spans.mean_high) == (10.0, 30.0)
    spans = estimator(np.array([3000, 2000, 2000, 2000]), 9000).intervals()
    assert spans.mean_low is not None and spans.mean_high is not None
    assert 10.0 < spans.mean_low < spans.mean_high < 30.0


def test_laws_of_categories_that_split_a_channel_s_own_are_those_of_each_score() -> None:
    """All categories at once, against each by itself from the functional's own scores; and at any size."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        sizes = rng.integers(1, 5, rng.integers(1, 4)).astype(np.int64)
        inputs = int(sizes.sum())
        if inputs < 3:
            continue
        other = rng.integers(1, 4, len(sizes))
        same = other + rng.integers(0, 3, len(sizes))
        everyone = int((sizes * other).sum())
        total = everyone + 60
        true = total - (sizes - 1) * same - (everyone - sizes * other)
        groups = np.unique(rng.integers(0, inputs, inputs), return_inverse=True)[1]
        inverse = BlockInverse(true, same, other, sizes, total, category_of=groups)
        counts = rng.integers(1, 50, inputs).astype(float)
        law = inverse.laws(counts, inverse.solve(counts)).categories
        assert isinstance(law, MixedLaw)
        if law.observed is None:
            continue
        for group in np.flatnonzero(np.isfinite(law.observed)):
            members = (groups == group).astype(float)
            scores = inverse.matrix().T @ members
            mine = inverse.expected_law(members / members.sum())
            v = float(mine @ scores**2) - 1.0
            assert law.own[:, group] == pytest.approx([v, float(mine @ scores**3) - 3.0 * v - 1.0], abs=1e-9)
            assert law.observed[group] == pytest.approx(float(counts @ scores**2) / counts.sum())


def test_intervals_of_very_many_values_take_no_step_for_each_pair() -> None:
    estimator = estimator_for(grr(60_000, epsilon=1.0))
    found = estimator(np.full(60_000, 3), 180_000).intervals()
    assert np.isfinite(found.values_low).all()


def test_mean_of_very_many_values_by_few_devices_has_an_interval() -> None:
    """Fifty devices about 1,000 values: variance and squares of the sum may be estimated below nothing."""
    channel = levels([*[32] * 31, 7, 1], epsilon=1.0, oracles="grr")
    points = np.append(np.linspace(-1.0, 1.0, channel.inputs - 1), np.nan)
    estimator = estimator_for(channel, points=points, missing=channel.inputs - 1)
    for seed in (19, 49, 53):
        symbols = channel.perturb(np.arange(50) * 17 % channel.inputs, source=seeded(seed))
        spans = estimator(channel.tally(symbols), 50).intervals()
        assert spans.mean_low is not None and spans.mean_high is not None
        assert spans.mean_high - spans.mean_low > 0.5


def test_mean_of_a_channel_that_hides_squares_takes_no_squares_off() -> None:
    """Duchi's bit tells nothing of the mean square, so the variance is that of the bit: c^2 a report.

    Where a quarter of it was left, intervals held .75 for .95.
    """
    channel, n = duchi(9, epsilon=1.0), 400
    estimator = estimator_for(channel, points=np.linspace(-1.0, 1.0, 9))
    estimate = estimator(np.array([180, 220]), n)
    size = (np.e + 1.0) / (np.e - 1.0)
    spans = estimate.intervals()
    assert spans.mean_low is not None and spans.mean_high is not None
    assert spans.mean_high - spans.mean_low == pytest.approx(2 * Z * size / np.sqrt(n), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_third_moment_of_a_category_is_that_of_devices_drawn_for_one_level_each(epsilon: float) -> None:
    """By total cumulance over how many devices of the category were asked about it: hypergeometric, exact.

    The law leaves out factors 1 + 3/n. Control: devices drawn anew for every level give another skewness.
    """
    sizes, n, held, asked = [3, 3, 2], 2000, 1400, (900, 1100)
    tree = estimator_for(levels(sizes, epsilon=epsilon, oracles="grr")).tree  # type: ignore[union-attr]
    functional = np.repeat([1.0, 0.0], [3, 5])
    means, variances, thirds = np.zeros((3, 2, 2))  # by level, and whether the device is in the category
    for k, (level, h) in enumerate(zip(tree.levels, tree.coefficients(functional), strict=True)):
        p, q = float(level.support.p), float(level.support.q)
        scores = n / asked[k] * (h - q * h.sum()) / (p - q)
        for inside, device in ((0, 7), (1, 0)):
            odds = np.full(level.bins, q)
            odds[level.labels[device]] = p
            mean = odds @ scores
            means[k, inside] = mean
            variances[k, inside], thirds[k, inside] = (odds @ (scores - mean) ** power for power in (2, 3))
    chance = hypergeom.pmf(np.arange(held + 1), n, held, asked[0])
    first = np.arange(held + 1)
    in_level = np.stack([first, held - first])
    out_level = np.array(asked)[:, None] - in_level

    def given(kind: np.ndarray) -> np.ndarray:
        return (kind[:, 1:] * in_level + kind[:, :1] * out_level).sum(axis=0)

    m, v, t = given(means), given(variances), given(thirds)
    off = m - chance @ m
    variance = chance @ v + chance @ off**2
    third = chance @ t + 3.0 * (chance @ (off * v)) + chance @ off**3
    even = np.full(8, 1 / 8)
    law, shares = node_law(tree, 0, even, asked, n), np.full(3, held / n)
    found = law.moments(shares)
    anew = found[1] + law._drawn_again(shares, 0)  # type: ignore[union-attr]  # of several levels
    assert found[0][0] == pytest.approx(variance, rel=0.002)
    assert found[1][0] == pytest.approx(third, rel=0.01)
    assert anew[0] != pytest.approx(third, rel=0.03)


def test_reports_about_one_level_have_the_moments_of_their_coin() -> None:
    """At epsilon 4 sets hold one cell: a report names the true one with probability p, another one with q."""
    channel = tree(4, epsilon=4.0)
    points = np.append(np.linspace(-1.0, 1.0, 4), np.nan)
    estimator = estimator_for(channel, category_of=np.array([0, 0, 0, 0, 1]), points=points, missing=4)
    first = channel.expected(np.array([1.0, 0.0, 0.0, 0.0, 0.0]))  # two levels, then three and five nodes
    p, q = first[5] / first[1], first[6] / first[1]
    assert p + 4 * q == pytest.approx(1.0)
    counts = np.array([0, 100, 0, 0, 0, 50, 20, 10, 7, 13])
    law = estimator(counts, 100).laws.categories

    def coin(odds: float) -> list[float]:
        spread = odds * (1.0 - odds)
        return [spread / (p - q) ** 2, spread * (1.0 - 2.0 * odds) / (p - q) ** 3]

    turned = np.array([1.0, -1.0])  # who answers is who is not missing
    np.testing.assert_allclose(law.own, np.stack([turned * coin(q), coin(p)], axis=1), rtol=1e-9)
    np.testing.assert_allclose(law.far, np.stack([turned * coin(p), coin(q)], axis=1), rtol=1e-9)


@pytest.mark.parametrize("later", [-1e-14, 0.0, 1e-14])
def test_of_two_populations_that_vary_alike_the_first_counts_however_it_is_rounded(later):
    """By pairwise independent hashes both do: then no last digit may choose between two skewnesses."""
    own, held, second = np.array([[2.0], [1.0]]), np.array([[0.2], [0.2]]), np.array([[5.0], [5.0 + later]])
    third = np.array([[9.0], [30.0]])
    law = population_law(n=100, own=own, held=held, second=second, third=third, observed=np.array([-np.inf]))
    assert law.far[:, 0] == pytest.approx([(5.0 - 0.2 * 3.0) / 0.8, (9.0 - 0.2 * 8.0) / 0.8])


def test_many_cells_of_one_law_have_the_ends_that_each_has_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes have one law for all values: ends are found once for each estimate, to the last bit."""
    channel, n = local_hashing(600, epsilon=1.0), 400
    counts = np.random.default_rng(3).multinomial(n, channel.expected(np.full(600, 1 / 600)))
    estimate = estimator_for(channel)(counts, n)
    for laws in (estimate.laws, estimate.of_crowd(asked=None).laws):
        assert laws is not None and laws.values.is_even
        own = score_interval(estimate.values, laws.values, n=n, z=1.96)
        assert len(set(estimate.values.tolist())) < 100
        monkeypatch.setattr("hubbub.estimation.intervals.skew_score._CELLS", 150)
        few = score_interval(estimate.values, laws.values, n=n, z=1.96)
        monkeypatch.undo()
        np.testing.assert_array_equal(few, own)
