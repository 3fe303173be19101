"""The best channel of many questions at once, over columns that a search finds: a design, and no proof.

Of K inputs there are 2^K columns, and for several questions no formula prices them all. But the least error
under a bound of the trace (`spectral`) tells what the information should look like: a multiple of the square
root of the questions' matrix. Sets that the largest of K normal numbers with that covariance make have it
nearly; the programme over some hundred of these is then improved by sets that grow out of the best ones, one
input at a time, while their height rises. Drawn numbers come from a fixed seed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub_authoring.floor.columns import plane
from hubbub_authoring.floor.patterns import linear_aim, set_columns
from hubbub_authoring.floor.programme import Aim, Floats, solve

_DRAWN: Final = 8
"""Sets drawn per input, before their mirror images; at least 150."""

_ROUNDS: Final = 6
_BETTER: Final = 2e-3
"""The end of the search: a round that gains less of the error."""

_KEPT: Final = 300
_GROWN: Final = 100
"""Sets of a round that are kept, and those that join them before their mirror images."""

_LIFTS: Final = 400
"""Inputs that a set may gain or lose while its height rises; a dozen are usual."""

_INSIDE: Final = 1e-4
_END: Final = 1e-6
"""Gaps of the programmes of a round, which ends well inside, and of the last one."""


def best_columns(questions: Floats, prior: Floats, a: float, *, most: int) -> Floats:
    """Return the rows of a channel of small summed error, over at most so many outputs.

    Args:
        questions: L, shape (r, K).
        prior: p, shape (K,), >= 0, summing to one; 0 for missing.
        a: e^epsilon, > 1.
        most: Outputs, at least 4 K.

    Returns:
        Probabilities, shape (K, M), nearly summing to one per row.
    """
    basis = plane(prior)
    aim = linear_aim(questions, prior, basis)
    sets = _drawn(questions, prior, a)
    last = np.inf
    for at in range(_ROUNDS):
        found = solve(aim, set_columns(sets, prior, basis, a), gap=_INSIDE)
        order = np.argsort(-found.shares)
        if at == _ROUNDS - 1 or found.value > last * (1.0 - _BETTER):
            break
        last = found.value
        slopes, rows = basis @ found.point.slopes, basis @ found.point.rows
        more = _grown(sets[order[: 2 * _GROWN]], slopes, rows, prior, a)
        sets = _proper([sets[order[:_KEPT]], more, _mirrored(more, prior)])
    sets = sets[order[:most]]
    return _rows(aim, sets, prior, basis, a)


def _rows(aim: Aim, sets: Floats, prior: Floats, basis: Floats, a: float) -> Floats:
    found = solve(aim, set_columns(sets, prior, basis, a), gap=_END)
    q = 1.0 + (a - 1.0) * sets
    return np.asarray((q * (found.shares / (q @ prior))[:, None]).T)


def _drawn(questions: Floats, prior: Floats, a: float) -> Floats:
    """Return sets whose information is nearly that of the least error under a bound of its trace."""
    rng = np.random.default_rng(1)
    held = np.flatnonzero(prior > 0.0)
    k, many = len(held), max(150, _DRAWN * len(held))
    centred = questions[:, held] - questions[:, held].mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    numbers = rng.normal(size=(many, k)) @ (vectors * np.maximum(values, 0.0) ** 0.25).T
    sizes = np.arange(1, k)
    best = int(sizes[np.argmax(sizes * (1.0 - sizes / k) / (1.0 + (a - 1.0) * sizes / k) ** 2)])
    taken = np.clip(best + rng.integers(-1, 2, size=many), 1, max(k - 1, 1))
    sets = (rng.random((many, len(prior))) < 0.2).astype(np.float64)  # missing joins a fifth of them
    sets[:, held] = np.argsort(np.argsort(-numbers, axis=1), axis=1) < taken[:, None]
    return _proper([sets, _mirrored(sets, prior), np.eye(len(prior))])


def _mirrored(sets: Floats, prior: Floats) -> Floats:
    """Return the sets with the inputs that have a prior in reverse order: as good, for equal points."""
    held = np.flatnonzero(prior > 0.0)
    turned = sets.copy()
    turned[:, held] = sets[:, held[::-1]]
    return turned


def _grown(sets: Floats, slopes: Floats, rows: Floats, prior: Floats, a: float) -> Floats:
    """Return sets higher than the given ones, by the input whose change raises the height most."""
    table = slopes @ slopes.T
    ones, own = table.sum(axis=0), np.diag(table)
    passed: list[tuple[Floats, Floats]] = []
    sets, floor = sets.copy(), -np.inf
    for _ in range(_LIFTS):
        q = 1.0 + (a - 1.0) * sets
        share, image = q @ prior, q @ table
        square, line = (q * image).sum(axis=1), 2.0 * (q @ ones) + q @ rows
        heights = square / share**2 - line / share
        floor = max(floor, float(heights.max())) if not passed else floor
        passed.append((sets[heights > floor], heights[heights > floor]))
        step = np.where(sets > 0.0, 1.0 - a, a - 1.0)
        after = share[:, None] + step * prior
        lifted = (square[:, None] + 2.0 * step * image + step**2 * own) / after**2
        lifted -= (line[:, None] + step * (2.0 * ones + rows)) / after
        input_: NDArray[np.intp] = lifted.argmax(axis=1)
        each = np.arange(len(sets))
        rises = lifted[each, input_] > heights + 1e-12 * np.abs(heights)
        if not rises.any():
            break
        sets, input_ = sets[rises], input_[rises]
        each = np.arange(len(sets))
        sets[each, input_] = 1.0 - sets[each, input_]
    found, where = np.unique(np.concatenate([part for part, _ in passed]), axis=0, return_index=True)
    heights = np.concatenate([part for _, part in passed])[where]
    # The highest alone are near each other: take some of all that are above what there was.
    order = np.argsort(-heights)
    return np.asarray(found[order[:: max(1, len(order) // _GROWN)]][:_GROWN])


def _proper(parts: list[Floats]) -> Floats:
    """Return all different sets that are neither empty nor full."""
    sets = np.unique(np.concatenate(parts), axis=0)
    sizes = sets.sum(axis=1)
    return np.asarray(sets[(sizes > 0) & (sizes < sets.shape[1])])
