"""Means whose candidates are judged by their own law: moments written out, coverage with rare reports."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.channels import WeightedChannel
from hubbub.estimation import estimator_for
from hubbub.estimation.intervals import RatioMean
from hubbub.estimation.intervals.judged_mean import JudgedMean

RARE = np.array(
    [
        [90000, 4990, 4990, 10, 10],
        [4895, 90000, 4895, 200, 10],
        [4990, 4990, 90000, 10, 10],
        [4895, 90000, 4895, 10, 200],
    ]
)
"""Inputs -1, 0, 1 and missing: only reports of one device in five hundred tell the number 0 from missing."""
NUMBERS = np.array([-1.0, 0.0, 1.0, 0.0])
HAS = np.array([1.0, 1.0, 1.0, 0.0])
Z = 1.959963984540054


@pytest.fixture(scope="module")
def estimator():
    points = np.array([-1.0, 0.0, 1.0, np.nan])
    return estimator_for(
        WeightedChannel(RARE, [100, 100, 100, 1]),
        category_of=np.array([0, 0, 0, 1]),
        points=points,
        missing=3,
    )


def law_of(estimator, counts, drawn=0.0):
    n = int(counts[0].sum())
    of_one = estimator(counts[0], n).laws.mean
    return JudgedMean(of_one.scores, counts.T * 1.0, estimator.inverse.matrix() @ counts.T / n, n, drawn)


@pytest.mark.parametrize("drawn", [0.0, 1.0, 0.25])
def test_moments_are_those_of_devices_drawn_one_by_one(estimator, drawn):
    """Of a crowd (1) those of n reports of its mixture; of n devices (0) those of each device's own noise."""
    counts = np.array([[880, 700, 401, 8, 11]])
    law, mu, n = law_of(estimator, counts, drawn), -0.3, 2000
    rows, scores = RARE / RARE.sum(axis=1, keepdims=True), estimator.inverse.matrix()
    score = (NUMBERS - mu * HAS) @ scores
    held = NUMBERS - mu * HAS
    f = law._likely(
        np.array(
            [
                [sum(p * (s - h) ** 2 for p, s in zip(row, score, strict=True))]
                for row, h in zip(rows, held, strict=True)
            ]
        ),
        law.scores.together @ np.array([[1.0], [mu], [mu * mu]]),
    )[:, 0]
    assert f.min() >= 0.0 and f.sum() == pytest.approx(1.0)
    middle = f @ held
    noise = sum(f[x] * rows[x, y] * (score[y] - held[x]) ** 2 for x, y in product(range(4), range(5)))
    third = sum(f[x] * rows[x, y] * (score[y] - held[x]) ** 3 for x, y in product(range(4), range(5)))
    tilt = sum(
        f[x] * rows[x, y] * (held[x] - middle) * (score[y] - held[x]) ** 2
        for x, y in product(range(4), range(5))
    )
    luck, lean = f @ (held - middle) ** 2, f @ (held - middle) ** 3
    variances, thirds = law._noise(np.ones(1), np.array([mu]))
    observed = counts[0] @ score**2 - n * (f @ held**2) + drawn * n * luck
    assert variances.sum() == pytest.approx(max(n * (noise + drawn * luck), observed))
    whole = third + 3.0 * drawn * tilt + drawn * (2.0 * drawn - 1.0) * lean
    assert thirds.sum() == pytest.approx(n * whole)


def test_population_moves_with_the_noise_of_its_own_estimate(estimator):
    """Written out for every report of every input: Cov(F, v.F) of one device, each input as likely."""
    scores, rows = estimator.inverse.matrix(), RARE / RARE.sum(axis=1, keepdims=True)
    noise = rows @ (HAS @ scores) ** 2 - HAS**2  # of the share that has a number
    found = np.zeros(4)
    for x, y in product(range(4), range(5)):
        off = scores[:, y] - np.eye(4)[x]
        found += rows[x, y] / 4.0 * off * (noise @ off)
    law = law_of(estimator, np.array([[880, 700, 401, 8, 11]]))
    np.testing.assert_allclose(law.scores.together @ [0.0, 0.0, 1.0], found, rtol=1e-9)
    assert found[3] > 0.0 > found[1]  # the missing are those who make noise; they look like the number 0


@pytest.mark.parametrize("drawn", [0.0, 1.0])
@pytest.mark.parametrize("shares", [(0.5, 0.2, 0.18, 0.12), (0.3, 0.0, 0.2, 0.5), (0.7, 0.27, 0.0, 0.03)])
def test_mean_is_held_where_hardly_any_report_tells_who_has_a_number(estimator, shares, drawn):
    """3,000 rounds of 2,000 devices: so few are held of .94 by chance 1e-7; by Fieller's set far fewer."""
    rounds, f, n = 3000, np.array(shares), 2000
    rows, chance = RARE / RARE.sum(axis=1, keepdims=True), np.random.default_rng(31)
    if drawn:
        counts = chance.multinomial(n, f @ rows, size=rounds)
    else:
        counts = sum(chance.multinomial(round(n * f[x]), rows[x], size=rounds) for x in range(4))
    mean = f @ NUMBERS / (f @ HAS)
    low, high = law_of(estimator, counts, drawn).ends(Z)
    held = int(((2.0 * low - 1.0 <= mean) & (mean <= 2.0 * high - 1.0)).sum())
    assert held >= binom.ppf(1e-7, rounds, 0.94)
    if shares[1] == 0.2:
        total, answered = NUMBERS @ estimator.inverse.matrix(), HAS @ estimator.inverse.matrix()
        old = [
            RatioMean(
                c @ total,
                c @ answered,
                c @ total**2 - f @ NUMBERS**2 * n,
                c @ (total * answered) - c @ total,
                c @ answered**2 - c @ answered,
                0.0,
                1.0,
                n,
                f @ NUMBERS**2 * n,
            )
            .of_crowd(drawn)
            .interval(Z)
            for c in counts[:1000]
        ]
        assert sum(a <= mean <= b for a, b in old) < 800


def test_whole_range_is_left_where_nobody_may_have_a_number(estimator):
    found = estimator(np.array([5, 90, 5, 0, 0]), 100)
    assert found.intervals().mean_low == -1.0 and found.intervals().mean_high == 1.0


def test_printed_error_is_that_of_the_law(estimator):
    counts = np.array([880, 700, 415, 5, 0])
    found = estimator(counts, 2000)
    assert found.printed_mean_error > 1.5 * found.mean_error  # none of the rare reports of missing came
