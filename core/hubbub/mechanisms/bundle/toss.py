"""The test of the public coin: whether reports are about parts as often as honest devices toss them.

The coin knows no value, so the reports about each part of a round are Multinomial(n, w), whatever people hold
and however many answer. A forger picks his part, and the fewer reports a part has, the more each of his moves
it: what the coin cannot have done is his.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.bundle.channel import SampledParts

PART_ALARM: Final = 1e-6
"""The chance at which the reports about one part are called out, in an honest round."""

_SPAN: Final = 200


def part_chances(channel: SampledParts, reports: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the chance that honest coins give each part so many reports or more, shape (parts,).

    The tails are sums of the binomial law, right to six digits.

    Args:
        channel: The channel.
        reports: Reports about each part, shape (parts,), >= 0.
    """
    n = int(reports.sum())
    shares = [part.share / 2**32 for part in channel.parts]
    return np.array([_tail(n, int(many), share) for many, share in zip(reports, shares, strict=True)])


def _tail(n: int, least: int, share: float) -> float:
    """Return Pr(Bin(n, share) >= least): terms on the far side of it from the mean, each from the one before.

    Twelve standard deviations of terms are added; what is beyond is below any float beside them.
    """
    if least <= 0 or share >= 1.0:
        return 1.0
    span = math.ceil(12.0 * math.sqrt(n * share * (1.0 - share))) + _SPAN
    odds = math.log(share) - math.log1p(-share)
    above = least > n * share
    if above:
        terms = np.arange(least, min(n, least + span), dtype=np.float64)
        steps = np.log(n - terms) - np.log(terms + 1.0) + odds
        first = least
    else:
        terms = np.arange(least - 1, max(0, least - 1 - span), -1, dtype=np.float64)
        steps = np.log(terms) - np.log(n - terms + 1.0) - odds
        first = least - 1
    begin = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1)
    begin += first * odds + n * math.log1p(-share)
    total = float(np.exp(begin + np.concatenate([[0.0], np.cumsum(steps)])).sum())
    return min(total, 1.0) if above else max(1.0 - total, 0.0)
