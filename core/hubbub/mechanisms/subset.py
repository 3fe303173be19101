"""Subset selection: a report is a set of d of the K values, more often one that contains the true value.

With probability p the set is the true value and d - 1 of the K - 1 others, else d of the others; which ones
is uniform. A set has C(K-1, d-1) and C(K-1, d) alternatives in the two cases, so for every set

    Pr(S | x in S) / Pr(S | x not in S) = p (K - d) / ((1 - p) d),

which is e^ε for p = d e^ε / (d e^ε + K - d) (Ye and Barg 2018; Wang et al. 2016). With d = 1 it is randomised
response; near d = K/(e^ε + 1) no mechanism has a smaller squared error of K shares by more than rounding d.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS
from hubbub.channels.divergence import BlockDivergence, fixed_up
from hubbub.channels.sets import (
    FEW,
    WORD,
    AttemptChannel,
    Attempts,
    Level,
    Sets,
    Support,
    draws_between,
    packed_chunk,
    sizes_of,
)
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.errors import ParameterError
from hubbub.mechanisms.grr import checked_inputs
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below, log_above
from hubbub.numeric.packed_subsets import hold_value, packed_rows, planes_of, subset_planes
from hubbub.numeric.randomness import Source, below_many

LOSS: Final = 1e-2
"""The largest share of a declared epsilon that coins of 32 bits may cost: there are better means then."""


class SubsetSelection(AttemptChannel):
    """A channel from K values to sets of d of them.

    An attempt has d + 1 words. The first decides whether the true value is in: below `p_draws`. The others
    pick the rest by Floyd's algorithm among the K - 1 labels 0..K-2, where the true value's label stands for
    the value K - 1: for j = K-1-d, ..., K-2 the label (word mod j + 1) is added, or j where it is there
    already; when the true value is in, the first of these steps is left out.

    Attributes:
        size: d, 1 to K - 1.
        held: In how many of 2^32 draws the true value is in the set.
    """

    kind = "subset"
    description = "The device sends a random set of answers, yours more often among them than any other."

    def __init__(self, inputs: int, size: int, p_draws: int) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If the integers do not make a channel that tells inputs apart.
        """
        if inputs > MAX_INPUTS or not 1 <= size < inputs:
            raise ParameterError(
                f"a subset must have 1 to K - 1 of K <= {MAX_INPUTS} values, got {size} of {inputs}"
            )
        if not 1 <= p_draws < WORD or p_draws * (inputs - size) <= (WORD - p_draws) * size:
            raise ParameterError(
                f"subset selection must favour the true value and never be sure of it, "
                f"got {p_draws} of {WORD}"
            )
        self.size, self.p_draws = size, p_draws
        self._steps = np.arange(inputs - 1 - size, inputs - 1)
        self._step_list, self._moduli = self._steps.tolist(), (self._steps + 1).astype(np.uint32)
        super().__init__(inputs, inputs, [WORD, *(WORD - WORD % (j + 1) for j in self._step_list)])
        self._least_limit = int(self.limits.min())

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        return log_above(*self.odds)

    @property
    def odds(self) -> tuple[int, int]:
        """The ratio of a set's probabilities for an input in it and one outside, as two integers."""
        return self.p_draws * (self.inputs - self.size), (WORD - self.p_draws) * self.size

    def column(self, symbol: bytes | Sets) -> NDArray[np.int64]:  # noqa: D102 - inherited
        inside, outside = self.odds
        return np.where(self._members(symbol), np.int64(inside), np.int64(outside))

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:  # noqa: D102 - inherited
        inside = math.log(self.p_draws / WORD) - _log_choices(self.inputs - 1, self.size - 1)
        outside = math.log1p(-self.p_draws / WORD) - _log_choices(self.inputs - 1, self.size)
        return np.where(self._members(symbol), inside, outside)

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        return self._constant_divergence(*self.odds)

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return 1

    def blocks(self) -> BlockDivergence:
        """Return one block: some set holds the one and not the other of any two inputs."""
        return BlockDivergence.constant(self.inputs, fixed_up(*self.odds))

    @property
    def freedom(self) -> int:
        """The free numbers that a report tells: shares, which sum to one."""
        return self.inputs - 1

    @cached_property
    def levels(self) -> tuple[Level, ...]:  # noqa: D102 - inherited
        k, d, others = self.inputs, self.size, max(self.inputs - 2, 1)  # no third value where K = 2
        held = Fraction(self.p_draws, WORD)
        support = Support(
            p=held,
            q=(held * (d - 1) + (1 - held) * d) / (k - 1),
            p_pair=held * Fraction(d - 1, k - 1),
            q_pair=(held * (d - 1) * (d - 2) + (1 - held) * d * (d - 1)) / ((k - 1) * others),
            size=d,
        )
        return (Level(np.arange(k), Fraction(1), support),)

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:  # noqa: D102
        return [(n, counts)]

    def sends(self, members: int) -> bool:  # noqa: D102 - inherited
        return members.bit_count() == self.size

    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        return int(counts.sum()) == self.size * n

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        valid: NDArray[np.bool_] = self._spare_is_zero(symbols) & (sizes_of(symbols) == self.size)
        return valid

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:  # noqa: D102
        rows = np.arange(len(values))
        inside = attempts[:, 0] < self.p_draws
        for step, j in enumerate(self._steps.tolist()):
            label = attempts[:, 1 + step] % np.uint32(j + 1)
            label[out[rows, label]] = j
            out[rows, label] = True
            if step == 0:
                out[inside] = False
        last = self.inputs - 1
        out[:, last] = out[rows, values]
        out[rows, values] = inside

    def draw(self, value: int, source: Source) -> bytes:  # noqa: D102 - inherited
        words = np.frombuffer(source.token_bytes(4 * self.words), dtype="<u4")
        # Nearly every attempt is below the least limit, which is found with one comparison.
        while words.max() >= self._least_limit and (words >= self.limits).any():
            words = np.frombuffer(source.token_bytes(4 * self.words), dtype="<u4")
        held = bytearray(self.inputs)
        steps = zip(self._step_list, (words[1:] % self._moduli).tolist(), strict=True)
        inside = bool(words[0] < self.p_draws)
        if inside:
            next(steps)
        for j, label in steps:
            held[j if held[label] else label] = 1
        held[-1] = held[value]
        held[value] = inside
        return np.packbits(np.frombuffer(held, dtype=np.uint8), bitorder="little").tobytes()

    @property
    def chunk(self) -> int:  # noqa: D102 - inherited
        return packed_chunk(self.inputs)

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:  # noqa: D102 - inherited
        if len(values) <= FEW:
            return self._one_by_one(values, source)
        inside = below_many(WORD, len(values), source) < self.p_draws
        planes = np.zeros((planes_of(self.inputs), len(values)), dtype=np.uint16)
        labels = subset_planes(self.inputs - 1, np.int32(self.size) - inside, source)
        planes[: len(labels)] = labels
        hold_value(planes, self.inputs, values.astype(np.intp, copy=False), inside)
        return packed_rows(planes, self.width)

    def with_dummy_reports(self, share: Fraction) -> SubsetSelection:  # noqa: D102 - inherited
        # An even draw of a set holds the true value in d/K of all.
        even = Fraction(self.size * WORD, self.inputs)
        return SubsetSelection(self.inputs, self.size, draws_between(self.p_draws, even, share))

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {"kind": self.kind, "inputs": self.inputs, "size": self.size, "held": self.p_draws}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "size", "held")
        return cls(*(spec_int(spec, key) for key in ("inputs", "size", "held")))


