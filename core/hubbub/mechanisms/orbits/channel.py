"""Orbits: a report is a set whose counts per category are one of a few patterns, mixed by a public coin.

An orbit is a multiset of m counts, how many values of each category the set holds, and whether it holds the
missing input; its sets are all equally likely given whether the true input is in. With weights H and L of T
= 2^bits that orbit and "in", orbit and "out", have for a value, k values in the set and N sets in the
orbit, each set has

    Pr(S | x in S) = H K / (k N T),        Pr(S | x not in S) = L K / ((K - k) N T),

and for the missing input Pr(S) = M/(N T). So epsilon is the largest ratio of H K/k, L K/(K - k) and M
within an orbit, a rational. Mixtures of at most four orbits, clustered or spread, have the least error of
values and categories together that any channel of equal categories can have (`hubbub.design.floor`). Which
orbit was drawn is told by the set itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS
from hubbub.channels.divergence import BlockDivergence, fixed_up
from hubbub.channels.sets import Attempts, Level, SetChannel, Sets
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms.orbits.sampling import BITS, Orbit, OrbitSampler, total_of
from hubbub.numeric.exact import log_above

MAX_ORBITS: Final = 8
"""Orbits of a channel: the best mixtures have four at most."""


class OrbitChannel(SetChannel):
    """A channel from m categories of s values, and perhaps a missing input, to sets of inputs.

    An attempt has two words for orbit and "in" or "out", two words per orbit for the count of the true
    value's category, a word for each of the moduli 2..m to shuffle the counts, and for each rank of the
    counts those of Floyd's algorithm. Inputs are numbered category by category, missing last.

    Attributes:
        size: s.
        many: m.
        missing: Whether the last input stands for "no value".
        orbits: The orbits.
    """

    kind = "orbits"

    def __init__(self, size: int, many: int, orbits: Sequence[Orbit]) -> None:
        """Build the channel from its integers.

        Raises:
            ParameterError: If they break a rule of channels.
        """
        if min(size, many) < 1 or not 2 <= size * many <= MAX_INPUTS:
            raise ParameterError(f"categories must have 2 to {MAX_INPUTS} values, got {many} of {size}")
        if not 1 <= len(orbits) <= MAX_ORBITS:
            raise ParameterError(f"orbits must be 1 to {MAX_ORBITS}, got {len(orbits)}")
        self.size, self.many, self.orbits = size, many, tuple(orbits)
        self.values, self.total = size * many, total_of(size * many)
        self.missing = any(orbit.absent for orbit in orbits)
        for orbit in orbits:
            self._check(orbit)
        if len({(orbit.counts, orbit.missing) for orbit in orbits}) != len(orbits):
            raise ParameterError("orbits must differ from each other, got one twice")
        if sum(orbit.inside + orbit.outside for orbit in orbits) != self.total:
            raise ParameterError("the weights of a value must sum to the total")
        if self.missing and sum(orbit.absent for orbit in orbits) != self.total:
            raise ParameterError("the weights of the missing input must sum to the total")
        inputs = self.values + self.missing
        self._sampler = OrbitSampler(size, many, self.orbits)
        super().__init__(inputs, inputs, self._sampler.limits)

    def _check(self, orbit: Orbit) -> None:
        k, n = orbit.held, orbit.counts
        if len(n) != self.many or list(n) != sorted(n, reverse=True) or n[0] > self.size or n[-1] < 0:
            raise ParameterError(f"counts must be {self.many} numbers falling from {self.size} at most")
        if (orbit.inside > 0) != (k > 0) or (orbit.outside > 0) != (k < self.values):
            raise ParameterError("an orbit must have a weight exactly where some set of it is")
        weights = (orbit.inside, orbit.outside, orbit.absent)
        if not 0 <= min(weights) <= max(weights) <= self.total:
            raise ParameterError("weights must be within 0 to the total")
        if (orbit.absent > 0) != self.missing or (orbit.missing and not self.missing):
            raise ParameterError("every orbit must have a weight of the missing input where there is one")

    @property
    def bins(self) -> int:
        """The number of counts of a round: per orbit its reports, and those that hold each input."""
        return len(self.orbits) * (1 + self.inputs)

    @cached_property
    def odds(self) -> list[tuple[Fraction, Fraction, Fraction]]:
        """Per orbit the relative probabilities of a set, given a value in it, one outside, and missing."""
        return [
            (
                Fraction(o.inside * self.values, o.held) if o.held else Fraction(0),
                Fraction(o.outside * self.values, self.values - o.held) if o.outside else Fraction(0),
                Fraction(o.absent),
            )
            for o in self.orbits
        ]

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        ratios = []
        for three in self.odds:
            some = [p for p in three if p > 0]
            ratios.append(max(some) / min(some))
        worst = max(ratios)
        return log_above(worst.numerator, worst.denominator)

    def column(self, symbol: bytes | Sets) -> NDArray[np.int64]:  # noqa: D102 - inherited
        t, members = self._read(symbol)
        three = self.odds[t]
        common = math.lcm(*(p.denominator for p in three))
        whole = [int(p * common) for p in three]
        divisor = math.gcd(*whole)
        inside, outside, absent = (w // divisor for w in whole)
        weights = np.where(members, np.int64(inside), np.int64(outside))
        if self.missing:
            weights[-1] = absent
        return weights

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:  # noqa: D102 - inherited
        t, members = self._read(symbol)
        sets = self._log_sets(self.orbits[t])
        inside, outside, absent = (math.log(p / self.total) - sets if p else -math.inf for p in self.odds[t])
        logs = np.where(members, inside, outside)
        if self.missing:
            logs[-1] = absent
        return logs

    def _log_sets(self, orbit: Orbit) -> float:
        """Return the logarithm of the number of sets that an orbit has."""
        each = sum(_log_choices(self.size, n) for n in orbit.counts)
        ties = sum(math.lgamma(many + 1) for many in Counter(orbit.counts).values())
        return each + math.lgamma(self.many + 1) - ties

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        near, across, absent = (math.log(ratio) for ratio in self._distances())
        labels = self._labels
        matrix = np.where(labels[:, None] == labels, near, across)
        if self.missing:
            back = math.log(self._distances(back=True)[2])
            matrix[:-1, -1], matrix[-1, :-1] = absent, back
        np.fill_diagonal(matrix, 0.0)
        return np.asarray(matrix)

    @property
    def _labels(self) -> NDArray[np.intp]:
        labels = np.repeat(np.arange(self.many), self.size)
        return np.append(labels, self.many) if self.missing else labels

    def _distances(self, *, back: bool = False) -> tuple[Fraction, Fraction, Fraction]:
        """Return the largest ratios of two values of a category, of two categories, of a value to missing."""
        near = across = absent = Fraction(1)
        for orbit, (inside, outside, gone) in zip(self.orbits, self.odds, strict=True):
            if inside and outside:
                apart = max(inside / outside, outside / inside)
                if any(0 < n < self.size for n in orbit.counts):
                    near = max(near, apart)
                if self.many > 1:
                    across = max(across, apart)
            for p in (inside, outside):
                if p and gone:
                    absent = max(absent, gone / p if back else p / gone)
        return near, across, absent

    def blocks(self) -> BlockDivergence:
        """Return one block per category, and one for missing."""
        near, across, absent = (fixed_up(r.numerator, r.denominator) for r in self._distances())
        back = self._distances(back=True)[2]
        count = self.many + self.missing
        table = np.full((count, count), across, dtype=np.int64)
        if self.missing:
            table[:-1, -1], table[-1, :-1] = absent, fixed_up(back.numerator, back.denominator)
        return BlockDivergence(self._labels, table, np.full(count, near))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Not defined: the moments of an orbit's sets depend on categories; see `OrbitEstimator`."""
        raise ParameterError("an orbit channel has no levels; its estimator is OrbitEstimator")

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:
        """Give per orbit how many reports are of it, and how many of them hold each input."""
        del n
        table = np.reshape(counts, (len(self.orbits), 1 + self.inputs))
        return [(float(row[0]), row[1:]) for row in table]

    # Symbols: one bit per input, while counts are kept per orbit.

    def admits(self, symbol: object) -> bool:  # noqa: D102 - inherited
        if not isinstance(symbol, bytes) or len(symbol) != self.width:
            return False
        return bool(self.contains_sets(np.frombuffer(symbol, dtype=np.uint8)[None, :])[0])

    def sends(self, members: int) -> bool:  # noqa: D102 - inherited
        return self.admits(members.to_bytes(self.width, "little"))

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        return self._spare_is_zero(symbols) & (self._orbit_of(self._bits(symbols)) >= 0)

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
        values = table[:, 1 : 1 + self.values].sum(axis=1).tolist()
        due = [int(row[0]) * o.held for row, o in zip(table, self.orbits, strict=True)]
        return values == due and (
            not self.missing
            or table[:, -1].tolist()
            == [int(r[0]) * o.missing for r, o in zip(table, self.orbits, strict=True)]
        )

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected counts of one report of a population, shape (bins,), float64; see `tally`."""
        f, gone = frequencies[: self.values], float(frequencies[-1]) if self.missing else 0.0
        some, groups = float(f.sum()), f.reshape(self.many, self.size).sum(axis=1)
        rows = []
        for orbit in self.orbits:
            h, low, absent = (w / self.total for w in (orbit.inside, orbit.outside, orbit.absent))
            k, q = orbit.held, sum(n * n for n in orbit.counts)
            rate = k / self.values
            # Given an input in (out), the chance that another value of its category, of another one, is in.
            others, free = self.values - self.size, self.values - k
            same_in = _ratio(q - k, k * (self.size - 1))
            other_in = _ratio(k * k - q, k * others)
            same_out = _ratio(self.size * k - q, free * (self.size - 1))
            other_out = _ratio(k * free - self.size * k + q, free * others)
            same, other = h * same_in + low * same_out, h * other_in + low * other_out
            own = groups.repeat(self.size)
            hits = h * f + same * (own - f) + other * (some - own) + absent * gone * rate
            reports = (h + low) * some + absent * gone
            rows.append(np.concatenate([[reports], hits, [reports * orbit.missing] if self.missing else []]))
        return np.concatenate(rows)

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:  # noqa: D102
        self._sampler.fill(values, attempts, out)

    def _read(self, symbol: bytes | Sets) -> tuple[int, NDArray[np.bool_]]:
        data = symbol.tobytes() if isinstance(symbol, np.ndarray) else symbol
        if not isinstance(data, bytes) or not self.admits(data):
            raise ParameterError(
                f"a symbol must be a set of {self.width} bytes that the channel can send, got another one"
            )
        bits = self._bits(np.frombuffer(data, dtype=np.uint8)[None, :])
        return int(self._orbit_of(bits)[0]), bits[0]

    def _bits(self, symbols: Sets) -> NDArray[np.bool_]:
        return np.unpackbits(symbols, axis=1, count=self.inputs, bitorder="little").astype(np.bool_)

    def _spare_is_zero(self, symbols: Sets) -> NDArray[np.bool_]:
        clear: NDArray[np.bool_] = symbols[:, -1] < (1 << (8 - (8 * self.width - self.inputs)))
        return clear

    def _orbit_of(self, bits: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the orbit of sets of shape (n, K), -1 where it is none of them."""
        groups = bits[:, : self.values].reshape(len(bits), self.many, self.size).sum(axis=2)
        groups = -np.sort(-groups, axis=1)
        found = np.full(len(bits), -1, dtype=np.intp)
        for t, orbit in enumerate(self.orbits):
            same = (groups == np.array(orbit.counts)).all(axis=1)
            if self.missing:
                same &= bits[:, -1] == orbit.missing
            found[same] = t
        return found

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "size": self.size,
            "many": self.many,
            "counts": [n for orbit in self.orbits for n in orbit.counts],
            "missing": [int(orbit.missing) for orbit in self.orbits],
            "inside": [orbit.inside for orbit in self.orbits],
            "outside": [orbit.outside for orbit in self.orbits],
            "absent": [orbit.absent for orbit in self.orbits],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        names = ("missing", "inside", "outside", "absent")
        check_spec_keys(spec, "size", "many", "counts", *names)
        size, many, counts = spec_int(spec, "size"), spec_int(spec, "many"), _whole(spec, "counts")
        columns = [_whole(spec, name) for name in names]
        count = len(columns[0])
        if any(len(column) != count for column in columns) or len(counts) != count * many:
            raise ParameterError("every orbit must have four integers and a count per category")
        if any(flag not in (0, 1) for flag in columns[0]):
            raise ParameterError("missing must be 0 or 1 for every orbit")
        orbits = [
            Orbit(tuple(counts[t * many : (t + 1) * many]), bool(columns[0][t]), *(c[t] for c in columns[1:]))
            for t in range(count)
        ]
        return cls(size, many, orbits)


def _whole(spec: Mapping[str, object], key: str) -> list[int]:
    """Return a list of integers >= 0 of a description; `spec_ints` knows none that are 0."""
    value = spec[key]
    if not isinstance(value, list | tuple) or not all(type(n) is int and 0 <= n <= 2**BITS for n in value):
        raise WireError(f"a channel's {key} must be a list of integers within 0 to 2^{BITS}")
    return list(value)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
