"""The estimates of a round as exact rationals of its public counts, and the laws of the scores behind them.

Read from a channel's description, which is what survives on the wire: a few integers. The formulas are
those of docs/mechanisms.md; none of the estimator's code is used. What has no closed form is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.checking.ends import CellsLaw, plausible
from hubbub.wire import PublicCounts

Floats = NDArray[np.float64]
Spec: TypeAlias = Mapping[str, Any]

_COIN: Final = 2**31
"""The draws of the coins of unary bits (docs/wire-channels.md)."""

_WORD: Final = 2**32
"""The draws of the coin of a subset."""

_LONG_COIN: Final = 2**63
"""The draws of the coin of a report about sets."""

_ALIKE: Final = 2.0**-30
"""The difference of two variances, as a part of them, below which rounding may decide which is larger."""

_MOST: Final = 2**22
"""Entries of the table of categories by blocks at most; a larger one is left out."""


@dataclass(frozen=True, eq=False)
class CellFamily:
    """One family of cells of a release: values, or categories.

    Attributes:
        tops: The cells' estimates are tops / bottoms, exact integers; None where a cell is not identifiable.
        bottoms: See `tops`.
        law: The law of the scores; None where none is known here.
        least: The least that one report adds to a cell, shape (c,), with `law`.
        most: The most, shape (c,).
    """

    tops: Sequence[int | None]
    bottoms: Sequence[int]
    law: CellsLaw | None = None
    least: Floats = field(default_factory=lambda: np.zeros(0))
    most: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def estimates(self) -> list[float | None]:
        """The estimates, each the float64 nearest to the exact one; None where not identifiable."""
        # Python divides integers of any size with one rounding.
        pairs = zip(self.tops, self.bottoms, strict=True)
        return [None if top is None else top / bottom for top, bottom in pairs]


Families: TypeAlias = tuple[CellFamily | None, CellFamily | None]
"""Values and categories; None where nothing is recomputed."""


def families(channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts) -> Families:
    """Return the families of a round.

    Args:
        channel: The survey's channel.
        groupings: The category of every input, shape (K,), one or several times: the margins of a table. Each
            numbers its categories on from where the one before ended.
        counts: The public counts.
    """
    spec = channel.to_spec()
    read = _READERS.get(str(spec["kind"]))
    if read is None:
        return None, None
    rows = [np.asarray(row) - int(row.min()) for row in groupings]
    return read(spec, channel, rows, counts)


def bottom_up(values: CellFamily, groupings: Sequence[NDArray[Any]]) -> CellFamily:
    """Return categories as the sums of their values, without a law."""
    tops: list[int | None] = []
    bottoms: list[int] = []
    for row in groupings:
        common = _common(values.bottoms)
        sums: list[int | None] = [0] * (int(row.max()) + 1)
        for category, top, bottom in zip(row.tolist(), values.tops, values.bottoms, strict=True):
            held = sums[category]
            sums[category] = None if held is None or top is None else held + top * (common // bottom)
        tops += sums
        bottoms += [common] * len(sums)
    return CellFamily(tops, bottoms)


def _common(bottoms: Sequence[int]) -> int:
    """Return a common multiple of denominators, of which there are few different ones."""
    return math.lcm(*set(bottoms))


# Blocks: randomised response whose weights depend on whether input and symbol are equal or of one block.


@dataclass(frozen=True)
class _Block:
    """One block of a channel: its size, its weights, and the exact scores and laws of its values."""

    size: int
    t: int
    u: int
    o: int
    total: int
    scale: int
    """T less the sum of s o over blocks."""

    @property
    def step(self) -> int:
        return self.scale if self.size == 1 else self.t - self.u

    @property
    def scores(self) -> tuple[Fraction, Fraction, Fraction]:
        """The scores of a report of the value itself, of another value of the block, of any other."""
        far = Fraction(-self.o, self.scale)
        beside = Fraction(0)
        if self.size > 1:
            beside = Fraction(-(self.u - self.o) * self.total, self.scale * (self.t - self.u))
        return Fraction(self.total, self.step) + beside + far, beside + far, far

    @property
    def odds(self) -> tuple[tuple[Fraction, ...], ...]:
        """The probabilities of these three reports, of the value's devices, of its block's, of others."""
        s, total = self.size, self.total
        u = self.u if s > 1 else 0
        found = []
        for hit, beside in (
            (self.t, (s - 1) * u),
            (u, self.t + (s - 2) * u if s > 1 else 0),
            (self.o, (s - 1) * self.o),
        ):
            found.append(
                (Fraction(hit, total), Fraction(beside, total), Fraction(total - hit - beside, total))
            )
        return tuple(found)

    def moments(self) -> list[tuple[float, float]]:
        """Return variance and third central moment of a score of the three kinds of devices."""
        return [_moments(self.scores, odds) for odds in self.odds]


def _moments(scores: Sequence[Fraction], odds: Sequence[Fraction]) -> tuple[float, float]:
    mean = sum((b * p for b, p in zip(scores, odds, strict=True)), Fraction(0))
    return tuple(  # type: ignore[return-value]  # two of them
        float(sum(p * (b - mean) ** power for b, p in zip(scores, odds, strict=True))) for power in (2, 3)
    )


def _grr(spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts) -> Families:
    size, t, u = spec["inputs"], spec["t"], spec["u"]
    return _blocks([_Block(size, t, u, u, t + (size - 1) * u, t - u)], groupings, counts)


def _pbgrr(spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts) -> Families:
    sizes, t, u, o = (spec[key] for key in ("sizes", "t", "u", "o"))
    others = sum(s * other for s, other in zip(sizes, o, strict=True))
    total = others - sizes[0] * o[0] + t[0] + (sizes[0] - 1) * u[0]
    return _blocks(
        [_Block(*each, total, total - others) for each in zip(sizes, t, u, o, strict=True)], groupings, counts
    )


def _category_grr(
    spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts
) -> Families:
    sizes, t, o = spec["sizes"], spec["t"], spec["o"]
    total = t + (len(sizes) - 1) * o
    blocks = [_Block(1, t, t, o, total, t - o)] * len(sizes)
    of_block = np.repeat(np.arange(len(sizes)), sizes)
    whole, inner = [], []
    for row in groupings:
        # A category is a union of blocks, or hidden.
        owner = row[np.cumsum(sizes) - sizes]
        split = np.unique(of_block[row != owner[of_block]])
        hidden = np.unique(row[np.isin(of_block, split)])
        whole.append(np.setdiff1d(np.arange(int(row.max()) + 1), hidden))
        inner.append(np.unique(owner, return_inverse=True)[1])
        if len(np.setdiff1d(whole[-1], owner)) or split.size:
            return None, None  # part of a category is told by no symbol: rare, and left out
    values, categories = _blocks(blocks, inner, counts)
    assert values is not None  # noqa: S101 - blocks always have them
    picked = [None if sizes[block] > 1 else values.tops[block] for block in of_block.tolist()]
    shown = CellFamily(
        picked,
        [values.bottoms[block] for block in of_block.tolist()],
        _picked(values.law, of_block),
        values.least[of_block],
        values.most[of_block],
    )
    return shown, categories


def _picked(law: CellsLaw | None, cells: NDArray[np.intp]) -> CellsLaw | None:
    if law is None:
        return None
    assert law.near is not None and law.around is not None  # noqa: S101 - of blocks
    return CellsLaw(
        law.n,
        law.own[:, cells],
        law.far[:, cells],
        law.step[cells],
        law.odds[:, cells],
        law.near[:, cells],
        law.around[cells],
    )


def _blocks(blocks: Sequence[_Block], groupings: Sequence[NDArray[Any]], counts: PublicCounts) -> Families:
    cells, n = counts.cells.tolist(), counts.n
    starts = np.cumsum([0, *(block.size for block in blocks)]).tolist()
    tops: list[int | None] = []
    bottoms: list[int] = []
    around, pieces = [], []
    for block, start, stop in zip(blocks, starts[:-1], starts[1:], strict=True):
        t, u, o, total, scale = block.t, block.u, block.o, block.total, block.scale
        # Devices of the block are crowd / scale.
        crowd = total * sum(cells[start:stop]) - block.size * o * n
        around.append(crowd / (scale * n))
        if block.size == 1:
            tops.append(crowd)
            bottoms.append(scale * n)
        else:
            constant = -scale * n * o - (u - o) * crowd
            tops += [scale * total * count + constant for count in cells[start:stop]]
            bottoms += [scale * (t - u) * n] * block.size
        pieces.append(_value_columns(block, len(blocks)))
    sizes = [block.size for block in blocks]
    columns = np.repeat(np.array(pieces).T, sizes, axis=1)
    alone = np.repeat(np.array(sizes) == 1, sizes)
    shares = np.where(alone, 0.0, np.repeat(around, sizes))
    law = CellsLaw(n, columns[0:2], columns[4:6], columns[6], columns[7:9], columns[2:4], shares)
    values = CellFamily(tops, bottoms, law, columns[9], columns[10])
    return values, _block_categories(blocks, groupings, counts, values)


def _value_columns(block: _Block, blocks: int) -> list[float]:
    """Return what all values of a block share: moments, lattice step, odds, least and largest score."""
    own, near, far = block.moments()
    hit, beside, other = block.scores
    step = float(Fraction(block.total, block.step))
    plain = block.size == 1 or block.u == block.o or blocks == 1
    odds = [float(Fraction(block.t, block.total)), float(Fraction(block.o, block.total))]
    seen = [hit] + [beside] * (block.size > 1) + [other] * (blocks > 1)
    ends = [float(min(seen)), float(max(seen))]
    return [*own, *near, *far, step, *(odds if plain else [np.nan, np.nan]), *ends]


def _block_categories(
    blocks: Sequence[_Block], groupings: Sequence[NDArray[Any]], counts: PublicCounts, values: CellFamily
) -> CellFamily | None:
    """Return the categories of any grouping of the inputs, whole blocks or not."""
    summed = bottom_up(values, groupings)
    parts = []
    for row in groupings:
        categories = int(row.max()) + 1
        if categories * len(blocks) > _MOST:
            return summed
        parts.append(_grouping(blocks, row, counts, values))
    law = _joined([law for law, _, _ in parts])
    least, most = (np.concatenate([part[which] for part in parts]) for which in (1, 2))
    return CellFamily(summed.tops, summed.bottoms, law, least, most)


def _grouping(
    blocks: Sequence[_Block], row: NDArray[Any], counts: PublicCounts, values: CellFamily
) -> tuple[CellsLaw, Floats, Floats]:
    """Return the law of one grouping's m categories, and the least and largest scores, shape (m,) each.

    A category's score of a report is the sum of its inputs' scores: of mean 1 over the reports of a device of
    the category, and 0 over those of any other. Of T equally likely draws, t_c have a device say its own
    input, u_c any one other input of its block c, and o_c any one of a block c that is not its own. With s_c
    the size of block c, and s_gc how many of its inputs are category g's (`shared`),

        step_c = t_c - u_c,                         scale = T - sum over c of s_c o_c,
        delta_c = T / step_c,                       rho = T / scale,
        beta_c = -(u_c - o_c) rho / step_c,         base_g = -sum over c of s_gc o_c / scale,

    a report that says an input of block c adds

        base_g + delta_c + beta_c s_gc     where the input is the category's own (`mine`),
        base_g + beta_c s_gc               where it is another's (`rest`),

    and base_g where the category has no input in block c. Where it has the whole block, `mine` is base_g +
    rho; and a block of one input has step_c = scale. Scores of a category of whole blocks have two values,
    base_g and base_g + rho, and the law of a count: by the means above, the upper one has the probability
    (1 - base_g) / rho for a device of the category, and -base_g / rho for any other (`odds`). Of any other
    category devices are evenly spread over its inputs, and those elsewhere are the plausible populations
    (`ends`), of the two that in which scores vary more.

    Args:
        blocks: The channel's blocks, in the order of its inputs.
        row: The category of every input, shape (K,), integers from 0 to m - 1.
        counts: Reports per input, in `cells`, and in all.
        values: The inputs' own family, whose estimates the plausible populations are near.
    """
    n, categories = counts.n, int(row.max()) + 1
    sizes = np.array([block.size for block in blocks])
    of_block = np.repeat(np.arange(len(blocks)), sizes)

    def tabled(weights: Floats | None = None) -> Floats:
        """Return sums over inputs by category and block, shape (m, blocks)."""
        flat = np.bincount(row * len(blocks) + of_block, weights, minlength=categories * len(blocks))
        return flat.reshape(categories, len(blocks)).astype(np.float64)

    shared = tabled()
    there, whole = shared > 0, shared == sizes
    t, u, o, total, scale, step = (
        np.array([getattr(block, key) for block in blocks], dtype=np.float64)
        for key in ("t", "u", "o", "total", "scale", "step")
    )
    u = np.where(sizes == 1, o, u)
    delta, rho = total / step, total / scale
    beta = np.where(sizes == 1, 0.0, -(u - o) / step * rho)
    gamma = -o / scale
    base = (shared * gamma).sum(axis=1)
    mine = np.where(whole, rho, delta + beta * shared) + base[:, None]
    rest = np.where(whole, mine, beta * shared + base[:, None])
    outside = np.where(there.all(axis=1), np.inf, base)
    least = np.minimum(np.where(there, np.minimum(mine, rest), np.inf).min(axis=1), outside)
    most = np.maximum(
        np.where(there, np.maximum(mine, rest), -np.inf).max(axis=1),
        np.where(np.isinf(outside), -np.inf, base),
    )

    def mean(own: Floats, block: Floats, power: int) -> Floats:
        """Return the mean of a power of the score, of shares of reports shape (m, blocks) and (blocks,)."""
        inside = np.where(there, own * mine**power + (block - own) * rest**power, 0.0).sum(axis=1)
        return np.asarray(inside + (1.0 - np.where(there, block, 0.0).sum(axis=1)) * base**power)

    def reports(held: Floats) -> tuple[Floats, Floats]:
        """Return what a population sends, by category and block, and by block."""
        crowd = held.sum(axis=0)
        each = (o + (u - o) * crowd) / total
        return shared * each + (t - u) / total * held, sizes * each + (t - u) / total * crowd

    # Categories of whole blocks have scores of two values: a count says all.
    is_count = np.where(there, whole, True).all(axis=1)
    everyone = there.all(axis=1) & is_count
    gap = np.where(everyone, 0.0, rho[0])
    odds = np.stack([1.0 - base, -base]) / np.where(gap > 0.0, gap, np.nan)
    odds[:, ~is_count] = np.nan
    spread = odds * (1.0 - odds)
    moments = np.stack([gap**2 * spread, gap**3 * spread * (1.0 - 2.0 * odds)], axis=1)
    own, far = (np.where(everyone, 0.0, each) for each in moments)
    observed = np.full(categories, -np.inf)
    split = ~is_count
    if split.any():
        # A device of the category is any of its inputs alike, block by block, for each category apart.
        share = shared / shared.sum(axis=1, keepdims=True)
        each = (o + (u - o) * share) / total
        members = (shared * each + (t - u) / total * share, sizes * each + (t - u) / total * share)
        v, k = _about_one(mean(*members, 2), mean(*members, 3))
        populations = [tabled(each) for each in plausible(_floats(values))]
        second, third = ([mean(*reports(held), power) for held in populations] for power in (2, 3))
        told = _population(v, k, [held.sum(axis=1) for held in populations], second, third)
        own[:, split], far[:, split] = np.stack([v, k])[:, split], told[:, split]
        seen = tabled(counts.cells / n)
        observed[split] = mean(seen, seen.sum(axis=0), 2)[split]
    return CellsLaw(n, own, far, np.where(split, 0.0, gap), odds, observed=observed), least, most


def _about_one(second: Floats, third: Floats) -> tuple[Floats, Floats]:
    """Return variance and third central moment of a score of mean 1, from its raw moments."""
    variance = second - 1.0
    return variance, third - 3.0 * variance - 1.0


def _population(
    v: Floats, k: Floats, held: Sequence[Floats], second: Sequence[Floats], third: Sequence[Floats]
) -> Floats:
    """Return the moments of devices elsewhere, shape (2, c): of the population in which they vary more.

    The first counts where both vary alike up to rounding: by pairwise independent hashes they do.
    """
    found = []
    for share, square, cube in zip(held, second, third, strict=True):
        nobody = 1.0 - share < 1e-9
        rest = np.where(nobody, 1.0, 1.0 - share)
        variance = np.where(nobody, 0.0, (square - share * (v + 1.0)) / rest)
        skew = np.where(nobody, 0.0, (cube - share * (k + 3.0 * v + 1.0)) / rest)
        found.append(np.stack([np.maximum(variance, 0.0), skew]))
    one, two = found
    return np.where(two[0] > one[0] * (1.0 + _ALIKE), two, one)


def _joined(laws: Sequence[CellsLaw]) -> CellsLaw:
    """Return the law of several families of cells, one after the other."""
    seen = [np.full(len(law.step), -np.inf) if law.observed is None else law.observed for law in laws]
    own, far, step, odds = (
        np.concatenate([getattr(law, key) for law in laws], axis=-1) for key in ("own", "far", "step", "odds")
    )
    return CellsLaw(laws[0].n, own, far, step, odds, observed=np.concatenate(seen))


def _floats(values: CellFamily) -> Floats:
    return np.array([np.nan if each is None else each for each in values.estimates])


# Supports: an input's cell is in a share p of the reports of its own devices, and in q of all others'.


def _unary(spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts) -> Families:
    p, q = (Fraction(spec[key], _COIN) for key in ("held", "other"))
    return _supported(p, q, spec["inputs"], groupings, counts)


def _subset(
    spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts
) -> Families:
    inputs, size = spec["inputs"], spec["size"]
    p = Fraction(spec["held"], _WORD)
    q = (p * (size - 1) + (1 - p) * size) / (inputs - 1)
    return _supported(p, q, inputs, groupings, counts)


def _sets(spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts) -> Families:
    """Return the items of sets, which are in no categories."""
    items, most, size = spec["inputs"], spec["most"], spec["size"]
    missing = math.comb(items, size)
    meeting, hit = math.comb(items + most, size) - missing, Fraction(spec["held"], _LONG_COIN)
    other = math.comb(items - 1, size - 1)
    every = math.comb(items + most - 1, size - 1)
    p = hit * Fraction(every, meeting)
    q = hit * Fraction(every - other, meeting) + (1 - hit) * Fraction(other, missing)
    return _support_family(p, q, counts.cells[:items], counts.n), None


def _supported(
    p: Fraction, q: Fraction, inputs: int, groupings: Sequence[NDArray[Any]], counts: PublicCounts
) -> Families:
    values = _support_family(p, q, counts.cells[:inputs], counts.n)
    single = [len(row) == int(row.max()) + 1 for row in groupings]
    if not all(single):
        return values, bottom_up(values, groupings)
    orders = np.concatenate([np.argsort(row) for row in groupings])
    return values, _support_family(p, q, counts.cells[orders], counts.n)


def _support_family(p: Fraction, q: Fraction, cells: NDArray[np.int64], n: int) -> CellFamily:
    """Return cells whose estimate is (C/n - q) / (p - q)."""
    gain = 1 / (p - q)
    top, bottom = q.numerator * n, q.denominator
    over = (p - q).numerator * bottom * n
    factor = (p - q).denominator
    tops: list[int | None] = [factor * (bottom * count - top) for count in cells.tolist()]
    moments = [_moments([(1 - q) * gain, -q * gain], [odds, 1 - odds]) for odds in (p, q)]
    ones = np.ones(len(cells))
    own, far = (np.array(each)[:, None] * ones for each in moments)
    odds = np.array([[float(p)], [float(q)]]) * ones
    law = CellsLaw(n, own, far, float(gain) * ones, odds)
    return CellFamily(tops, [over] * len(tops), law, float(-q * gain) * ones, float((1 - q) * gain) * ones)


def _hashing(
    spec: Spec, channel: Channel, groupings: Sequence[NDArray[Any]], counts: PublicCounts
) -> Families:
    inputs, buckets, t, u = (spec[key] for key in ("inputs", "buckets", "t", "u"))
    points = buckets
    while points < inputs:
        points *= buckets
    seeds, together = (points - 1) // (buckets - 1), (points // buckets - 1) // (buckets - 1)
    total = seeds * (t + (buckets - 1) * u)
    q = Fraction(u * seeds + (t - u) * together, total)
    p = q + Fraction((t - u) * (points // buckets), total)
    values = _support_family(p, q, counts.cells[:inputs], counts.n)
    if sum(int(row.max()) + 1 for row in groupings) * channel.bins > _MOST:
        return values, bottom_up(values, groupings)
    summed = bottom_up(values, groupings)
    histograms, parts = counts.cells[inputs:], []
    for row in groupings:
        parts.append(_hashed_grouping(channel, row, counts, histograms, values))
        histograms = histograms[parts[-1].read :]
    least, most = (
        np.concatenate(ends) for ends in zip(*((part.least, part.most) for part in parts), strict=True)
    )
    law = _joined([part.law for part in parts])
    return values, CellFamily(summed.tops, summed.bottoms, law, least, most)


@dataclass(frozen=True, eq=False)
class _Hashed:
    """One grouping's law and scores by hashing, and how many cells of histograms it took."""

    law: CellsLaw
    least: Floats
    most: Floats
    read: int


