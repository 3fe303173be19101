"""The papers' claims beside what is exact: every figure that docs/papers.md names.

.venv/bin/python bench/papers/papers.py            every section, under a minute
.venv/bin/python bench/papers/papers.py br pb      some: br, pb, r2, bpf
.venv/bin/python bench/papers/papers.py --table    the tables of the page
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import paper_accounting
import printed_claims
from closed_forms import accepted_in_two_parts, noise_errors
from subsampling import AggregateQuery, acceptance, best_rate, sampled, spendable

from hubbub.filter import Box, Regression
from hubbub.filter.regression.branching import BranchAndBound
from hubbub.filter.regression.regression import curves_of
from hubbub_lab.continuous_noise.composition import Composition
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    GammaLaplace,
    Gaussian,
    Laplace,
    LaplaceMixture,
    PairLoss,
    Profile,
    RelativeRegion,
    boost_for,
    gaussian_sigma,
    largest_boost,
)

DELTA = 1e-5

Figure = tuple[str, str, str, str]
"""Name, what it is of, what the paper says, what is exact."""


def number(value: float) -> str:
    """Return five significant digits."""
    return f"{value:.5g}"


# budget-recycling-dp


@cache
def designs() -> dict[float, paper_accounting.BudgetRecycling]:
    return {width: paper_accounting.paper_br_design(width, 1.0, 3.0, DELTA) for width in (1.0, 2.0, 4.867)}


ERRORS_OF = {
    "plain": "epsilon 3, the plain Gaussian",
    "paper": "the same, half width 1, Algorithms 1 and 2",
    "best": "the same, the kernel and boost of most acceptance",
}


def best_exact(width: float, epsilon: float) -> BoostedNoise:
    """Return the Gaussian kernel and boost of most acceptance, exactly, on a grid of 1 % in sigma."""
    plain = gaussian_sigma(epsilon, DELTA, 1.0)
    laws = []
    for percent in range(70, 131):
        kernel, region = Gaussian(plain * percent / 100), AbsoluteRegion(width)
        boost = largest_boost(kernel, region, sensitivity=1.0, epsilon=epsilon, delta=DELTA)
        if boost is not None:
            laws.append(BoostedNoise(kernel, region, boost))
    return max(laws, key=lambda law: law.confidence(0.0))


def budget_recycling() -> Iterator[Figure]:
    for width, design in designs().items():
        exact = Profile(design.law, 1.0)
        what = f"Theorem 1, Algorithms 1 and 2: Gaussian, half width {width:g}"
        yield f"BR-epsilon-{width:g}", f"{what}, epsilon", "3", number(exact.epsilon(DELTA))
        yield f"BR-delta-{width:g}", f"{what}, delta at 3", "1e-05", f"{exact.delta(3.0):.3g}"
    unsafe = Profile(designs()[4.867].law, 1.0).delta(3.0) / DELTA
    yield "BR-factor", "the same, half width 4.867: true delta over claimed", "1", number(unsafe)
    plain = BoostedNoise(Gaussian(gaussian_sigma(3.0, DELTA, 1.0)), AbsoluteRegion(1.0)).confidence(0.0)
    yield (
        "BR-accept-plain",
        "Figure 4, half width 1, epsilon 3: acceptance of the plain Gaussian",
        "-",
        number(plain),
    )
    claimed, exact_law = designs()[1.0].acceptance, best_exact(1.0, 3.0)
    yield "BR-accept", "the same of budget recycling", number(claimed), number(exact_law.confidence(0.0))
    worst = 0.0
    for kernel_epsilon, delta in itertools.product((0.5, 1.0, 2.0, 3.0), (1e-2, 1e-3, 1e-5)):
        sigma = gaussian_sigma(kernel_epsilon, delta, 1.0)
        for share, boost in itertools.product(range(2, 60, 2), (0.5, 0.9, 0.99, 0.999)):
            law = BoostedNoise(Gaussian(sigma), AbsoluteRegion(0.1 * share * sigma), boost)
            worst = max(worst, Profile(law, 1.0).delta(kernel_epsilon - math.log1p(-boost)) / delta)
    alone = BoostedNoise(Gaussian(gaussian_sigma(3.0, DELTA, 1.0)))
    for name, law in (("plain", alone), ("paper", designs()[1.0].law), ("best", exact_law)):
        found, what = noise_errors(law), ERRORS_OF[name]
        yield f"BR-absolute-{name}", f"{what}: mean absolute error", "-", number(found.absolute)
        yield f"BR-variance-{name}", f"{what}: variance", "-", number(found.square)
    yield "BR-theorem-2", "Theorem 2: largest true delta over claimed in a scan", "1", number(worst)
    small = paper_accounting.paper_br_design(1.0, 1.0, 0.1, DELTA)
    spent = largest_boost(small.kernel, AbsoluteRegion(1.0), sensitivity=1.0, epsilon=0.1, delta=DELTA)
    region = AbsoluteRegion(1.0)
    composed = {
        "the paper's kernel and rate": small.law,
        "the paper's kernel, rate raised to spend epsilon": BoostedNoise(small.kernel, region, spent or 0.0),
        "the kernel and rate of most acceptance": best_exact(1.0, 0.1),
        "the plain Gaussian": BoostedNoise(Gaussian(gaussian_sigma(0.1, DELTA, 1.0))),
    }
    once = Profile(small.law, 1.0).epsilon(DELTA)
    yield "BR-single", "half width 1, set for epsilon 0.1: one release", "0.1", number(once)
    for i, (name, law) in enumerate(composed.items(), start=1):
        cost = Composition([(Profile(law, 1.0), 1000)]).epsilon(DELTA)
        yield f"BR-composed-{i}", f"section 6: 1,000 releases at epsilon 0.1, {name}", "-", number(cost)
    equal = BoostedNoise(Gaussian(gaussian_sigma(once, DELTA, 1.0)))
    cost = Composition([(Profile(equal, 1.0), 1000)]).epsilon(DELTA)
    yield "BR-composed-5", "the same, a plain Gaussian of the first one's true epsilon", "-", number(cost)
    wide = designs()[4.867]
    kernel_only = PairLoss(BoostedNoise(Gaussian(wide.kernel.sigma / math.sqrt(10))), 0.0, 1.0)
    exact_ten = Composition([(Profile(wide.law, 1.0), 10)])
    at = exact_ten.epsilon(DELTA)
    for first, name in ((0, "Theorem 3"), (1, "Algorithm 3 as printed, from k = 1")):
        claimed_delta = paper_accounting.paper_br_composed_delta(
            kernel_only.delta,
            kernel=wide.kernel,
            half_width=4.867,
            boost=wide.boost,
            sensitivity=1.0,
            times=10,
            epsilon=at,
            first=first,
        )
        yield (
            f"BR-theorem-3-{first}",
            f"{name}: delta of 10 releases, half width 4.867, epsilon {number(at)}",
            (f"{claimed_delta:.3g}"),
            f"{exact_ten.delta(at):.3g}",
        )
    query = AggregateQuery("count", 10_000, math.sqrt(0.09), 1.0)
    unscaled = {p: spendable(0.1, DELTA, p) for p in (0.1, 1.0)}
    sigmas = {p: gaussian_sigma(*unscaled[p], 1.0) for p in unscaled}
    yield (
        "BR-count-sigma",
        "section 7: sigma for a count sampled at 0.1, epsilon 0.1",
        number(sigmas[0.1]),
        number(gaussian_sigma(*unscaled[0.1], 10.0)),
    )
    best = best_rate(query, 3.0, epsilon=0.1, delta=DELTA)
    tenth = sampled(query, 3.0, epsilon=0.1, delta=DELTA, rate=0.1)
    yield (
        "BR-count-rate",
        "Algorithm 4: best sampling rate for that count, half width 3",
        "below 1",
        number(best.rate),
    )
    yield (
        "BR-count-accept",
        "acceptance at rate 0.1, and at the best",
        number(tenth.acceptance),
        number(best.acceptance),
    )
    law = BoostedNoise(Gaussian(2.0), AbsoluteRegion(1.0), 0.9)
    wide_kernel = BoostedNoise(Gaussian(math.hypot(2.0, 1.5)), AbsoluteRegion(1.0), 0.9)
    yield (
        "BR-prop-7",
        "Proposition 7: sigma 2, sampling error 1.5, rate 0.9, half width 1",
        number(wide_kernel.confidence(0.0)),
        number(acceptance(law, 1.0, 1.5)),
    )
    yield from printed_claims.laplace_recycling()
    yield from printed_claims.staircase_recycling()


# privacy-boosting


def relative_claim(sigma: float, confidence: float, sensitivity: float) -> tuple[float, BoostedNoise]:
    """Return Propositions 1 and 4, as printed, for |y - x| <= 0.1 |x| + 10 and the pair (0, sensitivity)."""
    kernel, ratio, offset = Gaussian(sigma), 0.1, 10.0
    region = RelativeRegion(ratio, offset)
    law = BoostedNoise(kernel, region, boost_for(kernel, region, confidence, (0.0, sensitivity)))

    split = paper_accounting.paper_pb_proposition_4(kernel, ratio, offset, law.boost, sensitivity)
    return paper_accounting.split_epsilon(kernel, sensitivity, split, DELTA), law


def row_normalised(sizes: list[int], epsilon: float, boost_epsilon: float) -> float:
    """Return the true epsilon of privacy-boosting's Proposition 7 for categories of these sizes."""
    category = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.where(category[:, None] == category, math.exp(epsilon - boost_epsilon), 1.0)
    np.fill_diagonal(scores, math.exp(epsilon))
    rows = scores / scores.sum(axis=1, keepdims=True)
    return float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())


