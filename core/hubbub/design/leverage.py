"""The most that forged reports can move, as a number before launch.

Estimates are linear: with left inverse B a share beta of forged reports among those counted moves the summed
estimate of a set T of inputs, of true share f_T, by at most

    beta (G - f_T),    G = max_y sum_{x in T} B[x, y].

Level sampling estimates each level from its own reports: a report about level k moves the mean of its
score h . b from M_k by (h . b - M_k)/share_k, so there G = f_T + max_k (max h . b - M_k)/share_k. This
depends a little on the population, through M_k, and is given for a uniform one. A forger whose device is
honest and lies about its value only gains beta (1 - f_T) at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, singledispatch

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError
from hubbub.estimation import Estimator, TreeEstimator, estimator_for
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.estimator import OrbitEstimator


def gain(channel: Channel, targets: Sequence[int]) -> float:
    """Return G: what the report that helps most adds to the summed estimate of the targets, as reports.

    Args:
        channel: The channel.
        targets: Inputs, each in 0..K-1, all different, at least one.

    Raises:
        ParameterError: If targets break that rule, or the channel hides them.
    """
    chosen = np.asarray(targets, dtype=np.int64)
    if chosen.size == 0 or len(set(chosen.tolist())) != chosen.size:
        raise ParameterError(f"targets must be different inputs, at least one, got {chosen.size}")
    if chosen.min() < 0 or chosen.max() >= channel.inputs:
        raise ParameterError(f"targets must be within 0 to {channel.inputs - 1}, got one outside")
    return _gain(channel, chosen)


@singledispatch
def _gain(channel: Channel, chosen: NDArray[np.int64]) -> float:
    unit = np.zeros(channel.inputs)
    unit[chosen] = 1.0
    return _best_report(estimator_for(channel), unit)


def moved(channel: Channel, targets: Sequence[int], *, forged: float, share: float) -> float:
    """Return how far a share of forged reports can move the estimated share of the targets.

    Args:
        channel: The channel.
        targets: See `gain`.
        forged: beta, in 0..1.
        share: f_T, in 0..1.

    Raises:
        ParameterError: If an argument is out of range.

    >>> from hubbub.mechanisms import grr
    >>> round(moved(grr(100, epsilon=1.0), [0], forged=0.05, share=0.0), 2)
    2.93
    """
    for name, value in (("forged", forged), ("share", share)):
        if not 0.0 <= value <= 1.0:
            raise ParameterError(f"{name} must be within 0 to 1, got {value!r}")
    return forged * (gain(channel, targets) - share)


@singledispatch
def _best_report(estimator: object, unit: np.ndarray) -> float:
    raise ParameterError(f"a gain must be of a known kind of estimator, got {type(estimator).__name__}")


@_best_report.register
def _(estimator: Estimator, unit: np.ndarray) -> float:
    weights = estimator.inverse.pull_back(unit)
    if weights is None:
        raise ParameterError("targets must be told apart by the channel, got some that it hides")
    return float(np.max(weights))


@_best_report.register
def _(estimator: TreeEstimator, unit: np.ndarray) -> float:
    found = -np.inf
    for level, h in zip(estimator.tree.levels, estimator.tree.coefficients(unit), strict=True):
        if level.share == 0:
            continue
        support = level.support
        most = np.maximum(h, 0.0).sum() if support.size is None else np.sort(h)[-support.size :].sum()
        score = (most - float(support.q) * h.sum()) / float(support.p - support.q)
        mean = float(h @ np.bincount(level.labels)) / len(unit)
        found = max(found, (float(score) - mean) / float(level.share))
    return float(found) + float(unit.mean())


@_gain.register
def _(channel: OrbitChannel, chosen: NDArray[np.int64]) -> float:
    """Find the best arrangement of an orbit's counts over the targets' categories, by a dynamic programme."""
    unit = np.zeros((channel.inputs, 1))
    unit[chosen] = 1.0
    base, pulled = OrbitEstimator(channel).pulled(unit)
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
