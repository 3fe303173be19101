"""A participation coin with cover reports: one channel, because a channel is all that anybody sees.

With probability p a device answers through M, else it sends a cover report, a symbol drawn evenly from all
of them whatever its value is. What leaves the device is a draw of

    M'(y|x) = p M(y|x) + (1 - p) / M_,     M_ symbols,

so M' is what is sampled, certified, reserved, recorded and estimated. Coin, cover and symbol are one draw:
there is no coin to keep, to leak or to toss again on a retry, and whoever memoises the symbol memoises the
coin. The epsilon of M' is below that of M; a device that "does not take part" this round is not told apart
from one that does.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd
from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.finite import DenseChannel, FiniteChannel
from hubbub.mechanisms.grr import GRR
from hubbub.mechanisms.levels import Levels
from hubbub.mechanisms.pbgrr import PBGRR, CategoryGRR
from hubbub.randomness import MAX_TOTAL

STEPS: Final = 1000
"""A participation is a whole number of thousandths: exact, and its denominator leaves room below 2^63."""


def with_cover(channel: FiniteChannel, *, participation: Fraction) -> FiniteChannel:
    """Gives the channel that answers through another with some probability and sends cover otherwise.

    With p = a/b, M_ symbols and total T, the weights are w' = a M_ w + (b - a) T out of b M_ T, divided by
    what they have in common: p M + (1 - p) C to the last integer. Structured channels keep their structure.

    Args:
        channel: M.
        participation: p, above 0, at most 1, in thousandths.

    Raises:
        ParameterError: If p is out of range, or the mixture cannot be told in integers below 2^63.
    """
    share = Fraction(participation)
    if not 0 < share <= 1 or STEPS % share.denominator:
        raise ParameterError(f"participation must be thousandths above 0, at most 1, got {participation}")
    if share == 1:
        return channel
    scale = share.numerator * channel.outputs
    cover = (share.denominator - share.numerator) * channel.total
    if share.denominator * channel.outputs * channel.total >= MAX_TOTAL:
        # Its factors may still cancel, but no channel of ours with so large a total has any to spare.
        raise ParameterError("participation must leave a total below 2^63; the channel's is too large")

    def mixed(weights: Iterable[int], common: int = 1) -> list[int]:
        return [(scale * int(weight) + cover) // common for weight in weights]

    if isinstance(channel, GRR):
        t, u = mixed((channel.t, channel.u))
        common = gcd(t, u)
        return GRR(channel.inputs, t // common, u // common)
    if isinstance(channel, CategoryGRR):
        t, o = mixed((channel.t[0], channel.o[0]))
        common = gcd(t, o)
        return CategoryGRR(channel.sizes.tolist(), t // common, o // common)
    if isinstance(channel, PBGRR):
        columns = (channel.t.tolist(), channel.u.tolist(), channel.o.tolist())
        common = gcd(*mixed(set().union(*columns)))
        return PBGRR(channel.sizes.tolist(), *(mixed(column, common) for column in columns))
    if isinstance(channel, Levels):
        common = gcd(*mixed({*channel.t, *channel.u}))
        return Levels(channel.nesting, mixed(channel.t, common), mixed(channel.u, common))
    weights = channel.weights() * scale + cover
    return DenseChannel(weights // int(np.gcd.reduce(weights, axis=None)))