def privacy_boosting() -> Iterator[Figure]:
    claims = [relative_claim(0.01 * i, 0.9999, 4.0) for i in range(250, 451)]
    claimed, law = min(claims, key=lambda claim: claim[0])
    relative = law
    what = "Propositions 1 and 4: |y - x| <= 0.1 |x| + 10, sensitivity 4, confidence 0.9999"
    pair = PairLoss(law, 0.0, 4.0)
    yield (
        "PB-relative",
        f"{what}, the pair (0, 4)",
        number(claimed),
        number(paper_accounting.pair_epsilon(pair, DELTA)),
    )
    for top in (4.0, 16.0, 20.0, 50.0):
        exact = Profile(law, 4.0, (0.0, top)).epsilon(DELTA)
        yield f"PB-relative-{top:g}", f"the same, values in [0, {top:g}]", number(claimed), number(exact)
    one_way = paper_accounting.pair_epsilon(PairLoss(law, 16.0, 20.0), DELTA)
    yield "PB-relative-pair", "the same, the pair (16, 20) alone", number(claimed), number(one_way)
    kernel = law.kernel
    yield (
        "PB-prop-4",
        "Proposition 4: W1 of the pair (0, 4), against eq. 6",
        f"{kernel.mass(10.0, 10.4):.3g}",
        (f"{paper_accounting.paper_pb_split(law, 0.0, 4.0).gain:.3g}"),
    )
    for sigma, width, boost, sensitivity, order in (
        (3.0, 3.0, 0.9, 1.0, 2.0),
        (3.0, 10.0, 0.95, 4.0, 2.0),
        (3.0, 10.0, 0.95, 4.0, 10.0),
    ):
        law = BoostedNoise(Gaussian(sigma), AbsoluteRegion(width), boost)
        yield (
            f"PB-renyi-{sensitivity:g}-{order:g}",
            f"Proposition 2: sigma {sigma:g}, half width {width:g}, boost {boost:g},"
            f" sensitivity {sensitivity:g}, order {order:g}",
            number(paper_accounting.paper_pb_renyi(law, 0.0, sensitivity, order)),
            number(PairLoss(law, 0.0, sensitivity).renyi(order)),
        )
    law = BoostedNoise(Gaussian(8.0), FixedRegion(-10.0, 10.0), 0.95)
    yield (
        "PB-fixed",
        "Proposition 5: sigma 8 on [-10, 10], boost 0.95, sensitivity 4",
        number(paper_accounting.paper_pb_epsilon(law, -10.0, -6.0, DELTA)),
        number(Profile(law, 4.0, (-10.0, 10.0)).epsilon(DELTA)),
    )
    law = BoostedNoise(Gaussian(3.0), AbsoluteRegion(10.0), 0.95)
    split = paper_accounting.paper_pb_split(law, 0.0, 1.0)
    exact_hundred = Composition([(Profile(law, 1.0), 100)])
    at = exact_hundred.epsilon(DELTA)
    composed = PairLoss(BoostedNoise(Gaussian(0.3)), 0.0, 1.0)
    yield (
        "PB-theorem-2",
        f"Theorem 2: delta of 100 releases at epsilon {number(at)}, sigma 3, half width 10",
        (f"{paper_accounting.paper_pb_composed_delta(composed.delta, split, 100, at):.3g}"),
        f"{exact_hundred.delta(at):.3g}",
    )
    free = Profile(BoostedNoise(Laplace(2.0), FixedRegion(-4.0, 4.0), 0.99), 2.0, (-1.0, 1.0))
    yield (
        "PB-free",
        "section 3.2: pure epsilon of Laplace scale 2 on [-1, 1] boosted by 0.99 in [-4, 4]",
        ("above 1"),
        number(free.largest),
    )
    for sizes, name in (([10] * 9 + [1], "9 tens and 1"), ([5] * 18 + [1], "18 fives and 1")):
        true = row_normalised(sizes, 5.0, 2.0)
        yield (
            f"PB-sizes-{sizes[0]}",
            f"Proposition 7: epsilon 5, boost epsilon 2, ages in {name}",
            "5",
            number(true),
        )
    yield "PB-sizes-equal", "the same, 9 tens", "5", number(row_normalised([10] * 9, 5.0, 2.0))
    yield from printed_claims.propositions(relative)


