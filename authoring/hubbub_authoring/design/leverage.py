"""The most that forged reports can move, and the most that one report tells, as numbers before launch.

Estimates are linear: with left inverse B a share beta of forged reports among those counted moves the summed
estimate of a set T of inputs, of true share f_T, by at most

    beta (G - f_T),    G = max_y sum_{x in T} B[x, y].

Level sampling estimates each level from its own reports: a report about level k moves the mean of its
score h . b from M_k by (h . b - M_k)/share_k, so there G = f_T + max_k (max h . b - M_k)/share_k. This
depends a little on the population, through M_k, and is given for a uniform one. A forger whose device is
honest and lies about its value only gains beta (1 - f_T) at most.

The chance that whoever sees one report guesses its input is for people who do not read epsilons. With every
input equally likely beforehand, the best guess on seeing y is the x of largest P(y|x). It is right

    on average with       (1/K) sum_y max_x P(y|x),
    on the worst report   max_y max_x P(y|x) / sum_x P(y|x),

and without a report with 1/K. Of sets, a level of c cells whose sets hold d, "in" with probability p, has
sum_S max_x P(S|x) = share p c/d, as C(c, d)/C(c - 1, d - 1) = c/d; unary encoding sums over how many bits
are set. Inputs include the missing one where a channel has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, singledispatch
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, FiniteChannel
from hubbub.errors import ParameterError
from hubbub.estimation import AnyEstimator, InverseEstimator, Tree, TreeEstimator
from hubbub.mechanisms import (
    GRR,
    LocalHashing,
    OrbitChannel,
    OrbitEstimator,
    SetLevels,
    SubsetSelection,
    Unary,
)

FORGED: Final = 0.01
"""The share of forged reports that a design names."""

MAX_ARRANGED: Final = 200
"""Categories over which an orbit's counts are arranged, one by one, to move a mean."""

_AT_ONCE: Final = 64
"""Functionals of a tree that are weighed together: a few hundred megabytes at the most inputs there are."""


def worst_gain(estimator: AnyEstimator, prior: NDArray[np.float64]) -> float:
    """Return the most that a share of forged reports moves a cell's estimate, up or down, per share forged.

    Cells are the inputs, missing among them, or the categories where the channel hides inputs. A share beta
    of forged reports among those counted moves the estimate of any cell by at most beta times this: a forger
    who spreads them over the levels of a tree gains no more than on the best of them (Jensen).

    Args:
        estimator: The survey's.
        prior: The true share of every input, shape (K,), >= 0, summing to one.
    """
    if isinstance(estimator, TreeEstimator):
        return _worst_of_tree(estimator.tree, prior)
    reach = estimator.reach()
    low, high, true = reach.values_low, reach.values_high, prior
    if np.isnan(low).any():
        low, high = reach.categories_low, reach.categories_high
        true = _summed(estimator.category_of, prior)
    return float(np.nanmax(np.maximum(high - true, true - low)))


def worst_mean(
    estimator: AnyEstimator, prior: NDArray[np.float64], points: NDArray[np.float64], *, forged: float
) -> float:
    """Return the most by which a share of forged reports moves the mean, up or down; inf without a bound.

    The mean is a ratio, A/R with A the sum of numbers and R the share of those who have one. With a report y
    that adds g(y) to A - mean R and r(y) to R, a share beta of forged reports moves it by at most

        beta max_y |g(y)| / ((1 - beta) R + beta min_y r(y)).

    Args:
        estimator: The survey's.
        prior: The true share of every input, shape (K,), >= 0, summing to one, some of it with numbers.
        points: The number of every input, shape (K,), nan at missing.
        forged: beta, in 0..1.

    Raises:
        ParameterError: If the share is out of range, or the channel hides the mean.
    """
    if not 0.0 <= forged <= 1.0:
        raise ParameterError(f"forged must be within 0 to 1, got {forged!r}")
    held = np.isfinite(points)
    answered = float(prior[held].sum())
    mean = float(prior[held] @ points[held]) / answered
    less, share = np.where(held, points - mean, 0.0), held.astype(np.float64)
    low, high = ends(estimator, less, prior)
    least, _ = ends(estimator, share, prior)
    left = (1.0 - forged) * answered + forged * least
    return forged * max(high, -low) / left if left > 0.0 else float("inf")


