"""Unary encoding: one bit per value, each flipped on its own; a report is the set of values whose bit is one.

The true value's bit is one with probability p, every other with probability q. For any set the ratio between
two values differs from one only where exactly one of them is in it, so

    ε = ln( p (1 - q) / ((1 - p) q) ).

Symmetric unary encoding has p + q = 1 (basic RAPPOR, Erlingsson et al. 2014); the optimised one has p = 1/2
and q = 1/(e^ε + 1), which has the smaller variance where values are rare (Wang et al. 2017).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS
from hubbub.channels.divergence import BlockDivergence, fixed_up
from hubbub.channels.sets import CELLS, WORD, AttemptChannel, Attempts, Level, Sets, Support, draws_between
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.errors import ParameterError
from hubbub.mechanisms.grr import checked_inputs
from hubbub.mechanisms.subset import LOSS
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below, log_above
from hubbub.numeric.picks import extended
from hubbub.numeric.randomness import SYSTEM, Source, batch_bytes, below_many

_UNSETTLED: Final = 256
"""The entry of the table for sixteen bits that do not settle the byte."""


class CoinBytes:
    """A law of bytes whose bits are independent and one with probability heads/2^bits.

    A uniform real number, its bits revealed as they are needed, falls into one of 256 intervals whose lengths
    are the probabilities of the 256 bytes. Sixteen bits settle all but some 0.4 % of bytes, by a table; 48
    more settle those, but for one in 2^50, which compares all bits of the intervals' ends. So every byte has
    exactly its probability.

    Attributes:
        heads: 1 to 2^bits - 1.
        bits: The exponent of the rate's denominator, 2^bits.
        ends: Where the interval of each byte ends, in units of 2^(-8 bits); the last ends at 2^(8 bits).
    """

    def __init__(self, heads: int, bits: int) -> None:
        """Work out the intervals and the table.

        Raises:
            ParameterError: If the rate is not within 0 to 1, or has less than 8 or more than 62 bits.
        """
        if not 8 <= bits <= 62 or not 1 <= heads < 1 << bits:
            raise ParameterError("a coin must have a rate within 0 to 1, of 8 to 62 bits")
        self.heads, self.bits = heads, bits
        tails = (1 << bits) - heads
        of_ones = [heads**ones * tails ** (8 - ones) for ones in range(9)]
        self.ends = list(accumulate(of_ones[byte.bit_count()] for byte in range(256)))
        spare = 8 * bits - 64
        # Ends but the last, rounded down: what is above one is past it, what is below is not.
        self._low = np.array([end >> spare for end in self.ends[:-1]], dtype=np.uint64)
        first = np.searchsorted(self._low, np.arange(2**16, dtype=np.uint64) << np.uint64(48), side="right")
        top = np.arange(2**16, dtype=np.uint64) << np.uint64(48) | np.uint64(2**48 - 1)
        last = np.searchsorted(self._low, top, side="right")
        starts = np.isin(np.arange(2**16, dtype=np.uint64), self._low >> np.uint64(48))
        self._table = np.where((first == last) & ~starts, first, _UNSETTLED).astype(np.uint16)
        self._table.flags.writeable = False  # shared by all draws

    def many(self, size: int, source: Source = SYSTEM) -> NDArray[np.uint8]:
        """Return independent bytes, shape (size,), uint8."""
        words = np.frombuffer(batch_bytes(2 * size, source), dtype="<u2")
        drawn = self._table.take(words)
        late = np.flatnonzero(drawn == _UNSETTLED)
        if late.size:
            whole = extended(words[late], source)
            drawn[late] = np.searchsorted(self._low, whole, side="right")
            for i in np.flatnonzero(np.isin(whole, self._low)).tolist():
                spare = 8 * self.bits - 64
                rest = int.from_bytes(source.token_bytes(spare // 8), "little")
                drawn[late[i]] = bisect_right(self.ends, int(whole[i]) << spare | rest)
        return drawn.astype(np.uint8)


@lru_cache(maxsize=64)
def coin_bytes(heads: int, bits: int) -> CoinBytes:
    """Return the bytes of a coin; the same object for the same coin."""
    return CoinBytes(heads, bits)


Variant = Literal["optimised", "symmetric"]

COIN_BITS: Final = 31

COIN: Final = 2**COIN_BITS
"""The total of the bits' integers: the product of two of them is a weight, and stays below 2^63."""


