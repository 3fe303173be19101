"""A small public pool of hash functions under which any two inputs collide equally often.

Points x of the affine space F^d over the field F of q elements are the numbers below q^d, by their digits in
base q. Input i is the point i m mod q^d, for a stride m of about 0.618 q^d without a factor of q: so that
inputs that follow each other, as those of one category do, are scattered over all buckets. A seed is a
direction a in F^d whose first digit that is not 0, from the highest place, is 1; its hash is the bucket

    h_a(x) = a . x = sum over the digits of a_i x_i,     computed in F.

There are S = (q^d - 1)/(q - 1) such directions, and for x != x' exactly (q^(d-1) - 1)/(q - 1) of them have
a . (x - x') = 0: no pair is luckier than another, so that estimates over the whole pool are unbiased with no
appeal to a random hash. The buckets of all seeds are the hyperplanes of the space, each seed's parallel to
each other (a resolvable block design). When K = q^d no pool is smaller: a seed tells its q buckets apart,
which is q - 1 numbers beside the total, so that K shares need (K - 1)/(q - 1) seeds.

Sums over buckets and over buckets that hold an input are discrete Radon transforms. The characters of one
seed's buckets are the multiples of one direction among the characters of the space, each but 0 met once, so
that two Fourier transforms replace S K hashes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS
from hubbub.errors import ParameterError

MAX_SYMBOLS: Final = 2**20
"""Cells of all seeds: the numbers of one round's counts, 8 MiB."""

MAX_WIDE_SYMBOLS: Final = 2**22
"""Cells of all seeds where there are more inputs than any other channel takes: 32 MiB."""

_FEW: Final = 16
"""Inputs of a set up to which their hashes take less time than a transform."""