def ends(
    estimator: AnyEstimator, functional: NDArray[np.float64], prior: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the least and the most that one report adds to the estimate of a functional, as reports.

    Args:
        estimator: The survey's.
        functional: A number for every input, shape (K,); 1 for targets and 0 for others, and the most is G.
        prior: The true share of every input, shape (K,), which reports about levels depend on.

    Raises:
        ParameterError: If the channel hides the functional, or has more than `MAX_ARRANGED` categories.
    """
    if isinstance(estimator, TreeEstimator):
        tree = estimator.tree
        population = [_summed(level.labels, prior) for level in tree.levels]
        sizes = [float(level.share) for level in tree.levels]
        low, high = tree.extremes(functional[:, None], population, sizes, 1.0)
        true = float(functional @ prior)
        return float(low[0]) + true, float(high[0]) + true
    if isinstance(estimator, InverseEstimator):
        return -_best_report(estimator, -functional), _best_report(estimator, functional)
    if not isinstance(estimator, OrbitEstimator) or len(estimator.channel.layout.sizes) > MAX_ARRANGED:
        raise ParameterError(f"categories must be at most {MAX_ARRANGED} for the reach of a mean")
    return -_best_of_orbits(estimator.channel, -functional), _best_of_orbits(estimator.channel, functional)


def _summed(labels: NDArray[np.intp], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.bincount(labels, weights=prior), dtype=np.float64)


def _worst_of_tree(tree: Tree, prior: NDArray[np.float64]) -> float:
    """Return the worst gain over values, one of each class that renumbering the tree's nodes can exchange."""
    population = [_summed(level.labels, prior) for level in tree.levels]
    chosen = representatives(tree, prior)
    sizes, found = [float(level.share) for level in tree.levels], 0.0
    for at in range(0, len(chosen), _AT_ONCE):
        part = chosen[at : at + _AT_ONCE]
        units = np.zeros((len(prior), len(part)))
        units[part, np.arange(len(part))] = 1.0
        low, high = tree.extremes(units, population, sizes, 1.0)
        found = max(found, float(high.max()), float(-low.min()))
    return found


def representatives(tree: Tree, marks: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return one input of each class whose inputs some symmetry of the tree exchanges.

    Args:
        tree: The tree.
        marks: Per input a number that symmetries must keep, shape (K,).
    """
    last = tree.levels[-1]
    shape = np.zeros(last.bins, dtype=np.intp)
    shape[last.labels] = np.unique(marks, return_inverse=True)[1]
    shapes = [shape]
    for parent in reversed(tree.parents):
        # Two nodes have one shape if their children have the same shapes, in any order.
        below = shapes[0]
        known: dict[tuple[int, ...], int] = {}
        order = np.lexsort((below, parent))
        groups = np.split(below[order], np.flatnonzero(np.diff(parent[order])) + 1)
        shapes.insert(0, np.array([known.setdefault(tuple(group.tolist()), len(known)) for group in groups]))
    path = np.zeros(len(shapes[0]), dtype=np.intp)
    for k, own in enumerate(shapes):
        above = path if k == 0 else path[tree.parents[k - 1]]
        path = np.unique(np.stack([above, own]), axis=1, return_inverse=True)[1].ravel()
    return np.asarray(np.unique(path[last.labels], return_index=True)[1])


def _best_report(estimator: InverseEstimator, unit: NDArray[np.float64]) -> float:
    weights = estimator.inverse.pull_back(unit)
    if weights is None:
        raise ParameterError("targets must be told apart by the channel, got some that it hides")
    return float(np.max(weights))


def _best_of_orbits(channel: OrbitChannel, unit: NDArray[np.float64]) -> float:
    """Return the best arrangement's gain of an orbit's counts over the categories, by a dynamic programme."""
    base, pulled = OrbitEstimator(channel).pulled(unit[:, None])
    best = -np.inf
    for t, orbit in enumerate(channel.orbits):
        found = float(base[t, 0])
        for weights, kinds in zip(pulled[t], orbit.kinds, strict=True):
            # Categories without a target add nothing; alike ones stand for each other in sorted order.
            ranked = -np.sort(-weights[weights.any(axis=(1, 2)), :, 0], axis=1)
            sums = np.concatenate([np.zeros((len(ranked), 1)), np.cumsum(ranked, axis=1)], axis=1)
            found += _best_assignment(tuple(map(tuple, sums[:, [n for n, _ in kinds]].tolist())), kinds)
        best = max(best, found)
    return best


def _best_assignment(gains: tuple[tuple[float, ...], ...], kinds: tuple[tuple[int, int], ...]) -> float:
    """Return the largest sum of gains: every category takes a count, each count as often as it is there."""

    @cache
    def most(at: int, left: tuple[int, ...]) -> float:
        if at == len(gains):
            return 0.0
        return max(
            gains[at][i] + most(at + 1, (*left[:i], left[i] - 1, *left[i + 1 :]))
            for i in range(len(kinds))
            if left[i]
        )

    return most(0, tuple(times for _, times in kinds))


MAX_TABLE: Final = 2**26
"""Weights of a finite channel that are looked at, row by row: half a second."""

_NEAR: Final = 64
"""Reports within rounding of the one that tells most, whose shares are told exactly: more would be alike."""


@dataclass(frozen=True)
class Guess:
    """The chance of a right guess from one report.

    Attributes:
        average: Over reports.
        worst: On the report that tells most.
        blind: Without a report, 1/K.
    """

    average: float
    worst: float
    blind: float


def best_guess(channel: Channel) -> Guess:
    """Return how often the best guess of a report's input is right, all inputs equally likely.

    Raises:
        ParameterError: If the channel is of no kind known here, or has more than MAX_TABLE weights.
    """
    average, worst = _of(channel)
    return Guess(average, worst, 1.0 / channel.inputs)


@singledispatch
def _of(channel: Channel) -> tuple[float, float]:
    raise ParameterError(f"a guess must be of a known kind of channel, got {channel.kind}")


@_of.register
def _(channel: GRR) -> tuple[float, float]:
    both = float(Fraction(channel.t, channel.t + (channel.inputs - 1) * channel.u))
    return both, both


@_of.register
def _(channel: SubsetSelection) -> tuple[float, float]:
    both = channel.p_draws / 2**32 / channel.size
    return both, both


@_of.register
def _(channel: Unary) -> tuple[float, float]:
    k, support = channel.inputs, channel.levels[0].support
    p, q = float(support.p), float(support.q)
    average = p / (q * k) * (1.0 - (1.0 - q) ** k) + (1.0 - p) * (1.0 - q) ** (k - 1) / k
    inside, outside = p * (1.0 - q), (1.0 - p) * q
    return average, inside / (inside + (k - 1) * outside)


@_of.register
def _(channel: FiniteChannel) -> tuple[float, float]:
    if channel.inputs * channel.outputs > MAX_TABLE:
        raise ParameterError(
            f"a guess must be of at most {MAX_TABLE} weights, got {channel.inputs} x {channel.outputs}"
        )
    most = np.zeros(channel.outputs, dtype=np.int64)
    total = np.zeros(channel.outputs)
    for x in range(channel.inputs):
        row = channel.row(x)
        np.maximum(most, row, out=most)
        total += row
    average = Fraction(sum(most.tolist()), channel.inputs * channel.total)
    ratios = most / total
    near = np.flatnonzero(ratios >= ratios.max() * (1.0 - 1e-9))[:_NEAR]
    columns = [channel.column(int(y)).tolist() for y in near]
    worst = max(Fraction(max(column), sum(column)) for column in columns)
    return float(average), float(worst)


@_of.register
def _(channel: LocalHashing) -> tuple[float, float]:
    held = np.rint(channel.pool.sums_by_bucket(np.ones(channel.inputs))).astype(np.int64)
    # A cell that no input has is sent by all of them alike.
    some, (t, u) = int(np.count_nonzero(held)), (channel.t, channel.u)
    average = Fraction(some * t + (len(held) - some) * u, channel.inputs * channel.total)
    fewest = int(held[held > 0].min())
    return float(average), float(Fraction(t, t * fewest + u * (channel.inputs - fewest)))


@_of.register
def _(channel: SetLevels) -> tuple[float, float]:
    average, worst = Fraction(0), Fraction(0)
    for share, labels, oracle in zip(channel.shares, channel.hierarchy.labels, channel.oracles, strict=True):
        average += Fraction(share, 2**32) * Fraction(oracle.p_draws, 2**32) * oracle.inputs / oracle.size
        fewest = int(np.sort(np.bincount(labels))[: oracle.size].sum())
        inside, outside = oracle.odds
        worst = max(worst, Fraction(inside, inside * fewest + outside * (channel.inputs - fewest)))
    return float(average / channel.inputs), float(worst)


@_of.register
def _(channel: OrbitChannel) -> tuple[float, float]:
    average, worst = Fraction(0), Fraction(0)
    for orbit in channel.orbits:
        total, most = orbit.absent, orbit.absent
        for g, (k, values) in enumerate(zip(orbit.held, channel.layout.held, strict=True)):
            total += orbit.weight(g, values)
            most = max(most, orbit.inside[g] * (k > 0), orbit.outside[g] * (k < values))
        average += Fraction(most, channel.total)
        worst = max(worst, Fraction(most, total))
    return float(average / channel.inputs), float(worst)
