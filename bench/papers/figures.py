"""The papers' figures drawn again: exact accounting beside the papers' formulas.

    .venv/bin/python bench/papers/figures.py                 all of them, some minutes; PNG files into
    out/figures
    .venv/bin/python bench/papers/figures.py br-4 r2-5       some: br-1 br-4 pb-2 pb-3 pb-5 pb-6 r2-4 r2-5
    .venv/bin/python bench/papers/figures.py --out DIR       somewhere else

A design is what a paper's own algorithm would deploy. A red cross marks one whose exact epsilon (or delta) is
above what the paper promises for it. Where a paper leaves a parameter open, the title has the one taken.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import paper_accounting
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hubbub_authoring.mechanisms.boosted.r2dp import best_two_point
from hubbub_authoring.mechanisms.boosted.scale_laws import Gamma, ScaleLaw, TruncatedGaussian, UniformScale
from hubbub_lab.continuous_noise.composition import Composition
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    Gaussian,
    Interval,
    Laplace,
    PairLoss,
    Profile,
    Region,
    RelativeRegion,
    boost_for,
    gaussian_sigma,
    largest_boost,
)

DELTA = 1e-5
SLACK = 1.0 + 1e-9
"""Claims are met to rounding; only more than this is called unsafe."""

OURS, PAPER, PLAIN, OTHER = "#1b7f5c", "#c05a00", "#555555", "#3b5bb5"


def curve(  # noqa: PLR0917 - an axes, what is drawn on it and how
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    label: str,
    colour: str,
    style: str = "-",
) -> None:
    """Draw one line; nan where there is nothing to draw."""
    axes.plot(x, y, style, color=colour, label=label, linewidth=1.6)


def cross(axes: Axes, points: Sequence[tuple[float, float]], label: str = "promise broken") -> None:
    """Draw red crosses where a paper's promise does not hold."""
    if points:
        axes.plot(
            *zip(*points, strict=True), "x", color="#d0021b", markersize=7, markeredgewidth=2, label=label
        )


def finish(axes: Axes, title: str, x: str, y: str) -> None:
    """Write words on a panel."""
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=7)


