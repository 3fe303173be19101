"""The noise of estimates that join reports about several levels of a hierarchy or a tree of ranges.

An estimate is a constant plus, per level k, the mean of scores h . b over the n_k reports about it. That is
no sum of independent scores, since n_k is drawn, too. With the level's share s_k in place of n_k/n it would
be: each report adds (h . b - c_k)/s_k, whatever constants c_k are taken off, with mean 1 for a device in the
cell and 0 for any other. The difference of the two is at most

    sum over k of |1 - n_k/(n s_k)| |mean of h . b at level k - c_k|,

and both factors are bounded here with a small probability of their own: the first by Bernstein's inequality,
the second by the means of single inputs and Hoeffding's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.trees.tree import Tree

Floats = NDArray[np.float64]

MOST_INPUTS: Final = 512
"""Inputs up to which the noise is reckoned, which takes tables of inputs by inputs: 20 MiB."""


@dataclass(frozen=True, eq=False)
class LevelSlack:
    """The most that random numbers of reports per level add to c estimates.

    Attributes:
        shares: s_k of the levels that reports are about, shape (levels,).
        reach: The largest distance of an input's mean score from c_k, shape (levels, c).
        span: The distance of the largest score from the least, shape (levels, c).
        rounds: How many rounds the estimates are means of.
        fewest: Reports of the smallest of them; 0 of one round.
    """

    shares: Floats
    reach: Floats
    span: Floats
    rounds: int = 1
    fewest: int = 0

    def at(self, n: int, *, rate: float) -> Floats:
        """Return the bound for a round of n reports, shape (c,); it fails with probability `rate` at most.

        It is infinite where so few reports may leave a level without any. A mean over rounds misses by no
        more than the round that misses most.
        """
        n, rate = self.fewest or n, rate / self.rounds
        log = -math.log(rate / (4.0 * len(self.shares)))
        total = np.zeros(self.reach.shape[1])
        for share, reach, span in zip(self.shares.tolist(), self.reach, self.span, strict=True):
            off = log / 3.0 + math.sqrt(log * log / 9.0 + 2.0 * log * n * share * (1.0 - share))
            least = n * share - off
            if least < 1.0:
                return np.full(len(total), np.inf)
            total += off / (n * share) * (reach + span * math.sqrt(log / (2.0 * least)))
        return total

    def always(self, n: int, *, rate: float) -> Floats:
        """Return the bound at n reports, shape (c,): it ever fails with probability `rate` at most.

        Numbers of reports are taken in octaves, up to twice as many as the least, and both inequalities hold
        for the largest of partial sums as for the last one. The octave from 2^j has 1/((j + 1)(j + 2)) of
        the rate.
        """
        octave = n.bit_length() - 1
        log = -math.log(rate / ((octave + 1) * (octave + 2)) / (4.0 * len(self.shares)))
        least, most = 2**octave, 2 ** (octave + 1)
        total = np.zeros(self.reach.shape[1])
        for share, reach, span in zip(self.shares.tolist(), self.reach, self.span, strict=True):
            off = log / 3.0 + math.sqrt(log * log / 9.0 + 2.0 * log * most * share * (1.0 - share))
            fewest = least * share - off
            if fewest < 1.0:
                return np.full(len(total), np.inf)
            sums = span * math.sqrt((most * share + off) * log / 2.0)
            total += off / (n * share) * (reach + sums / fewest)
        return total


@dataclass(frozen=True, eq=False)
class LevelScores:
    """The scores of c cells with shares of levels in place of numbers of reports.

    Attributes:
        low: The least score, shape (c,).
        high: The largest.
        variances: By input and cell, shape (K, c).
        slack: What numbers of reports add.
    """

    low: Floats
    high: Floats
    variances: Floats
    slack: LevelSlack


def level_scores(tree: Tree, functionals: Floats) -> LevelScores:
    """Return the scores of functionals of the inputs' shares.

    Args:
        tree: The estimator's tree.
        functionals: 1 for the inputs of a cell, 0 for others, shape (K, c).
    """
    shape = functionals.shape
    coefficients = tree.coefficients(functionals)
    base = coefficients[0].sum(axis=0) if tree.total == "known" else np.zeros(shape[1])
    low, high = np.full(shape[1], np.inf), np.full(shape[1], -np.inf)
    squares, means = np.zeros(shape), np.zeros(shape)
    shares, reaches, spans, ends = [], [], [], []
    for level, moments, h in zip(tree.levels, tree.moments, coefficients, strict=True):
        if level.share <= 0:
            continue
        share, held = float(level.share), h[level.labels]
        centre = held.mean(axis=0)
        sums = [np.broadcast_to(part, shape) for part in (h.sum(axis=0), (h * h).sum(axis=0))]
        second = moments.square(np.stack([*sums, held, held * held]))
        squares += (second - 2.0 * centre * held + centre**2) / share
        means += held - centre
        p, q, size = float(level.support.p), float(level.support.q), level.support.size
        least, most = _extremes(h, size)
        least, most = ((end - q * h.sum(axis=0)) / (p - q) for end in (least, most))
        base = base + centre
        ends.append(((least - centre) / share, (most - centre) / share))
        shares.append(share)
        reaches.append(np.abs(held - centre).max(axis=0))
        spans.append(most - least)
    for least, most in ends:
        low, high = np.minimum(low, base + least), np.maximum(high, base + most)
    return LevelScores(
        low,
        high,
        np.maximum(squares - means**2, 0.0),
        LevelSlack(np.array(shares), np.array(reaches), np.array(spans)),
    )


def _extremes(h: Floats, size: int | None) -> tuple[Floats, Floats]:
    """Return the least and the largest sum of h over a set of `size` cells, or of any size, shape (c,)."""
    if size is None:
        return np.minimum(h, 0.0).sum(axis=0), np.maximum(h, 0.0).sum(axis=0)
    ordered = np.sort(h, axis=0)
    return ordered[:size].sum(axis=0), ordered[len(ordered) - size :].sum(axis=0)