# r2dp


def random_scale() -> Iterator[Figure]:
    mixture = Profile(BoostedNoise(LaplaceMixture((1.0, 3.0), (0.5, 0.5))), 0.1)
    yield (
        "R2-two-point",
        "Theorem 4.4: inverse scales 1 and 3, even odds, sensitivity 0.1",
        number(paper_accounting.paper_r2_two_point_epsilon((1.0, 3.0), 0.5, 0.1)),
        number(mixture.largest),
    )
    transform = 0.5 * math.exp(-0.1) + 1.5 * math.exp(-0.3)
    yield (
        "R2-corollary",
        "Corollary 3.3: the same",
        number(math.log(2.0 / transform)),
        number(mixture.largest),
    )
    gamma = Profile(BoostedNoise(GammaLaplace(2.0, 0.3)), 1.5).largest
    yield (
        "R2-gamma",
        "Theorem 4.5: shape 2, scale 0.3, sensitivity 1.5",
        number(3 * math.log(1.45)),
        number(gamma),
    )
    alpha, beta = 0.5 * 1.2, 9.0 * 1.2
    printed = (alpha**2 - beta**2) / (2 * ((1 + beta) * math.exp(-beta) - (1 + alpha) * math.exp(-alpha)))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    rates = 4.75 + 4.25 * nodes
    exact = math.log(4.75 / float(weights @ (rates * np.exp(-1.2 * rates)) / 2))
    yield (
        "R2-uniform",
        "Theorem 4.7: uniform on [0.5, 9], sensitivity 1.2",
        number(math.log(printed)),
        number(exact),
    )
    yield (
        "R2-entropy",
        "Table I: entropy of plain Laplace noise of scale 1",
        number(1.0),
        number(1.0 + math.log(2.0)),
    )
    yield from printed_claims.random_scales_and_stairs()


