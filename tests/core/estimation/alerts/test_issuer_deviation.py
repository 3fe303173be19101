"""The test of an issuer's reports against the others': its bound is exact, and a forger is found."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.estimation import issuer_deviation


def tail(total: int, set_all: int, n: int, x: int, *, upper: bool) -> Fraction:
    """The probability that of n draws from `total`, of which `set_all` count, at least (at most) x do."""
    values = range(x, min(n, set_all) + 1) if upper else range(max(0, n - total + set_all), x + 1)
    ways = sum(math.comb(set_all, k) * math.comb(total - set_all, n - k) for k in values)
    return Fraction(ways, math.comb(total, n))


@pytest.mark.parametrize(("total", "n"), [(12, 1), (12, 5), (13, 9), (40, 11), (200, 150)])
def test_no_bound_is_below_the_exact_tail(total: int, n: int) -> None:
    for set_all in range(0, total + 1, max(1, total // 13)):
        for x in range(max(0, n - total + set_all), min(n, set_all) + 1):
            found = issuer_deviation(np.array([x]), n, np.array([set_all - x]), total - n)
            assert found is not None
            exact = tail(total, set_all, n, x, upper=x * total >= n * set_all)
            # One bin, two sides.
            assert found.p_value >= min(1.0, 2.0 * float(exact)) * (1.0 - 1e-9)
            assert (found.share, found.others_share) == (x / n, (set_all - x) / (total - n))


def test_random_parts_are_seldom_out_of_line_and_a_forger_is() -> None:
    """20,000 reports of 30 outputs, 400 rounds, an issuer of every fourth report, at a rate of .2.

    The expected number of false alarms is at most 80; more than 130 have a probability below 1e-6 (Chernoff).
    The control: 200 forged reports of one output in the issuer's 5,000 must be found in every round.
    """
    random = np.random.default_rng(5)
    other = 1.0 / (math.e + 29.0)
    sent = other + (math.e - 1.0) * other * random.dirichlet(np.ones(30))
    alarms = caught = 0
    for _ in range(400):
        mine = random.multinomial(5_000, sent)
        others = random.multinomial(15_000, sent)
        found = issuer_deviation(mine, 5_000, others, 15_000)
        assert found is not None
        alarms += found.p_value <= 0.2
        mine[7] += 200
        forged = issuer_deviation(mine, 5_200, others, 15_000)
        assert forged is not None
        caught += forged.p_value <= 1e-4 and forged.output == 7
    assert alarms <= 130
    assert caught == 400


def test_there_must_be_two_to_compare() -> None:
    some, none = np.array([3, 1]), np.array([0, 0])
    assert issuer_deviation(some, 4, none, 0) is None
    assert issuer_deviation(none, 0, some, 4) is None
    empty = np.zeros(0, dtype=np.int64)
    assert issuer_deviation(empty, 0, empty, 0) is None
