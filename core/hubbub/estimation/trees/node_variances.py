"""The variances of all nodes of a tree whose total is known, in O(K) for levels that grow geometrically.

The estimate of a node u from the reports about level k is given by a vector h over the level's cells (see
`tree`). Below level k it is r_u times that of the parent, so its variance is r_u^2 times the parent's. At
level k and above it, with a_v the vector of z_v, kappa_p = mu_p (1 - w_p) and mu_u = 1 - r_u (1 - kappa_p),
it is mu_u times a_u below u, (kappa_p - 1) r_u a_v below its siblings v, and r_u h(p) elsewhere. Of sums over
the cells with a weight g each, let Y_u be that of a_u^e g, D_u the sum of Y over the children of u, and X_u
that of h^e g. Upwards from the cells u of level k, then downwards through parents p from X = Y at the top,

    Y_u = w_u^e g_u;  above,  Y_u = (1 - w_u)^e D_u                                                      (1)
    X_u = r_u^e (X_p + ((kappa_p - 1)^e - kappa_p^e) D_p) + (mu_u^e - (r_u (kappa_p - 1))^e) Y_u.        (2)

For e = 1 the last factor is 1. The sums whose weights are all 1 are found once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hubbub.estimation.trees.tree import Tree

Floats = NDArray[np.float64]


class NodeVariances:
    """The variances of all nodes, for one tree.

    Args:
        tree: The tree.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        count = len(tree.levels)
        # The tree's `own` is w and its `spread` r. Lists have an array per level, shape (cells,). The one of
        # _factor begins at level 1: the factor of Y_u in (2), for e = 2.
        self._kappa: list[Floats] = []
        self._factor: list[Floats] = []
        mu = np.ones(tree.levels[0].bins)
        for j in range(count):
            if j > 0:
                r, kappa = tree.spread[j], self._kappa[j - 1][tree.parents[j - 1]]
                mu = 1.0 - r * (1.0 - kappa)
                self._factor.append(mu * mu - (r * (kappa - 1.0)) ** 2)
            self._kappa.append(mu * (1.0 - tree.own[j]))
        # By the power e: w^e and (1 - w)^e of (1); r^e, and the factor of D_p, of (2).
        self._weights = {power: [own**power for own in tree.own] for power in (1, 2)}
        self._rest = {power: [(1.0 - own) ** power for own in tree.own] for power in (1, 2)}
        self._spread = {power: [spread**power for spread in tree.spread] for power in (1, 2)}
        self._across = {p: [(kappa - 1.0) ** p - kappa**p for kappa in self._kappa] for p in (1, 2)}
        self._told = [k for k, level in enumerate(tree.levels) if level.share > 0]
        # Of every level that reports are about, and every node at it or above: a3 sum h^2 + a4 (sum h)^2,
        # and a2 sum h.
        self._constant: dict[int, list[Floats]] = {}
        self._slope: dict[int, list[Floats]] = {}
        for k in self._told:
            ones, moments = np.ones(tree.levels[k].bins), tree.moments[k]
            first, second = (self._sums(k, ones, power) for power in (1, 2))
            self._slope[k] = [moments.a2 * h for h in first]
            self._constant[k] = [
                moments.a3 * hh + moments.a4 * h * h for h, hh in zip(first, second, strict=True)
            ]

    def __call__(
        self, frequencies: Sequence[Floats], sizes: Sequence[float], n: float, wanted: frozenset[int]
    ) -> list[Floats]:
        """Return the variance of s per level, shape (cells,), of wanted levels; see `Tree.variances`.

        It begins with (f^2 - f) / n, since devices are drawn without replacement. The reports about level k
        add, to a node at level k or above it, E[(h . b)^2] / n_k of `Moments` less (sum h f)^2 / n_k:

            (a1 sum h^2 f + (a2 sum h - sum h f) sum h f + a3 sum h^2 + a4 (sum h)^2) / n_k,             (3)

        and to one below it r_u^2 times what they add to its parent.                                     (4)
        """
        # Levels that are not wanted keep their frequencies: nobody reads them.
        found = [(f * f - f) / n if j in wanted else f for j, f in enumerate(frequencies)]
        added: dict[int, Floats] = {}
        for k in self._told:
            hf, h2f = (self._sums(k, frequencies[k], power) for power in (1, 2))
            for j in sorted({k} | {j for j in wanted if j < k}):
                # (3), in place throughout: fresh arrays of a large tree cost more than the sums.
                part, sum_hf = h2f[j], hf[j]
                part *= self._tree.moments[k].a1
                part += self._constant[k][j]
                part += np.multiply(self._slope[k][j] - sum_hf, sum_hf, out=sum_hf)
                part /= sizes[k]
                if j == k:
                    added[k] = part
                else:
                    found[j] += part
        # (4): what coarser levels added comes down from the parents, and level j's own joins it.
        from_above: Floats | None = None
        for j in range(len(found)):
            if from_above is not None:
                from_above = self._tree.down(j, from_above)
                from_above *= self._spread[2][j]
            if j in added:
                from_above = added[j] if from_above is None else from_above + added[j]
            if from_above is not None and j in wanted:
                found[j] += from_above
        return found

    def _sums(self, k: int, weights: Floats, power: int) -> list[Floats]:
        """Return X, the sums of h^e g over level k's cells, for the nodes of levels 0 to k.

        Args:
            k: The level.
            weights: g, shape (cells,).
            power: e, 1 or 2.
        """
        tree, rest, across = self._tree, self._rest[power], self._across[power]
        # (1): Y of levels k to 0, and D of levels k - 1 to 0.
        y, d = [self._weights[power][k] * weights], []
        for j in range(k - 1, -1, -1):
            d.append(tree.up(j + 1, y[-1]))
            y.append(rest[j] * d[-1])
        y.reverse()
        d.reverse()
        # (2), in place.
        x = [y[0]]
        for j in range(1, k + 1):
            from_parent = d[j - 1]
            from_parent *= across[j - 1]
            from_parent += x[-1]
            each = tree.down(j, from_parent)
            each *= self._spread[power][j]
            if power == 2:
                y[j] *= self._factor[j - 1]
            each += y[j]
            x.append(each)
        return x