# bayesian-privacy-filter


def accepted(budget: float, k: int, labels: int) -> float:
    """Return expected GRR reports of epsilon budget / k until the filter refuses; the value is label 0."""
    grown = math.exp(budget / k)
    total = grown + labels - 1
    start = (0,) * labels
    index = {start: 0}
    queue, moves = [start], []
    for state in queue:
        row = []
        for y in range(labels):
            counts = list(state)
            counts[y] += 1
            low = min(counts)
            after = tuple(count - low for count in counts)
            if max(after) >= k:
                continue
            if after not in index:
                index[after] = len(index)
                queue.append(after)
            row.append((index[after], (grown if y == 0 else 1.0) / total))
        moves.append(row)
    matrix = np.eye(len(index))
    for i, row in enumerate(moves):
        for j, p in row:
            matrix[i, j] -= p
    return float(np.linalg.solve(matrix, np.ones(len(index)))[0])


def stopped_mean(budget: float, k: int) -> float:
    """Return the mean of Appendix E's estimate of +1: binary responses until the filter refuses."""
    grown = math.exp(budget / k)
    truth, scale = grown / (grown + 1), (grown + 1) / (grown - 1)
    law = np.zeros(2 * k + 1)
    law[k] = 1.0
    left, mean, n = 1.0, 0.0, 0
    while left > 1e-13:
        n += 1
        after = np.zeros_like(law)
        after[1:] += law[:-1] * truth
        after[:-1] += law[1:] * (1 - truth)
        for end, lead in ((0, -k), (2 * k, k)):
            mean += after[end] * scale * lead / n
            after[end] = 0.0
        law, left = after, float(after.sum())
    return mean