def panels(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels in reading order."""
    figure = Figure(figsize=(4.9 * columns, 3.6 * rows), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(rows, columns)).flat)


# budget-recycling-dp


def laplace_recycled(width: float, epsilon: float) -> BoostedNoise:
    """Return Laplace BR-DP of Algorithms 1 and 2: the share of epsilon, in 200ths, of most acceptance."""
    laws = []
    for share in range(1, 201):
        kernel = Laplace(200.0 / (share * epsilon))
        boost = paper_accounting.paper_br_boost(kernel, width, 1.0, epsilon, DELTA)
        laws.append(BoostedNoise(kernel, AbsoluteRegion(width), boost))
    return max(laws, key=lambda law: law.confidence(0.0))


def table_1() -> Figure:
    """Print table 1: epsilon of 1,000 reports of epsilon 0.1."""
    figure, (axes, words) = panels(1, 2)
    claims = {
        "Laplace": (18.98, 25.38),
        "Gaussian": (4.77, 7.17),
        "Laplace BR-DP": (16.8, 22.23),
        "Gaussian BR-DP": (4.72, 6.93),
    }
    design = paper_accounting.paper_br_design(1.0, 1.0, 0.1, DELTA).law
    laws = {
        "Laplace": BoostedNoise(Laplace(10.0)),
        "Gaussian": BoostedNoise(Gaussian(gaussian_sigma(0.1, DELTA, 1.0))),
        "Laplace BR-DP": laplace_recycled(1.0, 0.1),
        "Gaussian BR-DP": design,
    }
    exact = {
        name: [Composition([(Profile(law, 1.0), 1000)]).epsilon(delta) for delta in (1e-5, 1e-10)]
        for name, law in laws.items()
    }
    spent = {name: Profile(law, 1.0).epsilon(DELTA) for name, law in laws.items()}
    places = np.arange(len(claims))
    for i, (delta, shade) in enumerate(((1e-5, 1.0), (1e-10, 0.55))):
        axes.bar(places - 0.3 + 0.4 * i, [claims[name][i] for name in claims], 0.2, color=PAPER, alpha=shade,
                 label=f"paper, delta {delta:g}")  # fmt: skip
        axes.bar(places - 0.1 + 0.4 * i, [exact[name][i] for name in claims], 0.2, color=OURS, alpha=shade,
                 label=f"exact, delta {delta:g}")  # fmt: skip
    broken = [
        (float(place) - 0.3 + 0.4 * i, claims[name][i])
        for place, name in zip(places, claims, strict=True)
        for i in (0, 1)
        if exact[name][i] > claims[name][i]
    ]
    cross(axes, broken, "the paper's figure is below the exact one")
    axes.set_xticks(places, list(claims), fontsize=8)
    finish(axes, "1,000 reports of epsilon 0.1, half width 1, sensitivity 1", "", "epsilon of all")
    words.axis("off")
    lines = ["epsilon of all        paper            exact", ""]
    for name, paper in claims.items():
        lines.append(f"{name:15}{paper[0]:7.2f}{paper[1]:7.2f}   {exact[name][0]:7.2f}{exact[name][1]:7.2f}")
    lines += [
        "",
        "each pair: delta 1e-5, delta 1e-10",
        "one report alone, at delta 1e-5: "
        f"Laplace BR-DP {spent['Laplace BR-DP']:.4f}, Gaussian BR-DP {spent['Gaussian BR-DP']:.4f}",
        "a lower sum comes from spending less each time",
        "the paper's subsampled columns: their rates are not given",
    ]
    words.text(0.0, 0.98, "\n".join(lines), family="monospace", fontsize=8, va="top")
    return figure


def best_recycled(width: float, sensitivity: float, epsilon: float) -> BoostedNoise:
    """Return the Gaussian kernel and boost of most acceptance by exact accounting, kernels 2 % apart."""
    plain = gaussian_sigma(epsilon, DELTA, sensitivity)
    best = BoostedNoise(Gaussian(plain), AbsoluteRegion(width), 0.0)
    for share in np.arange(0.7, 1.6, 0.02):
        kernel, region = Gaussian(float(plain * share)), AbsoluteRegion(width)
        boost = largest_boost(kernel, region, sensitivity=sensitivity, epsilon=epsilon, delta=DELTA)
        if boost is not None:
            best = max(best, BoostedNoise(kernel, region, boost), key=lambda law: law.confidence(0.0))
    return best


def staircase_hit(epsilon: float, sensitivity: float, within: float) -> float:
    """Return most acceptance of a staircase (Geng and Viswanath), which needs no delta."""
    decay, best = math.exp(-epsilon), 0.0
    for gamma in np.linspace(0.005, 0.995, 199):
        height = (1.0 - decay) / (2.0 * sensitivity * (gamma + decay * (1.0 - gamma)))
        steps, rest = divmod(within, sensitivity)
        inner = min(rest, gamma * sensitivity) + decay * max(0.0, rest - gamma * sensitivity)
        whole = sensitivity * (gamma + decay * (1.0 - gamma))
        mass = whole * (1.0 - decay**steps) / (1.0 - decay) + decay**steps * inner
        best = max(best, 2.0 * height * mass)
    return best


def figure_4() -> Figure:
    """Draw figure 4: acceptance over epsilon."""
    figure, axes = panels(1, 3)
    for panel, (width, sensitivity, top) in zip(
        axes, ((1.0, 1.0, 5.0), (1.0, 5.0, 5.0), (4.867, 1.0, 4.0)), strict=True
    ):
        epsilons = np.linspace(0.5, top, 10)
        designs = [paper_accounting.paper_br_design(width, sensitivity, float(e), DELTA) for e in epsilons]
        plain = [
            BoostedNoise(
                Gaussian(gaussian_sigma(float(e), DELTA, sensitivity)), AbsoluteRegion(width)
            ).confidence(0)
            for e in epsilons
        ]
        exact = [best_recycled(width, sensitivity, float(e)).confidence(0.0) for e in epsilons]
        curve(panel, epsilons, plain, "Gaussian", PLAIN, ":")
        curve(panel, epsilons, [d.acceptance for d in designs], "BR-DP by the paper's formulas", PAPER, "--")
        curve(panel, epsilons, exact, "BR-DP, exact", OURS)
        stairs = [staircase_hit(float(e), sensitivity, width) for e in epsilons]
        curve(panel, epsilons, stairs, "staircase, delta 0", OTHER, "-.")
        broken = [
            (float(e), d.acceptance)
            for e, d in zip(epsilons, designs, strict=True)
            if Profile(d.law, sensitivity).delta(float(e)) > DELTA * SLACK
        ]
        cross(panel, broken, "true delta above 1e-5")
        finish(
            panel, f"half width {width:g}, sensitivity {sensitivity:g}, delta 1e-5", "epsilon", "acceptance"
        )
    return figure


# privacy-boosting


@dataclass(frozen=True)
class Setting:
    """A setting: values, their sensitivity and the region wanted with a confidence."""

    region: Region
    confidence: float
    sensitivity: float
    domain: Interval

    def law(self, sigma: float) -> BoostedNoise:
        """Return the boosted Gaussian that just meets the confidence."""
        kernel = Gaussian(sigma)
        return BoostedNoise(kernel, self.region, boost_for(kernel, self.region, self.confidence, self.domain))

    def ends(self) -> tuple[float, float]:
        """Return the pair that the paper calls dominating: from the value that is hardest to serve."""
        start = self.domain[0]
        return start, start + self.sensitivity

    def claimed(self, law: BoostedNoise, order: float | None) -> float:
        """Return epsilon by the paper: Proposition 1 at DELTA, or Proposition 2 at a Renyi order."""
        pairs = (self.ends(), self.ends()[::-1])
        if order is None:
            return max(paper_accounting.paper_pb_epsilon(law, *pair, DELTA) for pair in pairs)
        return max(paper_accounting.paper_pb_renyi(law, *pair, order) for pair in pairs)

    def surveyed(self, law: BoostedNoise, order: float | None) -> float:
        """Return exact epsilon of the pairs at both ends of the values, both ways: a quick one."""
        _, high = self.domain
        found = []
        for x, other in (self.ends(), (high - self.sensitivity, high)):
            for pair in (PairLoss(law, x, other), PairLoss(law, other, x)):
                found.append(
                    paper_accounting.pair_epsilon(pair, DELTA) if order is None else pair.renyi(order)
                )
        return max(found)

    def exact(self, law: BoostedNoise, order: float | None) -> float:
        """Return epsilon by the exact profile."""
        profile = Profile(law, self.sensitivity, self.domain)
        return profile.epsilon(DELTA) if order is None else profile.renyi(order)


def least(cost: Callable[[float], float], low: float, high: float) -> float:
    """Return the point of least cost: a scan of 13 in the logarithm, then 12 thirds about the best."""
    marks = np.linspace(math.log(low), math.log(high), 13)
    costs = [cost(math.exp(mark)) for mark in marks]
    at = int(np.argmin(costs))
    left, right = float(marks[max(at - 1, 0)]), float(marks[min(at + 1, len(marks) - 1)])
    for _ in range(12):
        first, second = left + (right - left) / 3.0, right - (right - left) / 3.0
        if cost(math.exp(first)) <= cost(math.exp(second)):
            right = second
        else:
            left = first
    return math.exp(0.5 * (left + right))


@dataclass(frozen=True)
class Need:
    """The epsilons that a setting needs: the paper's, its design's exact one, and the best design's."""

    claimed: float
    true: float
    best: float


@cache
def need(setting: Setting, width: float, order: float | None) -> Need:
    """Return the least epsilon for a setting, as the paper and as exact accounting find it."""
    low, high = width / 6.0, 6.0 * width
    by_paper = setting.law(least(lambda s: setting.claimed(setting.law(s), order), low, high))
    by_us = setting.law(least(lambda s: setting.surveyed(setting.law(s), order), low, high))
    true = setting.exact(by_paper, order)
    return Need(setting.claimed(by_paper, order), true, min(true, setting.exact(by_us, order)))


def plain_need(width: float, confidence: float, sensitivity: float, order: float | None) -> float:
    """Return epsilon of the Gaussian that lies within width of the value with this confidence, unboosted."""
    low, high = 1e-3 * width, 1e3 * width
    for _ in range(80):
        middle = math.sqrt(low * high)
        hit = BoostedNoise(Gaussian(middle), AbsoluteRegion(width)).confidence(0.0)
        low, high = (middle, high) if hit >= confidence else (low, middle)
    profile = Profile(BoostedNoise(Gaussian(low)), sensitivity)
    return profile.epsilon(DELTA) if order is None else profile.renyi(order)


def settings(width: float, confidence: float, sensitivity: float) -> dict[str, Setting]:
    """Return the three regions of the figures, whose smallest reaches width from the value."""
    return {
        "absolute": Setting(AbsoluteRegion(width), confidence, sensitivity, (0.0, sensitivity)),
        "relative": Setting(RelativeRegion(0.1, width), confidence, sensitivity, (0.0, 4.0 * sensitivity)),
        "fixed": Setting(FixedRegion(-width, width), confidence, sensitivity, (-width / 2.0, width / 2.0)),
    }


def needs(
    panel: Axes, x: Sequence[float], at: Callable[[float], tuple[float, float, float]], order: float | None
) -> None:
    """Return epsilon needed over x by every mechanism; at(x) is width, confidence, sensitivity."""
    curve(panel, x, [plain_need(*at(v), order) for v in x], "Gaussian, unboosted", PLAIN, ":")
    for name, colour in (("absolute", OURS), ("relative", OTHER), ("fixed", "#8e44ad")):
        found = [need(settings(*at(v))[name], at(v)[0], order) for v in x]
        curve(panel, x, [n.best for n in found], f"{name}, exact", colour)
        curve(panel, x, [n.claimed for n in found], f"{name}, the paper's formula", colour, "--")
        broken = [(v, n.claimed) for v, n in zip(x, found, strict=True) if n.true > n.claimed * SLACK]
        cross(panel, broken, "promise broken" if name == "absolute" else "_")


KINDS: tuple[tuple[str, float | None], ...] = (("delta 1e-5", None), ("Renyi order 2", 2.0))


def privacy_over_width() -> Figure:
    """Draw figure 2: epsilon needed over the region's reach, confidence fixed."""
    figure, axes = panels(2, 2)
    widths = np.linspace(5.0, 25.0, 6)
    for i, (kind, order) in enumerate(KINDS):
        for j, (confidence, sensitivity) in enumerate(((0.9, 1.0), (0.8, 4.0))):
            panel = axes[2 * i + j]
            needs(panel, widths, lambda w, c=confidence, s=sensitivity: (float(w), c, s), order)  # type: ignore[misc] # defaults bind
            finish(
                panel, f"{kind}, confidence {confidence:g}, sensitivity {sensitivity:g}", "reach", "epsilon"
            )
    return figure


def privacy_over_confidence() -> Figure:
    """Draw figure 3: epsilon needed over the confidence, the smallest region [-10, 10]."""
    figure, axes = panels(2, 2)
    confidences = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    for i, (kind, order) in enumerate(KINDS):
        for j, sensitivity in enumerate((2.0 if order is None else 1.0, 4.0)):
            panel = axes[2 * i + j]
            needs(panel, confidences, lambda c, s=sensitivity: (10.0, float(c), s), order)  # type: ignore[misc] # defaults bind
            finish(panel, f"{kind}, reach 10, sensitivity {sensitivity:g}", "confidence", "epsilon")
    return figure


def feasible() -> Figure:
    """Draw figure 5: the profile of a fixed region against bounded noise, and what a confidence adds."""
    figure, axes = panels(1, 3)
    sigma = gaussian_sigma(0.1, DELTA, 1.0)
    epsilons = np.linspace(0.0, 0.24, 25)
    for width, colour in ((10.0, OURS), (50.0, OTHER)):
        region, domain = FixedRegion(-width, width), (-width, width)
        soft = BoostedNoise(Gaussian(sigma), region, boost_for(Gaussian(sigma), region, 0.8, domain))
        for law, name, style in (
            (soft, "confidence 0.8", "-"),
            (BoostedNoise(Gaussian(sigma), region, 1.0), "bounded", "-."),
        ):
            exact = [max(Profile(law, 1.0, domain).delta(float(e)), 1e-12) for e in epsilons]
            curve(axes[0], epsilons, exact, f"[-{width:g}, {width:g}] {name}, exact", colour, style)
        ends = (-width, -width + 1.0)
        claim = [
            max(paper_accounting.paper_pb_delta(soft, *pair, float(e)) for pair in (ends, ends[::-1]))
            for e in epsilons
        ]
        curve(
            axes[0],
            epsilons,
            [max(c, 1e-12) for c in claim],
            f"[-{width:g}, {width:g}] the paper's formula",
            colour,
            "--",
        )
        broken = [
            (float(e), c)
            for e, c in zip(epsilons, claim, strict=True)
            if Profile(soft, 1.0, domain).delta(float(e)) > max(c, 1e-12) * SLACK
        ]
        cross(axes[0], broken, "true delta above the formula's" if width == 10.0 else "_")
    axes[0].set_yscale("log")
    finish(axes[0], f"Gaussian of (0.1, 1e-5), sigma {sigma:.1f}, sensitivity 1", "epsilon", "delta")
    confidences = np.linspace(0.7, 0.995, 5)
    kernel = Gaussian(40.0)
    for panel, asked in ((axes[1], 1.0), (axes[2], 30.0)):
        for width, colour in ((10.0, OURS), (50.0, OTHER)):
            region, domain, reach = FixedRegion(-width, width), (-width, width), min(asked, 2.0 * width)
            laws = [
                BoostedNoise(kernel, region, boost_for(kernel, region, float(c), domain)) for c in confidences
            ]
            for order, style in ((2.0, "-"), (10.0, "-.")):
                alone = Profile(BoostedNoise(kernel), reach).renyi(order)
                extra = [Profile(law, reach, domain).renyi(order) - alone for law in laws]
                label = f"[-{width:g}, {width:g}], exact, order {order:g}"
                curve(panel, confidences, extra, label, colour, style)
            shifts = [paper_accounting.paper_pb_split(law, reach - width, -width).shift for law in laws]
            label = f"[-{width:g}, {width:g}], the paper's L1"
            curve(panel, confidences, [abs(shift) for shift in shifts], label, colour, "--")
        panel.axhline(0.0, color="black", linewidth=0.6)
        title = f"Renyi divergence less the kernel's, sigma 40, sensitivity {asked:g}"
        finish(
            panel, title if asked == 1.0 else f"{title} (at most the domain)", "confidence", "added epsilon"
        )
    return figure


def composed() -> Figure:
    """Draw figure 6: what T reports cost, each meeting confidence 0.9 within 10, sensitivity 3."""
    figure, axes = panels(1, 2)
    width, confidence, sensitivity = 10.0, 0.9, 3.0
    times = (1, 10, 50, 100, 250, 500, 1000)
    setting = settings(width, confidence, sensitivity)["absolute"]
    low, high = width / 6.0, 6.0 * width
    by_paper = setting.law(least(lambda s: setting.claimed(setting.law(s), None), low, high))
    by_us = setting.law(
        least(
            lambda s: Composition([(Profile(setting.law(s), sensitivity), 100)]).epsilon(DELTA),
            width / 3.0,
            high,
        )
    )
    middle = low
    for step in (0.1, 0.01, 0.001):
        while BoostedNoise(Gaussian(middle + step), AbsoluteRegion(width)).confidence(0.0) >= confidence:
            middle += step
    plain = BoostedNoise(Gaussian(middle))
    exact = {
        law: [Composition([(Profile(law, sensitivity), t)]).epsilon(DELTA) for t in times]
        for law in (plain, by_paper, by_us)
    }
    split = paper_accounting.paper_pb_split(by_paper, 0.0, sensitivity)

    def claimed(t: int) -> float:
        kernel = PairLoss(BoostedNoise(Gaussian(by_paper.kernel.sigma / math.sqrt(t))), 0.0, sensitivity)  # type: ignore[attr-defined] # a Gaussian
        bottom, top = 0.0, exact[by_paper][times.index(t)] * 2.0 + 1.0
        for _ in range(60):
            half = 0.5 * (bottom + top)
            fits = paper_accounting.paper_pb_composed_delta(kernel.delta, split, t, half) <= DELTA
            bottom, top = (bottom, half) if fits else (half, top)
        return top

    promise = [claimed(t) for t in times]
    base = np.array(exact[plain])
    curve(axes[0], times, base / base, f"Gaussian, unboosted ({base[0]:.3g} to {base[-1]:.4g})", PLAIN, ":")
    curve(axes[0], times, exact[by_us] / base, "boosted, set by exact accounting for 100 reports", OURS)
    curve(axes[0], times, exact[by_paper] / base, "the paper's design, exact", OTHER)
    curve(axes[0], times, promise / base, "the paper's design, its Theorem 2", PAPER, "--")
    broken = [t for t, p, e in zip(times, promise, exact[by_paper], strict=True) if e > p * SLACK]
    cross(axes[0], [(t, promise[times.index(t)] / base[times.index(t)]) for t in broken])
    axes[0].set_xscale("log")
    finish(
        axes[0],
        "confidence 0.9 within 10, sensitivity 3, delta 1e-5",
        "reports",
        "epsilon of all, over the Gaussian's",
    )
    # Renyi divergences add up, so that the ratios are those of one report.
    orders = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0)
    alone = np.array([Profile(plain, sensitivity).renyi(order) for order in orders])
    true = np.array([Profile(by_paper, sensitivity).renyi(order) for order in orders])
    said = np.array([setting.claimed(by_paper, order) for order in orders])
    curve(axes[1], orders, alone / alone, "Gaussian, unboosted", PLAIN, ":")
    curve(axes[1], orders, true / alone, "the paper's design, exact", OTHER)
    curve(axes[1], orders, said / alone, "the paper's design, its Proposition 2", PAPER, "--")
    cross(
        axes[1],
        [(o, r) for o, r, t, c in zip(orders, said / alone, true, said, strict=True) if t > c * SLACK],
    )
    axes[1].set_xscale("log")
    finish(axes[1], "the same in Renyi divergence, any number of reports", "order", "over the Gaussian's")
    return figure


