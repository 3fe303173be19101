"""Intervals cover the truth as often as they say, and would not if epsilon or the errors were wrong.

One experiment fixes n inputs, perturbs them R times, and counts per cell how many of the R intervals hold
the cell's truth. Were the coverage of a cell p, that count would be binomial(R, p), exactly. The nominal
95 % is reached up to the normal approximation only; `test_exact_coverage_of_randomised_response` sums the
binomial laws and finds 94.5 % < p < 95.5 % at a smaller n than is simulated here. So the band runs from
the FALSE_ALARM/(2 cells) quantile of binomial(R, 0.945) to the 1 - FALSE_ALARM/(2 cells) quantile of
binomial(R, 0.955): some cell of some experiment leaves it with probability below 1e-6 if the code is right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.channels.channel import Channel
from hubbub.estimation import Estimate, InverseEstimator
from hubbub.mechanisms import grr
from hubbub.mechanisms.rounding import stochastic_many
from hubbub.testing import SeededSource, seeded
from hubbub_authoring.mechanisms import Absolute, Fixed, boosted, pbgrr

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-7  # per experiment; there are fewer than ten
REPEATS = 2000
DEVICES = 3000


def band(cells: int) -> tuple[int, int]:
    """Fewest and most hits of R that a right cell shows, up to the false-alarm probability."""
    tail = FALSE_ALARM / (2 * cells)
    return int(binom.ppf(tail, REPEATS, 0.945)), int(binom.isf(tail, REPEATS, 0.955))


def rounds(channel: Channel, inputs: np.ndarray, source: SeededSource) -> Iterator[np.ndarray]:
    """Counts per symbol of R independent perturbations; inputs (n,), or (R, n) where they vary."""
    block = 100
    for start in range(0, REPEATS, block):
        chosen = np.broadcast_to(inputs, (REPEATS, inputs.shape[-1]))[start : start + block]
        symbols = channel.perturb(chosen.ravel(), source=source).reshape(block, -1)
        for row in symbols:
            yield np.bincount(row, minlength=channel.outputs)


def hits(estimates: list[Estimate], truth: dict[str, np.ndarray | float], shrink: float = 1.0) -> np.ndarray:
    """Intervals that hold the truth, per cell, over the repetitions; errors scaled by `shrink`."""
    cells = []
    for name, true in truth.items():
        error = {"values": "value_errors", "categories": "category_errors", "mean": "mean_error"}[name]
        centre = np.array([getattr(e, name) for e in estimates]).reshape(len(estimates), -1)
        half = (
            1.959963984540054
            * shrink
            * np.array([getattr(e, error) for e in estimates]).reshape(centre.shape)
        )
        cells.append((np.abs(centre - np.ravel(true)) <= half).sum(axis=0))
    return np.concatenate(cells)


def within(count: np.ndarray) -> np.ndarray:
    low, high = band(len(count))
    return (low <= count) & (count <= high)


def truth_of(inputs, category_of, points=None, missing=None) -> dict[str, np.ndarray | float]:
    n, size = len(inputs), len(category_of)
    truth = {
        "values": np.bincount(inputs, minlength=size) / n,
        "categories": np.bincount(category_of[inputs], minlength=category_of.max() + 1) / n,
    }
    if points is not None:
        truth["mean"] = points[inputs[inputs != missing]].mean()
    return truth


def skewed(size: int, seed: int) -> np.ndarray:
    """DEVICES inputs, some common and some that nobody has."""
    shares = np.random.default_rng(seed).dirichlet(np.full(size, 0.7))
    return np.sort(np.random.default_rng(seed).choice(size, DEVICES, p=shares))


class Coverage:
    """Every cell inside the band; no cell inside with errors a fifth too small; wrong epsilon noticed."""

    seed: ClassVar[int]
    points: ClassVar[np.ndarray | None] = None
    missing: ClassVar[int | None] = None
    category_of: ClassVar[np.ndarray]

    def channel(self, factor: float = 1.0) -> Channel:
        raise NotImplementedError

    def estimator(self, factor: float = 1.0) -> InverseEstimator:
        return InverseEstimator(
            self.channel(factor), category_of=self.category_of, points=self.points, missing=self.missing
        )

    @classmethod
    @cache
    def experiment(cls):
        self = cls()
        inputs = skewed(self.channel().inputs, self.seed)
        counts = list(rounds(self.channel(), inputs, seeded(self.seed)))
        truth = truth_of(inputs, self.category_of, self.points, self.missing)
        estimator = self.estimator()
        return counts, truth, [estimator(c, DEVICES) for c in counts]

    def test_intervals_cover_as_often_as_they_say(self):
        """n = 3,000 devices, R = 2,000; hits per cell in the module's band; false alarm 1e-7."""
        _, truth, estimates = self.experiment()
        assert within(hits(estimates, truth)).all()

    def test_errors_a_fifth_too_small_are_noticed_in_every_cell(self):
        """Control: true coverage is then 2 Phi(0.8 * 1.96) - 1 = 88.3 %, 62 of 2,000 hits below the band."""
        _, truth, estimates = self.experiment()
        assert not within(hits(estimates, truth, shrink=0.8)).any()

    def test_estimates_for_a_wrong_epsilon_are_noticed(self):
        """Control: counts drawn at epsilon, estimated for 1.3 epsilon: common cells are missed."""
        counts, truth, _ = self.experiment()
        wrong = self.estimator(1.3)
        assert not within(hits([wrong(c, DEVICES) for c in counts], truth)).all()


class TestPrivacyBoosted(Coverage):
    seed = 101
    category_of = np.repeat(np.arange(5), [1, 4, 6, 2, 1])
    points = np.append(np.arange(13.0), np.nan)
    missing = 13

    def channel(self, factor=1.0):
        return pbgrr([1, 4, 6, 2, 1], epsilon=2.0 * factor, boost_epsilon=1.0 * factor)


