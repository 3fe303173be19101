"""A participation coin with dummy reports: one channel, because a channel is all that anybody sees.

With probability p a device answers through M, else it sends a dummy report by a law C that knows no value.
What leaves the device is a draw of

    M'(y|x) = p M(y|x) + (1 - p) C(y).

C draws evenly from all M_ symbols; from all sets of d cells, where sets have d (about a level that is drawn
as ever); and a set of any size has each cell as often as it has one that is not the value's. So M' is of M's
own kind in every case. It is what is sampled, certified, reserved, recorded and estimated. Coin, cover and
symbol are one draw: there is no coin to keep, to leak or to toss again on a retry, and whoever memoises the
symbol memoises the coin. The epsilon of M' is below that of M; a device that "does not take part" this round
is not told apart from one that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import floor, gcd
from typing import Final

import numpy as np

from hubbub.channels.channel import Channel
from hubbub.channels.finite import DenseChannel, FiniteChannel
from hubbub.channels.sets import WORD, SetChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms.category_weights import category_weights
from hubbub.mechanisms.grr import GRR
from hubbub.mechanisms.hashing.local_hashing import LocalHashing
from hubbub.mechanisms.levels.levels import Levels, SetLevels
from hubbub.mechanisms.pbgrr import PBGRR, CategoryGRR
from hubbub.mechanisms.subset import SubsetSelection
from hubbub.mechanisms.unary import Unary
from hubbub.numeric.randomness import MAX_TOTAL

STEPS: Final = 1000
"""A participation is a whole number of thousandths: exact, and its denominator leaves room below 2^63."""


def with_dummy_reports(channel: Channel, *, participation: Fraction) -> Channel:
    """Return the channel that answers through another with some probability and send cover otherwise.

    With p = a/b, M_ symbols and total T, the weights are w' = a M_ w + (b - a) T out of b M_ T, divided by
    what they have in common: p M + (1 - p) C to the last integer. Where that total would not fit, M is first
    told in a lower total, at no more than its own epsilon. Structured channels keep their structure.
    Sets are drawn by coins of 32 bits (31 for single bits), so that p is met from below, to within what one
    step of the coin is worth; the mixture with that p is exact.

    Args:
        channel: M.
        participation: p, above 0, at most 1, in thousandths.

    Raises:
        ParameterError: If p is out of range, or the mixture cannot be told in integers.
    """
    share = Fraction(participation)
    if not 0 < share <= 1 or STEPS % share.denominator:
        raise ParameterError(f"participation must be thousandths above 0, at most 1, got {participation}")
    if share == 1:
        return channel
    if isinstance(channel, FiniteChannel):
        return _of_numbers(channel, share)
    if isinstance(channel, SetChannel):
        return _of_sets(channel, share)
    raise ParameterError(
        f"a channel must send numbers or sets for cover reports, got {type(channel).__name__}"
    )


def _of_numbers(channel: FiniteChannel, share: Fraction) -> FiniteChannel:
    limit = (MAX_TOTAL - 1) // (share.denominator * channel.outputs)
    if channel.total > limit:  # else the channel stays as it is, and so does the digest of its survey
        channel = _narrowed(channel, limit)
    scale = share.numerator * channel.outputs
    dummy = (share.denominator - share.numerator) * channel.total

    def mixed(weights: Iterable[int], common: int = 1) -> list[int]:
        return [(scale * int(weight) + dummy) // common for weight in weights]

    made: FiniteChannel
    match channel:
        case GRR():
            t, u = _lowest(mixed((channel.t, channel.u)))
            made = GRR(channel.inputs, t, u)
        case LocalHashing():
            t, u = _lowest(mixed((channel.t, channel.u)))
            made = LocalHashing(channel.inputs, channel.pool.buckets, t, u)
        case CategoryGRR():
            t, o = _lowest(mixed((channel.t[0], channel.o[0])))
            made = CategoryGRR(channel.sizes.tolist(), t, o)
        case PBGRR():
            columns = (channel.t.tolist(), channel.u.tolist(), channel.o.tolist())
            common = gcd(*mixed(set().union(*columns)))
            made = PBGRR(channel.sizes.tolist(), *(mixed(column, common) for column in columns))
        case Levels():
            common = gcd(*mixed({*channel.t, *channel.u}))
            made = Levels(channel.hierarchy, mixed(channel.t, common), mixed(channel.u, common))
        case _:
            weights = channel.weights() * scale + dummy
            made = DenseChannel(weights // int(np.gcd.reduce(weights, axis=None)))
    return made


def _narrowed(channel: FiniteChannel, limit: int) -> FiniteChannel:
    """Return a channel of a lower total whose certified epsilons are at most those of this one.

    Weights of the other values are scaled and rounded down, and the true value's follow from them by the
    channel's own largest ratio, rounded down: no ratio grows, and it falls by about 1/weight.

    Raises:
        ParameterError: No such total can express it, or the channel is a table of rows.
    """
    match channel:
        case GRR() | LocalHashing():
            t, u = _scaled(channel.t, channel.u, channel.total, limit)
            if isinstance(channel, GRR):
                return GRR(channel.inputs, t, u)
            return LocalHashing(channel.inputs, channel.pool.buckets, t, u)
        case CategoryGRR():
            t, o = _scaled(int(channel.t[0]), int(channel.o[0]), channel.total, limit)
            return CategoryGRR(channel.sizes.tolist(), t, o)
        case PBGRR():
            return _narrowed_blocks(channel, limit)
        case Levels():
            pairs = [_scaled(t, u, channel.total, limit) for t, u in zip(channel.t, channel.u, strict=True)]
            return Levels(channel.hierarchy, *map(list, zip(*pairs, strict=True)))
        case _:
            raise ParameterError(
                f"participation must leave a total below 2^63; the channel's {channel.total} is too large"
            )


def _scaled(true: int, other: int, total: int, limit: int) -> tuple[int, int]:
    smaller = other * limit // total
    if smaller < 1:
        raise ParameterError("participation must leave a total below 2^63, got weights too far apart for it")
    return true * smaller // other, smaller


def _narrowed_blocks(channel: PBGRR, limit: int) -> PBGRR:
    """Choose for PB-GRR, whose rows have one total whatever the sizes of their categories."""
    rows = list(
        zip(*(each.tolist() for each in (channel.sizes, channel.t, channel.u, channel.o)), strict=True)
    )
    across = max(Fraction(t, o) for _, t, _, o in rows)
    within = max((Fraction(t, u) for size, t, u, _ in rows if size > 1), default=across)
    sizes = [size for size, *_ in rows]
    by_size = category_weights(Counter(sizes), across, across / within, totals=(limit,))
    t, u, o = zip(*(by_size[size] for size in sizes), strict=True)
    return PBGRR(sizes, t, u, o)


def _lowest(weights: list[int]) -> list[int]:
    common = gcd(*weights)
    return [weight // common for weight in weights]


def _of_sets(channel: SetChannel, share: Fraction) -> SetChannel:
    match channel:
        case SubsetSelection():
            return SubsetSelection(channel.inputs, channel.size, _p_draws(channel, share))
        case SetLevels():
            sizes = [oracle.size for oracle in channel.oracles]
            p_draws = [_p_draws(oracle, share) for oracle in channel.oracles]
            return SetLevels(channel.hierarchy, channel.shares, sizes, p_draws)
        case Unary():
            return Unary(
                channel.inputs, _between(channel.p_draws, Fraction(channel.q_draws), share), channel.q_draws
            )
        case _:
            raise ParameterError(f"a set channel must have a cover law, got {type(channel).__name__}")


def _p_draws(channel: SubsetSelection, share: Fraction) -> int:
    """Return the number of 2^32 draws that hold the true value; an even draw holds it in d/K."""
    return _between(channel.p_draws, Fraction(channel.size * WORD, channel.inputs), share)


def _between(p_draws: int, dummy: Fraction, share: Fraction) -> int:
    mixed = floor(share * p_draws + (1 - share) * dummy)
    if mixed <= dummy:
        raise ParameterError("participation must leave something that a coin of so few bits can tell")
    return mixed