# r2dp


def useful(shape: ScaleLaw, epsilon: float, gamma: float) -> float:
    """Return usefulness of a law, scaled to an exact epsilon at sensitivity 1."""
    return 1.0 - shape.fitted(epsilon, 1.0).moment(0, gamma)


SHAPES: dict[str, tuple[ScaleLaw, ...]] = {
    "gamma": tuple(Gamma(float(k), 1.0) for k in np.geomspace(0.05, 200.0, 16)),
    "uniform": tuple(UniformScale(float(low), 1.0) for low in np.linspace(0.0, 0.98, 14)),
    "truncated Gaussian": tuple(
        TruncatedGaussian(float(mean), 1.0, low)
        for mean in (-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 20.0)
        for low in (0.0, 0.3)
    ),
}


def strong_privacy() -> Figure:
    """Draw figure 4: usefulness over Laplace's for epsilon up to 2."""
    figure, axes = panels(2, 3)
    epsilons = np.linspace(0.2, 2.0, 10)
    for panel, gamma in zip(axes, (0.001, 0.01, 0.1, 0.5), strict=False):
        base = np.array([-math.expm1(-e * gamma) for e in epsilons])
        for (name, shapes), colour in zip(SHAPES.items(), (PAPER, OTHER, "#8e44ad"), strict=True):
            best = [max(useful(shape, float(e), gamma) for shape in shapes) for e in epsilons]
            curve(panel, epsilons, np.array(best) / base, name, colour)
        two = [
            1.0 - best_two_point(epsilon=float(e), sensitivity=1.0, within=gamma).moment(0, gamma)
            for e in epsilons
        ]
        curve(panel, epsilons, np.array(two) / base, "any law (two atoms)", OURS, "--")
        stairs = [staircase_hit(float(e), 1.0, gamma) for e in epsilons]
        curve(panel, epsilons, np.array(stairs) / base, "staircase", PLAIN, ":")
        panel.axhline(1.4, color="black", linewidth=0.6, linestyle="--")
        finish(
            panel,
            f"within {gamma:g} of sensitivity 1 (dashed at 1.4: the paper's best)",
            "epsilon",
            "usefulness over Laplace's",
        )
    # Theorem 4.4, of the two atoms u and 3u with even odds
    panel, rates = axes[4], np.geomspace(0.05, 4.0, 30)
    claim = np.array([paper_accounting.paper_r2_two_point_epsilon((u, 3.0 * u), 0.5, 1.0) for u in rates])
    true = np.array(
        [math.log(2.0 * u / (0.5 * u * math.exp(-u) + 1.5 * u * math.exp(-3.0 * u))) for u in rates]
    )
    curve(panel, rates, true, "exact (Corollary 3.3)", OURS)
    curve(panel, rates, claim, "Theorem 4.4", PAPER, "--")
    cross(panel, [(u, c) for u, c, t in zip(rates, claim, true, strict=True) if t > c * SLACK])
    panel.set_xscale("log")
    panel.set_yscale("log")
    finish(panel, "inverse scales u and 3u, even odds, sensitivity 1", "u", "epsilon")
    axes[5].axis("off")
    return figure


