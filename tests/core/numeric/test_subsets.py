"""Uniform subsets: every step counted out exactly on few cells, the rest by chi-square."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.errors import ParameterError
from hubbub.numeric.subsets import (
    ReadAhead,
    corrected_mask,
    short_many,
    subset_masks,
    subsets,
    tossed_mask,
    uniform_bits,
)
from hubbub.testing import RecordedSource, seeded

ALARM = 1e-7


def test_tossed_cells_have_exactly_the_rate_and_are_independent():
    """All planes of two cells and three bits: each pair of coins as often as the product of its rates."""
    for rate in range(1, 8):
        found = Counter(tossed_mask(planes, rate) for planes in product(range(4), repeat=3))
        one, none = Fraction(rate, 8), Fraction(8 - rate, 8)
        assert {mask: Fraction(times, 64) for mask, times in found.items()} == {
            mask: (one if mask & 1 else none) * (one if mask & 2 else none) for mask in range(4)
        }


@pytest.mark.parametrize(("size", "count"), [(3, 1), (4, 2), (4, 3), (4, 1)])
@pytest.mark.parametrize("rate", [1, 2, 3])
def test_corrected_sets_of_one_size_are_exactly_as_likely(size, count, rate):
    """All sets tossed at quarters, all runs of five cells: what has ended by then is even to the last one."""
    law, ended = Counter(), Fraction(0)
    for mask in range(2**size):
        ones = mask.bit_count()
        tossed = Fraction(rate**ones * (4 - rate) ** (size - ones), 4**size)
        for cells in product(range(size), repeat=5):
            left = iter(cells)
            found = corrected_mask(mask, count, (1 << cell for cell in left))
            if found.bit_count() == count:
                law[found] += tossed / size**5
                ended += tossed / size**5
    assert ended > Fraction(1, 2)
    assert set(law) == {mask for mask in range(2**size) if mask.bit_count() == count}
    assert set(law.values()) == {ended / comb(size, count)}


@pytest.mark.parametrize(("size", "width"), [(3, 1), (200, 1), (256, 1), (257, 2), (4096, 2), (4097, 4)])
def test_words_that_would_favour_a_cell_are_dropped(size, width):
    """The last whole multiple of the size is the limit: the word there is no cell, the one before is."""
    span = 256**width
    limit = span - span % size
    words = [0, min(size, span - 1), limit - 1, *([limit, span - 1] if limit < span else []), 1]
    words += [2] * (64 // width - len(words))
    drawn = uniform_bits(size, RecordedSource(b"".join(word.to_bytes(width, "little") for word in words)))
    kept = [word % size for word in words if word < limit]
    found = []
    while len(found) < len(kept):
        found += [bit.bit_length() - 1] if (bit := next(drawn)) else []
    assert found == kept


@pytest.mark.parametrize("total", [1, 2, 3, 100, 4095, 4096, 4097])
def test_short_integers_are_reduced_words_below_the_last_multiple(total):
    width = 2 if total <= 4096 else 4
    span = 256**width
    limit = span - span % total
    words = [limit - 1, 0, *([span - 1] if limit < span else []), *([5] if limit < span else [])]
    source = RecordedSource(b"".join(word.to_bytes(width, "little") for word in words))
    due = [total - 1, 0, *([5 % total] if limit < span else [])]
    assert short_many(total, len(due), source).tolist() == due
    assert not source.left


def rejected(counts: np.ndarray) -> bool:
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum() > chi2.isf(ALARM, counts.size - 1)


CASES = [(7, 3), (6, 1), (6, 5), (40, 2), (40, 38), (300, 1), (36, 35)]


@pytest.mark.statistical
@pytest.mark.parametrize(("size", "count"), CASES)
def test_subsets_are_even(size, count):
    """n = 100 for each subset, both ways, Pearson's chi-square at 1e-7 each; seeds 3 and 4.

    Control: with a fifth of the draws made one set it is rejected.
    """
    many = comb(size, count)
    n = 100 * many
    rows = subsets(size, count, n, seeded(3), stride=size + 3)
    assert rows.shape == (n, size + 3)
    assert not rows[:, size:].any()
    assert (rows.sum(axis=1) == count).all()
    times = np.unique(np.packbits(rows, axis=1), axis=0, return_counts=True)[1]
    assert times.size == many
    assert not rejected(times)
    spoilt = times * 0.8
    spoilt[0] += 0.2 * n
    assert rejected(spoilt)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("size", "counts"), [(7, [3, 0, 7, 3]), (40, [2, 20, 38]), (200, [1, 80, 199]), (36, [35, 1])]
)
def test_masks_are_even(size, counts):
    """n = 60 for each subset of the first place, chi-square where another has as few; see above."""
    n = 60 * comb(size, counts[0])
    source = seeded(4)
    drawn = [subset_masks(size, counts, ReadAhead(source, 100)) for _ in range(n)]
    for place, count in enumerate(counts):
        times = Counter(row[place] for row in drawn)
        assert {mask.bit_count() for mask in times} == {count}
        if comb(size, count) <= n // 50 and 0 < count < size:
            assert len(times) == comb(size, count)
            assert not rejected(np.array(list(times.values())))
    pairs = Counter((row[0] & 1, row[-1] & 1) for row in drawn)
    p, q = counts[0] / size, counts[-1] / size
    for (a, b), times in pairs.items():  # places do not know of each other: six standard errors
        due = (p if a else 1 - p) * (q if b else 1 - q)
        assert abs(times / n - due) < 6 * (due * (1 - due) / n) ** 0.5


def test_reading_ahead_changes_no_byte():
    plain, ahead = seeded(5), ReadAhead(seeded(5), 10)
    for n in (1, 4, 4, 30, 2, 0, 9):
        assert ahead.token_bytes(n) == plain.token_bytes(n)


@pytest.mark.parametrize("count", [-1, 4])
def test_counts_that_no_subset_has_are_refused_without_being_repeated(count):
    for draw in (lambda: subsets(3, count, 5), lambda: subset_masks(3, [1, count])):
        with pytest.raises(ParameterError, match="subset must have 0 to all of 3 cells, got another number"):
            draw()
