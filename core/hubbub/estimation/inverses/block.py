"""The left inverse of a channel whose rows have three levels: same input, same category, any other.

For category c with integers t (true), u (same category), o (other), s inputs and row total T:

    A = T - sum_c s_c o_c
    F_c = (T C_c - s_c o_c N) / A                                  devices in category c
    n_y = (T C_y - N o_c - (u_c - o_c) F_c) / (t_c - u_c)          devices with value y

(privacy-boosting, eq. 10-11, carried over to unequal categories). Since A = (t_c - u_c) + s_c (u_c - o_c) for
every c, B is

    B[y, j] = [y = j] delta_c + [c(y) = c(j)] beta_c + gamma_c,
    delta = T / (t - u),   beta = -(u - o) T / (A (t - u)),   gamma = -o / A,   c = c(y),

which costs O(K) to apply and never needs the matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.intervals.laws import MixedLaw, ScoreLaws, moments_of
from hubbub.estimation.intervals.population import plausible_populations, population_law
from hubbub.estimation.inverses.inverse import Arithmetic, Numbers, Solution, excess, quotients
from hubbub.estimation.poison import Reach


class BlockInverse:
    """The O(K) inverse of a generalised-randomised-response channel with categories.

    Args:
        true: Weight of the true value, per channel category, shape (B,), int64.
        same: Weight of another value of the same category, shape (B,), int64; unused where sizes is 1.
        other: Weight of a value of the category seen from outside it, shape (B,), int64.
        sizes: Inputs per channel category, shape (B,), int64; inputs are ordered by category.
        total: The row total T.
        category_of: The reported category 0..m-1 of every input, shape (K,); None: the channel's own. Any
            grouping is possible, it need not follow the channel's.
        arithmetic: "fractions" computes exactly, in object arrays: for proofs on small K.
    """

    def __init__(
        self,
        true: NDArray[np.int64],
        same: NDArray[np.int64],
        other: NDArray[np.int64],
        sizes: NDArray[np.int64],
        total: int,
        *,
        category_of: NDArray[np.intp] | None = None,
        arithmetic: Arithmetic = "float64",
    ) -> None:
        self._sizes = sizes
        self._starts = _starts(sizes)
        self._inputs = int(sizes.sum())
        block_of = np.repeat(np.arange(len(sizes)), sizes)
        scale = np.int64(total - int((sizes * other).sum()))
        alone = sizes == 1
        step = np.where(alone, scale, true - same)
        if step.min() <= 0:
            raise ParameterError(
                f"true weights must exceed those of the same category, got a gap of {step.min()}"
            )
        totals = np.full(len(sizes), total, dtype=np.int64)
        scales = np.full(len(sizes), scale, dtype=np.int64)
        self._rho = quotients(totals, scales, arithmetic=arithmetic)
        self._delta = quotients(totals, step, arithmetic=arithmetic)
        self._beta = -quotients(np.where(alone, 0, same - other), step, arithmetic=arithmetic) * self._rho
        self._gamma = -quotients(other, scales, arithmetic=arithmetic)
        hit = excess(self._delta + self._beta + self._gamma)
        near = excess(self._beta + self._gamma)
        self._near, self._far = near, excess(self._gamma)
        self._odds = tuple(weight / total for weight in (true, np.where(alone, 0, same), other))
        self._delta_each = np.repeat(self._delta, sizes)
        self._hit_each = np.repeat(hit - near, sizes)
        self._group(block_of if category_of is None else category_of, block_of)

    def _group(self, category_of: NDArray[Any], block_of: NDArray[np.intp]) -> None:
        """Prepare sums over the pairs (category, channel category) that share at least one input."""
        order = np.lexsort((block_of, category_of))
        self._order = None if np.array_equal(order, np.arange(self._inputs)) else order
        group, block = category_of[order], block_of[order]
        new = np.flatnonzero(np.diff(group, prepend=-1) | np.diff(block, prepend=-1))
        self._pair_starts = new
        self._pair_block = block[new]
        shared = np.diff(new, append=self._inputs)
        self._group_starts = np.flatnonzero(np.diff(group[new], prepend=-1))
        c = self._pair_block
        self._pair_whole = whole = shared == self._sizes[c]
        pair_gamma = self._gamma[c] * shared
        gamma = np.add.reduceat(pair_gamma, self._group_starts)
        pairs_per_group = np.diff(self._group_starts, append=len(new))
        self._pair_base = base = np.repeat(gamma, pairs_per_group)
        inside = np.where(whole, self._rho[c], self._delta[c] + self._beta[c] * shared)
        beside = np.where(whole, self._rho[c] * 0, self._beta[c] * shared)
        self._pair_inside, self._pair_beside = inside, beside
        self._group_gamma = gamma
        self._group_everywhere = pairs_per_group == len(self._sizes)
        self._group_far = excess(gamma)
        self._pair_hit = excess(inside + base)
        self._pair_near = excess(beside + base)
        self._pair_far = np.repeat(self._group_far, pairs_per_group)

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""
        return self._inputs

    @property
    def outputs(self) -> int:
        """M, equal to K here."""
        return self._inputs

    def solve(self, counts: Numbers) -> Solution:
        """Estimate values and categories, with variances, from counts of shape (M,), in O(K)."""
        blocks = np.add.reduceat(counts, self._starts)
        n = counts.sum()
        values = self._delta_each * counts
        values += np.repeat(self._beta * blocks + self._gamma * n, self._sizes)
        variances = self._hit_each * counts
        variances += np.repeat(self._near * blocks + self._far * (n - blocks), self._sizes)

        ordered = counts if self._order is None else counts[self._order]
        inside = np.add.reduceat(ordered, self._pair_starts)
        beside = blocks[self._pair_block] - inside
        pairs = self._pair_inside * inside + self._pair_beside * beside
        spread = (self._pair_hit - self._pair_far) * inside + (self._pair_near - self._pair_far) * beside
        return Solution(
            values=values,
            value_variances=variances,
            categories=np.add.reduceat(pairs, self._group_starts) + self._group_gamma * n,
            category_variances=np.add.reduceat(spread, self._group_starts) + self._group_far * n,
        )

    def pull_back(self, functional: Numbers) -> Numbers:
        """Return functional @ B, shape (M,), in O(K)."""
        blocks = np.add.reduceat(functional, self._starts)
        everywhere = (self._gamma * blocks).sum()
        near = np.repeat(self._beta * blocks, self._sizes)
        return np.asarray(self._delta_each * functional + near + everywhere)

    def reach(self) -> Reach:
        """Return the least and the largest that one report can add to every value and category, in O(K)."""
        hit = self._delta + self._beta + self._gamma
        near = np.where(self._sizes == 1, hit, self._beta + self._gamma)
        far = self._gamma if len(self._sizes) > 1 else hit
        own = self._pair_inside + self._pair_base
        beside = np.where(self._pair_whole, own, self._pair_beside + self._pair_base)
        starts, everywhere = self._group_starts, self._group_everywhere
        low = np.minimum.reduceat(np.minimum(own, beside), starts)
        high = np.maximum.reduceat(np.maximum(own, beside), starts)
        return Reach(
            np.repeat(np.minimum(np.minimum(hit, near), far), self._sizes),
            np.repeat(np.maximum(np.maximum(hit, near), far), self._sizes),
            np.minimum(low, np.where(everywhere, low, self._group_gamma)),
            np.maximum(high, np.where(everywhere, high, self._group_gamma)),
        )

    def laws(self, counts: Numbers, solution: Solution) -> ScoreLaws:
        """Return the laws of the scores behind `solution`, in O(K).

        A value's score takes three values: it was reported itself, another of its category, any other. So
        three kinds of devices have three exact laws, and the estimated share of the category mixes them.
        """
        (true, same, other), s = self._odds, self._sizes
        n = float(counts.sum())
        rest = np.maximum(1.0 - true - (s - 1) * same, 0.0)
        scores = np.stack([self._delta + self._beta + self._gamma, self._beta + self._gamma, self._gamma])
        kinds = [
            moments_of(scores, np.stack(odds))
            for odds in (
                (true, (s - 1) * same, rest),
                (same, np.where(s > 1, true + (s - 2) * same, 0.0), rest),
                (other, (s - 1) * other, 1.0 - s * other),
            )
        ]
        own, near, far = (np.repeat(kind, s, axis=1) for kind in kinds)
        around = np.repeat(np.add.reduceat(solution.values, self._starts) / n, s)
        alone = np.repeat(s == 1, s)
        # A value's own count says all where every input is of its category, or categories are alike.
        plain = (s == 1) | (same == other) | (len(s) == 1)
        odds = np.repeat(np.where(plain, np.stack([true, np.where(s == 1, other, same)]), np.nan), s, axis=1)
        values = MixedLaw(n, own, far, self._delta_each, near, np.where(alone, 0.0, around), odds=odds)
        return ScoreLaws(values, self._category_law(counts, solution))

    def _category_law(self, counts: Numbers, solution: Solution) -> MixedLaw:
        """Return the categories' law: of two values, and exact, but for those that split a channel's own."""
        n, starts = float(counts.sum()), self._group_starts
        inside = self._pair_inside[starts] + self._pair_base[starts]
        everyone = self._group_everywhere & np.logical_and.reduceat(self._pair_whole, starts)
        outside = np.where(everyone, inside, self._group_gamma)
        law = MixedLaw.of_two_values(n, inside, outside)
        split = np.flatnonzero(~np.logical_and.reduceat(self._pair_whole, starts))
        if not split.size:
            return law
        part = self._split_law(split, counts, solution.values / n)
        for whole, found in ((law.own, part.own), (law.far, part.far)):
            whole[:, split] = found
        law.step[split] = 0.0
        observed = np.full(len(starts), -np.inf)
        observed[split] = part.observed
        assert law.odds is not None  # noqa: S101 - a law of two values has them
        law.odds[:, split] = np.nan
        return replace(law, observed=observed)

    def _split_law(self, groups: NDArray[np.intp], counts: Numbers, estimates: Numbers) -> MixedLaw:
        """Return the law of some categories by whole populations, of all of them in O(K)."""
        populations = plausible_populations(estimates)
        reports = [self.expected_law(population) for population in populations]
        second, third = (
            [self._power_mean(*self._pair_shares(law), power)[groups] for law in reports] for power in (2, 3)
        )
        whole = self._ordered(np.array(populations))
        held = np.add.reduceat(whole, np.append(self._pair_starts, self._inputs)[self._group_starts], axis=1)
        mine = self._member_shares()
        v = self._power_mean(*mine, 2) - 1.0
        own = np.stack([v, self._power_mean(*mine, 3) - 3.0 * v - 1.0])
        n = float(counts.sum())
        return population_law(
            n=n,
            own=own[:, groups],
            held=held[:, groups],
            second=np.array(second),
            third=np.array(third),
            observed=self._power_mean(*self._pair_shares(counts / n), 2)[groups],
        )

    def _ordered(self, table: Numbers) -> Numbers:
        """Return what is told by inputs, shape (..., K), by category."""
        return table if self._order is None else np.asarray(table[..., self._order])

    def _pair_shares(self, law: Numbers) -> tuple[Numbers, Numbers]:
        """Return the shares of reports in each pair and in its channel category, shape (pairs,) each."""
        blocks = np.add.reduceat(law, self._starts)
        inside = np.add.reduceat(self._ordered(law), self._pair_starts)
        return inside, blocks[self._pair_block]

    def _member_shares(self) -> tuple[Numbers, Numbers]:
        """Return `_pair_shares` of the reports of a category's own members, equally common."""
        shared = np.diff(self._pair_starts, append=self._inputs)
        pairs = np.diff(self._group_starts, append=len(shared))
        each = np.repeat(1.0 / np.add.reduceat(shared, self._group_starts), pairs)
        true, same, other = (odds[self._pair_block] for odds in self._odds)
        part, size = shared * each, self._sizes[self._pair_block]
        inside = shared * (true * each + same * (part - each) + other * (1.0 - part))
        return inside, true * part + same * (size * part - part) + other * size * (1.0 - part)

    def _power_mean(self, inside: Numbers, blocks: Numbers, power: int) -> Numbers:
        """Return the mean of a power of each category's score over reports, shape (m,).

        Args:
            inside: Shares of the reports in each pair, shape (pairs,).
            blocks: Shares in the pair's whole channel category, shape (pairs,).
            power: 2 or 3.
        """
        hit, near = self._pair_inside + self._pair_base, self._pair_beside + self._pair_base
        sums = np.add.reduceat(inside * hit**power + (blocks - inside) * near**power, self._group_starts)
        rest = 1.0 - np.add.reduceat(blocks, self._group_starts)
        return np.asarray(sums + rest * self._group_gamma**power)

    def expected_law(self, population: Numbers) -> Numbers:
        """Return the law of one report of a population, shape (M,)."""
        true, same, other = (np.repeat(odds, self._sizes) for odds in self._odds)
        blocks = np.repeat(np.add.reduceat(population, self._starts), self._sizes)
        return np.asarray(
            true * population + same * (blocks - population) + other * (population.sum() - blocks)
        )

    def matrix(self) -> Numbers:
        """Return B, shape (K, K)."""
        block_of = np.repeat(np.arange(len(self._sizes)), self._sizes)
        near = (block_of[:, None] == block_of[None, :]) * self._beta[block_of][:, None]
        table = near + self._gamma[block_of][:, None]
        table[np.diag_indices(self._inputs)] += self._delta_each
        return np.asarray(table)