def counting() -> Figure:
    """Draw figure 5: usefulness of Laplace for a count, and what r2dp adds."""
    figure, axes = panels(1, 3)
    gammas = np.linspace(0.05, 2.0, 14)
    for epsilon, colour in ((0.5, PLAIN), (1.0, OTHER), (2.0, PAPER), (4.0, OURS), (6.0, "#8e44ad")):
        laplace = np.array([-math.expm1(-epsilon * g) for g in gammas])
        best = np.array(
            [
                1.0 - best_two_point(epsilon=epsilon, sensitivity=1.0, within=float(g)).moment(0, float(g))
                for g in gammas
            ]
        )
        curve(axes[0], gammas, laplace, f"epsilon {epsilon:g}", colour)
        curve(axes[1], gammas, best / laplace - 1.0, f"epsilon {epsilon:g}", colour)
        gamma = np.array([max(useful(shape, epsilon, float(g)) for shape in SHAPES["gamma"]) for g in gammas])
        curve(axes[2], gammas, gamma / laplace - 1.0, f"epsilon {epsilon:g}", colour)
    finish(axes[0], "Laplace noise, sensitivity 1", "within", "usefulness")
    for panel, name in ((axes[1], "any law (two atoms)"), (axes[2], "gamma")):
        panel.axhline(1.25, color="black", linewidth=0.6, linestyle="--")
        finish(panel, f"gain of r2dp, {name} (dashed: the paper's 125 %)", "within", "gain over Laplace")
    return figure