CHECKUP = Box((10.0, 0.0, 50.0, 10.0), (100.0, 1.0, 200.0, 50.0), whole=(1,))
HEALTH = [
    Regression("logistic", CHECKUP, (-0.059, -1.456, -0.0134, 0.0), 6.177, 1.0),
    Regression("logistic", CHECKUP, (0.0761, 0.0952, 0.0, 0.0163), -7.989, 1.0),
    Regression("truncated", CHECKUP, (0.0855, 0.4617, -0.07, 0.0), 12.323, 1.0, 0.0, 12.0),
    Regression("logistic", CHECKUP, (0.0491, 0.0, -0.0091, 0.1039), -5.07, 1.0),
]
"""Heart disease, stroke, hours of sleep, diabetes; from age, sex, blood pressure and body mass index."""

PRINTED = [
    2.4639, 2.4084, 1.8036, 2.7253, 2.6865, 3.1550, 2.4642, 3.7449,
    3.4761, 2.2610, 2.7511, 2.1975, 2.3362, 1.6863, 1.9062, 2.4959,
]  # fmt: skip
"""The table of Appendix F."""


def health_loss(symbols: tuple[int, ...]) -> tuple[float, float, float]:
    """Return the loss of four answers: before any split, proved from above, and reached by two records."""
    curves = curves_of(list(zip(HEALTH, symbols, strict=True)))
    root = proved = reached = 0.0
    for each in (curves, curves.mirrored()):
        search = BranchAndBound(each, np.array(CHECKUP.low), np.array(CHECKUP.high), CHECKUP.whole)
        root += search.bound
        while search.gap > 1e-5:
            search.step()
        proved, reached = proved + search.bound, reached + float(search.best)
    return root, proved, reached


def health_survey() -> Iterator[Figure]:
    losses = {}
    for symbols, printed in zip(itertools.product((0, 1), repeat=4), PRINTED, strict=True):
        losses[symbols] = root, proved, reached = health_loss(symbols)
        assert proved - reached < 2.1e-5
        name = "".join(map(str, symbols))
        yield f"BPF-health-{name}", f"Appendix F: loss of answers {name}", f"{printed:.4f}", f"{reached:.4f}"
    found = [reached for _, _, reached in losses.values()]
    yield "BPF-health-most", "section 6.5: the worst loss", "3.7", number(max(found))
    yield "BPF-health-median", "section 6.5: the median loss", "2.46", number(float(np.median(found)))
    root, _, reached = losses[0, 0, 1, 0]
    # Minima of a log-probability are below its upper bound 0, so "while LB >= UB - 0.01" is false at once.
    yield (
        "BPF-algorithm-5",
        "Algorithm 5: the loss of answers 0010 by its loop as printed, which splits no box",
        number(root),
        number(reached),
    )


