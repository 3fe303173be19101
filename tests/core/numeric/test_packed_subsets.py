"""Subsets of planes: every split and every list exactly, and the whole by chi-square."""

from __future__ import annotations

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import accumulate, combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.errors import ParameterError
from hubbub.numeric import packed_subsets
from hubbub.numeric.packed_subsets import hold_value, packed_rows, planes_of, subset_planes
from hubbub.testing import RecordedSource, seeded

ALARM = 1e-7


def bits_of(planes: np.ndarray, cells: int) -> np.ndarray:
    rows = packed_rows(planes, 2 * len(planes))
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    assert not bits[:, cells:].any()
    return bits[:, :cells]


@pytest.mark.parametrize("cells", [1, 2, 5, 10, 16])
def test_a_leaf_lists_every_subset_once_by_its_number_of_cells(cells):
    leaf = packed_subsets._leaf(cells)
    start = 0
    for count in range(cells + 1):
        found = leaf._masks[start : start + comb(cells, count)].tolist()
        assert sorted(found) == sorted(
            sum(1 << c for c in each) for each in combinations(range(cells), count)
        )
        start += comb(cells, count)
    assert start == len(leaf._masks) == 2**cells


SPLITS = [
    (17, 16, 5),
    (90, 64, 24),
    (40, 32, 40),
    (40, 32, 0),
    (33, 32, 33),
    (300, 256, 80),
    (1024, 512, 276),
]


@pytest.mark.parametrize(("cells", "left", "count"), SPLITS)
def test_counts_of_the_first_part_are_those_whose_interval_holds_the_number(cells, left, count):
    """At both sides of ends, of what 12, 16 and 64 bits round them to, and at random, by exact fractions."""
    split = packed_subsets._Split(cells, left)
    every = [comb(left, j) * comb(cells - left, count - j) if j <= count else 0 for j in range(left + 1)]
    ends = [Fraction(end, comb(cells, count)) for end in accumulate(every)]
    assert ends[-1] == 1
    bits, numbers = 64 + 64, set()
    for end in [end for end in ends if 0 < end < 1][::7]:
        whole = int(end * 2**bits)
        for cut in (0, bits - 64, bits - 16, bits - 12):
            near = whole >> cut << cut
            numbers |= {near - 1, near, near + 1, near + (1 << cut) - 1, near + (1 << cut)}
    source = seeded(2)
    numbers |= {int.from_bytes(source.token_bytes(16), "little") for _ in range(300)} | {0, 2**bits - 1}
    for number in numbers:
        if not 0 <= number < 2**bits:
            continue
        first, rest = number >> 64, number & 2**64 - 1
        words = [first >> shift & 0xFFFF for shift in (32, 16, 0)]
        data = b"".join(word.to_bytes(2, "little") for word in words) + rest.to_bytes(8, "big")
        word = np.array([first >> 48], dtype=np.uint16)
        due = bisect_right(ends, Fraction(number, 2**bits))
        if due == sum(end < Fraction(number + 1, 2**bits) for end in ends):  # no end lies in its last bit
            assert split.draw(np.array([count], dtype=np.int32), word, RecordedSource(data)).tolist() == [due]


def rejected(counts: np.ndarray) -> bool:
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum() > chi2.isf(ALARM, counts.size - 1)


CASES = [(7, 3), (6, 1), (18, 3), (18, 15), (33, 2), (40, 38), (300, 1), (36, 35), (16, 4)]


@pytest.mark.statistical
@pytest.mark.parametrize("most", [4096, 0])
@pytest.mark.parametrize(("size", "count"), CASES)
def test_subsets_are_even_whatever_stands_beside_them(size, count, most, monkeypatch):
    """n = 100 for each subset, Pearson's chi-square at 1e-7 each, with other counts between; seed 3.

    By splits and, with a limit of 0, by the way of sizes that are not split. Control: with a fifth of the
    draws made one set it is rejected.
    """
    monkeypatch.setattr(packed_subsets, "MAX_SPLIT", most)
    many = comb(size, count)
    n = 100 * many
    counts = np.full(n + n // 4, count)
    others = np.arange(4, counts.size, 5)
    counts[others] = np.arange(others.size) % (size + 1)
    rows = bits_of(subset_planes(size, counts, seeded(3)), size)
    assert rows.sum(axis=1).tolist() == counts.tolist()
    own = np.delete(rows, others, axis=0)
    times = np.unique(np.packbits(own, axis=1), axis=0, return_counts=True)[1]
    assert times.size == many
    assert not rejected(times)
    spoilt = times * 0.8
    spoilt[0] += 0.2 * times.sum()
    assert rejected(spoilt)


@pytest.mark.statistical
def test_pairs_of_cells_of_a_large_set_are_as_often_together_as_they_should():
    """n = 40,000 sets of 269 of 999 cells, cells of all parts: six standard errors each, seed 4."""
    n, size, count = 40_000, 999, 269
    rows = bits_of(subset_planes(size, np.full(n, count), seeded(4)), size)
    chosen = [0, 1, 15, 16, 31, 511, 512, 767, 768, 991, 992, 998]
    one, both = count / size, count * (count - 1) / (size * (size - 1))
    for i, a in enumerate(chosen):
        assert abs(rows[:, a].mean() - one) < 6 * (one * (1 - one) / n) ** 0.5
        for b in chosen[:i]:
            together = (rows[:, a] & rows[:, b]).mean()
            assert abs(together - both) < 6 * (both * (1 - both) / n) ** 0.5


def test_what_was_drawn_before_changes_no_draw():
    """Tables are made as counts are seen; from the same bytes the sets are the same."""
    counts = np.arange(3000) % 90
    packed_subsets._split.cache_clear()
    cold = subset_planes(100, counts, seeded(5))
    subset_planes(100, np.arange(101), seeded(6))
    assert np.array_equal(subset_planes(100, counts, seeded(5)), cold)


def test_threads_that_make_tables_together_draw_sets_of_their_counts():
    packed_subsets._split.cache_clear()
    counts = [np.random.default_rng(seed).integers(0, 301, 3000) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda own: subset_planes(300, own), counts))
    for planes, own in zip(drawn, counts, strict=True):
        assert bits_of(planes, 300).sum(axis=1).tolist() == own.tolist()


@pytest.mark.parametrize("size", [1, 2, 16, 17, 32, 33, 91])
def test_a_value_is_held_or_not_and_its_label_stands_for_the_last_cell(size):
    rng = np.random.default_rng(7)
    n = 500
    planes = np.zeros((planes_of(size), n), dtype=np.uint16)
    labels = subset_planes(size - 1, rng.integers(0, size, n), seeded(8))
    planes[: len(labels)] = labels
    before = bits_of(planes, size)
    place, inside = rng.integers(0, size, n), rng.integers(0, 2, n).astype(np.bool_)
    hold_value(planes, size, place, inside)
    due = before.copy()
    due[:, -1] = before[np.arange(n), place]
    due[np.arange(n), place] = inside
    assert bits_of(planes, size).tolist() == due.tolist()


def test_no_cells_and_no_rows_have_no_planes():
    assert subset_planes(0, np.zeros(3, dtype=np.intp)).shape == (0, 3)
    assert subset_planes(20, np.zeros(0, dtype=np.intp)).shape == (2, 0)


@pytest.mark.parametrize("count", [-1, 4])
def test_counts_that_no_subset_has_are_refused_without_being_repeated(count):
    with pytest.raises(ParameterError, match="subset must have 0 to all of 3 cells, got another number"):
        subset_planes(3, np.array([1, count]))