_IRREDUCIBLE: Final = {
    4: 0x7,
    8: 0xB,
    16: 0x13,
    32: 0x25,
    64: 0x43,
    128: 0x83,
    256: 0x11B,
    512: 0x203,
    1024: 0x409,
    2048: 0x805,
    4096: 0x1009,
    8192: 0x201B,
    16384: 0x4021,
    32768: 0x8003,
    65536: 0x1002B,
    131072: 0x20009,
}
"""The least irreducible polynomial of each degree over the field of two, bit i for x^i."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_Turn: TypeAlias = Callable[..., NDArray[np.complex128]]


class HashPool:
    """All directions of the least affine space over a field that has room for the inputs.

    Attributes:
        inputs: K.
        buckets: q, the buckets of a hash: a prime, or a power of two.
        dimensions: d, the least with q^d >= K.
        points: q^d.
        stride: m.
        seeds: S.
        together: Under how many seeds any two different inputs share a bucket.
    """

    def __init__(self, inputs: int, buckets: int) -> None:
        """Set the sizes.

        Raises:
            ParameterError: If there is no field of so many elements here, or the pool is too large.
        """
        if not 2 <= buckets <= most_symbols(inputs) or not (buckets in _IRREDUCIBLE or _is_prime(buckets)):
            raise ParameterError(
                f"buckets must be a prime, or a power of two up to {max(_IRREDUCIBLE)}, got {buckets}"
            )
        self.inputs, self.buckets, self.dimensions = inputs, buckets, 1
        while buckets**self.dimensions < inputs:
            self.dimensions += 1
        self.points: int = buckets**self.dimensions
        self.seeds: int = (self.points - 1) // (buckets - 1)
        self.together = (self.points // buckets - 1) // (buckets - 1)
        if self.symbols > (most := most_symbols(inputs)):
            raise ParameterError(
                f"buckets must leave at most {most} cells of all seeds, got {self.symbols} "
                f"from {buckets} for {inputs} inputs"
            )
        self.stride = _stride(self.points, buckets)
        self._modulus = _IRREDUCIBLE.get(buckets)
        self._base = buckets if self._modulus is None else 2

    @property
    def symbols(self) -> int:
        """The number of pairs of a seed and a bucket: bucket y of seed s is the symbol s q + y."""
        return self.seeds * self.buckets

    def bucket(self, seeds: Any, values: Any) -> Integers:  # noqa: ANN401 - whatever broadcasts as integers
        """Return the bucket of values under seeds, both broadcast against each other, int64.

        Args:
            seeds: 0..S-1, in the order of their directions read as numbers in base q.
            values: Inputs 0..K - 1.
        """
        return self._hashed(seeds, np.asarray(values, dtype=np.int64) * self.stride % self.points)

    def _hashed(self, seeds: Any, point: Any) -> Integers:  # noqa: ANN401 - the same
        """Return the bucket of points under seeds."""
        q, direction = self.buckets, self._directions[np.asarray(seeds)]
        point = np.asarray(point, dtype=np.int64)
        found = np.zeros(np.broadcast_shapes(direction.shape, point.shape), dtype=np.int64)
        for _ in range(self.dimensions):
            product = self._times(direction % q, point % q)
            found = (found + product) % q if self._modulus is None else found ^ product
            direction, point = direction // q, point // q
        return found

    def sums_by_bucket(self, numbers: Floats) -> Floats:
        """Return the sum of numbers over the inputs of every bucket, shape (S q,), from shape (K,)."""
        space = np.zeros((1, self.points))
        space[0, self._places] = numbers
        spectrum = self._transform(space)[0, self._characters]
        return np.ascontiguousarray(self._transform(spectrum, np.fft.ifftn).real).reshape(self.symbols)

    def members(self, inputs: Integers) -> Integers:
        """Return how many of a few inputs every bucket holds, shape (S q,), by their hashes one by one.

        Args:
            inputs: 0..K - 1, each once, shape (n,).
        """
        found = np.zeros(self.symbols, dtype=np.int64)
        for point in (inputs * self.stride % self.points).tolist():
            cells = np.zeros(self.seeds, dtype=np.int32)
            for products in self._products:
                term = products[point % self.buckets]
                cells = cells + term if self._modulus is None else cells ^ term
                point //= self.buckets  # noqa: PLW2901 - its digits, one by one
            found[self._firsts + cells % self.buckets] += 1
        return found

    def held(self, inside: NDArray[np.bool_]) -> Integers:
        """Return how many inputs of a set every bucket holds, shape (S q,).

        Args:
            inside: Which inputs are in the set, shape (K,).
        """
        chosen = np.flatnonzero(inside)
        if len(chosen) <= _FEW:
            return self.members(chosen)
        return np.rint(self.sums_by_bucket(inside.astype(np.float64))).astype(np.int64)

    def supports(self, counts: Floats) -> Floats:
        """Return the sum of counts over the buckets that hold every input, shape (K,), from shape (S q,)."""
        cells = np.array(counts, dtype=np.float64).reshape(self.seeds, self.buckets)
        spectrum = self._transform(cells)
        space = np.zeros((1, self.points), dtype=spectrum.dtype)
        space[0, self._characters] = spectrum
        space[0, 0] = spectrum[:, 0].sum()
        sums = self._transform(space, np.fft.ifftn)[0].real
        return np.asarray(sums[self._places] * (self.points / self.buckets))

    @cached_property
    def _firsts(self) -> Integers:
        """The first bucket of every seed."""
        return np.arange(self.seeds, dtype=np.int64) * self.buckets

    @cached_property
    def _products(self) -> list[NDArray[np.int32]]:
        """Per digit, the products of everything in the field with that digit of every seed's direction."""
        q = self.buckets
        field = np.arange(q, dtype=np.int64)[:, None]
        digits = [self._directions // q**j % q for j in range(self.dimensions)]
        return [self._times(digit, field).astype(np.int32) for digit in digits]

    @cached_property
    def _places(self) -> Integers:
        """The point of every input."""
        return np.arange(self.inputs, dtype=np.int64) * self.stride % self.points

    @cached_property
    def _directions(self) -> Integers:
        q = self.buckets
        return np.concatenate([np.arange(q**j, 2 * q**j, dtype=np.int64) for j in range(self.dimensions)])

    @cached_property
    def _characters(self) -> Integers:
        """The character of the space for each character of each seed's buckets, shape (S, q)."""
        cells, one = np.arange(self.buckets), np.ones(1, dtype=np.int64)
        found = np.zeros((self.seeds, self.buckets), dtype=np.int64)
        for digit in range(self.dimensions):
            factors = self._directions // self.buckets**digit % self.buckets
            for place in self._base ** np.arange(len(self._shape(self.buckets))):
                # A point of one digit alone: its hash is one product.
                product = self._times(factors, one * place)
                found += self._phase(cells, product[:, None]) * (place * self.buckets**digit)
        return found

    def _phase(self, one: Integers, other: Integers) -> Integers:
        """Return character `one` of a bucket's additive group at bucket `other`, in turns of 1/base."""
        if self._modulus is None:
            return np.asarray(one * other % self.buckets)
        return np.asarray(np.bitwise_count(one & other).astype(np.int64) & 1)

    def _shape(self, size: int) -> tuple[int, ...]:
        """Return the additive group of the field or the space, as that many places of the same base."""
        places = 0
        while self._base**places < size:
            places += 1
        return (self._base,) * places

    def _transform(self, rows: NDArray[Any], turn: _Turn = np.fft.fftn) -> NDArray[Any]:
        """Return the Fourier transform of every row over its additive group; rows of bits are written over.

        Over groups of bits all characters are 1 or -1: the transform is real, and of whole numbers exact.

        Args:
            rows: The numbers, shape (n, elements of the group).
            turn: numpy's, forth or back.
        """
        shape = self._shape(rows.shape[1])
        if self._modulus is None:
            axes = tuple(range(1, len(shape) + 1))
            return turn(rows.reshape(-1, *shape), axes=axes).reshape(rows.shape)
        for place in range(len(shape)):
            pairs = rows.reshape(-1, 2, 2**place)
            less = pairs[:, 0] - pairs[:, 1]
            pairs[:, 0] += pairs[:, 1]
            pairs[:, 1] = less
        return rows / rows.shape[1] if turn is np.fft.ifftn else rows

    def _times(self, one: Integers, other: Integers) -> Integers:
        """Return the product in the field."""
        if self._modulus is None:
            return one * other % self.buckets
        product = np.zeros(np.broadcast_shapes(one.shape, other.shape), dtype=np.int64)
        for bit in range(self.buckets.bit_length() - 1):
            product ^= one * (other >> bit & 1)
            one = one << 1
            one = np.where(one & self.buckets, one ^ self._modulus, one)
        return product


def _stride(points: int, buckets: int) -> int:
    """Return the least number with no factor in common with q that is at least 0.618 q^d."""
    stride = -(-points * 618 // 1000)
    while math.gcd(stride, buckets) > 1:
        stride += 1
    return stride


def most_symbols(inputs: int) -> int:
    """Return the most cells of all seeds of a pool for K inputs."""
    return MAX_SYMBOLS if inputs <= MAX_INPUTS else MAX_WIDE_SYMBOLS


def field_orders(limit: int) -> Integers:
    """Return the sizes of the fields that pools are built over, up to a limit >= 4, in order, shape (n,)."""
    prime = np.ones(limit + 1, dtype=np.bool_)
    prime[:2] = False
    for divisor in range(2, math.isqrt(limit) + 1):
        prime[divisor * divisor :: divisor] = False
    prime[[size for size in _IRREDUCIBLE if size <= limit]] = True
    return np.flatnonzero(prime)


def _is_prime(number: int) -> bool:
    return bool((number % np.arange(2, math.isqrt(number) + 1)).all())