def filter_paper() -> Iterator[Figure]:
    yield (
        "BPF-lemma-6.1",
        "Lemma 6.1: least efficiency, reports of 0.3 in a budget of 1, answers all alike",
        "at least 1",
        (number(3 * 0.3 / 1.0)),
    )
    # outputs 0..3, every pair of which is the high half of one of six values
    halves = list(itertools.combinations(range(4), 2))
    weights = np.array([[math.e if y in half else 1.0 for y in range(4)] for half in halves])
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    together = logs[:, :, None] + logs[:, None, :]
    least = float((together.max(axis=0) - together.min(axis=0)).min())
    yield (
        "BPF-lemma-6.2",
        "Lemma 6.2: least loss of two equal queries of epsilon 1 (four outputs)",
        "below 2",
        number(least),
    )
    for budget, k in ((1.0, 2), (1.0, 10)):
        formula = k * math.tanh(budget / 2) / math.tanh(budget / (2 * k))
        yield (
            f"BPF-eq-69-{k}",
            f"eq. 69: expected binary reports, budget {budget:g} in {k} parts",
            f"{formula:.7g}",
            (f"{accepted(budget, k, 2):.7g}"),
        )
    yield (
        "BPF-corollary-D.2",
        "Corollary D.2: the same as the budget goes to 0, 10 parts",
        "100",
        number(accepted(1e-3, 10, 2)),
    )
    for k in (2, 3, 4):
        yield (
            f"BPF-conjecture-D.2-{k}",
            f"Conjecture D.2: 3 labels against 2, epsilon 1, {k} parts",
            (f"above {number(accepted(k, k, 2))}"),
            number(accepted(k, k, 3)),
        )
    for labels in (3, 10, 100):
        yield (
            f"BPF-two-parts-{labels}",
            f"Conjecture D.2: {labels} labels against 2, epsilon 1, 2 parts, by the closed form",
            f"above {number(accepted_in_two_parts(2, 1.0))}",
            number(accepted_in_two_parts(labels, 1.0)),
        )
    yield from printed_claims.accepted_counts(accepted)
    for k in (2, 10, 50):
        yield (
            f"BPF-appendix-E-{k}",
            f"Appendix E: mean of the estimate of +1, budget 1 in {k} parts",
            "1",
            number(stopped_mean(1.0, k)),
        )
    grown, labels = math.exp(1.0), 3
    inverse = np.linalg.inv((np.ones((labels, labels)) + (grown - 1) * np.eye(labels)) / (grown + labels - 1))
    yield (
        "BPF-eq-74",
        "eq. 74: diagonal, epsilon 1, 3 labels",
        number((grown + labels - 1) / (grown - 1)),
        number(inverse[0, 0]),
    )
    reserved, grid = [], np.linspace(-1.0, 1.0, 200_001)
    slope = math.tanh(0.5)
    for first, second in itertools.product((1, -1), repeat=2):
        mean_query = 0.5 * (1 + first * slope * grid)
        square_query = 0.5 * (1 + second * slope * (2 * grid**2 - 1))
        joint = np.log(mean_query) + np.log(square_query)
        reserved.append(float(joint.max() - joint.min()))
    yield (
        "BPF-appendix-A",
        "Appendix A: losses of mean and variance at epsilon 1 each",
        "2",
        (f"{min(reserved):.7g} or {max(reserved):.7g}"),
    )
    yield (
        "BPF-eq-9",
        "eq. 9: mean of outputs 2.25 between 1 and 3, epsilon 1",
        number(1.0 + 3.0 * (2.25 - 1.0) / 2.0),  # its quotient is (y - a)/(b - a), whatever the ends
        number(1.0 + (3.0 - 1.0) * (2.25 - 1.0) / 2.0),
    )
    yield (
        "BPF-eq-66",
        "before eq. 66: chance of a step back, epsilon 1; of a step on it is 0.73106",
        number(1.0 / math.expm1(1.0)),
        number(1.0 / (math.e + 1.0)),
    )
    yield from health_survey()
    sigma = gaussian_sigma(1.0, DELTA, 1.0)
    over = PairLoss(BoostedNoise(Gaussian(sigma)), 0.0, 1.0).masses_above(1.0)[0]
    yield (
        "BPF-definition-4.7",
        "Definition 4.7: chance that the loss exceeds 1, Gaussian of (1, 1e-5)",
        "1e-05",
        f"{over:.3g}",
    )


SECTIONS: dict[str, tuple[str, Callable[[], Iterator[Figure]]]] = {
    "br": ("budget-recycling-dp", budget_recycling),
    "pb": ("privacy-boosting", privacy_boosting),
    "r2": ("r2dp", random_scale),
    "bpf": ("bayesian-privacy-filter", filter_paper),
}


def main() -> int:
    """Run the sections named on the command line, or all."""
    words = [word for word in sys.argv[1:] if word != "--table"]
    table = len(words) < len(sys.argv) - 1
    chosen = words or list(SECTIONS)
    if strange := [name for name in chosen if name not in SECTIONS]:
        print(f"papers.py: sections are {', '.join(SECTIONS)}, got {strange}", file=sys.stderr)
        return 2
    for section in chosen:
        title, figures = SECTIONS[section]
        start = time.perf_counter()
        print(f"{title}:" if not table else f"| {title} | of | paper | exact |\n|---|---|---|---|")
        for figure in figures():
            print(row(figure) if table else "  {:22} {:100} {:>14} {:>14}".format(*figure))
        print(f"  ({time.perf_counter() - start:.0f} s)", file=sys.stderr)
    return 0


def row(figure: Figure) -> str:
    """Return one line of the page's tables."""
    return "| " + " | ".join(text.replace("|", "\\|") for text in figure) + " |"


if __name__ == "__main__":
    sys.exit(main())
