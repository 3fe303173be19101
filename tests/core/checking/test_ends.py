"""The rule that the checker asks, beside exact sums and the estimator's own search."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.checking import families
from hubbub.checking.ends import CellsLaw, is_shifted, log_tail, on_simplex, wrong_ends
from hubbub.estimation.consistency import norm_sub
from hubbub.mechanisms.hashing.local_hashing import local_hashing
from hubbub.mechanisms.unary import unary
from hubbub.testing import seeded
from hubbub.wire import PublicCounts


def binomial(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def exact_tail(count: int, held: int, other: int, p: Fraction, q: Fraction) -> Fraction:
    mine, others = binomial(held, p), binomial(other, q)
    return sum(
        (a * b for i, a in enumerate(mine) for j, b in enumerate(others) if i + j >= count), Fraction(0)
    )


@pytest.mark.parametrize(("p", "q"), [("3/4", "1/9"), ("999/1000", "1/1000"), ("1/2", "2/5")])
def test_tail_is_the_exact_sum_of_two_binomials(p: str, q: str) -> None:
    odds, n = (Fraction(p), Fraction(q)), 24
    checked = 0
    for held in range(0, n + 1, 6):
        mean = held * odds[0] + (n - held) * odds[1]
        for count in range(math.floor(mean) + 1, n + 1):
            if count - 0.5 <= mean:
                continue
            column = (
                np.array([float(count)]),
                np.array([float(held)]),
                n,
                *(np.array([float(o)]) for o in odds),
            )
            due = math.log(exact_tail(count, held, n - held, *odds))
            assert abs(float(log_tail(*column)[0]) - due) <= 2e-6
            checked += 1
    assert checked > 30


def test_nearest_point_of_the_simplex_is_that_of_the_estimator() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        raw = rng.normal(0.1, 0.2, rng.integers(1, 30))
        total = float(rng.uniform(0.01, 1.5))
        due = norm_sub(raw, np.zeros(len(raw), dtype=np.intp), np.array([total]))
        assert np.abs(on_simplex(raw, total) - due).max() < 1e-14
        assert is_shifted(raw, due, total)
        moved = due.copy()
        moved[0] += 1e-9
        assert not is_shifted(raw, moved, total)


def test_an_end_moved_either_way_has_no_certificate() -> None:
    n, ones = 400, np.ones(3)
    law = CellsLaw(
        n,
        np.array([[3.0], [4.0]]) * ones,
        np.array([[1.0], [-0.5]]) * ones,
        0.0 * ones,
        np.full((2, 3), np.nan),
    )
    estimates = np.array([0.1, 0.5, 0.9])
    low, high = [], []
    for estimate in estimates:
        ends = []
        for bound in (0.0, 1.0):
            inside, outside = float(estimate), bound
            for _ in range(60):
                middle = (inside + outside) / 2.0
                accepted = _accepts(law, float(estimate), middle)
                inside, outside = (middle, outside) if accepted else (inside, middle)
            ends.append(inside)
        low.append(ends[0])
        high.append(ends[1])
    lows, highs = np.array(low), np.array(high)
    assert not wrong_ends(estimates, lows, highs, law, z=1.96).any()
    for by in (-1e-6, 1e-6):
        assert wrong_ends(estimates, lows + by, highs, law, z=1.96).all()
        assert wrong_ends(estimates, lows, highs + by, law, z=1.96).all()


def _accepts(law: CellsLaw, estimate: float, share: float) -> bool:
    """The rule of docs/intervals.md for one cell of two kinds of devices, once more in plain floats."""
    z, n = 1.96, law.n
    side = 1.0 if share <= estimate else -1.0
    parts = [
        (n * f * float(kind[0, 0]), n * f * float(kind[1, 0]))
        for f, kind in ((share, law.own), (1.0 - share, law.far))
    ]

    def quantile(variance: float, third: float) -> float:
        g = side * third / variance**1.5
        base = 1.0 + g * z / 6.0 - g * g / 36.0
        return math.sqrt(variance) * 2.0 / g * (base**3 - 1.0)

    whole = quantile(sum(v for v, _ in parts), sum(k for _, k in parts))
    apart = math.sqrt(sum(quantile(v, k) ** 2 for v, k in parts if v > 0.0))
    reach = max(whole, apart) if 0.0 < share < 1.0 else whole
    jump = max(abs(k) / v for v, k in parts if v > 0.0) / 2.0
    return side * n * (estimate - share) <= reach + jump


def test_supports_are_read_as_exact_rationals() -> None:
    channel, n = unary(5, epsilon=1.0), 700
    cells = np.array([400, 120, 333, 0, 700])
    p, q = (Fraction(draws, 2**31) for draws in (channel.p_draws, channel.q_draws))
    values, categories = families(
        channel, [np.array([0, 0, 1, 1, 2])], PublicCounts(b"", 0, "bins", n, cells)
    )
    assert values is not None and categories is not None
    due = [(Fraction(int(cell), n) - q) / (p - q) for cell in cells]
    assert values.estimates == [float(each) for each in due]
    assert categories.estimates == [float(due[0] + due[1]), float(due[2] + due[3]), float(due[4])]


def test_hashing_shows_supports_and_histograms_and_no_bins() -> None:
    channel, n = local_hashing(30, epsilon=2.0, buckets=4), 500
    groups = np.repeat([0, 1, 2], [20, 9, 1])
    symbols = channel.perturb(np.arange(n) % 30, source=seeded(3))
    kind, cells = channel.public_counts(channel.tally(symbols), groups)
    inputs = np.arange(30)
    hit = np.array(
        [channel.pool.bucket(s // 4, inputs) == s % 4 for s in symbols.tolist()]
    )  # which inputs each report supports
    due = hit.sum(axis=0).tolist()
    for category in (0, 1):
        held = hit[:, groups == category].sum(axis=1)
        most = max(
            int((channel.pool.bucket(seed, inputs[groups == category]) == bucket).sum())
            for seed in range(channel.pool.seeds)
            for bucket in range(4)
        )
        due += np.bincount(held, minlength=most + 1).tolist()
    assert kind == "support"
    assert cells.tolist() == due
