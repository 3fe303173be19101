"""Orbits: a report is a set whose counts per category are one of a few patterns, mixed by a public coin.

Categories of one size form a class. An orbit says, for every class, how many values of each of its categories
a set holds, in any order, and whether it holds the missing input; given whether the true input is in, all its
sets are equally likely. With integer weights h and l of a class, a of the missing input, T = sum of a and N
sets in the orbit, each set has

    Pr(S | x in S) = h/(N T),    Pr(S | x not in S) = l/(N T),    Pr(S | missing) = a/(N T),

where h and l are those of x's class. The rows sum to one: sum of k h + (n - k) l over the orbits is n T for
every class of n values, k of them in the set. So epsilon is the largest ratio of the weights within an orbit.
Mixtures of few orbits, clustered or spread, have the least error of values and categories together that any
channel can have (docs/frontier.md). The set itself tells which orbit was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import LOGARITHM
from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence, fixed_up
from hubbub.channels.sets import FEW, Level, SetChannel, Sets, packed_chunk
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms.orbits.batches import OrbitBatches
from hubbub.mechanisms.orbits.layout import Layout
from hubbub.mechanisms.orbits.sampling import BITS, Orbit, OrbitSampler, shift_of
from hubbub.mechanisms.orbits.settling import covered
from hubbub.numeric.exact import log_above
from hubbub.numeric.packed_subsets import packed_rows
from hubbub.numeric.randomness import Source

if TYPE_CHECKING:
    from hubbub.mechanisms.orbits.estimator import OrbitEstimator

MAX_ORBITS: Final = 64
"""Orbits of a channel: the best mixtures have four where categories are equal, some twenty of four sizes."""

_RATIO: Final = 2**13
"""The comparisons of two weights that one of two fractions takes as long as."""

MAX_UNIT: Final = 1000
"""Thousandths of a participation coin: what rows sum to is as many times a power of two."""


class OrbitChannel(SetChannel):
    """A channel from categories of values, and perhaps a missing input, to sets of inputs.

    Inputs are numbered category by category, missing last.

    Attributes:
        layout: The categories.
        orbits: The orbits.
        unit: u, rows sum to a multiple of u 2^b: 1, or the steps of a participation coin.
        total: T.
        missing: Whether the last input stands for "no value".
    """

    kind = "orbits"
    tells_inputs = False
    description = (
        "The device sends a random set of answers, yours or answers of your category more often among them."
    )

    def __init__(self, sizes: Sequence[int], orbits: Sequence[Orbit], unit: int = 1) -> None:
        """Build the channel from its integers.

        Raises:
            ParameterError: If they break a rule of channels.
        """
        self.layout, self.orbits = Layout(sizes), tuple(orbits)
        self.values = self.layout.values
        if not 1 <= len(self.orbits) <= MAX_ORBITS:
            raise ParameterError(f"orbits must be 1 to {MAX_ORBITS}, got {len(self.orbits)}")
        if not 1 <= unit <= MAX_UNIT:
            raise ParameterError(f"unit must be 1 to {MAX_UNIT}, got {unit}")
        self.unit, self.total = unit, unit << shift_of(self.values, unit)
        self.missing = any(orbit.absent for orbit in self.orbits)
        for orbit in self.orbits:
            self._check(orbit)
        if len({(orbit.counts, orbit.missing) for orbit in self.orbits}) != len(self.orbits):
            raise ParameterError("orbits must differ from each other, got one twice")
        for g, values in enumerate(self.layout.held):
            if sum(orbit.weight(g, values) for orbit in self.orbits) != values * self.total:
                raise ParameterError("the weights of a value must sum to the total")
        if self.missing and sum(orbit.absent for orbit in self.orbits) != self.total:
            raise ParameterError("the weights of the missing input must sum to the total")
        inputs = self.values + self.missing
        self._sampler = OrbitSampler(self.layout, self.orbits, unit)
        self._batches = OrbitBatches(self._sampler)
        super().__init__(inputs, inputs)

    def _check(self, orbit: Orbit) -> None:
        layout = self.layout
        if not len(orbit.counts) == len(orbit.inside) == len(orbit.outside) == layout.classes:
            raise ParameterError(f"an orbit must have counts and weights of {layout.classes} classes")
        for counts, size, many in zip(orbit.counts, layout.class_sizes, layout.many, strict=True):
            falling = list(counts) == sorted(counts, reverse=True)
            if len(counts) != many or not falling or counts[0] > size or counts[-1] < 0:
                raise ParameterError(f"counts must be {many} numbers falling from {size} at most")
        weights = [*orbit.inside, *orbit.outside, *([orbit.absent] if self.missing else [])]
        if not 1 <= min(weights) <= max(weights) <= self.total * max(layout.held) or orbit.absent < 0:
            raise ParameterError("weights must be within 1 to the total")
        if orbit.missing and not self.missing:
            raise ParameterError("a set must hold the missing input only where there is one")

    @property
    def bins(self) -> int:
        """The number of counts of a round: per orbit its reports, and those that hold each input."""
        return len(self.orbits) * (1 + self.inputs)

    def _used(self, orbit: Orbit) -> list[list[int]]:
        """Return per class the weights that some set gives a value of it: in, out or both."""
        found = []
        for g, (k, values) in enumerate(zip(orbit.held, self.layout.held, strict=True)):
            found.append([orbit.inside[g]] * (k > 0) + [orbit.outside[g]] * (k < values))
        return found

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        ratios = [self._farthest(orbit) for orbit in self.orbits]
        worst = max(ratios)
        return log_above(worst.numerator, worst.denominator)

    def column(self, symbol: bytes | Sets) -> NDArray[np.int64]:  # noqa: D102 - inherited
        number, members = self._read(symbol)
        # All sets of an orbit use the same weights, so their divisor is the orbit's.
        inside, outside = self._lowest[number]
        return np.where(members, inside, outside)

    @cached_property
    def _lowest(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The weights of every orbit in lowest terms, for each input in the set and not in it."""
        labels, classes = self._labels
        found = []
        for orbit in self.orbits:
            divisor = math.gcd(*sum(self._used(orbit), [orbit.absent] * self.missing))
            pair = [
                np.array([*weights, orbit.absent], dtype=np.int64)[classes[labels]] // divisor
                for weights in (orbit.inside, orbit.outside)
            ]
            found.append((pair[0], pair[1]))
        return found

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:  # noqa: D102 - inherited
        orbit, weights = self._weights(symbol)
        logs: NDArray[np.float64] = np.log(weights / self.total) - self._log_sets(orbit)
        return logs

    def _weights(self, symbol: bytes | Sets) -> tuple[Orbit, NDArray[np.int64]]:
        t, members = self._read(symbol)
        orbit, classes = self.orbits[t], self.layout.class_of[self.layout.labels]
        inside, outside = np.array(orbit.inside)[classes], np.array(orbit.outside)[classes]
        weights = np.where(members[: self.values], inside, outside)
        return orbit, np.append(weights, orbit.absent) if self.missing else weights

    def _log_sets(self, orbit: Orbit) -> float:
        """Return the logarithm of the number of sets that an orbit has."""
        found = 0.0
        for kinds, size, many in zip(orbit.kinds, self.layout.class_sizes, self.layout.many, strict=True):
            found += math.lgamma(many + 1)
            for n, times in kinds:
                found += times * _log_choices(size, n) - math.lgamma(times + 1)
        return found

    def _farthest(self, orbit: Orbit) -> Fraction:
        """Return the largest ratio of two weights that some set of an orbit gives."""
        used = sum(self._used(orbit), [orbit.absent] * self.missing)
        return Fraction(max(used), min(used))

    def _ratios(self) -> tuple[list[Fraction], list[list[Fraction]]]:
        """Return the largest ratios of two values of a category, and of two that share none, or missing.

        The second table has a row and a column per class, and one for missing where there is such an input.
        """
        near = [Fraction(1)] * self.layout.classes
        count = self.layout.classes + self.missing
        across = [[Fraction(1)] * count for _ in range(count)]
        for orbit in self.orbits:
            used = self._used(orbit) + [[orbit.absent]] * self.missing
            for g, size in enumerate(self.layout.class_sizes):
                if any(0 < n < size for n in orbit.counts[g]):
                    near[g] = max(near[g], Fraction(max(used[g]), min(used[g])))
            for g, one in enumerate(used):
                for h, other in enumerate(used):
                    across[g][h] = max(across[g][h], Fraction(max(one), min(other)))
        return near, across

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        near, across = self._ratios()
        labels, classes = self._labels
        table = np.array([[math.log(ratio) for ratio in row] for row in across])
        matrix = table[np.ix_(classes[labels], classes[labels])]
        close = np.array([*(math.log(ratio) for ratio in near), 0.0])[classes[labels]]
        matrix = np.where(labels[:, None] == labels, close[:, None], matrix)
        np.fill_diagonal(matrix, 0.0)
        return np.asarray(matrix)

    @property
    def _labels(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The category of every input and the class of every category, those of missing last."""
        labels, classes = self.layout.labels, self.layout.class_of
        if self.missing:
            labels, classes = np.append(labels, len(classes)), np.append(classes, self.layout.classes)
        return labels, classes

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return min(len(self.layout.sizes) + self.missing, MAX_BLOCKS)

    @property
    def block_work(self) -> int:
        """The work of one ratio per orbit and pair of classes, and of their logarithms."""
        pairs = (self.layout.classes + 1) ** 2
        ratios = pairs * (_RATIO * len(self.orbits) + LOGARITHM)
        return 8 * self.inputs + self.most_blocks**2 + ratios

    def blocks(self) -> BlockDivergence:
        """Return one block per category, and one for missing.

        Where there are more than MAX_BLOCKS, all inputs are taken to be as far apart as the farthest two.
        """
        if len(self.layout.sizes) + self.missing > MAX_BLOCKS:
            farthest = max(self._farthest(orbit) for orbit in self.orbits)
            return BlockDivergence.constant(self.inputs, fixed_up(farthest.numerator, farthest.denominator))
        near, across = self._ratios()
        labels, classes = self._labels
        table = np.array([[fixed_up(r.numerator, r.denominator) for r in row] for row in across])
        within = np.array([*(fixed_up(r.numerator, r.denominator) for r in near), 0], dtype=np.int64)
        return BlockDivergence(labels, table[np.ix_(classes, classes)], within[classes])

    @property
    def levels(self) -> tuple[Level, ...]:
        """Not defined: the moments of an orbit's sets depend on categories; see `own_estimator`."""
        raise ParameterError("an orbit channel has no levels; its estimator is OrbitEstimator")

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:
        """Give per orbit how many reports are of it, and how many of them hold each input."""
        del n
        table = np.reshape(counts, (len(self.orbits), 1 + self.inputs))
        return [(float(row[0]), row[1:]) for row in table]

    def own_estimator(self, **asked: Any) -> OrbitEstimator:  # noqa: ANN401 - those of `estimator_for`
        """Return the estimator; see `hubbub.estimation.estimator_for`."""
        from hubbub.mechanisms.orbits.estimator import OrbitEstimator  # noqa: PLC0415 - no device estimates

        return OrbitEstimator(self, **asked)

    def category_rule(self, category_of: NDArray[np.intp]) -> str:  # noqa: D102 - inherited
        labels, _ = self._labels
        return "" if np.array_equal(labels, category_of) else "must be the categories of its orbits channel"

    def with_dummy_reports(self, share: Fraction) -> OrbitChannel:
        """Return the channel whose dummy reports are those of the missing input."""
        if not self.missing or self.unit != 1:
            raise ParameterError("participation must be asked of orbits with a missing input, and once")
        orbits = covered(self.layout, self.orbits, self.total, share)
        return type(self)(self.layout.sizes, orbits, share.denominator)

    # Symbols: one bit per input, while counts are kept per orbit.

    def admits(self, symbol: object) -> bool:  # noqa: D102 - inherited
        if not isinstance(symbol, bytes) or len(symbol) != self.width:
            return False
        return self._number_of(symbol) >= 0

    def sends(self, members: int) -> bool:  # noqa: D102 - inherited
        return self.admits(members.to_bytes(self.width, "little"))

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        return self._spare_is_clear(symbols) & (self._orbit_of(self._bits(symbols)) >= 0)

    def tally(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
        """Count per orbit the number of reports and how many hold each input, shape (bins,), int64."""
        counts = np.zeros((len(self.orbits), 1 + self.inputs), dtype=np.int64)
        step = max(1, (1 << 19) // self.inputs)
        for start in range(0, len(symbols), step):
            bits = self._bits(symbols[start : start + step].astype(np.uint8, copy=False))
            orbit = self._orbit_of(bits)
            for t in range(len(self.orbits)):
                own = bits[orbit == t]
                counts[t, 0] += len(own)
                counts[t, 1:] += own.sum(axis=0, dtype=np.int64)
        return counts.reshape(-1)

    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        table = counts.reshape(len(self.orbits), 1 + self.inputs)
        if int(table[:, 0].sum()) != n or (table[:, 1:] > table[:, :1]).any():
            return False
        for row, orbit in zip(table.tolist(), self.orbits, strict=True):
            hits = self.layout.split(np.array(row[1 : 1 + self.values]))
            due = [row[0] * k for k in orbit.held]
            if [int(part.sum()) for part in hits] != due:
                return False
            if self.missing and row[-1] != row[0] * orbit.missing:
                return False
        return True

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected counts of one report of a population, shape (bins,), float64; see `tally`."""
        from hubbub.mechanisms.orbits.moments import OrbitMoments  # noqa: PLC0415 - no device expects counts

        rows = []
        for orbit in self.orbits:
            moments = OrbitMoments.of(self.layout, orbit, self.total, frequencies)
            hits = self.layout.joined(moments.hits())
            gone = [moments.reports * orbit.missing] if self.missing else []
            rows.append(np.concatenate([[moments.reports], hits, gone]))
        return np.concatenate(rows)

    def draw(self, value: int, source: Source) -> bytes:  # noqa: D102 - inherited
        _, members = self._sampler.one(value, source)
        return members.to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:  # noqa: D102 - inherited
        if len(values) <= FEW:
            return self._one_by_one(values, source)
        return packed_rows(self._batches.joined(self._batches.many(values, source)), self.width)

    @property
    def chunk(self) -> int:  # noqa: D102 - inherited
        return packed_chunk(self.inputs)

    def _read(self, symbol: bytes | Sets) -> tuple[int, NDArray[np.bool_]]:
        data = symbol.tobytes() if isinstance(symbol, np.ndarray) else symbol
        number = self._number_of(data) if isinstance(data, bytes) and len(data) == self.width else -1
        if number < 0:
            raise ParameterError(
                f"a symbol must be a set of {self.width} bytes that the channel can send, got another one"
            )
        bits = self._bits(np.frombuffer(data, dtype=np.uint8)[None, :])
        return number, bits[0]

    def _number_of(self, symbol: bytes) -> int:
        """Return the orbit of one packed set, -1 where it is none: 100 times as fast as arrays of one."""
        members = int.from_bytes(symbol, "little")
        if members >> self.inputs:
            return -1
        counts = tuple(
            tuple(sorted([(members & mask).bit_count() for mask in masks], reverse=True))
            for masks in self._masks
        )
        return self._numbers.get((counts, bool(members >> self.values)), -1)

    @cached_property
    def _masks(self) -> list[list[int]]:
        """The bits of the parts whose members are counted, per class: its categories; all if of one value."""
        found = []
        for size, members in zip(self.layout.class_sizes, self.layout.members, strict=True):
            masks = [((1 << size) - 1) << start for start in members[:, 0].tolist()]
            found.append(masks if size > 1 else [sum(masks)])
        return found

    @cached_property
    def _numbers(self) -> dict[tuple[tuple[tuple[int, ...], ...], bool], int]:
        """The number of an orbit by its counts, as `_masks` count them, and whether it holds missing."""
        sizes = self.layout.class_sizes
        return {
            (
                tuple(
                    part if size > 1 else (sum(part),) for part, size in zip(orbit.counts, sizes, strict=True)
                ),
                orbit.missing,
            ): number
            for number, orbit in enumerate(self.orbits)
        }

    def _bits(self, symbols: Sets) -> NDArray[np.bool_]:
        return np.unpackbits(symbols, axis=1, count=self.inputs, bitorder="little").astype(np.bool_)

    def _spare_is_clear(self, symbols: Sets) -> NDArray[np.bool_]:
        # `bins` is not the number of bits here: counts are kept per orbit.
        clear: NDArray[np.bool_] = symbols[:, -1] < (1 << (8 - (8 * self.width - self.inputs)))
        return clear

    def _orbit_of(self, bits: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the orbit of sets of shape (n, K), -1 where it is none of them."""
        counts = [np.sort(bits[:, members].sum(axis=2), axis=1)[:, ::-1] for members in self.layout.members]
        gone = bits[:, self.values :].astype(np.int64)  # one column, or none
        seen = np.concatenate([*counts, gone], axis=1)
        multipliers, keys, order = self._keys
        near = np.minimum(np.searchsorted(keys, seen @ multipliers), len(keys) - 1)
        found = order[near]
        return np.where((seen == self._patterns[found]).all(axis=1), found, -1)

    @cached_property
    def _patterns(self) -> NDArray[np.int64]:
        """The counts of every orbit in a row, and its missing bit where there is one; all rows differ."""
        rows = [
            [*(n for part in orbit.counts for n in part), *([orbit.missing] if self.missing else [])]
            for orbit in self.orbits
        ]
        return np.array(rows, dtype=np.int64)

    @cached_property
    def _keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
        """Multipliers that give every orbit a key of its own, the keys in order, and whose they are."""
        seed = 0
        while True:
            rng = np.random.default_rng(seed)
            multipliers = np.asarray(rng.integers(1, 1 << 40, size=(self._patterns.shape[1],)))
            keys = self._patterns @ multipliers
            order = np.argsort(keys)
            if len(np.unique(keys)) == len(keys):
                return multipliers, keys[order], order
            seed += 1

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        orbits = self.orbits
        return {
            "kind": self.kind,
            "sizes": list(self.layout.sizes),
            "unit": self.unit,
            "counts": [n for orbit in orbits for part in orbit.counts for n in part],
            "missing": [int(orbit.missing) for orbit in orbits],
            "inside": [w for orbit in orbits for w in orbit.inside],
            "outside": [w for orbit in orbits for w in orbit.outside],
            "absent": [orbit.absent for orbit in orbits],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "sizes", "unit", "counts", "missing", "inside", "outside", "absent")
        sizes, unit = spec_ints(spec, "sizes"), spec_int(spec, "unit")
        layout, counts = Layout(sizes), iter(_whole(spec, "counts"))
        missing, absent = _whole(spec, "missing"), _whole(spec, "absent")
        inside, outside = spec_ints(spec, "inside"), spec_ints(spec, "outside")
        count, classes = len(missing), layout.classes
        if len(absent) != count or not len(inside) == len(outside) == count * classes:
            raise ParameterError(
                "every orbit must have two weights per class, a flag and a weight of missing"
            )
        if any(flag not in (0, 1) for flag in missing):
            raise ParameterError("missing must be 0 or 1 for every orbit")
        orbits = []
        for t in range(count):
            parts = tuple(tuple(islice(counts, many)) for many in layout.many)
            own = slice(t * classes, (t + 1) * classes)
            orbits.append(Orbit(parts, bool(missing[t]), tuple(inside[own]), tuple(outside[own]), absent[t]))
        if next(counts, None) is not None:
            raise ParameterError("counts must be one per category and orbit, got more")
        return cls(sizes, orbits, unit)


def _whole(spec: Mapping[str, object], key: str) -> list[int]:
    """Return a list of integers >= 0 of a description; `spec_ints` knows none that are 0."""
    value = spec[key]
    if not isinstance(value, list | tuple) or not all(type(n) is int and 0 <= n <= 2**BITS for n in value):
        raise WireError(f"a channel's {key} must be a list of integers within 0 to 2^{BITS}")
    return list(value)


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
