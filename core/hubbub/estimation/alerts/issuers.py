"""A test of one issuer's reports against all others', with a stated probability of a false alarm.

If an issuer's devices are a random part of all, its reports are a random part of all reports, whatever the
mechanism and the answers. So of the C reports that set a bin, the number from the issuer is hypergeometric:
n draws from N reports of which C set it. Hoeffding (1963), theorem 1 and section 6, bounds either tail by
exp(-n KL(x/n || C/N)); draws and successes may change places, and each may be taken for its complement, which
gives four bounds on one event, of which the least holds. Bonferroni's joins both sides and all bins. Nothing
is approximated, and every bound holds at every number of reports.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


class IssuerDeviation(NamedTuple):
    """The bin in which an issuer's reports differ most from the others'.

    Attributes:
        output: The bin: a symbol, or a place of a set.
        share: The share of the issuer's reports that set it.
        others_share: The share of all others that set it.
        p_value: At most this is the probability that any bin of a random part of all reports is so far off.
    """

    output: int
    share: float
    others_share: float
    p_value: float


def issuer_deviation(counts: Counts, n: int, others: Counts, others_n: int) -> IssuerDeviation | None:
    """Return how far an issuer's reports are from the others', or None where there is nothing to compare.

    Args:
        counts: The issuer's reports per bin, shape (bins,), each at most n.
        n: Its reports.
        others: All others' per bin, shape (bins,).
        others_n: All others' reports.
    """
    if n < 1 or others_n < 1 or not len(counts) or int(counts.max()) > n or int(others.max()) > others_n:
        return None
    total, in_all = n + others_n, counts + others
    mine, theirs = counts.astype(np.float64), others.astype(np.float64)
    set_all, unset_all = in_all.astype(np.float64), (total - in_all).astype(np.float64)
    rate, part = set_all / total, np.full(len(counts), n / total)
    exponents = np.max(
        [
            n * _divergence(mine / n, rate),
            others_n * _divergence(theirs / others_n, rate),
            set_all * _divergence(_ratio(mine, set_all), part),
            unset_all * _divergence(_ratio(n - mine, unset_all), part),
        ],
        axis=0,
    )
    worst = int(np.argmax(exponents))
    tails = 2.0 * len(counts) * float(np.exp(-exponents[worst]))
    return IssuerDeviation(worst, counts[worst] / n, others[worst] / others_n, min(1.0, tails))


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0 where there is no whole: its exponent is multiplied by 0."""
    found: Floats = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)
    return found


def _divergence(a: Floats, b: Floats) -> Floats:
    """Return KL(a || b) of coins, in nats, >= 0; a is 0 where b is 0, and 1 where b is 1."""
    found: Floats = np.maximum(_term(a, b) + _term(1.0 - a, 1.0 - b), 0.0)
    return found


def _term(a: Floats, b: Floats) -> Floats:
    ratio: Floats = np.divide(a, b, out=np.ones_like(a), where=(a > 0.0) & (b > 0.0))
    return a * np.log(ratio)
