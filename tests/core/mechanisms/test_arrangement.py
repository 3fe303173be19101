"""Arrangements of counts: every order once in the list, and even however it is drawn."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.mechanisms.orbits import sampling
from hubbub.mechanisms.orbits.sampling import Arrangements
from hubbub.testing import seeded

CASES = [(), (5,), (0, 0, 0), (2, 1, 1), (7, 7, 3, 0, 0), (1, 2, 3, 4)]


@pytest.mark.parametrize("numbers", CASES)
def test_every_order_is_listed_once(numbers):
    listed = Arrangements(numbers).listed
    assert sorted(listed) == sorted(set(permutations(numbers)))


@pytest.mark.statistical
@pytest.mark.parametrize("most", [512, 0])
@pytest.mark.parametrize("numbers", CASES)
def test_orders_are_even_listed_or_not(numbers, most, monkeypatch):
    """200 draws an order, one at a time and together, chi-square at 1e-7 each; seeds 5 and 6.

    Control: with three tenths of the draws made the first order it is rejected.
    """
    monkeypatch.setattr(sampling, "MAX_LISTED", most if len(set(numbers)) > 1 else 512)
    drawn = Arrangements(numbers)
    orders = sorted(set(permutations(numbers)))
    n, source = 200 * len(orders), seeded(5)
    alone = Counter(tuple(drawn.one(source)) for _ in range(n))
    together = Counter(map(tuple, drawn.many(n, seeded(6)).tolist()))
    for found in (alone, together):
        assert sorted(found) == orders
        times = np.array([found[order] for order in orders], dtype=float)
        if len(orders) > 1:
            assert ((times - 200) ** 2 / 200).sum() < chi2.isf(1e-7, len(orders) - 1)
            times *= 0.7
            times[0] += 0.3 * n
            assert ((times - 200) ** 2 / 200).sum() > chi2.isf(1e-7, len(orders) - 1)


@pytest.mark.parametrize("places", [1, 64, 65, 1000])
def test_equal_numbers_have_one_arrangement_on_however_many_places(places: int) -> None:
    alike = Arrangements([3] * places)
    assert alike.one(seeded(1)) == [3] * places
    assert alike.many(2, seeded(1)).tolist() == [[3] * places] * 2
