"""A participation coin with dummy reports: one channel, because a channel is all that anybody sees.

With probability p a device answers through M, else it sends a dummy report by a law C that knows no value.
What leaves the device is a draw of

    M'(y|x) = p M(y|x) + (1 - p) C(y).

C draws evenly from all M_ symbols. Where sets have d cells, it draws evenly from all sets of d cells (of a
level, which is drawn as usual). Where sets have any size, each cell is in it with the probability q of a cell
that is not the value's. So M' is of M's own kind in every case. It is what is sampled, certified, reserved,
recorded and estimated. Coin, dummy and symbol are one draw: there is no coin to keep, to leak or to toss
again on a retry, and a device that memoises the symbol memoises the coin. The epsilon of M' is below that of
M; a device that "does not take part" this round is not told apart from one that does.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError

STEPS: Final = 1000
"""A participation is a whole number of thousandths: exact, and its denominator leaves room below 2^63."""


def with_dummy_reports(channel: Channel, *, participation: Fraction) -> Channel:
    """Return the channel that answers through another with some probability, and sends a dummy else.

    With p = a/b, M_ symbols and total T, the weights are w' = a M_ w + (b - a) T out of b M_ T, divided by
    what they have in common: p M + (1 - p) C to the last integer. Where that total would not fit, M is first
    expressed with a lower total, at no more than its own epsilon. Structured channels keep their structure.
    Sets are drawn by coins of 32 bits (31 for single bits), so that p is met from below, to within what one
    step of the coin is worth; the mixture with that p is exact.

    Args:
        channel: M.
        participation: p, above 0, at most 1, in thousandths.

    Raises:
        ParameterError: If p is out of range, or the mixture cannot be told in integers.
    """
    p = Fraction(participation)
    if not 0 < p <= 1 or STEPS % p.denominator:
        raise ParameterError(f"participation must be thousandths above 0, at most 1, got {participation}")
    # Each kind of channel makes p M + (1 - p) C of its own integers.
    return channel if p == 1 else channel.with_dummy_reports(p)