def _hashed_grouping(
    channel: Channel,
    row: NDArray[Any],
    counts: PublicCounts,
    histograms: NDArray[np.int64],
    values: CellFamily,
) -> _Hashed:
    """Return the categories of a grouping: of one input as that input is, of several by their histogram."""
    assert values.law is not None  # noqa: S101 - cells told by supports have one
    sizes = np.bincount(row)
    base, gain = float(values.least[0]), float(values.law.step[0])
    single = np.argsort(row, kind="stable")[np.cumsum(sizes) - sizes]
    own, far, odds = (each[:, single].copy() for each in (values.law.own, values.law.far, values.law.odds))
    step, least, most = (each[single].copy() for each in (values.law.step, values.least, values.most))
    observed, read = np.full(len(sizes), -np.inf), 0
    populations = plausible(_floats(values))
    sent = [channel.expected(population) for population in populations]
    for category in np.flatnonzero(sizes > 1).tolist():
        inside = row == category
        held = channel.held(inside)  # type: ignore[attr-defined]  # local hashing alone is read here
        longest = int(held.max()) + 1
        scores = gain * np.arange(longest) + base * sizes[category]
        observed[category] = float(scores**2 @ histograms[read : read + longest]) / counts.n
        read += longest
        laws = [np.bincount(held, weights=law) for law in (channel.expected(inside / inside.sum()), *sent)]
        (second, third), *others = ([np.array([law @ scores**power]) for power in (2, 3)] for law in laws)
        v, k = _about_one(second, third)
        mine = [np.array([population[inside].sum()]) for population in populations]
        told = _population(v, k, mine, [each[0] for each in others], [each[1] for each in others])
        own[:, category], far[:, category] = (v[0], k[0]), told[:, 0]
        step[category], odds[:, category] = 0.0, np.nan
        least[category], most[category] = scores[int(held.min())], scores[-1]
    law = CellsLaw(counts.n, own, far, step, odds, observed=observed)
    return _Hashed(law, least, most, read)


_Reader: TypeAlias = Callable[[Spec, Channel, Sequence[NDArray[Any]], PublicCounts], Families]

_READERS: Final[Mapping[str, _Reader]] = {
    "grr": _grr,
    "pbgrr": _pbgrr,
    "category_grr": _category_grr,
    "unary": _unary,
    "set": _sets,
    "subset": _subset,
    "local_hashing": _hashing,
}
"""The kinds of channels whose estimates are read off their integers."""
