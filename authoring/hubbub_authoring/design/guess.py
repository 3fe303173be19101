"""The chance that whoever sees one report guesses its input, for people who do not read epsilons.

With every input equally likely beforehand, the best guess on seeing y is the x of largest P(y|x). It is right

    on average with       (1/K) sum_y max_x P(y|x),
    on the worst report   max_y max_x P(y|x) / sum_x P(y|x),

and without a report with 1/K. Of sets, a level of c cells whose sets hold d, "in" with probability p, has
sum_S max_x P(S|x) = share p c/d, as C(c, d)/C(c - 1, d - 1) = c/d; unary encoding sums over how many bits
are set. Inputs include the missing one where a channel has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Final

import numpy as np

from hubbub.channels import Channel, FiniteChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms import GRR, LocalHashing, OrbitChannel, SetLevels, SubsetSelection, Unary

MAX_TABLE: Final = 2**26
"""Weights of a finite channel that are looked at, row by row: half a second."""

_NEAR: Final = 64
"""Reports within rounding of the one that tells most, whose shares are told exactly: more would be alike."""


@dataclass(frozen=True)
class Guess:
    """The chance of a right guess from one report.

    Attributes:
        average: Over reports.
        worst: On the report that tells most.
        blind: Without a report, 1/K.
    """

    average: float
    worst: float
    blind: float


def best_guess(channel: Channel) -> Guess:
    """Return how often the best guess of a report's input is right, all inputs equally likely.

    Raises:
        ParameterError: If the channel is of no kind known here, or has more than MAX_TABLE weights.
    """
    average, worst = _of(channel)
    return Guess(average, worst, 1.0 / channel.inputs)


@singledispatch
def _of(channel: Channel) -> tuple[float, float]:
    raise ParameterError(f"a guess must be of a known kind of channel, got {channel.kind}")


@_of.register
def _(channel: GRR) -> tuple[float, float]:
    both = float(Fraction(channel.t, channel.t + (channel.inputs - 1) * channel.u))
    return both, both


@_of.register
def _(channel: SubsetSelection) -> tuple[float, float]:
    both = channel.p_draws / 2**32 / channel.size
    return both, both


@_of.register
def _(channel: Unary) -> tuple[float, float]:
    k, support = channel.inputs, channel.levels[0].support
    p, q = float(support.p), float(support.q)
    average = p / (q * k) * (1.0 - (1.0 - q) ** k) + (1.0 - p) * (1.0 - q) ** (k - 1) / k
    inside, outside = p * (1.0 - q), (1.0 - p) * q
    return average, inside / (inside + (k - 1) * outside)


@_of.register
def _(channel: FiniteChannel) -> tuple[float, float]:
    if channel.inputs * channel.outputs > MAX_TABLE:
        raise ParameterError(
            f"a guess must be of at most {MAX_TABLE} weights, got {channel.inputs} x {channel.outputs}"
        )
    most = np.zeros(channel.outputs, dtype=np.int64)
    total = np.zeros(channel.outputs)
    for x in range(channel.inputs):
        row = channel.row(x)
        np.maximum(most, row, out=most)
        total += row
    average = Fraction(sum(most.tolist()), channel.inputs * channel.total)
    ratios = most / total
    near = np.flatnonzero(ratios >= ratios.max() * (1.0 - 1e-9))[:_NEAR]
    columns = [channel.column(int(y)).tolist() for y in near]
    worst = max(Fraction(max(column), sum(column)) for column in columns)
    return float(average), float(worst)


@_of.register
def _(channel: LocalHashing) -> tuple[float, float]:
    held = np.rint(channel.pool.sums_by_bucket(np.ones(channel.inputs))).astype(np.int64)
    # A cell that no input has is sent by all of them alike.
    some, (t, u) = int(np.count_nonzero(held)), (channel.t, channel.u)
    average = Fraction(some * t + (len(held) - some) * u, channel.inputs * channel.total)
    fewest = int(held[held > 0].min())
    return float(average), float(Fraction(t, t * fewest + u * (channel.inputs - fewest)))


@_of.register
def _(channel: SetLevels) -> tuple[float, float]:
    average, worst = Fraction(0), Fraction(0)
    for share, labels, oracle in zip(channel.shares, channel.hierarchy.labels, channel.oracles, strict=True):
        average += Fraction(share, 2**32) * Fraction(oracle.p_draws, 2**32) * oracle.inputs / oracle.size
        fewest = int(np.sort(np.bincount(labels))[: oracle.size].sum())
        inside, outside = oracle.odds
        worst = max(worst, Fraction(inside, inside * fewest + outside * (channel.inputs - fewest)))
    return float(average / channel.inputs), float(worst)


@_of.register
def _(channel: OrbitChannel) -> tuple[float, float]:
    average, worst = Fraction(0), Fraction(0)
    for orbit in channel.orbits:
        total, most = orbit.absent, orbit.absent
        for g, (k, values) in enumerate(zip(orbit.held, channel.layout.held, strict=True)):
            total += orbit.weight(g, values)
            most = max(most, orbit.inside[g] * (k > 0), orbit.outside[g] * (k < values))
        average += Fraction(most, channel.total)
        worst = max(worst, Fraction(most, total))
    return float(average / channel.inputs), float(worst)
