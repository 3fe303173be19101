"""The floor of one linear functional, such as the mean of a number: its columns are priced exactly.

For one functional Y is a vector y, and a set's height is h = (y . r)^2 - nu . r with r = q/(p . q) - 1. With
y' = y - (y . 1) p and nu' = nu - (nu . 1) p a level H is above all heights iff for every q in {1, a}^K

    (y' . q)^2 / (p . q) - nu' . q - H p . q <= 0,

whose left side is the maximum over t of sum_x q_x s_x(t), s_x(t) = 2 t y'_x - t^2 p_x - nu'_x - H p_x. For
a given t the best q_x is a where s_x(t) > 0 and 1 elsewhere. Each s_x has at most two real roots, so
between the at most 2K roots the best q does not change: 2K + 1 sets are all candidates. Raising H to the
greatest height among them, until it stays, ends at the greatest height of all (Dinkelbach 1967); as p . q
>= 1 what is left above zero then bounds it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub_authoring.floor.columns import exp_above, plane
from hubbub_authoring.floor.patterns import linear_aim, set_columns
from hubbub_authoring.floor.programme import MARGIN, Certificate, Columns, DualPoint, Floats, certify
from hubbub_authoring.floor.readings import FINE, best_readings

_RAISES: Final = 50
_GAP: Final = 5e-4
"""The end of the search, as a share of the error: the floor is at most that much below the best channel."""

MOST_READ: Final = 129
"""Inputs with a prior whose programme of readings is solved as it is: two seconds."""

MOST_SEARCHED: Final = 24
"""Inputs with a prior of which the dual point is searched for where scipy is not installed: a second."""

_PEAKS: Final = 16
"""Sets taken per round, each the highest among those whose t is near."""


def linear_floor(functional: Floats, prior: Floats, *, epsilon: float, gap: float = _GAP) -> Certificate:
    """Return the least error of one linear functional of the shares, per report.

    Args:
        functional: Its coefficient per input, shape (K,).
        prior: Shares of the inputs, shape (K,), >= 0, summing to one; 0 for missing.
        epsilon: Of the channels.
        gap: Where the search ends, as a share of the error.

    Raises:
        ParameterError: If the shapes differ.
    """
    h, p = np.asarray(functional, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if h.shape != p.shape or h.ndim != 1 or len(h) < 2:
        raise ParameterError(f"functional and prior must have one shape (K,), got {h.shape} and {p.shape}")
    a, basis = exp_above(epsilon), plane(p)
    aim = linear_aim(h[None, :], p, basis)

    def price(point: DualPoint) -> tuple[float, Columns]:
        highest, sets = greatest_height(basis @ point.slopes[:, 0], basis @ point.rows, p, a)
        return highest, set_columns(sets, p, basis, a)

    return certify(aim, set_columns(_thresholds(h, p), p, basis, a), price, gap=gap, first=1e-2)


def reading_floor(functional: Floats, prior: Floats, *, epsilon: float) -> float:
    """Return the least error of one linear functional, its dual point found by `readings`.

    Of more than MOST_READ inputs the dual point is that of MOST_READ equally spaced ones, interpolated: any
    point gives a floor.

    Args:
        functional: Its coefficient per input, shape (K,).
        prior: Shares of the inputs, shape (K,), >= 0, summing to one; 0 for missing.
        epsilon: Of the channels.

    Raises:
        ParameterError: If the programme has no solution.
        ModuleNotFoundError: If scipy is not installed.
    """
    a, held = exp_above(epsilon), prior > 0.0
    if held.sum() <= MOST_READ:
        found = best_readings(functional, prior, a, fine=FINE if held.sum() <= 65 else FINE // 2)
        return _at(functional, prior, a, found.alpha, found.slopes)
    few, part = _spaced(functional, prior, MOST_READ)
    found = best_readings(few, part, a)
    return _interpolated(functional, prior, a, (few, part), (found.alpha, found.slopes))


def searched_floor(functional: Floats, prior: Floats, *, epsilon: float) -> float:
    """Return the same without scipy: of more than MOST_SEARCHED inputs a looser floor, in some two seconds.

    Args:
        functional: Its coefficient per input, shape (K,).
        prior: Shares of the inputs, shape (K,), >= 0, summing to one; 0 for missing.
        epsilon: Of the channels.
    """
    if (prior > 0.0).sum() <= MOST_SEARCHED:
        return linear_floor(functional, prior, epsilon=epsilon).floor
    best = 0.0
    for count in (
        MOST_SEARCHED,
        MOST_SEARCHED - 3,
        MOST_SEARCHED - 7,
    ):  # any is a floor, and one may be loose
        few, part = _spaced(functional, prior, count)
        point, basis = linear_floor(few, part, epsilon=epsilon).point, plane(part)
        dual = -(basis @ point.rows), 2.0 * (basis @ point.slopes[:, 0])
        best = max(best, _interpolated(functional, prior, exp_above(epsilon), (few, part), dual))
    return best


def _spaced(functional: Floats, prior: Floats, count: int) -> tuple[Floats, Floats]:
    """Return so many equally spaced points with as much of the prior each, and what has none behind them."""
    held = prior > 0.0
    points, rest = functional[held], functional[~held]
    few = np.linspace(points.min(), points.max(), count)
    return np.append(few, rest), np.append(np.full(count, prior.sum() / count), np.zeros(len(rest)))


def _interpolated(
    functional: Floats,
    prior: Floats,
    a: float,
    spaced: tuple[Floats, Floats],
    dual: tuple[Floats, Floats],
) -> float:
    """Return the floor at the dual point of spaced points, interpolated: any point gives a floor."""
    (few, part), held = spaced, prior > 0.0
    count = int((part > 0.0).sum())
    own = (np.zeros(len(prior)), np.zeros(len(prior)))
    for target, known in zip(own, dual, strict=True):
        target[held] = np.interp(functional[held], few[:count], known[:count] / part[:count]) * prior[held]
        target[~held] = known[count:]
    return _at(functional, prior, a, *own)


def _at(functional: Floats, prior: Floats, a: float, alpha: Floats, slopes: Floats) -> float:
    """Return the floor that a dual point proves."""
    basis = plane(prior)
    aim = linear_aim(functional[None, :], prior, basis)
    point = DualPoint((basis.T @ slopes / 2.0)[:, None], np.zeros(0), -(basis.T @ alpha))
    highest, _ = greatest_height(basis @ point.slopes[:, 0], basis @ point.rows, prior, a)
    return point.floor(aim, highest)


def greatest_height(y: Floats, nu: Floats, prior: Floats, a: float) -> tuple[float, Floats]:
    """Return a bound of the heights of all sets, rounded up, and sets whose heights are near it.

    Args:
        y: The slope per input, shape (K,).
        nu: The multiplier per input, shape (K,).
        prior: Shape (K,).
        a: e^epsilon.

    Returns:
        The bound, and sets as rows of 0 and 1, shape (n, K).
    """
    y1, nu1 = y - y.sum() * prior, nu - nu.sum() * prior
    level = 0.0
    for _ in range(_RAISES):
        sets = _candidates(y1, nu1 + level * prior, prior)
        heights = _heights(sets, y1, nu1, prior, a)
        if heights.max() <= level * (1.0 + 1e-14):
            break
        level = float(heights.max())
    q = 1.0 + (a - 1.0) * sets
    t = np.abs((q @ y1) / (q @ prior)).max()
    size = a * float(
        (2.0 * t * (np.abs(y1) + prior) + t * t * prior + np.abs(nu1) + prior + level * prior).sum()
    )
    left, right = np.append(-np.inf, heights[:-1]), np.append(heights[1:], -np.inf)
    peaks = np.flatnonzero((heights >= left) & (heights >= right))
    top = peaks[np.argsort(-heights[peaks])[:_PEAKS]]
    return max(level, float(heights.max())) + MARGIN * size, np.unique(sets[top], axis=0)


def _heights(sets: Floats, y: Floats, nu: Floats, prior: Floats, a: float) -> Floats:
    q = 1.0 + (a - 1.0) * sets
    share = q @ prior
    return np.asarray(((q @ y) / share) ** 2 - (q @ nu) / share)


def _candidates(y: Floats, offset: Floats, prior: Floats) -> Floats:
    """Return the sets {x : s_x(t) > 0} for t between any two roots of any s_x, shape (n, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(y * y - prior * offset, 0.0))
        real = (prior > 0.0) & (y * y >= prior * offset)
        ends = np.concatenate(
            [
                ((y - root) / prior)[real],
                ((y + root) / prior)[real],
                (offset / (2.0 * y))[(prior == 0.0) & (y != 0.0)],
            ]
        )
    ends = np.unique(ends[np.isfinite(ends)])
    if not len(ends):
        ends = np.zeros(1)
    reach = 1.0 + float(np.abs(ends).max())
    between = np.concatenate([[-2.0 * reach], (ends[1:] + ends[:-1]) / 2.0, [2.0 * reach]])
    s = 2.0 * between[:, None] * y - between[:, None] ** 2 * prior - offset
    return np.asarray((s > 0.0).astype(np.float64))


def _thresholds(functional: Floats, prior: Floats) -> Floats:
    """Return the sets of inputs above, or below, some coefficient, each with and without those of prior 0."""
    order = [x for x in np.argsort(functional, kind="stable") if prior[x] > 0.0]
    up = np.zeros((len(order) + 1, len(functional)))
    for j in range(len(order) + 1):
        up[j, order[j:]] = 1.0
    sets = np.concatenate([up, up])
    nobody = prior == 0.0
    sets[: len(up), nobody] = 1.0
    sets = np.concatenate([sets, 1.0 - sets])
    some = (sets.sum(axis=1) > 0) & (sets.sum(axis=1) < len(functional))
    return np.asarray(np.unique(sets[some], axis=0))
