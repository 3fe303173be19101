"""The mixture of few orbits that has the least error: a design, to be compiled to integers."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.design.floor.orbits import Classes, Programme, Weights, clustered, listed, orbit_floor
from hubbub.design.floor.programme import Floats, solve

_ACTIVE: Final = 1e-5
"""Orbits whose height is within this share of the highest may be in the best mixture."""

Mixture = list[tuple[list[int], bool, float]]
"""Per orbit its counts per category, whether it holds missing, and its share of the reports."""


def best_mixture(size: int, many: int, *, epsilon: float, weights: Weights, missing: bool) -> Mixture:
    """Return the orbits of the least error for equal categories, with their shares.

    The error depends on a mixture through at most three averages, and rows on two more: so at most four
    orbits are left once shares are moved along what changes none of these (Caratheodory).

    Args:
        size: Values per category.
        many: Categories.
        epsilon: Of the channel.
        weights: What the error is.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If the floor has no answer to these arguments.
    """
    classes = Classes.of([size] * many, missing=missing)
    programme = Programme(classes, epsilon=epsilon, weights=weights)
    orbits = listed(classes)
    every = programme.columns(orbits)
    found = orbit_floor([size] * many, epsilon=epsilon, weights=weights, missing=missing)
    h, _ = found.point.heights(programme.aim, every)
    active = np.flatnonzero(h >= found.highest * (1.0 - _ACTIVE))
    solution = solve(programme.aim, every.take(active))
    scale = np.maximum(np.abs(np.concatenate([every.deviations, every.gains], axis=1)).max(axis=0), 1e-300)
    moments = np.concatenate([solution.columns.deviations, solution.columns.gains], axis=1) / scale
    shares = _few(solution.shares, np.concatenate([np.ones((len(active), 1)), moments], axis=1))
    mixture: Mixture = []
    for at in np.flatnonzero(shares):
        orbit = active[at]
        k, q = int(orbits.counts[orbit, 0]), int(orbits.squares[orbit, 0])
        whole = q == int(clustered(np.array([k]), size)[0])
        counts = [min(size, max(0, k - c * size)) for c in range(many)]
        even = [k // many + (c < k % many) for c in range(many)]
        mixture.append((counts if whole else even, bool(orbits.missing[orbit]), float(shares[at])))
    return mixture


def _few(shares: Floats, moments: Floats) -> Floats:
    """Return shares with the same moments, as few of them positive as there are independent moments."""
    left = np.where(shares > 1e-9, shares, 0.0)
    while True:
        held: NDArray[np.intp] = np.flatnonzero(left)
        table = moments[held].T
        rank = int(np.linalg.matrix_rank(table, tol=1e-9))
        if len(held) <= rank:
            break
        direction = np.linalg.svd(table)[2][-1]
        direction = direction if direction.max() > 0.0 else -direction
        with np.errstate(divide="ignore"):
            steps = np.where(direction > 1e-12, left[held] / direction, np.inf)
        out = int(np.argmin(steps))
        left[held] = np.maximum(left[held] - steps[out] * direction, 0.0)
        left[held[out]] = 0.0
    # The rows' equations, exactly but for rounding.
    held = np.flatnonzero(left)
    rows = moments[held].T[: 1 + max(moments.shape[1] - 1 - _gains(moments), 0)]
    wanted = np.eye(len(rows))[0]
    left[held] += np.linalg.lstsq(rows, wanted - rows @ left[held], rcond=None)[0]
    return left


def _gains(moments: Floats) -> int:
    """Count the trailing moments that are gains, which are never negative, while deviations change sign."""
    signed = (moments < 0.0).any(axis=0)
    return int(moments.shape[1] - 1 - (np.flatnonzero(signed).max() if signed.any() else 0))