class TestRandomisedResponseInGroups(Coverage):
    seed = 102
    category_of = np.array([0, 1, 0, 1, 2, 2, 0, 1])

    def channel(self, factor=1.0):
        return grr(8, epsilon=1.0 * factor)


class TestBoosted(Coverage):
    seed = 103
    category_of = np.append(np.zeros(9, dtype=np.intp), 1)
    points = np.append(np.linspace(-1.0, 1.0, 9), np.nan)
    missing = 9

    def channel(self, factor=1.0):
        return boosted(9, epsilon=2.0 * factor, region=Absolute(2), missing="input")


class TestBoostedFixedRegion(Coverage):
    seed = 104
    category_of = np.repeat(np.arange(2), [2, 3])
    points = np.linspace(0.0, 4.0, 5)

    def channel(self, factor=1.0):
        return boosted(5, epsilon=3.0 * factor, region=Fixed(1, 3), boost=0.5)


class TestCategoriesOnly:
    def test_intervals_of_categories_cover_as_often_as_they_say(self):
        """n = 3,000, R = 2,000, three cells, false alarm 1e-7; control: errors a fifth too small."""
        channel = pbgrr([3, 5, 2], epsilon=1.0, boost_epsilon=0.0)
        inputs = skewed(10, 105)
        estimator = InverseEstimator(channel)
        estimates = [estimator(c, DEVICES) for c in rounds(channel, inputs, seeded(105))]
        truth = {"categories": truth_of(inputs, channel.category_of)["categories"]}
        assert within(hits(estimates, truth)).all()
        assert not within(hits(estimates, truth, shrink=0.8)).any()


class TestRounding:
    """Values midway between points: there the variance of rounding is at its bound, the interval sharp."""

    def test_mean_covers_the_unrounded_truth_only_with_the_variance_of_rounding(self):
        """n = 3,000, R = 2,000, one cell, false alarm 1e-7; control: the same error without that variance."""
        channel = boosted(5, epsilon=6.0, kernel="uniform", missing="input")
        source, points = seeded(106), np.append(np.linspace(0.0, 1.0, 5), np.nan)
        values = np.random.default_rng(106).choice([0.125, 0.375, 0.625, 0.875], DEVICES)
        drawn = stochastic_many(np.tile(values, REPEATS), 0.0, 1.0, 5, source=source)
        counts = list(rounds(channel, drawn.reshape(REPEATS, DEVICES), source))
        truth = {"mean": values.mean()}
        with_it = InverseEstimator(channel, points=points, missing=5, rounding="stochastic")
        without = InverseEstimator(channel, points=points, missing=5)
        assert within(hits([with_it(c, DEVICES) for c in counts], truth)).all()
        assert not within(hits([without(c, DEVICES) for c in counts], truth)).any()


@pytest.mark.parametrize(("share", "most"), [(0.0, 0.98), (0.02, 0.98), (0.3, 0.955)])
def test_exact_coverage_of_randomised_response(share, most):
    """No sampling: a symbol's count is a sum of two binomials, and its interval a function of it alone.

    Near 0 an interval that would end below it is cut there and holds: the truth is missed on one side only.
    """
    n, channel = 2000, grr(8, epsilon=1.0)
    holders = round(share * n)
    true, other = channel.t / channel.total, channel.u / channel.total
    law = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, true),
        binom.pmf(np.arange(n - holders + 1), n - holders, other),
    )
    estimator = InverseEstimator(channel)
    covered = 0.0
    for count in np.flatnonzero(law > 1e-12):
        # The other symbols share the rest: the interval of the first does not depend on how.
        counts = np.array([count, n - count, *[0] * 6])
        interval = estimator(counts, n).intervals(0.95)
        covered += law[count] * (interval.values_low[0] <= holders / n <= interval.values_high[0])
    assert 0.945 < covered < most


@pytest.mark.long
def test_simultaneous_intervals_hold_every_value_at_once():
    """n = 3,000, R = 2,000 (400 in CI), statistic: rounds in which all 8 intervals hold, 94.5 % or more.

    Bonferroni promises 95 %, here nearly sharp because cells hardly correlate, so the count is
    above the 1e-7 quantile of binomial(R, 0.945). Control: the intervals per cell hold all at once in
    about .95^8 = 66 % of the rounds.
    """
    channel, inputs = grr(8, epsilon=1.0), skewed(8, 107)
    truth, estimator = np.bincount(inputs, minlength=8) / DEVICES, InverseEstimator(channel)
    repeats = REPEATS if "HUBBUB_TEST_LONG" in os.environ else 400
    estimates = [estimator(c, DEVICES) for c in islice(rounds(channel, inputs, seeded(107)), repeats)]
    least = binom.ppf(FALSE_ALARM, len(estimates), 0.945)

    def together(intervals):
        return ((intervals.values_low <= truth) & (truth <= intervals.values_high)).all()

    assert sum(together(e.simultaneous(0.95)) for e in estimates) >= least
    assert sum(together(e.intervals(0.95)) for e in estimates) < least


def test_simulated_rounding_follows_the_exact_law():
    """n = 10^6, statistic: upper neighbours drawn at 0.3 of the way; binomial(n, 0.3) at 5e-7 per side."""
    drawn = stochastic_many(np.full(10**6, 0.3), 0.0, 1.0, 2, source=seeded(108)).sum()
    assert binom.ppf(5e-7, 10**6, 0.3) <= drawn <= binom.isf(5e-7, 10**6, 0.3)
    assert not binom.ppf(5e-7, 10**6, 0.305) <= drawn <= binom.isf(5e-7, 10**6, 0.305)
