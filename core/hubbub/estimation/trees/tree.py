"""Shares of the nodes of a tree of groupings, from reports that are each about one of its levels.

A report about level k is a set of that level's cells, with probability p one that holds the true cell, and
with probability q one that holds any other given cell (`hubbub.channels.sets.Support`). For a report at hand

    b_x = (1[x in S] - q) / (p - q)

is an unbiased estimate of whether its cell is x. Its mean over the n_k reports about a level estimates the
shares y of the level's cells among all devices, because a public coin chose who reports about what. Estimates
of all levels are joined by least squares on the tree (Hay et al. 2010), with weights w and r that the design
fixes; weights taken from the counts would bias the estimate:

    upwards     z_u = w_u y_u + (1 - w_u) sum of z over the children of u,
    downwards   s_u = z_u + r_u (s_parent - sum of z over the parent's children).

So every s_u is a sum over levels k of means of h^k . b, for vectors h^k known by a few numbers per node. The
reports about different levels come from different devices, drawn without replacement from all n:

    Var(s_u) = sum over k of (E[(h^k . b)^2] - E[h^k . b]^2) / n_k  -  (f_u - f_u^2) / n,

which counts the randomisation, and who was asked what, given the n devices.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import Level, Support
from hubbub.errors import ParameterError
from hubbub.estimation.trees.node_variances import NodeVariances
from hubbub.estimation.trees.set_moments import SetMoments, noise_kinds

Floats = NDArray[np.float64]

_POWERS = np.array([1, 2, 1, 2])[:, None]
"""The powers of h by which sums of h, h^2, h f and h^2 f scale."""

_CUBES = np.array([1, 2, 3, 1, 2, 3])[:, None]
"""The powers of h by which sums of h, h^2, h^3, h f, h^2 f and h^3 f scale."""


@dataclass(frozen=True)
class Moments:
    """The constants of E[(h . b)^2] for one level, exact in the integers and then rounded once.

    With a1, ..., a4 and sums over the level's cells, f the shares:

        E[(h . b)^2] = a1 sum h^2 f + a2 (sum h)(sum h f) + a3 sum h^2 + a4 (sum h)^2.
    """

    a1: float
    a2: float
    a3: float
    a4: float

    @classmethod
    def of(cls, support: Support) -> Moments:
        """Return the constants of a support."""
        p, q = support.p, support.q
        own, other = p * (1 - p), q * (1 - q)
        with_own, without = support.p_pair - p * q, support.q_pair - q * q
        scale = (p - q) ** 2
        exact = (
            1 + (own - other - 2 * with_own + 2 * without) / scale,
            2 * (with_own - without) / scale,
            (other - without) / scale,
            without / scale,
        )
        return cls(*(float(constant) for constant in exact))

    def square(self, sums: Floats) -> Floats:
        """Return E[(h . b)^2] from the sums of h, h^2, h f, h^2 f, shape (4, ...)."""
        h, hh, hf, hhf = sums
        return np.asarray(self.a1 * hhf + self.a2 * h * hf + self.a3 * hh + self.a4 * h * h)


class Tree:
    """The unbiased linear estimator of all nodes of nested groupings.

    Args:
        levels: The levels that reports are about, coarsest first; the last has one cell per input. A level of
            share 0 is one that no report is about: its nodes are only added up.
        total: "known" where the first level is one cell of share 0: all levels are then fitted to its share,
            which is 1, and weighted by what tells cells apart. "free": neither fitted nor weighted so.

    Raises:
        ParameterError: If a level is not a grouping of the next one's cells, or no report is about the last.
    """

    def __init__(self, levels: Sequence[Level], *, total: Literal["known", "free"] = "free") -> None:
        if levels[-1].share <= 0:
            raise ParameterError("the finest level must be one that reports are about")
        self.levels, self.total = tuple(levels), total
        self.moments = [Moments.of(level.support) for level in levels]
        self._sizes = [level.bins for level in levels]
        self._set_moments: dict[int, SetMoments] = {}
        self.parents = [_parents(a, b) for a, b in pairwise(levels)]
        self._order = np.argsort(levels[-1].labels)
        self._orders: list[NDArray[np.intp] | None] = []
        self._starts = []
        self._paired: list[bool] = []  # whether all nodes have two children, but the last one, which has one
        for parent, size in zip(self.parents, self._sizes, strict=False):
            order = np.argsort(parent, kind="stable")
            rising = np.array_equal(order, np.arange(len(order)))
            self._orders.append(None if rising else order)
            starts = np.searchsorted(parent[order], np.arange(size))
            self._starts.append(starts)
            pairs = np.array_equal(starts, np.arange(size) * 2) and len(parent) == 2 * size - 1
            self._paired.append(rising and pairs)
        self.own, self.spread = self._weights()

    def _weights(self) -> tuple[list[Floats], list[Floats]]:
        """Return the weights w and r per level, from variances where all inputs are equally common."""
        inputs = len(self.levels[-1].labels)
        last = len(self.levels) - 1
        own: list[Floats] = [np.ones(0)] * (last + 1)
        joined: list[Floats] = [np.ones(0)] * (last + 1)
        for k in range(last, -1, -1):
            level = self.levels[k]
            f = np.bincount(level.labels, minlength=level.bins) / inputs
            alone = np.full(level.bins, 0.0 if k == 0 and self.total == "known" else np.inf)
            if level.share > 0:
                if self.total == "known":
                    # Against a known total only what cells differ by counts: Var(h . y) with sum h = 0.
                    squares = self.moments[k].a1 * f + self.moments[k].a3
                else:
                    ones = np.ones(level.bins)
                    squares = self.moments[k].square(np.stack([ones, ones, f, f])) - f * f
                alone = squares / float(level.share)
            if k == last:
                own[k], joined[k] = np.ones(level.bins), alone
                continue
            below = self.up(k + 1, joined[k + 1])
            own[k] = below / (alone + below)
            joined[k] = (1.0 - own[k]) * below
        spread = [np.zeros(self._sizes[0])]
        for k in range(1, last + 1):
            spread.append(joined[k] / self.up(k, joined[k])[self.parents[k - 1]])
        return own, spread

    def set_moments(self, k: int) -> SetMoments:
        """Return the moments of scores of reports about level k."""
        if k not in self._set_moments:
            self._set_moments[k] = SetMoments(self.levels[k].support, self._sizes[k])
        return self._set_moments[k]

    def up(self, k: int, numbers: Floats) -> Floats:
        """Return sums over the children of every node of level k - 1; numbers: shape (nodes of k, ...)."""
        if not self._paired[k - 1]:
            order = self._orders[k - 1]
            sorted_ = numbers if order is None else numbers[order]
            return np.asarray(np.add.reduceat(sorted_, self._starts[k - 1], axis=0))
        found = np.empty((len(numbers) // 2 + 1, *numbers.shape[1:]))
        np.add(numbers[:-1:2], numbers[1::2], out=found[:-1])
        found[-1] = numbers[-1]
        return found

    def down(self, k: int, numbers: Floats) -> Floats:
        """Return for every node of level k its parent's number, a fresh array; shape (nodes of k, ...)."""
        if not self._paired[k - 1]:
            return numbers.take(self.parents[k - 1], axis=0)
        return numbers.repeat(2, axis=0)[:-1]

    def direct(self, sizes: Sequence[float], counts: Sequence[NDArray[Any]]) -> list[Floats]:
        """Return y per level, shape (cells,): shares by its own reports alone.

        It is zero for a level of share 0, and 1 for a known total.

        Args:
            sizes: n_k, how many reports are about each level.
            counts: Their support counts, per level of shape (cells,).
        """
        found = []
        for level, n, held in zip(self.levels, sizes, counts, strict=True):
            p, q = float(level.support.p), float(level.support.q)
            found.append((held / n - q) / (p - q) if level.share > 0 else np.zeros(level.bins))
        if self.total == "known":
            found[0] = np.ones(1)
        return found

    def join(self, direct: Sequence[Floats]) -> list[Floats]:
        """Return s per level, shape (cells,), from y per level."""
        joined, added = list(direct), list(direct)
        for k in range(len(joined) - 2, -1, -1):
            weight = self.own[k]
            added[k] = self.up(k + 1, joined[k + 1])
            joined[k] = weight * direct[k] + (1.0 - weight) * added[k]
        for k in range(1, len(joined)):
            gap = self.down(k, joined[k - 1] - added[k - 1])
            gap *= self.spread[k]
            gap += joined[k]
            joined[k] = gap
        return joined

    def coefficients(self, functional: Floats) -> list[Floats]:
        """Return h^k per level of a functional of the inputs' shares: the transpose of `join`.

        Args:
            functional: Shape (K,), or (K, c) for c functionals at once.

        Returns:
            Per level, shape (cells,) or (cells, c).
        """
        column = (slice(None),) + (None,) * (functional.ndim - 1)
        last = len(self.levels) - 1
        joined: list[Floats] = [np.zeros(0)] * (last + 1)
        above = functional[self._order]
        for k in range(last, 0, -1):
            passed = self.up(k, self.spread[k][column] * above)
            joined[k] = above - self.down(k, passed)
            above = passed
        joined[0] = above
        for k in range(last):
            joined[k + 1] += self.down(k + 1, (1.0 - self.own[k])[column] * joined[k])
            joined[k] = self.own[k][column] * joined[k]
        return joined

    def variances(
        self,
        frequencies: Sequence[Floats],
        sizes: Sequence[float],
        n: float,
        *,
        wanted: Collection[int] | None = None,
    ) -> list[Floats]:
        """Return the variance of s per level, shape (cells,), for given shares; O(K) per pair of levels.

        For a tree whose total is known it takes O(K) altogether, see `node_variances`.

        Args:
            frequencies: f per level, shape (cells,): the truth, or its estimate.
            sizes: n_k per level.
            n: All reports.
            wanted: Levels that are asked for; those of others may be anything. None: all.
        """
        if self.total == "known":
            every = range(len(self.levels)) if wanted is None else wanted
            return self._node_variances(frequencies, sizes, n, frozenset(every))
        found = [-(f - f * f) / n for f in frequencies]
        for k, (moments, level) in enumerate(zip(self.moments, self.levels, strict=True)):
            if level.share > 0:
                for j, sums in enumerate(self._sums(k, frequencies[k])):
                    found[j] += (moments.square(sums) - sums[2] ** 2) / sizes[k]
        return found

    @cached_property
    def _node_variances(self) -> NodeVariances:
        return NodeVariances(self)

    def _sums(self, k: int, frequencies: Floats) -> list[Floats]:
        """Return sums of h, h^2, h f, h^2 f over level k's cells for every node's h: shape (4, nodes)."""
        weight = self.own[k]
        start = np.stack([weight, weight**2, weight * frequencies, weight**2 * frequencies])
        return [total for total, _, _ in self._gathered(k, start, _POWERS)]

    def score_sums(self, k: int, frequencies: Floats) -> list[tuple[Floats, Floats, Floats]]:
        """Return what the third moments of every node's estimate need of its h^k, per level.

        Args:
            k: The level that reports are about.
            frequencies: Shares of its cells, shape (cells,), > 0.

        Returns:
            Per level of the tree three arrays, shape (3, nodes), for h, h^2 and h^3: the sums over level
            k's cells, the sums weighted by the shares, and the means over the devices in the node.
        """
        weight = self.own[k]
        powers = [weight, weight**2, weight**3]
        start = np.stack([*powers, *(power * frequencies for power in powers)])
        nodes = [frequencies]
        for j in range(k, 0, -1):
            nodes.insert(0, self.up(j, nodes[0]))
        found, inside = [], np.zeros(0)
        for j, (total, alone, mu) in enumerate(self._gathered(k, start, _CUBES)):
            if alone is not None:
                inside = (mu**_CUBES * alone)[3:] / nodes[j]
            else:
                inside = self.spread[j] ** _CUBES[3:] * inside[:, self.parents[j - 1]]
            found.append((total[:3], total[3:], inside))
        return found

    def _gathered(
        self, k: int, start: Floats, powers: NDArray[np.intp]
    ) -> list[tuple[Floats, Floats | None, Floats]]:
        """Return sums over level k's cells of powers of every node's h, from those at w_u, per level.

        Let a_u be the vector of z_u. Below node u, s_u has the vector mu_u a_u, and below the siblings v of u
        (kappa_p - 1) r_u a_v, where p is their parent, mu_u = 1 - r_u (1 - kappa_p) and
        kappa_p = mu_p (1 - w_p): by induction from the top, where mu = 1.

        Returns:
            Per level the sums of s_u's vector; those of a_u alone, None below level k; and mu_u.
        """
        upwards: list[Floats | None] = [None] * len(self.levels)
        level = upwards[k] = start
        for j in range(k - 1, -1, -1):
            level = upwards[j] = (1.0 - self.own[j]) ** powers * self.up(j + 1, level.T).T
        found: list[tuple[Floats, Floats | None, Floats]] = []
        mu = np.ones(self._sizes[0])
        for j, alone in enumerate(upwards):
            if j == 0:
                assert alone is not None  # noqa: S101 - every level k reaches up to the top
                found.append((alone, alone, mu))
                continue
            parent, spread = self.parents[j - 1], self.spread[j]
            kappa = (mu * (1.0 - self.own[j - 1]))[parent]
            mu = 1.0 - spread * (1.0 - kappa)
            sums = spread**powers * found[-1][0][:, parent]
            if alone is not None:
                siblings = self.up(j, alone.T).T[:, parent]
                sums -= (spread * kappa) ** powers * siblings
                sums += mu**powers * alone
                sums += (spread * (kappa - 1.0)) ** powers * (siblings - alone)
            found.append((sums, alone, mu))
        return found

    def functional_variances(
        self, functionals: Floats, frequencies: Sequence[Floats], sizes: Sequence[float], n: float
    ) -> Floats:
        """Return the variances of functionals of the inputs' shares, shape (K, c); O(K c) per level."""
        f = frequencies[-1][self.levels[-1].labels]
        total = -(f @ functionals**2 - (f @ functionals) ** 2) / n
        for k, h in enumerate(self.coefficients(functionals)):
            if self.levels[k].share > 0:
                hh, share = h * h, frequencies[k]
                sums = np.stack([h.sum(axis=0), hh.sum(axis=0), share @ h, share @ hh])
                total += (self.moments[k].square(sums) - sums[2] ** 2) / sizes[k]
        return np.asarray(total)

    def functional_thirds(
        self, functionals: Floats, frequencies: Sequence[Floats], sizes: Sequence[float]
    ) -> Floats:
        """Return the third central moments of functionals of the inputs' shares, shape (K, c).

        Of reports whose devices are drawn from the shares anew, exact in the support.
        """
        total = np.zeros(functionals.shape[1])
        for k, h in enumerate(self.coefficients(functionals)):
            if self.levels[k].share > 0:
                powers = (h, h * h, h * h * h)
                held = np.stack([frequencies[k] @ power for power in powers])
                sums = np.stack([power.sum(axis=0) for power in powers])
                one, square, cube = self.set_moments(k).raw(held, sums)
                total += (cube - 3.0 * one * square + 2.0 * one**3) / sizes[k] ** 2
        return total

    def functional_noise(
        self, functionals: Floats, frequencies: Sequence[Floats], sizes: Sequence[float]
    ) -> Floats:
        """Return variances and third central moments of the noise in functionals of the inputs' shares.

        Given who was asked about which level; see `noise_kinds`.

        Args:
            functionals: Shape (K, c).
            frequencies: Populations per level, shape (p, cells).
            sizes: n_k per level.

        Returns:
            Of devices whose noise is skewed upwards, and downwards, shape (p, 2, 2, c).
        """
        total = np.zeros((len(frequencies[0]), 2, 2, functionals.shape[1]))
        for k, h in enumerate(self.coefficients(functionals)):
            if self.levels[k].share > 0:
                variance, third = self.set_moments(k).noise(h)
                total += noise_kinds(frequencies[k], variance / sizes[k], third / sizes[k] ** 2)
        return total

    def variance(
        self, functional: Floats, frequencies: Sequence[Floats], sizes: Sequence[float], n: float
    ) -> float:
        """Return the variance of a functional of the inputs' shares, shape (K,); O(K) per level."""
        f = frequencies[-1][self.levels[-1].labels]
        mean = float((functional * f).sum())
        total = -(float((functional**2 * f).sum()) - mean**2) / n
        for k, h in enumerate(self.coefficients(functional)):
            if self.levels[k].share > 0:
                hf = h * frequencies[k]
                sums = np.array([h.sum(), (h * h).sum(), hf.sum(), (h * hf).sum()])
                total += float(self.moments[k].square(sums) - sums[2] ** 2) / sizes[k]
        return total

    def extremes(
        self, functionals: Floats, direct: Sequence[Floats], sizes: Sequence[float], n: float
    ) -> tuple[Floats, Floats]:
        """Return what one more report can do to functionals of the inputs' shares, in devices.

        A report about level k with the set S moves the mean of h^k . b over that level from M by
        (h^k . b - M) / (n_k + 1): in devices, by at most (h^k . b - M) n / n_k.

        Args:
            functionals: Shape (K, c).
            direct: y per level.
            sizes: n_k per level, above 0 where the share is.
            n: All reports.

        Returns:
            The least and the most over all reports, less the functional's own estimate, shape (c,) each.
        """
        low, high = np.zeros(functionals.shape[1]), np.zeros(functionals.shape[1])
        for k, h in enumerate(self.coefficients(functionals)):
            support = self.levels[k].support
            if self.levels[k].share == 0:
                continue
            if support.size is None:
                least, most = np.minimum(h, 0.0).sum(axis=0), np.maximum(h, 0.0).sum(axis=0)
            else:
                ranked = np.sort(h, axis=0)
                least, most = ranked[: support.size].sum(axis=0), ranked[-support.size :].sum(axis=0)
            base, gap = float(support.q) * h.sum(axis=0), float(support.p - support.q)
            mean, scale = direct[k] @ h, n / sizes[k]
            low = np.minimum(low, ((least - base) / gap - mean) * scale)
            high = np.maximum(high, ((most - base) / gap - mean) * scale)
        return low, high

    def covariance(self, frequencies: Sequence[Floats], sizes: Sequence[float], n: float) -> Floats:
        """Return the covariance of the inputs' shares, shape (K, K)."""
        labels = self.levels[-1].labels
        f = frequencies[-1][labels]
        total = (np.outer(f, f) - np.diag(f)) / n
        for k, h in enumerate(self.coefficients(np.eye(len(labels)))):
            if self.levels[k].share > 0:
                m, share = self.moments[k], frequencies[k]
                # E[b b^T], whose quadratic form `square` is.
                second = m.a4 + m.a2 / 2 * (share[:, None] + share) - np.outer(share, share)
                second[np.diag_indices(len(share))] += m.a1 * share + m.a3
                total += h.T @ second @ h / sizes[k]
        return np.asarray(total)


def _parents(coarse: Level, fine: Level) -> NDArray[np.intp]:
    """Return the coarse cell of every fine one."""
    parent = np.zeros(fine.bins, dtype=np.intp)
    parent[fine.labels] = coarse.labels
    if not np.array_equal(parent[fine.labels], coarse.labels):
        raise ParameterError("a level must be a grouping of the next one's cells, got another one")
    return parent


def added_up(labels: NDArray[np.intp]) -> Level:
    """Return a level that no report is about: its cells are summed from the level below."""
    return Level(labels, Fraction(0), Support(Fraction(1), Fraction(0), Fraction(0), Fraction(0), 1))
