"""The entry of orbit channels: their keys, and the mixture of least error for a request or a workload.

It stands among the floors because the mixture is what the floor's programme finds; devices never load it.

The mixture is of few orbits: a design, to be compiled to integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import MAX_INPUTS
from hubbub.errors import ParameterError
from hubbub.mechanisms import compiled, shortest
from hubbub.numeric import checked_epsilon
from hubbub_authoring.floor.orbits import Classes, Programme, Weights, clustered, listed, orbit_floor
from hubbub_authoring.floor.programme import Columns, Floats, Optimum, solve
from hubbub_authoring.mechanisms.mechanism import READING, Judge, Mechanism, RealKey, Request, Trial

if TYPE_CHECKING:
    from hubbub.mechanisms import OrbitChannel
    from hubbub_authoring.mechanisms.workload import Workload


_WEIGHT: Final = RealKey(
    "category_weight",
    "`category_weight`, the weight of categories in the error that is made least; values have the rest (0.5)",
    low=0.0,
    high=0.999,
)


MAX_SPENT: Final = 20.0
"""The most of an epsilon that orbits use: beyond it the search takes minutes, for what no round can show."""


def orbits(sizes: Sequence[int], *, epsilon: float, category_weight: float = 0.5) -> OrbitChannel:
    """Return the orbit channel of the least error of values and categories, with a missing input, last.

    Args:
        sizes: Values per category, missing left out.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        category_weight: The weight of the categories' mean error; the values' has the rest.

    Raises:
        ParameterError: If a parameter is out of range, or sizes have too many orbits to look at.

    >>> len(orbits([10] * 9, epsilon=1.0).orbits)
    3
    """
    return _built(tuple(sizes), min(checked_epsilon(epsilon), MAX_SPENT), category_weight)


@lru_cache(maxsize=16)
def _built(sizes: tuple[int, ...], epsilon: float, category_weight: float) -> OrbitChannel:
    if not 0.0 <= category_weight < 1.0:
        raise ParameterError(f"category_weight must be within [0, 1), got {category_weight!r}")
    if sum(sizes) > MAX_INPUTS:  # said before the mixture is sought, which takes as long as a floor
        raise ParameterError(f"categories must have 2 to {MAX_INPUTS} values, each one at least")
    weights = Weights(1.0 - category_weight, category_weight if len(sizes) > 1 else 0.0)
    mixture = best_mixture(sizes, epsilon=epsilon, weights=weights, missing=True)
    return shortest(compiled(sizes, mixture, epsilon=epsilon, missing=True))


def _of_request(request: Request) -> OrbitChannel:
    weight = _WEIGHT.read(request)
    return orbits(
        request.sizes[:-1], epsilon=request.epsilon, category_weight=0.5 if weight is None else weight
    )


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    sizes, objective, epsilon = workload.sizes[:-1], workload.objective, workload.epsilon
    many, k = len(sizes), sum(sizes)
    if objective.quantity == "category" and 1 < many < k:
        yield Trial(
            {"reading": "category", "category_weight": 0.0},
            lambda: orbits([1] * many, epsilon=epsilon, category_weight=0.0),
            7,
            by_category=True,
        )
        return
    if workload.kind != "labels":
        return
    weight = 0.0
    if objective.quantity == "both" and many > 1:
        # Totals weigh the means of m categories and K values by their numbers.
        parts = (k, many) if objective.of == "totals" else (1, 1)
        own = objective.category_weight * parts[1]
        weight = own / (own + (1.0 - objective.category_weight) * parts[0])
    yield Trial(
        {"category_weight": weight}, lambda: orbits(sizes, epsilon=epsilon, category_weight=weight), 7
    )


ENTRIES: Final = (
    Mechanism(
        name="orbits",
        purpose="values and categories both, at the least error that any mechanism can have",
        keys=(_WEIGHT, READING),
        takes=frozenset({"labels"}),
        build=_of_request,
        trials=_trials,
    ),
)


_MOST: Final = 400
"""Orbits among which the mixture is found, the highest ones."""

_ACTIVE: Final = 1e-5
"""Orbits whose height is within this share of the highest may be in the best mixture."""

_USED: Final = 1e-9
"""Shares of a solution that are more than rounding."""

_OFF: Final = 1e-2
"""The most by which the rows of a solution may miss one: less is closed once the orbits are few."""

Mixture = list[tuple[list[list[int]], bool, float]]
"""Per orbit its counts per class and category, whether it holds missing, and its share of the reports."""


def best_mixture(sizes: Sequence[int], *, epsilon: float, weights: Weights, missing: bool) -> Mixture:
    """Return the orbits of the least error, with their shares.

    Rows and the error depend on a mixture through the averages of r, of r r^T and of the gains: so few orbits
    are left once shares are moved along what changes none of these (Caratheodory); at most four where
    categories are equal. Classes are in falling order of their sizes, as in a channel.

    Args:
        sizes: Values per category.
        epsilon: Of the channel.
        weights: What the error is.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If the floor has no answer to these arguments.
    """
    classes = Classes.of(sizes, missing=missing)
    programme = Programme(classes, epsilon=epsilon, weights=weights)
    orbits = listed(classes)
    every = programme.columns(orbits)
    found = orbit_floor(sizes, epsilon=epsilon, weights=weights, missing=missing)
    h, _ = found.point.heights(programme.aim, every)
    highest = np.argsort(-h)
    near = np.count_nonzero(h >= found.highest * (1.0 - _ACTIVE))
    # However steep the heights are, every kind of error needs an orbit that makes it smaller.
    heard = (np.cumsum(every.gains[highest] > 0.0, axis=0) > 0).all(axis=1)
    active = highest[: max(min(near, _MOST), int(np.argmax(heard)) + 1)]
    solution = solve(programme.aim, every.take(active))
    if np.abs(solution.shares @ solution.columns.deviations).max(initial=0.0) > _OFF:
        # Many orbits are nearly as high, and those kept lie on one side: the floor's own ones close the rows.
        active = np.union1d(active, _places(every, found.solution))
        solution = solve(programme.aim, every.take(active))
    r, gains = solution.columns.deviations, solution.columns.gains
    upper = np.triu_indices(r.shape[1])
    squares = (r[:, :, None] * r[:, None, :])[:, *upper]
    moments = np.concatenate([r, squares, gains], axis=1)
    moments /= np.maximum(np.abs(moments).max(axis=0), 1e-300)
    shares = _few(
        solution.shares, np.concatenate([np.ones((len(active), 1)), moments], axis=1), 1 + r.shape[1]
    )
    mixture: Mixture = []
    for at in np.flatnonzero(shares):
        orbit, counts = active[at], []
        for g, (size, many) in enumerate(zip(classes.sizes, classes.many, strict=True)):
            k, q = int(orbits.counts[orbit, g]), int(orbits.squares[orbit, g])
            whole = q == int(clustered(np.array([k]), size)[0])
            even = [k // many + (c < k % many) for c in range(many)]
            counts.append([min(size, max(0, k - c * size)) for c in range(many)] if whole else even)
        mixture.append((counts, bool(orbits.missing[orbit]), float(shares[at])))
    return mixture


def _places(every: Columns, solution: Optimum) -> NDArray[np.intp]:
    """Return the indices of the columns that a solution uses."""
    used = np.flatnonzero(solution.shares > _USED)
    found = [
        np.flatnonzero((every.deviations == r).all(axis=1) & (every.gains == g).all(axis=1))[0]
        for r, g in zip(solution.columns.deviations[used], solution.columns.gains[used], strict=True)
    ]
    return np.array(found, dtype=np.intp)


def _few(shares: Floats, moments: Floats, rows: int) -> Floats:
    """Return shares with the same moments, as few of them positive as there are independent moments.

    The first `rows` moments are those of the equations of the channel's rows: they are closed at the end.
    """
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
    held = np.flatnonzero(left)
    equations = moments[held].T[:rows]
    wanted = np.eye(rows)[0]
    left[held] += np.linalg.lstsq(equations, wanted - equations @ left[held], rcond=None)[0]
    return left