FIGURES: dict[str, tuple[str, Callable[[], Figure]]] = {
    "br-1": ("budget-recycling-dp, Table 1", table_1),
    "br-4": ("budget-recycling-dp, Figure 4", figure_4),
    "pb-2": ("privacy-boosting, Figure 2", privacy_over_width),
    "pb-3": ("privacy-boosting, Figure 3", privacy_over_confidence),
    "pb-5": ("privacy-boosting, Figure 5", feasible),
    "pb-6": ("privacy-boosting, Figure 6", composed),
    "r2-4": ("r2dp, Figure 4", strong_privacy),
    "r2-5": ("r2dp, Figure 5", counting),
}


def described(figure: Figure) -> Iterator[str]:
    """Print every curve's ends and the broken promises: what a reader of text sees of a plot."""
    for panel in figure.axes:
        if panel.get_title():
            yield f"  {panel.get_title()}"
        for line in panel.get_lines():
            label, x, y = str(line.get_label()), line.get_xdata(), line.get_ydata()
            if line.get_marker() == "x":
                yield f"    {len(x)} points: promise broken, first at {x[0]:.4g}"
            elif not label.startswith("_"):
                yield f"    {label:44} {y[0]:10.4g} at {x[0]:<8.4g} {y[-1]:10.4g} at {x[-1]:.4g}"


def main() -> int:
    """Draw what is named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(FIGURES))
    parser.add_argument("--out", type=Path, default=Path("out/figures"), metavar="DIR")
    chosen = parser.parse_args()
    if strange := [name for name in chosen.names if name not in FIGURES]:
        parser.error(f"figures are {', '.join(FIGURES)}, got {', '.join(strange)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    names = chosen.names or list(FIGURES)
    for number, name in enumerate(names, start=1):
        title, draw = FIGURES[name]
        print(f"{number} of {len(names)}: {name}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        figure = draw()
        figure.suptitle(title, fontsize=11)
        path = chosen.out / f"{name}.png"
        figure.savefig(path, dpi=90, pil_kwargs={"optimize": True})
        print(f"{title} -> {path}")
        print("\n".join(described(figure)), flush=True)
        print(f"  ({time.perf_counter() - start:.0f} s)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
