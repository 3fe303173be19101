"""The floor of any question about few inputs, by all the sets there are, for any prior and any error.

For many inputs and questions a search finds columns: the channel over them is a design, and no proof. Of K
inputs there are 2^K columns, and for several questions no formula prices them all. But the least error under
a bound of the trace (`spectral`) tells what the information should look like: a multiple of the square root
of the questions' matrix. Sets that the largest of K normal numbers with that covariance make have it nearly;
the programme over some hundred of these is then improved by sets that grow out of the best ones, one input at
a time, while their height rises. Drawn numbers come from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_authoring.floor.columns import exp_above, extremes, plane, priced
from hubbub_authoring.floor.programme import Aim, Certificate, Columns, Floats, certify, solve

MAX_PATTERN_INPUTS: Final = 13
"""2^13 sets in 169 variables: a second or two. Symmetric questions have no such bound, see `orbits`."""


def pattern_floor(
    questions: Floats | Sequence[Sequence[float]], prior: Floats | Sequence[float], *, epsilon: float
) -> Certificate:
    """Return the least summed error of linear functionals that any epsilon-LDP channel can have.

    Args:
        questions: L, shape (r, K): the sums of shares that are asked for; the error is the trace of the
            covariance of their estimates, per report.
        prior: Shares of the inputs in the population, shape (K,), >= 0, summing to one; 0 for an input that
            has to be told apart though nobody holds it, such as missing.
        epsilon: Of the channels.

    Raises:
        ParameterError: If there are more than MAX_PATTERN_INPUTS inputs, or shapes do not fit.
    """
    p, asked = np.asarray(prior, dtype=np.float64), np.asarray(questions, dtype=np.float64)
    if p.ndim != 1 or not 2 <= len(p) <= MAX_PATTERN_INPUTS:
        raise ParameterError(f"prior must have 2 to {MAX_PATTERN_INPUTS} shares, got shape {p.shape}")
    if asked.ndim != 2 or asked.shape[1] != len(p):
        raise ParameterError(f"questions must have shape (r, {len(p)}), got {asked.shape}")
    basis = plane(p)
    aim = linear_aim(asked, p, basis)
    bits = (np.arange(1, 2 ** len(p) - 1)[:, None] >> np.arange(len(p))) & 1
    every = set_columns(bits.astype(np.float64), p, basis, exp_above(epsilon))
    start = every if len(every) <= 300 else every.take(extremes(every))
    return certify(aim, start, priced(aim, every))


def linear_aim(questions: Floats, prior: Floats, basis: Floats) -> Aim:
    """Return the aim of functionals, shape (r, K), in a basis of the plane r . p = 0."""
    means = questions @ prior
    pull = basis.T @ (questions - means[:, None]).T
    constant = float((means**2).sum() - ((questions**2) @ prior).sum())
    return Aim(pull, np.zeros(0), constant)


def set_columns(bits: Floats, prior: Floats, basis: Floats, a: float) -> Columns:
    """Return the columns of sets, given as rows of 0 and 1, shape (n, K)."""
    q = 1.0 + (a - 1.0) * bits
    r = q / (q @ prior)[:, None] - 1.0
    return Columns(r @ basis, np.zeros((len(bits), 0)))


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