class Unary(AttemptChannel):
    """A channel from K values to sets of any size.

    An attempt has K words, none of which is dropped; bit x is one when word x, modulo 2^31, is below
    `p_draws` for the true value and below `q_draws` for any other.

    Attributes:
        p_draws: p 2^31, the draws of 2^31 in which the true value's bit is one.
        q_draws: q 2^31, the same for every other bit; 1 <= q_draws < p_draws < 2^31.
    """

    kind = "unary"
    description = "The device says yes or no to every answer at random, yes to yours more often."

    def __init__(self, inputs: int, p_draws: int, q_draws: int) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If the integers do not make a channel that tells inputs apart.
        """
        if not 1 <= q_draws < p_draws < COIN:
            raise ParameterError(f"unary bits must satisfy 1 <= q < p < 2^31, got {q_draws} and {p_draws}")
        if inputs > MAX_INPUTS:
            raise ParameterError(f"a channel must have 2 to {MAX_INPUTS} inputs, got {inputs}")
        self.p_draws, self.q_draws = p_draws, q_draws
        super().__init__(inputs, inputs, np.full(inputs, WORD, dtype=np.uint64))

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        return log_above(*self._odds)

    @property
    def _odds(self) -> tuple[int, int]:
        return self.p_draws * (COIN - self.q_draws), (COIN - self.p_draws) * self.q_draws

    def column(self, symbol: bytes | Sets) -> NDArray[np.int64]:  # noqa: D102 - inherited
        inside, outside = self._odds
        return np.where(self._members(symbol), np.int64(inside), np.int64(outside))

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:  # noqa: D102 - inherited
        members = self._members(symbol)
        p, q, ones = self.p_draws / COIN, self.q_draws / COIN, int(members.sum())
        rest = ones * math.log(q) + (self.inputs - ones) * math.log1p(-q)
        return rest + np.where(members, math.log(p / q), math.log((1 - p) / (1 - q)))

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        return self._constant_divergence(*self._odds)

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return 1

    def blocks(self) -> BlockDivergence:
        """Return one block: some set holds the one and not the other of any two inputs."""
        return BlockDivergence.constant(self.inputs, fixed_up(*self._odds))

    @cached_property
    def levels(self) -> tuple[Level, ...]:  # noqa: D102 - inherited
        p, q = Fraction(self.p_draws, COIN), Fraction(self.q_draws, COIN)
        return (Level(np.arange(self.inputs), Fraction(1), Support(p, q, p * q, q * q, None)),)

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:  # noqa: D102
        return [(n, counts)]

    def sends(self, members: int) -> bool:  # noqa: D102 - inherited
        return members >= 0

    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        return n >= 0

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        return self._spare_is_zero(symbols)

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:  # noqa: D102
        coins = attempts & np.uint32(COIN - 1)
        np.less(coins, np.uint32(self.q_draws), out=out)
        rows = np.arange(len(values))
        out[rows, values] = coins[rows, values] < self.p_draws

    @property
    def chunk(self) -> int:  # noqa: D102 - inherited
        return max(1, CELLS // (8 * self.width))

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:  # noqa: D102 - inherited
        n = len(values)
        symbols = coin_bytes(self.q_draws, COIN_BITS).many(n * self.width, source).reshape(n, self.width)
        symbols[:, -1] &= 0xFF >> 8 * self.width - self.inputs
        # Bits are independent: the true value's is tossed anew, at its own rate.
        held = below_many(COIN, n, source) < self.p_draws
        place = np.arange(0, n * self.width, self.width) + (values >> 3)
        bit = np.left_shift(np.uint8(1), (values & 7).astype(np.uint8))
        flat = symbols.reshape(-1)
        flat[place] = flat[place] & ~bit | bit * held
        return symbols

    def with_dummy_reports(self, share: Fraction) -> Unary:  # noqa: D102 - inherited
        p_draws = draws_between(self.p_draws, Fraction(self.q_draws), share)
        return Unary(self.inputs, p_draws, self.q_draws)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {"kind": self.kind, "inputs": self.inputs, "held": self.p_draws, "other": self.q_draws}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "held", "other")
        return cls(*(spec_int(spec, key) for key in ("inputs", "held", "other")))


def unary(inputs: int, *, epsilon: float, variant: Variant = "optimised") -> Unary:
    """Return unary encoding of K inputs.

    Args:
        inputs: K, 2 to MAX_INPUTS.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        variant: "optimised" (p = 1/2) or "symmetric" (p = 1 - q).

    Raises:
        ParameterError: If a parameter is out of range, or 31-bit coins cannot express the epsilon.

    >>> unary(100, epsilon=1.0).width
    13
    """
    count = checked_inputs(inputs)
    declared = checked_epsilon(epsilon)
    ceiling = exp_below(declared - HEADROOM)
    if variant == "optimised":
        p_draws, q_draws = COIN // 2, math.ceil(COIN / (ceiling + 1))
    elif variant == "symmetric":
        # (2^31 / q - 1)^2 <= e^ε, with q as small as that allows.
        q_draws = math.ceil(COIN / (_root_below(ceiling) + 1))
        p_draws = COIN - q_draws
    else:
        raise ParameterError(f'variant must be "optimised" or "symmetric", got {variant!r}')
    if p_draws > q_draws:
        channel = Unary(count, p_draws, q_draws)
        if channel.epsilon >= declared * (1.0 - LOSS):
            return channel
    raise ParameterError(f"no coins of 31 bits can express epsilon {declared:g} by {variant} unary encoding")


def _root_below(square: Fraction) -> Fraction:
    """Return the square root, rounded down to a multiple of 2^-96."""
    return Fraction(math.isqrt(math.floor(square * 2**192)), 2**96)
