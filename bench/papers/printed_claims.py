"""Figures that docs/papers.md names that `papers.py` prints with the others.

They are Laplace and staircase kernels, privacy-boosting's Propositions 4, 5 and 7 letter by letter, and
accepted counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import paper_accounting
import staircase
from closed_forms import accepted_in_many_parts, accepted_in_three_parts

from hubbub_authoring.mechanisms.boosted.r2dp import best_two_point
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    Gaussian,
    Laplace,
    PairLoss,
    Profile,
)

DELTA = 1e-5

Figure = tuple[str, str, str, str]


def number(value: float) -> str:
    """Return five significant digits."""
    return f"{value:.5g}"


def recycled_laplace(width: float, sensitivity: float, epsilon: float) -> tuple[float, float]:
    """Return the kernel's epsilon and the acceptance of the best recycled Laplace noise, exactly.

    Its loss is that of the kernel and -ln(1 - q) at once, however near two values are: so epsilon less the
    kernel's share goes to the leap, and acceptance has the odds (e^(w u) - 1) e^(epsilon - R u), u the
    inverse scale, w the half width, R the sensitivity. They are largest at u = ln(R / (R - w)) / w, if that
    is less than epsilon / R.
    """
    rate = epsilon / sensitivity
    if width < sensitivity:
        rate = min(rate, math.log(sensitivity / (sensitivity - width)) / width)
    odds = math.expm1(width * rate) * math.exp(epsilon - sensitivity * rate)
    return sensitivity * rate, odds / (1.0 + odds)


def laplace_recycling() -> Iterator[Figure]:
    for sensitivity, epsilon in ((1.0, 1.0), (5.0, 3.0)):
        design = paper_accounting.paper_br_laplace_design(1.0, sensitivity, epsilon, DELTA)
        profile = Profile(design.law, sensitivity)
        name = f"BR-laplace-{sensitivity:g}"
        what = f"Algorithm 2 for Laplace, half width 1, sensitivity {sensitivity:g}, epsilon {epsilon:g}"
        kernel_epsilon, best = recycled_laplace(1.0, sensitivity, epsilon)
        yield (
            f"{name}-kernel",
            f"{what}: the kernel's epsilon",
            number(design.kernel_epsilon),
            number(kernel_epsilon),
        )
        yield (
            f"{name}-epsilon",
            "the same: epsilon at delta 1e-5",
            number(epsilon),
            number(profile.epsilon(DELTA)),
        )
        yield f"{name}-pure", "the same: epsilon at delta 0", number(epsilon), number(profile.largest)
        yield (
            f"{name}-accept",
            "the same: acceptance, and the most at delta 0",
            number(design.acceptance),
            number(best),
        )
        plain = 1.0 - math.exp(-epsilon / sensitivity)
        yield f"{name}-plain", "acceptance of plain Laplace noise of that epsilon", "-", number(plain)
        yield (
            f"{name}-staircase",
            "acceptance of the staircase of that epsilon",
            "-",
            number(staircase.best_acceptance(epsilon, sensitivity, 1.0)),
        )


def staircase_recycling() -> Iterator[Figure]:
    """Yield Proposition 4 for the kernel that nothing improves on."""
    for epsilon, width in ((1.0, 0.5), (3.0, 0.5)):
        laws = [
            BoostedNoise(
                staircase.Staircase(epsilon * share / 20, 1.0, 0.05 * stair),
                AbsoluteRegion(width),
                -math.expm1(epsilon * (share / 20 - 1.0)),
            )
            for share in range(1, 21)
            for stair in range(1, 20)
        ]
        best = max(laws, key=lambda law: law.confidence(0.0))
        what = f"Proposition 4, staircase kernel, half width {width:g}, epsilon {epsilon:g}"
        yield (
            f"BR-staircase-{epsilon:g}",
            f"{what}: acceptance over the plain one's",
            "at least 1",
            number(best.confidence(0.0) / staircase.best_acceptance(epsilon, 1.0, width)),
        )
        yield (
            f"BR-staircase-{epsilon:g}-epsilon",
            "the same: epsilon at delta 0",
            number(epsilon),
            number(staircase.stair_epsilon(best, 1.0, shifts=16)),
        )


def rows_of(regions: Sequence[Sequence[int]], values: int, epsilon: float, boost: float) -> np.ndarray:
    """Return Proposition 7's matrix with each row's own region size."""
    found = np.zeros((values, values))
    for x, region in enumerate(regions):
        true, near, far = paper_accounting.paper_pb_proposition_7(len(region), values, epsilon, boost)
        found[x] = far
        found[x, list(region)] = near
        found[x, x] = true
    return found


def propositions(law: BoostedNoise) -> Iterator[Figure]:
    """Yield privacy-boosting's Propositions 4, 5 and 7 by their letters.

    Args:
        law: The design of PB-relative: a Gaussian boosted in |y - x| <= 0.1 |x| + 10.
    """
    letters = paper_accounting.paper_pb_proposition_4(law.kernel, 0.1, 10.0, law.boost, 4.0)
    eq_6 = paper_accounting.paper_pb_split(law, 0.0, 4.0)
    what = "Proposition 4, |y - x| <= 0.1 |x| + 10, the pair (0, 4)"
    exact = math.log(law.normaliser(4.0) / law.normaliser(0.0))
    yield "PB-prop-4-shift", f"{what}: L1", f"{letters.shift:.3g}", f"{exact:.3g}"
    yield "PB-prop-4-loss", f"{what}: W2, against eq. 6", f"{letters.loss:.3g}", f"{eq_6.loss:.3g}"
    cost = paper_accounting.split_epsilon(law.kernel, 4.0, eq_6, DELTA)
    yield (
        "PB-prop-4-eq-6",
        f"{what}: epsilon with eq. 6's W1 and W2",
        number(cost),
        number(paper_accounting.pair_epsilon(PairLoss(law, 0.0, 4.0), DELTA)),
    )
    for sigma, boost, sensitivity in ((8.0, 0.95, 4.0), (3.0, 0.95, 4.0), (8.0, 1.0, 4.0)):
        region = FixedRegion(-10.0, 10.0)
        law = BoostedNoise(Gaussian(sigma), region, boost)
        split = paper_accounting.paper_pb_proposition_5(law.kernel, -10.0, 10.0, boost, sensitivity)
        where = f"sigma {sigma:g} on [-10, 10], boost {boost:g}, sensitivity {sensitivity:g}"
        name = f"PB-prop-5-{sigma:g}-{boost:g}"
        truth = math.log(law.normaliser(-10.0 + sensitivity) / law.normaliser(-10.0))
        yield f"{name}-shift", f"Proposition 5: L1, {where}", number(split.shift), number(truth)
        claimed = split.shift + paper_accounting.pair_epsilon(
            PairLoss(BoostedNoise(law.kernel), 0.0, sensitivity), DELTA
        )
        yield (
            f"{name}-epsilon",
            f"Proposition 5, Remark 3: epsilon, {where}",
            number(claimed),
            number(Profile(law, sensitivity, (-10.0, 10.0)).epsilon(DELTA)),
        )
    law = BoostedNoise(Laplace(2.0), FixedRegion(-4.0, 4.0), 0.99)
    split = paper_accounting.paper_pb_proposition_5(law.kernel, -4.0, 4.0, 0.99, 2.0)
    yield (
        "PB-prop-5-laplace",
        "Proposition 5, Remark 3 at delta 0: Laplace scale 2 on [-4, 4], boost 0.99, sensitivity 2",
        number(1.0 + split.shift),
        number(Profile(law, 2.0, (-4.0, 4.0)).largest),
    )
    line = [[y for y in range(10) if abs(x - y) <= 1] for x in range(10)]
    circle = [[(x + step) % 10 for step in (-1, 0, 1)] for x in range(10)]
    bounded = rows_of(circle, 10, 3.0, 1.0)[0]
    yield (
        "PB-prop-7-sum",
        "Proposition 7, ratings 1 to 10 and their neighbours, one size of 3 for all: sum of the first row",
        "1",
        number(bounded.sum() - bounded[1] + bounded[5]),
    )
    for name, what, regions in (
        ("line", "each row its own size", line),
        ("circle", "10 next to 1", circle),
    ):
        matrix = rows_of(regions, 10, 3.0, 1.0)
        true = float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())
        yield f"PB-prop-7-{name}", f"the same, {what}: epsilon of 3, boost epsilon 1", "3", number(true)
    matrix = rows_of(circle, 10, 1.0, 2.0)
    true = float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())
    yield "PB-prop-7-over", "the same, epsilon 1, boost epsilon 2", "1", number(true)


def random_scales_and_stairs() -> Iterator[Figure]:
    for epsilon in (1.0, 3.0, 6.0):
        law = best_two_point(epsilon=epsilon, sensitivity=1.0, metric="l1")
        yield (
            f"R2-staircase-{epsilon:g}",
            f"Figure 10, epsilon {epsilon:g}: least mean absolute error, close to the staircase's",
            number(staircase.least_absolute_error(epsilon)),
            number(law.share / law.fast + (1.0 - law.share) / law.slow),
        )
    law = best_two_point(epsilon=6.0, sensitivity=1.0, metric="l2")
    yield (
        "R2-staircase-square",
        "the same, epsilon 6: least variance",
        number(staircase.least_variance(6.0)),
        number(2.0 * (law.share / law.fast**2 + (1.0 - law.share) / law.slow**2)),
    )


def accepted_counts(chain: Callable[[float, int, int], float]) -> Iterator[Figure]:
    """Yield accepted counts in closed form, beside what the conjectures say."""
    two = number(chain(3.0, 3, 2))
    for labels in (3, 4, 10, 30):
        yield (
            f"BPF-three-parts-{labels}",
            f"Conjecture D.2: {labels} labels against 2, epsilon 1, 3 parts, by the closed form",
            f"above {two}",
            number(accepted_in_three_parts(labels, 1.0)),
        )
    counts = {parts: chain(float(parts), parts, 3) for parts in (2, 3, 14, 15, 25)}
    yield (
        "BPF-conjecture-D.1",
        "Conjecture D.1: reports that a 15th part of epsilon 1 adds, 3 labels, against a third part's",
        number(counts[3] - counts[2]),
        number(counts[15] - counts[14]),
    )
    yield (
        "BPF-many-parts",
        "25 parts of epsilon 1, 3 labels: the two leading terms, and the chain",
        number(accepted_in_many_parts(3, 1.0, 25)),
        number(counts[25]),
    )
