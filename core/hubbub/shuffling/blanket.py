"""The privacy blanket of a channel: the part of every report that says nothing of its input.

With omega_y = min_x P(y|x) and gamma = sum_y omega_y a report is, with probability gamma, drawn from
omega/gamma whatever the input is (Balle, Bell, Gascon, Nissim 2019). How well such reports hide one
person's report is told by a law per ordered pair of inputs x, x': under omega/gamma, how P(y|x)/omega_y and
P(y|x')/omega_y are distributed. Two pairs that some symmetry of the channel exchanges have one law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.finite import FiniteChannel
from hubbub.channels.sets import Level, SetChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms.grr import GRR
from hubbub.mechanisms.hashing.local_hashing import LocalHashing
from hubbub.mechanisms.levels.levels import Levels
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.sampling import Orbit
from hubbub.mechanisms.pbgrr import PBGRR

Floats = NDArray[np.float64]

MAX_TABLE: Final = 2**24
"""The most weights times inputs of a channel without symmetries: all pairs of its rows are looked at."""


@dataclass(frozen=True, eq=False)
class BlanketLaw:
    """The law of one ordered pair of inputs.

    Attributes:
        masses: Masses of omega, shape (t,), > 0, summing to gamma.
        own: P(y|x)/omega_y there, shape (t,), >= 1; its mean over masses is 1.
        other: P(y|x')/omega_y, likewise.
    """

    masses: Floats
    own: Floats
    other: Floats

    @classmethod
    def of(cls, atoms: list[tuple[float, float, float]] | Floats) -> BlanketLaw:
        """Return the law of atoms (mass, own, other), those of one place joined."""
        table = np.asarray(atoms, dtype=np.float64)
        table = table[table[:, 0] > 0.0]
        places, where = np.unique(table[:, 1:], axis=0, return_inverse=True)
        masses = np.bincount(where.ravel(), weights=table[:, 0])
        return cls(np.asarray(masses, dtype=np.float64), places[:, 0], places[:, 1])


@singledispatch
def blanket_laws(channel: Channel, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    """Return the laws of ordered pairs of different inputs, one law for all pairs that are alike.

    Args:
        channel: The channel.
        most_work: The most pairs of rows times outputs that are looked at.

    Raises:
        ParameterError: If the channel is of no kind known here, or has more pairs that may be unlike.
    """
    del most_work
    raise ParameterError(f"a blanket must be of a known kind of channel, got {channel.kind}")


@blanket_laws.register
def _(channel: FiniteChannel, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    k = channel.inputs
    _check_work(k, channel.outputs, most_work)
    rows = channel.weights()
    return _of_rows(rows, rows.min(axis=0), channel.total, permutations(range(k), 2))


def _check_work(rows: int, outputs: int, most: int) -> None:
    """Refuse more pairs of rows times outputs than are looked at.

    Raises:
        ParameterError: If there are.
    """
    if rows * rows * outputs > most:
        raise ParameterError(
            f"a blanket must be of at most {most} pairs and outputs, got {rows} x {rows} x {outputs}"
        )


def _of_rows(
    rows: NDArray[np.int64], least: NDArray[np.int64], total: int, pairs: Iterator[tuple[int, int]]
) -> list[BlanketLaw]:
    odds, ratios = least / total, rows / least
    found: dict[bytes, BlanketLaw] = {}
    for x, other in pairs:
        law = BlanketLaw.of(np.stack([odds, ratios[x], ratios[other]], axis=1))
        found.setdefault(b"|".join(part.tobytes() for part in (law.masses, law.own, law.other)), law)
    return list(found.values())


@blanket_laws.register
def _(channel: GRR, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    del most_work
    return [_of_cells(channel.t, channel.u, channel.total, 1, 1, 0, channel.inputs)]


@blanket_laws.register
def _(channel: LocalHashing, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    del most_work
    pool = channel.pool
    alone = pool.seeds - pool.together
    return [_of_cells(channel.t, channel.u, channel.total, alone, alone, pool.together, pool.symbols)]


def _of_cells(t: int, u: int, total: int, own: int, other: int, both: int, symbols: int) -> BlanketLaw:  # noqa: PLR0917
    """Return the law where a symbol has weight t for some inputs and u for others, never t for all."""
    ratio, mass = t / u, u / total
    rest = symbols - own - other - both
    return BlanketLaw.of(
        [
            (own * mass, ratio, 1.0),
            (other * mass, 1.0, ratio),
            (both * mass, ratio, ratio),
            (rest * mass, 1.0, 1.0),
        ]
    )


@blanket_laws.register
def _(channel: PBGRR, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    """Look at pairs of values of unlike categories only: alike ones are renumbered into each other."""
    starts = np.cumsum(channel.sizes) - channel.sizes
    shape = np.stack([channel.sizes, channel.t, channel.u, channel.o])
    firsts, many = np.unique(shape, axis=1, return_index=True, return_counts=True)[1:]
    chosen: list[int] = []
    for c, alike in zip(firsts.tolist(), many.tolist(), strict=True):
        chosen += [int(starts[c]), int(starts[c]) + 1] if channel.sizes[c] > 1 else [int(starts[c])]
        if alike > 1:
            same = np.flatnonzero((shape == shape[:, c : c + 1]).all(axis=0))
            chosen.append(int(starts[same[same != c][0]]))
    _check_work(len(chosen), channel.outputs, most_work)
    least = channel.row(0)
    for x in range(1, channel.inputs):
        least = np.minimum(least, channel.row(x))
    rows = np.stack([channel.row(x) for x in chosen])
    return _of_rows(rows, least, channel.total, permutations(range(len(chosen)), 2))


@blanket_laws.register
def _(channel: SetChannel, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    del most_work
    return _of_levels(channel.levels)


@blanket_laws.register
def _(channel: Levels, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    del most_work
    return _of_levels(channel.levels)


def _of_levels(levels: tuple[Level, ...]) -> list[BlanketLaw]:
    """Return a law per level at which a pair of inputs can first differ; from there on it differs at all."""
    found = []
    for first, level in enumerate(levels):
        above = np.zeros(len(level.labels), dtype=np.intp) if first == 0 else levels[first - 1].labels
        if len(np.unique(np.stack([above, level.labels]), axis=1).T) == len(np.unique(above)):
            continue  # no two inputs part here
        atoms: list[tuple[float, float, float]] = []
        for k, each in enumerate(levels):
            atoms += _of_level(each, apart=k >= first)
        found.append(BlanketLaw.of(atoms))
    return found


def _of_level(level: Level, *, apart: bool) -> list[tuple[float, float, float]]:
    """Return the atoms of reports about a level, for two inputs of one cell or of two."""
    cells, share = level.bins, float(level.share)
    p, q, size = level.support.p, level.support.q, level.support.size
    if cells == 1 or share == 0.0:
        return [(share, 1.0, 1.0)]
    if size is None:
        return _of_bits(float(p), float(q), cells, share, apart=apart)
    if size == cells:
        return [(share, 1.0, 1.0)]
    ratio = float(p * (cells - size) / (size * (1 - p)))
    mass = share * float((1 - p) * cells / (cells - size))
    one, both = size / cells, size * (size - 1) / (cells * (cells - 1))
    if not apart:
        return [(mass * one, ratio, ratio), (mass * (1.0 - one), 1.0, 1.0)]
    return [
        (mass * both, ratio, ratio),
        (mass * (one - both), ratio, 1.0),
        (mass * (one - both), 1.0, ratio),
        (mass * (1.0 - 2.0 * one + both), 1.0, 1.0),
    ]


def _of_bits(
    p: float, q: float, cells: int, share: float, *, apart: bool
) -> list[tuple[float, float, float]]:
    """Return the atoms of unary encoding: with q for every bit, how much likelier two inputs make a set.

    A set's least probability is that of an input whose bit is not set; only the set of all has none such.
    """
    inside, outside = p / q, (1.0 - p) / (1.0 - q)
    ratio, mass, everything = inside / outside, share * outside, q**cells
    atoms = [(share * inside * everything, 1.0, 1.0)]
    if not apart:
        return [*atoms, (mass * (q - everything), ratio, ratio), (mass * (1.0 - q), 1.0, 1.0)]
    return [
        *atoms,
        (mass * (q * q - everything), ratio, ratio),
        (mass * q * (1.0 - q), ratio, 1.0),
        (mass * q * (1.0 - q), 1.0, ratio),
        (mass * (1.0 - q) ** 2, 1.0, 1.0),
    ]


@blanket_laws.register
def _(channel: OrbitChannel, most_work: int = MAX_TABLE) -> list[BlanketLaw]:
    """Look at two values of one category, of two of one class, of two classes, and at missing."""
    del most_work
    classes = channel.layout.classes
    pairs: list[tuple[int, int, bool]] = []
    for g, (size, many) in enumerate(zip(channel.layout.class_sizes, channel.layout.many, strict=True)):
        pairs += [(g, g, True)] if size > 1 else []
        pairs += [(g, g, False)] if many > 1 else []
        pairs += [(g, h, False) for h in range(classes + channel.missing) if h != g]
        pairs += [(classes, g, False)] if channel.missing else []
    found = []
    for g, h, same in pairs:
        atoms: list[tuple[float, float, float]] = []
        for orbit in channel.orbits:
            atoms += _of_orbit(channel, orbit, g, h, same=same)
        found.append(BlanketLaw.of(atoms))
    return found


def _of_orbit(
    channel: OrbitChannel, orbit: Orbit, g: int, h: int, *, same: bool
) -> list[tuple[float, float, float]]:
    """Return the atoms of an orbit's sets for inputs of classes g and h; after the last comes missing."""
    layout = channel.layout
    used = [orbit.absent] * channel.missing
    for c, (k, values) in enumerate(zip(orbit.held, layout.held, strict=True)):
        used += [orbit.inside[c]] * (k > 0) + [orbit.outside[c]] * (k < values)
    least = min(used)
    mass = least / channel.total
    weights = [
        (orbit.absent, orbit.absent) if c == layout.classes else (orbit.inside[c], orbit.outside[c])
        for c in (g, h)
    ]
    joint = _joint(layout.class_sizes, layout.many, orbit, g, h, same=same)
    return [
        (mass * joint[i][j], weights[0][i] / least, weights[1][j] / least) for i in (0, 1) for j in (0, 1)
    ]


def _joint(
    sizes: tuple[int, ...], many: tuple[int, ...], orbit: Orbit, g: int, h: int, *, same: bool
) -> list[list[float]]:
    """Return the chance that a random set holds both inputs, one, the other, none: [[11, 10], [01, 00]]."""
    if g == h:
        s, m, k = sizes[g], many[g], orbit.held[g]
        squares = sum(times * n * n for n, times in orbit.kinds[g])
        both = (squares - k) / (m * s * (s - 1)) if same else (k * k - squares) / (m * (m - 1) * s * s)
        one = other = k / (m * s)
    else:
        # A missing input counts as never held: both of its weights are the same.
        one, other = (0.0 if c == len(sizes) else orbit.held[c] / (sizes[c] * many[c]) for c in (g, h))
        both = one * other
    return [[both, one - both], [other - both, 1.0 - one - other + both]]