def subset_selection(inputs: int, *, epsilon: float, size: int | None = None) -> SubsetSelection:
    """Return subset selection on K inputs.

    Args:
        inputs: K, 2 to MAX_INPUTS.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        size: d, 1 to K - 1. None: the one with the smallest mean squared error of a value's share, over
            values equally common.

    Raises:
        ParameterError: If a parameter is out of range, or 32-bit coins cannot express the epsilon.

    >>> subset_selection(100, epsilon=1.0).size
    27
    """
    count = checked_inputs(inputs)
    declared = checked_epsilon(epsilon)
    ceiling = exp_below(declared - HEADROOM)
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size < count:
            raise ParameterError(f"size must be an integer within 1 to {count - 1}, got {size!r}")
        return _of_size(count, int(size), ceiling, declared)
    near = math.floor(count / (ceiling + 1))
    sizes = range(max(1, near - 1), min(count - 1, near + 2) + 1)
    return min((_of_size(count, d, ceiling, declared) for d in sizes), key=_mean_variance)


def _of_size(inputs: int, size: int, ceiling: Fraction, declared: float) -> SubsetSelection:
    p_draws = math.floor(ceiling * size * WORD / (inputs - size + ceiling * size))
    if p_draws >= WORD or p_draws * (inputs - size) <= (WORD - p_draws) * size:
        raise ParameterError(f"no coin of 32 bits can express epsilon {declared:g} on {inputs} inputs")
    channel = SubsetSelection(inputs, size, p_draws)
    if channel.epsilon < declared * (1.0 - LOSS):
        raise ParameterError(f"no coin of 32 bits can express epsilon {declared:g} on {inputs} inputs")
    return channel


def _mean_variance(channel: SubsetSelection) -> Fraction:
    support = channel.levels[0].support
    p, q = support.p, support.q
    return (p * (1 - p) + (channel.inputs - 1) * q * (1 - q)) / (p - q) ** 2


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