class CollapsedInverse:
    """The inverse of a channel that sends categories only (boost_epsilon = 0): M = B symbols.

    A value is identifiable only where its category holds nothing else; all others are nan, with infinite
    variance. A reported category is identifiable when it is a union of the channel's.

    Args:
        true: Weight of the true category, shape (B,), int64.
        other: Weight of the category seen from outside it, shape (B,), int64.
        sizes: Inputs per channel category, shape (B,), int64.
        total: The row total T.
        category_of: The reported category of every input, shape (K,); None: the channel's own.
        arithmetic: "fractions" computes exactly, in object arrays.
    """

    def __init__(
        self,
        true: NDArray[np.int64],
        other: NDArray[np.int64],
        sizes: NDArray[np.int64],
        total: int,
        *,
        category_of: NDArray[np.intp] | None = None,
        arithmetic: Arithmetic = "float64",
    ) -> None:
        self._sizes, self._starts = sizes, _starts(sizes)
        blocks = np.arange(len(sizes))
        if category_of is None:
            category_of = np.repeat(blocks, sizes)
        owner = category_of[self._starts]
        strays = np.flatnonzero(category_of != np.repeat(owner, sizes))
        split = np.isin(np.repeat(blocks, sizes), np.repeat(blocks, sizes)[strays])
        self._hidden_groups = np.unique(category_of[split])
        self._shown = np.unique(owner)
        self._reported = int(category_of.max()) + 1
        ones = np.ones_like(sizes)
        self._inner = BlockInverse(true, other, other, ones, total, category_of=owner, arithmetic=arithmetic)
        self._hidden = np.repeat(sizes > 1, sizes)

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""
        return len(self._hidden)

    @property
    def outputs(self) -> int:
        """M, the number of channel categories."""
        return len(self._sizes)

    def solve(self, counts: Numbers) -> Solution:
        """Estimate what is identifiable from counts of shape (M,)."""
        inner = self._inner.solve(counts)
        return Solution(
            self._by_value(inner.values, np.nan),
            self._by_value(inner.value_variances, np.inf),
            self._by_category(inner.categories, np.nan),
            self._by_category(inner.category_variances, np.inf),
        )

    def laws(self, counts: Numbers, solution: Solution) -> ScoreLaws:
        """Return the laws of the scores behind `solution`; those of hidden cells mean nothing."""
        inner = self._inner.laws(counts, self._inner.solve(counts))
        assert isinstance(inner.values, MixedLaw) and isinstance(inner.categories, MixedLaw)  # noqa: S101
        of_value = np.repeat(np.arange(len(self._sizes)), self._sizes)
        of_category = np.zeros(self._reported, dtype=np.intp)
        of_category[self._shown] = np.arange(len(self._shown))
        return ScoreLaws(inner.values.picked(of_value), inner.categories.picked(of_category))

    def _by_value(self, blocks: Numbers, hidden: float) -> Numbers:
        values = np.repeat(blocks, self._sizes)
        values[self._hidden] = hidden
        return values

    def _by_category(self, shown: Numbers, hidden: float) -> Numbers:
        categories = np.full(self._reported, hidden, dtype=shown.dtype)
        categories[self._shown] = shown
        categories[self._hidden_groups] = hidden
        return categories

    def reach(self) -> Reach:
        """Return the least and the largest that one report can add to what is identifiable; nan elsewhere."""
        inner = self._inner.reach()
        return Reach(
            self._by_value(inner.values_low, np.nan),
            self._by_value(inner.values_high, np.nan),
            self._by_category(inner.categories_low, np.nan),
            self._by_category(inner.categories_high, np.nan),
        )

    def pull_back(self, functional: Numbers) -> Numbers | None:
        """Return the symbol weights of a functional that is constant within categories.

        None for any other.
        """
        per_block = functional[self._starts]
        if not np.array_equal(np.repeat(per_block, self._sizes), functional):
            return None
        return self._inner.pull_back(per_block)

    def matrix(self) -> Numbers:
        """Return B, shape (K, M); rows of hidden values are nan."""
        table = np.repeat(self._inner.matrix(), self._sizes, axis=0)
        table[self._hidden] = np.nan
        return table


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.cumsum(sizes) - sizes, dtype=np.int64)
