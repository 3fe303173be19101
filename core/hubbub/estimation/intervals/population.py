"""The law of a score whose variance depends on where the other devices are: the worst of what is plausible.

Where a score's moments differ from input to input, the share of one cell does not fix its variance. It is
taken as the largest of three: under the consistent view of the estimate mixed with the even distribution,
half and half and nine to one, and what the reports' own squares say. With one smooth guess alone,
simultaneous intervals at a spiked population held .62 in place of .95.

Where both populations vary alike, as by pairwise independent hashes, the first counts on every processor.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.consistency import norm_sub
from hubbub.estimation.intervals.laws import MixedLaw

Floats = NDArray[np.float64]

TRUST: Final = (0.5, 0.9)
"""The weights of the consistent view in the two populations."""

MOST_SKEW: Final = 1.0
"""See `MixedLaw.most_skew`: with 3, points by `optimal` held .75 at once at 500 devices."""

ALIKE: Final = 2.0**-30
"""The part of a variance by which the second must be larger to count: no processor rounds so far."""

_NOBODY: Final = 1e-9
"""A rest of the population smaller than this has no law of its own: that of the other population stands."""


def plausible_populations(estimates: Floats) -> Floats:
    """Return the populations to take the worst of, shape (2, K).

    Args:
        estimates: Unbiased shares of the inputs, shape (K,); nan where hidden.
    """
    known = np.where(np.isnan(estimates), 0.0, estimates)
    view = norm_sub(known, np.zeros(len(known), dtype=np.intp), np.ones(1))
    even = 1.0 / len(known)
    return np.stack([trust * view + (1.0 - trust) * even for trust in TRUST])


def population_law(
    *, n: float, own: Floats, held: Floats, second: Floats, third: Floats, observed: Floats
) -> MixedLaw:
    """Return the law of cells from moments of their scores over whole populations.

    Args:
        n: Reports.
        own: Second and third central moments for a device in the cell, shape (2, c).
        held: The share of each population in the cell, shape (2, c).
        second: The mean of b^2 over each population's reports, shape (2, c).
        third: The mean of b^3, shape (2, c).
        observed: The mean of b^2 over the reports counted, shape (c,).
    """
    # About a mean of 1 the raw moments are v + 1 and k + 3 v + 1.
    rest = 1.0 - held
    nobody = rest < _NOBODY
    rest = np.where(nobody, 1.0, rest)
    variance = np.maximum(np.where(nobody, 0.0, (second - held * (own[0] + 1.0)) / rest), 0.0)
    skew = np.where(nobody, 0.0, (third - held * (own[1] + 3.0 * own[0] + 1.0)) / rest)
    larger = variance[1] > variance[0] * (1.0 + ALIKE)
    far = np.stack([np.where(larger, part[1], part[0]) for part in (variance, skew)])
    return MixedLaw(n, own, far, np.zeros(own.shape[1]), observed=observed, most_skew=MOST_SKEW)
