"""The parts that all listings of columns share: basis, exponential, start, and a pricing of every column."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.numeric import checked_epsilon
from hubbub_authoring.floor.programme import Aim, Columns, DualPoint, Floats, Price, highest_of

_ADDED: Final = 24
"""Columns added per round of column generation."""

_AT_ONCE: Final = 16
"""Directions whose extreme columns are sought together."""

_LOOKED: Final = 1 << 18
"""Columns that a start looks at; of more, every few of them: those beside each other are nearly alike."""


def exp_above(epsilon: float) -> float:
    """Return a float at least e^epsilon: a larger one allows more channels, so that floors stay floors."""
    return math.exp(checked_epsilon(epsilon)) * (1.0 + 2.0**-50)


def plane(u: Floats) -> Floats:
    """Return an orthonormal basis of the vectors at right angles to u, shape (d, d - 1)."""
    return np.asarray(np.linalg.svd(u[None, :])[2][1:].T)


def priced(aim: Aim, every: Columns) -> Price:
    """Return the pricing that evaluates every column."""

    def price(point: DualPoint) -> tuple[float, Columns]:
        h, _ = point.heights(aim, every)
        top = np.argpartition(-h, min(_ADDED, len(h) - 1))[:_ADDED]
        return highest_of(point, aim, every), every.take(top)

    return price


def extremes(columns: Columns) -> NDArray[Any]:
    """Return the indices of a few hundred columns that are extreme in some direction, to start with.

    Their mixtures reach r = 0 unless directions are unlucky; the seed is fixed, so that a floor is the same
    number wherever it is computed.
    """
    rng = np.random.default_rng(1)
    d, q = columns.deviations.shape[1], columns.gains.shape[1]
    directions = rng.normal(size=(d, 40 * (d + 1)))
    weights = rng.dirichlet(np.ones(max(q, 1)), size=directions.shape[1]).T[:q]
    looked = np.arange(0, len(columns), -(-len(columns) // _LOOKED))
    columns = columns.take(looked)
    size = max(float(np.abs(columns.deviations).max(initial=0.0)), 1e-300)
    gains = columns.gains / np.maximum(columns.gains.max(axis=0, initial=0.0), 1e-300)
    found = [np.argsort(-gains.sum(axis=1))[:50]]
    for at in range(0, directions.shape[1], _AT_ONCE):
        part = slice(at, at + _AT_ONCE)
        score = columns.deviations @ directions[:, part] / size * 0.2 + gains @ weights[:, part]
        found.append(np.ascontiguousarray(score.T).argmax(axis=1))
    return looked[np.unique(np.concatenate(found))]
