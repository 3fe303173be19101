"""Local hashing: a report is a public seed and the value's bucket under that seed, by randomised response.

The seed is drawn evenly from a small pool that the survey fixes (`hash_pool`), and it is part of the symbol.
So there is one channel over (seed, bucket): with q buckets, S seeds and true bucket h_s(x)

    w(x, (s, y)) = t if y = h_s(x), else u,     T = S (t + (q - 1) u),

whose epsilon is ln(t/u), whatever the seed. Two inputs are that far apart, since some seed separates them. An
input x is supported by the reports whose bucket holds it. With p = t/(t + (q-1) u), r = u/(t + (q-1) u) and
the share c of seeds under which two inputs collide, the same for every pair, a report of x supports x with
probability p and any other input with r + c (p - r): estimates are unbiased to the last integer.

This is optimised local hashing (Wang et al. 2017) without its random hash. There every device picks a seed of
64 bits for itself: that would name the device for ever, and a forged report could pick the seed that hits
the values it wants. Here no device chooses, all seeds are used by everyone, and no two of them are better for
some values than for others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub import estimation
from hubbub.channels.channel import MAX_HASHED, CountsKind
from hubbub.channels.divergence import BlockDivergence, fixed_up
from hubbub.channels.finite import FiniteChannel, Symbols, lowest_terms, narrowed_pair
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.errors import ParameterError
from hubbub.mechanisms import hashing
from hubbub.mechanisms.grr import NARROW_LOSS, TOTALS, checked_inputs
from hubbub.mechanisms.hashing.hash_pool import HashPool, field_orders, most_symbols
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below, log_above
from hubbub.numeric.randomness import Words


class LocalHashing(FiniteChannel):
    """A channel that sends a seed and a bucket: symbol s q + y.

    Attributes:
        pool: The seeds and their hashes, which follow from K and q alone.
        t: Weight of the true bucket under each seed, t > u.
        u: Weight of every other, u >= 1; S (t + (q - 1) u) = T.
    """

    kind = "local_hashing"
    most_inputs = MAX_HASHED
    needs_map = False
    description = "The device groups all answers by a public rule and says your group or any other."

    def __init__(self, inputs: int, buckets: int, t: int, u: int) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If the integers do not make a channel that tells inputs apart.
        """
        if inputs > MAX_HASHED:
            raise ParameterError(f"a channel must have 2 to {MAX_HASHED} inputs, got {inputs}")
        if not 1 <= u < t:
            raise ParameterError(f"local hashing weights must satisfy t > u >= 1, got t = {t}, u = {u}")
        self.pool, self.t, self.u = HashPool(inputs, buckets), t, u
        self.seed_total = t + (buckets - 1) * u
        super().__init__(inputs, self.pool.symbols, self.pool.seeds * self.seed_total)

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        return log_above(self.t, self.u)

    @property
    def odds(self) -> tuple[int, int]:
        """The ratio of a symbol's probabilities for an input in its bucket and one outside it, exactly."""
        return self.t, self.u

    def weight(self, x: int, y: int) -> int:  # noqa: D102 - inherited
        value = self._checked_input(x)
        seed, cell = divmod(self._checked_symbol(y), self.pool.buckets)
        return self.t if self.pool.bucket(seed, value) == cell else self.u

    def row(self, x: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        seeds = np.arange(self.pool.seeds)
        weights = np.full(self.outputs, self.u, dtype=np.int64)
        weights[seeds * self.pool.buckets + self.pool.bucket(seeds, self._checked_input(x))] = self.t
        return weights

    def column(self, symbol: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        seed, cell = divmod(self._checked_symbol(symbol), self.pool.buckets)
        own = self.pool.bucket(seed, np.arange(self.inputs)) == cell
        return np.where(own, np.int64(self.t), np.int64(self.u))

    def select(self, value: int, draw: int) -> int:
        """Return the draw's seed, and within it what randomised response over the buckets would."""
        seed, rest = divmod(draw, self.seed_total)
        cell = rest // self.u
        if cell >= self.pool.buckets:
            cell = int(self.pool.bucket(seed, value))
        return seed * self.pool.buckets + cell

    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:  # noqa: D102
        word, buckets = draws.dtype.type, self.pool.buckets
        seeds = draws // word(self.seed_total)
        cells = ((draws - seeds * word(self.seed_total)) // word(self.u)).astype(np.int64)
        true = np.flatnonzero(cells >= buckets)
        cells[true] = self.pool.bucket(seeds[true].astype(np.intp), values[true])
        np.copyto(out, seeds.astype(np.int64) * buckets + cells, casting="unsafe")

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        population = self.pool.sums_by_bucket(frequencies)
        return np.asarray((self.u * frequencies.sum() + (self.t - self.u) * population) / self.total)

    def held(self, inside: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many inputs of a set every symbol supports, shape (M,), for a set of shape (K,)."""
        return self.pool.held(inside)

    def public_counts(
        self, counts: NDArray[np.int64], groupings: NDArray[np.intp]
    ) -> tuple[CountsKind, NDArray[np.int64]]:
        """Return the supports of all inputs; per category of several, how many reports hold 0, 1, ... of it.

        Not the bins: most reports are alone in theirs, and one that is sent again would be seen again.
        """
        parts = [np.rint(self.pool.supports(counts.astype(np.float64)))]
        for row in np.atleast_2d(groupings):
            for category in np.flatnonzero(np.bincount(row) > 1).tolist():
                parts.append(np.bincount(self.held(row == category), weights=counts))
        return "support", np.concatenate(parts).astype(np.int64)

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        return self._constant_divergence(self.t, self.u)

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return 1

    def blocks(self) -> BlockDivergence:
        """Return one block: under some seed any two inputs have buckets of their own."""
        return BlockDivergence.constant(self.inputs, fixed_up(self.t, self.u))

    def mixed(self, scale: int, dummy: int) -> LocalHashing:  # noqa: D102 - inherited
        t, u = lowest_terms(scale * self.t + dummy, scale * self.u + dummy)
        return LocalHashing(self.inputs, self.pool.buckets, t, u)

    def narrowed(self, limit: int) -> LocalHashing:  # noqa: D102 - inherited
        t, u = narrowed_pair(self.t, self.u, self.total, limit)
        return LocalHashing(self.inputs, self.pool.buckets, t, u)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "inputs": self.inputs,
            "buckets": self.pool.buckets,
            "t": self.t,
            "u": self.u,
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "buckets", "t", "u")
        return cls(*(spec_int(spec, key) for key in ("inputs", "buckets", "t", "u")))

    def inverse(
        self, *, category_of: NDArray[Any] | None = None, arithmetic: estimation.Arithmetic = "float64"
    ) -> estimation.Inverse:
        """Return the left inverse of the channel; see `hubbub.estimation.inverses.inversion.invert`."""
        return hashing.HashInverse(self, category_of=category_of, arithmetic=arithmetic)


def local_hashing(inputs: int, *, epsilon: float, buckets: int | None = None) -> LocalHashing:
    """Return local hashing of K inputs with the public pool of its number of buckets.

    Args:
        inputs: K, 2 to MAX_HASHED.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        buckets: q, a prime or a power of two. None: the one with the smallest mean squared error of a
            value's share, over values equally common; about e^epsilon + 1 where K is large.

    Raises:
        ParameterError: If a parameter is out of range (the message names the nearest number of buckets that
            is not), or no total below 2^63 can express the epsilon.

    >>> channel = local_hashing(1000, epsilon=1.0)
    >>> channel.pool.buckets, channel.pool.seeds, channel.outputs
    (4, 341, 1364)
    """
    count = checked_inputs(inputs, most=MAX_HASHED)
    ceiling = exp_below(checked_epsilon(epsilon) - HEADROOM)
    possible = _possible(count)
    if buckets is None:
        buckets = int(possible[np.argmin(_mean_variances(count, possible, float(ceiling)))])
    elif isinstance(buckets, bool) or not isinstance(buckets, int | np.integer):
        raise ParameterError(f"buckets must be an integer, got {buckets!r}")
    elif buckets not in possible:
        nearest = int(possible[np.argmin(np.abs(possible - buckets))])
        raise ParameterError(
            "buckets must be a prime or a power of two whose pool has at most "
            f"{most_symbols(count)} cells, and at most as many as tell {count} inputs apart by one seed; "
            f"got {buckets}, nearest is {nearest}"
        )
    pool = HashPool(count, int(buckets))
    return LocalHashing(count, int(buckets), *_weights(pool, ceiling))


def _possible(inputs: int) -> NDArray[np.int64]:
    """Return the numbers of buckets that a pool can have, up to the first that one seed is enough for."""
    orders = field_orders(max(2 * inputs, 4))  # there is a prime between K and 2 K
    orders = orders[: np.searchsorted(orders, inputs) + 1]
    return orders[orders * (_points(inputs, orders) - 1) // (orders - 1) <= most_symbols(inputs)]


def _points(inputs: int, orders: NDArray[np.int64]) -> NDArray[np.int64]:
    points = orders.copy()
    while (small := points < inputs).any():
        points = np.where(small, points * orders, points)
    return points


def _mean_variances(inputs: int, orders: NDArray[np.int64], ratio: float) -> NDArray[np.float64]:
    points = _points(inputs, orders)
    collision = (points // orders - 1) / (points - 1)
    held, rest = ratio / (ratio + orders - 1), 1.0 / (ratio + orders - 1)
    other = rest + collision * (held - rest)
    spread = held * (1.0 - held) + (inputs - 1) * other * (1.0 - other)
    return np.asarray(spread / (held - other) ** 2)


def _weights(pool: HashPool, ceiling: Fraction) -> tuple[int, int]:
    """Return the weights t and u under each seed, as `symmetric_weights` has them for one."""
    aim = math.log(ceiling)
    for limit in TOTALS:
        u = math.floor(Fraction(limit, pool.seeds) / (ceiling + pool.buckets - 1))
        t = math.floor(ceiling * u)
        if t > u >= 1 and log_above(t, u) >= aim * (1.0 - NARROW_LOSS):
            return t, u
    raise ParameterError(f"no total below 2^63 can express e^{aim:.6g} under {pool.seeds} seeds")
