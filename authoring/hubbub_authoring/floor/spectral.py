"""The spectral floor: a floor of any quadratic error, for any crowd, from singular values of the questions.

With p the crowd, D = diag p, P the projection off sqrt(p) and s_i the singular values of L D^(1/2) P, every
epsilon-LDP protocol, sequentially interactive ones too, has

    n times the summed variance of the estimates of L  >=  (sum s_i)^2 c - sum s_i^2,    c = 4a/(a - 1)^2,

where the last term is sampling. A column q is a on a set of mass t and 1 elsewhere, so r = q/(p . q) - 1 has

    sum p r^2 = f(t) = (a - 1)^2 t (1 - t) / (1 + (a - 1) t)^2  <=  f(1/(a + 1)) = 1/c:

no protocol has information J~ about D^(-1/2) f, off sqrt(p), of a greater trace, and by Cauchy-Schwarz tr(W~
J~^-1) >= (tr W~^(1/2))^2 / tr J~. With k equally common inputs t is a multiple of 1/k, and c is 1/max f over
these. Inputs that nobody has drop out.

It is attained where sets of that share give every eigenvalue its part: subset selection for values. It is
loose for few questions about many inputs, such as a mean; for large epsilons; and for skewed crowds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub_authoring.floor.columns import exp_above
from hubbub_authoring.floor.orbits import Weights
from hubbub_authoring.floor.programme import MARGIN, Floats

MAX_SPECTRAL: Final = 1025
"""Inputs up to which singular values of any questions are computed, in half a second: 1,024 and missing."""

_OFF: Final = 2.0**-44
"""Shares that differ by less, of themselves, are equal: a fraction of the margin."""


def spectral_floor(questions: Floats, prior: Floats, *, epsilon: float) -> float:
    """Return a number that no epsilon-LDP protocol's summed error is below, on average over crowds.

    Args:
        questions: L, shape (r, K); the error is the trace of the covariance of their estimates, per report,
            less sampling. A question weighs by the square of its row.
        prior: The crowd p that the average is over, shape (K,), >= 0, summing to one.
        epsilon: Of the channels.

    Returns:
        At least 0.

    Raises:
        ParameterError: If the shapes do not fit, or there are more than MAX_SPECTRAL inputs.
    """
    asked, p = np.asarray(questions, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if p.ndim != 1 or asked.ndim != 2 or asked.shape[1:] != p.shape or len(p) < 2:
        raise ParameterError(f"questions and prior must fit, got shapes {asked.shape} and {p.shape}")
    if len(p) > MAX_SPECTRAL:
        raise ParameterError(f"inputs must be at most {MAX_SPECTRAL} for the spectral floor, got {len(p)}")
    asked, p = asked[:, p > 0.0], p[p > 0.0]
    equal = bool(np.ptp(p) <= _OFF * p.max())
    return _bound(_singular(asked, p), epsilon, len(p) if equal else None)


def spectral_shares(sizes: Sequence[int], *, epsilon: float, weights: Weights, absent: float = 0.0) -> float:
    """Return the spectral floor of a weighted sum of the mean errors of values and of categories.

    Values of a category, and categories of one size, are alike: each of these symmetries has one singular
    value, and as many inputs are left as there are sizes. So any number of values will do.

    Args:
        sizes: Values per category, missing left out.
        epsilon: Of the channels.
        weights: What the error is.
        absent: The share of devices that have no value, below 1; all values are equally common.
    """
    found = sorted(Counter(sizes).items())
    s, m = np.array(found, dtype=np.float64).T
    share, per_value = (1.0 - absent) / (s @ m), weights.value / (s @ m)
    worth = per_value + weights.category / m.sum() * s
    whole = np.append(m * s * share, absent)
    reduced = np.pad(np.diag(np.sqrt(worth / (m * s))), ((0, 0), (0, 1)))
    between = _singular(reduced, whole)
    singular = np.concatenate([between, np.sqrt(share * worth), [math.sqrt(share * per_value)]])
    times = np.concatenate([np.ones(len(between)), m - 1.0, [m @ (s - 1.0)]])
    return _bound(singular, epsilon, sum(sizes) if absent == 0.0 else None, times)


def spectral_tables(readings: Sequence[int], tables: Sequence[Sequence[int]], *, epsilon: float) -> float:
    """Return the spectral floor of the summed error of the cells of tables, all combinations equally common.

    Permuting an attribute's readings changes nothing, so that one singular value belongs to every set A of
    attributes, with multiplicity prod_{j in A} (r_j - 1): its square is the sum over the tables T that hold A
    of 1 / prod_{j in T} r_j.

    Args:
        readings: r_j per attribute, at least 2, missing included.
        tables: The attributes of every table that is asked.
        epsilon: Of the channels.
    """
    squares: dict[tuple[int, ...], float] = {}
    for table in tables:
        part = 1.0 / math.prod(readings[j] for j in table)
        for order in range(1, len(table) + 1):
            for spaces in combinations(sorted(table), order):
                squares[spaces] = squares.get(spaces, 0.0) + part
    times = np.array([math.prod(readings[j] - 1.0 for j in spaces) for spaces in squares])
    return _bound(np.sqrt(list(squares.values())), epsilon, math.prod(readings), times)


def spectral_tree(sizes: Sequence[Sequence[int]], *, epsilon: float) -> float:
    """Return the spectral floor of the mean errors of all levels of a tree of labels, added up.

    All values are equally common, and nobody is missing. With B_l the table that is 1 where two values are in
    one category of level l, and m_l categories, the squares of the singular values are the eigenvalues of
    P (sum B_l / m_l) P / K. Branches that are alike in all but their place change nothing when they change
    places: what differs between them has the eigenvalues of one of them, as often as there are further ones,
    and for the rest one value stands for all that are alike.

    Args:
        sizes: Values in every category, level by level from the coarsest; the values follow as a level.
        epsilon: Of the channels.

    Raises:
        ParameterError: If more than MAX_SPECTRAL values are unlike.
    """
    points = sum(sizes[0])
    levels = [np.cumsum([0, *level]) for level in (*sizes, [1] * points)]
    known: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    kinds: list[_Branch] = []
    below: list[int] = []
    for level in range(len(levels) - 1, -1, -1):
        weight = 1.0 / (len(levels[level]) - 1)
        first = np.searchsorted(levels[level + 1], levels[level]) if below else levels[level]
        found = []
        for start, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
            inner = tuple(sorted(Counter(below[start:end]).items()))
            if (level, inner) not in known:
                known[level, inner] = len(kinds)
                kinds.append(_Branch.of([(kinds[kind], many) for kind, many in inner], weight))
            found.append(known[level, inner])
        below = found
    whole = _Branch.of([(kinds[kind], many) for kind, many in Counter(below).items()], 0.0)
    unit = np.sqrt(whole.alike / points)
    off = np.eye(len(unit)) - np.outer(unit, unit)
    squares = np.append(np.linalg.eigvalsh(off @ whole.table @ off), list(whole.others))
    times = np.append(np.ones(len(unit)), list(whole.others.values()))
    return _bound(np.sqrt(np.maximum(squares, 0.0) / points), epsilon, points, times)


@dataclass(frozen=True)
class _Branch:
    """A branch of a tree of labels.

    Attributes:
        table: Its part of the sum of B_l / m_l, with one value for all that are alike, shape (k, k).
        alike: How many are, shape (k,).
        others: The eigenvalues between those that are alike, and how often each is there.
    """

    table: Floats
    alike: Floats
    others: Mapping[float, float]

    @classmethod
    def of(cls, parts: Sequence[tuple[_Branch, int]], weight: float) -> _Branch:
        """Return the branch of so many of each kind; without any, a value."""
        alike = np.concatenate([[1.0] if not parts else [], *(many * part.alike for part, many in parts)])
        if len(alike) > MAX_SPECTRAL:
            raise ParameterError(f"values of a tree must be of at most {MAX_SPECTRAL} kinds for its floor")
        table = weight * np.sqrt(np.outer(alike, alike))
        others: dict[float, float] = {}
        place = 0
        for part, many in parts:
            end = place + len(part.alike)
            table[place:end, place:end] += part.table
            place = end
            between = np.linalg.eigvalsh(part.table).tolist() if many > 1 else []
            for value, times in (*part.others.items(), *((value, 1.0 - 1.0 / many) for value in between)):
                others[value] = others.get(value, 0.0) + many * times
        return cls(table, alike, others)


def _singular(asked: Floats, prior: Floats) -> Floats:
    """Return the singular values of L D^(1/2) P."""
    centred = (asked - (asked @ prior)[:, None]) * np.sqrt(prior)
    return np.asarray(np.linalg.svd(centred, compute_uv=False))


def _bound(singular: Floats, epsilon: float, equal: int | None, times: Floats | None = None) -> float:
    """Return the floor of singular values and their multiplicities, rounded down.

    Args:
        singular: s.
        epsilon: Of the channels.
        equal: How many inputs share the crowd equally; None where they do not.
        times: How often each is there; once, if absent.
    """
    if equal == 1:
        return 0.0
    many = np.ones(len(singular)) if times is None else times
    # LAPACK's singular values are off by less than their largest times the size of the matrix and 2^-52.
    off = float(singular.max()) * MARGIN
    roots = float(many @ np.maximum(singular - off, 0.0))
    sampling = float(many @ (singular + off) ** 2)
    a1 = exp_above(epsilon) - 1.0
    most = a1 * a1 / (4.0 * (a1 + 1.0))
    if equal is not None:
        t = _near(equal, 1.0 / (a1 + 2.0))
        most = float((t * (1.0 - t) * (a1 / (1.0 + a1 * t)) ** 2).max())
    return max(0.0, roots**2 / most * (1.0 - MARGIN) - sampling * (1.0 + MARGIN))


def _near(equal: int, best: float) -> Floats:
    """Return the multiples of 1/k, within (0, 1), beside the best t: f rises before and falls after it."""
    at = math.floor(best * equal)
    return np.unique(np.clip([at, at + 1], 1, equal - 1)) / equal


def cumulative_questions(points: int, low: int = 1, high: int | None = None) -> Floats:
    """Return L of the mean over the cumulative shares of the first `low` to `high` of K points.

    Args:
        points: K.
        low: At least 1.
        high: At most K - 1, which None means.

    Returns:
        Shape (high - low + 1, K).
    """
    rows = np.tril(np.ones((points - 1, points)))[low - 1 : high]
    return np.asarray(rows / np.sqrt(len(rows)))


def range_questions(points: int) -> Floats:
    """Return L whose summed error is the mean over the shares of all ranges of K points, shape (K, K)."""
    return np.asarray(np.linalg.cholesky(range_gram(points)).T / math.sqrt(points * (points + 1.0) / 2.0))


def range_gram(points: int) -> Floats:
    """Return how many of all ranges of K points hold both the i-th and the j-th, shape (K, K)."""
    i = np.arange(1.0, points + 1.0)
    return np.asarray(np.minimum(i[:, None], i) * (points + 1.0 - np.maximum(i[:, None], i)))
