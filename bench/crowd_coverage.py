"""The coverage of the crowd's shares by the intervals of everybody who could have been asked.

    python bench/crowd_coverage.py                            5,000 rounds of every setting
    python bench/crowd_coverage.py --part labels --rounds 500 fewer rounds of one part

A panel has 20,000 devices, of which a twelfth, drawn anew, answers in a round: the operator states `asked`.
The crowds of the others are without end. Shares are a stated first one with all others alike, or as 1/rank;
the last value is missing. Cells are values, categories and the mean; of curves the whole band, and all
quartiles. The table has the coverage of the least covered cell and the mean of all, and beside them what the
intervals of the devices counted cover. "Most" is
of the values by randomised response or subset selection with n f (1 - f) >= 30: of those two standard errors
or more from 0 and 1, and of those nearer, whose intervals are cut on that side and never empty, so that they
miss on one side alone. In 5,000 rounds a coverage of .95 has a standard error of .0031.

A truth is held where the product's rule accepts it on both sides: of the first round of every hundred that
is compared with the ends of `Estimate.intervals`. The exit status is 1 where a cell is
covered in less than .94 of rounds, or one of the first "most" in more than .96, beyond chance at 1e-6 for the
table.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from interval_bands import QUARTILES, SLACK
from interval_cases import LABELS, NUMBERS, _estimator, common, exists, label_tree, rows_of
from scipy.stats import binom

from hubbub.estimation import Estimate, ScoreEstimator, estimator_for
from hubbub.estimation.intervals.judged_mean import JudgedMean
from hubbub.estimation.intervals.laws import JoinedLaw, ReorderedLaw
from hubbub.estimation.intervals.skew_score import is_accepted, score_interval
from hubbub.mechanisms import BundleEstimator, grr, nested_levels
from hubbub.survey import Attribute, Survey
from hubbub.testing import seeded
from hubbub_authoring.design import better
from hubbub_authoring.design.parts import design_parts

LEAST, MOST, ENOUGH, APART = 0.94, 0.96, 30.0, 2.0
FALSE_ALARM = 1e-6
PARTS = ("panel", "labels", "numbers", "tables", "scores", "key-value", "trees", "curves", "bundles")
PANEL = ((3, 1.0, 0.5), (3, 3.0, 0.5), (12, 2.0, 0.1), (91, 4.0, 0.1))
ASKED, ROTATION = 20_000, 12
SIZES = ((4, 1.0), (4, 3.0), (6, 1.0), (6, 3.0), (12, 2.0), (12, 4.0))
TABLES = (([2, 2], 1.0), ([2, 2], 3.0), ([3, 2], 1.0), ([3, 2], 3.0), ([3, 3], 2.0), ([2, 4], 2.0))
SCORES = ((0.3, 0.5), (0.3, 1.0), (0.3, 3.0), (0.05, 1.0), (0.05, 3.0), (0.05, 6.0))
KEY_VALUES = ((0.1, 1.0), (0.1, 3.0), (0.3, 1.0), (0.3, 2.0), (0.8, 1.0), (0.8, 3.0))
"""The share that has a number, planned and true, and epsilon."""
TREES = (0.5, 1.0, 2.0)
CURVES = (
    *(("tree", 34, 1.0), ("tree", 34, 4.0), ("tree", 12, 8.0)),
    *(("optimal, cdf", 12, 1.0), ("optimal, cdf", 12, 4.0), ("optimal, quantiles", 34, 2.0)),
)
"""Mechanisms whose releases state a curve, from inputs and epsilon."""
BUNDLES = (
    ([2, 2, 2], 1.0),
    ([2, 2, 2], 3.0),
    ([3, 2, 4], 1.0),
    ([3, 2, 4], 3.0),
    ([4, 4, 3], 5.0),
    ([2, 5, 3], 2.0),
)
"""Readings of three attributes without missing, each pair of which is asked for, and epsilon."""
ALIKE = ("boosted, uniform", "optimal, quantiles")
"""Mechanisms that are another one's channel in these sizes."""
DEVICES = 2000
TOGETHER = 100
LEVEL = 0.95
Z = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)

TABLE = """\
id = "crowd"
version = 1
title = "Crowd"
epsilon = {epsilon}
minimum_cohort = 100
planned_devices = 2000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 3
lateness = "1h"
skew = "5m"

[mechanism]
name = "auto"
"""

ATTRIBUTE = """
[[attribute]]
id = "a{place}"
kind = "evolving"
type = "label"
labels = {labels}
"""


class Setting(NamedTuple):
    """An estimator, the crowd's shares, who answers, and how many were asked if that is stated."""

    name: str
    estimator: Any
    shares: np.ndarray
    devices: int = DEVICES
    asked: int | None = None
    exact: bool = False
    """True for randomised response and subset selection."""
    mean: float | None = None
    """The crowd's mean of a number or a score."""
    curve: bool = False
    """True for the band and the quartiles alone."""


def by_rank(inputs: int) -> np.ndarray:
    """Return shares as 1/rank, shape (inputs,)."""
    shares = 1.0 / np.arange(1, inputs + 1)
    return np.asarray(shares / shares.sum())


def settings(part: str) -> Iterator[Setting]:
    """Yield the settings of a part."""
    if part == "panel":
        for k, epsilon, first in PANEL:
            shares = np.append(first, np.full(k - 1, (1.0 - first) / (k - 1)))
            name = f"panel: grr {k}, epsilon {epsilon:g}"
            estimator = _estimator("grr", k, epsilon)
            yield Setting(name, estimator, shares, ASKED // ROTATION, ASKED, exact=True)
    for mechanism in {"labels": LABELS, "numbers": NUMBERS}.get(part, {}):
        for k, epsilon in SIZES:
            if mechanism not in ALIKE and exists(mechanism, k, epsilon):
                shares, points = by_rank(k), np.linspace(-1.0, 1.0, k - 1)
                yield Setting(
                    f"{mechanism} {k}, epsilon {epsilon:g}",
                    _estimator(mechanism, k, epsilon),
                    shares,
                    exact=mechanism in ("grr", "subset"),
                    mean=float(points @ shares[:-1] / shares[:-1].sum()),
                )
    if part == "tables":
        for sizes, epsilon in TABLES:
            parts = (
                ATTRIBUTE.format(place=i, labels=[f"{k}" for k in range(count)])
                for i, count in enumerate(sizes)
            )
            survey = Survey.parse(TABLE.format(epsilon=epsilon) + "".join(parts))
            name = f"table of {' x '.join(map(str, sizes))}, epsilon {epsilon:g}"
            yield Setting(name, survey.estimator(), by_rank(survey.channel.inputs))
    yield from {"bundles": bundles, "curves": curves, "key-value": key_values}.get(part, tuple)()
    if part == "trees":
        for epsilon in TREES:
            hierarchy = label_tree()
            channel = nested_levels(hierarchy, epsilon=epsilon)
            estimator = estimator_for(channel, category_of=rows_of(hierarchy))
            yield Setting(f"tree of 5/40/300, epsilon {epsilon:g}", estimator, common(hierarchy.inputs))
    if part == "scores":
        for mean, epsilon in SCORES:
            estimator = ScoreEstimator(grr(2, epsilon=epsilon), low=0.0, high=1.0)
            ends = np.array([1.0 - mean, mean])
            yield Setting(f"score of mean {mean:g}, epsilon {epsilon:g}", estimator, ends, mean=mean)


def key_values() -> Iterator[Setting]:
    """Yield the settings of numbers that some lack: 20,000 devices, one in twenty of whom is missing."""
    attribute = Attribute.number("minutes", -1.0, 1.0, kind="static", absent=True)
    for share, epsilon in KEY_VALUES:
        form, channel = better(attribute, share, 32, epsilon)
        shares, points = np.zeros(form.grid + 2), np.linspace(-1.0, 1.0, form.grid)
        shares[: form.grid] = share * (weights := 4.0 - 3.0 * points) / weights.sum()
        shares[-2:] = 0.95 - share, 0.05
        name = f"key-value on {form.grid} points, share {share:g}, epsilon {epsilon:g}"
        mean = float(points @ shares[:-2]) / share
        yield Setting(name, form.estimator(channel), shares, ASKED, mean=mean)


def curves() -> Iterator[Setting]:
    """Yield the settings of curves that releases state."""
    for mechanism, k, epsilon in CURVES:
        name = f"curve by {mechanism} {k}, epsilon {epsilon:g}"
        yield Setting(name, _estimator(mechanism, k, epsilon), by_rank(k), curve=True)


def bundles() -> Iterator[Setting]:
    """Yield the settings of all pairs of three attributes that hang together: 20,000 devices."""
    for readings, epsilon in BUNDLES:
        sizes = [size + 1 for size in readings]
        pairs = list(combinations(range(len(sizes)), 2))
        estimator = BundleEstimator(design_parts(sizes, pairs, epsilon=epsilon).channel, tables=pairs)
        joint = by_rank(math.prod(sizes))
        yield Setting(f"bundle of {sizes}, epsilon {epsilon:g}", estimator, joint, ASKED)


def stacked(laws: Sequence[Any]) -> Any:
    """Return the law of the cells of many rounds, one round after the other."""
    first, many = laws[0], len(laws)
    kinds = [str(_shape(law)) for law in laws]
    if len(set(kinds)) > 1:  # each kind by itself, and every cell back in its place
        groups = [[r for r in range(many) if kinds[r] == kind] for kind in sorted(set(kinds))]
        size = len(first.step)
        cells = np.empty((many, size), dtype=np.intp)
        cells[[r for group in groups for r in group]] = np.arange(many * size).reshape(many, size)
        parts = [stacked([laws[r] for r in group]) for group in groups]
        return ReorderedLaw(JoinedLaw(parts), cells.ravel())
    if isinstance(first, JoinedLaw):
        sizes = [len(part.step) for part in first.parts]
        starts = many * np.cumsum([0, *sizes[:-1]])
        pairs = list(zip(starts, sizes, strict=True))
        cells = [start + r * size + np.arange(size) for r in range(many) for start, size in pairs]
        parts = [stacked([law.parts[i] for law in laws]) for i in range(len(sizes))]
        return ReorderedLaw(JoinedLaw(parts), np.concatenate(cells))
    if isinstance(first, ReorderedLaw):
        cells = [law.cells + r * len(first.cells) for r, law in enumerate(laws)]
        return ReorderedLaw(stacked([law.part for law in laws]), np.concatenate(cells))
    size = first.own.shape[-1] if hasattr(first, "own") else len(first.step)
    found = {each.name: [getattr(law, each.name) for law in laws] for each in fields(first)}
    return type(first)(**{name: _joined(each, size) for name, each in found.items()})


def _shape(law: Any) -> Any:
    """Return the kinds of laws that a law is made of."""
    inner = [getattr(law, name) for name in ("noise", "part") if hasattr(law, name)]
    return type(law), [_shape(part) for part in [*inner, *getattr(law, "parts", [])]]


def _joined(found: Sequence[Any], size: int) -> Any:
    first = found[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(found, axis=-1)
    if isinstance(first, list | tuple):
        return [stacked([each[i] for each in found]) for i in range(len(first))]
    if is_dataclass(first):
        return stacked(found)
    if all(each == first for each in found):
        return first
    return np.repeat(np.array(found, dtype=np.float64), size)


def counted(setting: Setting, rounds: int, chance: np.random.Generator, source: Any) -> Iterator[np.ndarray]:
    """Yield the counts of rounds whose devices are drawn anew from the crowd."""
    channel, n, shares = setting.estimator.channel, setting.devices, setting.shares
    odds = channel.probabilities()
    if setting.asked is not None:
        crowd = np.round(shares * setting.asked).astype(int)
        crowd[-1] += setting.asked - crowd.sum()
        held = chance.multivariate_hypergeometric(crowd, n, size=rounds)
        laws = np.asarray(odds, dtype=np.float64)
        yield from sum(chance.multinomial(held[:, k], laws[:, k]) for k in range(len(shares)))
    elif odds is not None:  # reports of a crowd are drawn from its mixture of laws
        yield from chance.multinomial(n, channel.expected(shares), size=rounds)
    else:
        for held in chance.multinomial(n, shares, size=rounds):
            yield channel.tally(channel.perturb(np.repeat(np.arange(len(shares)), held), source=source))


def groups_of(setting: Setting) -> np.ndarray:
    """Return the crowd's shares of the categories, of a table those of every margin."""
    rows = np.atleast_2d(setting.estimator.category_of)
    return np.concatenate([np.bincount(row - row.min(), setting.shares) for row in rows])


def truths(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return the crowd's shares of the values and of the categories."""
    estimator = setting.estimator
    if not isinstance(estimator, BundleEstimator):
        return setting.shares, groups_of(setting)
    joint = setting.shares.reshape(estimator.channel.readings)
    axes = range(joint.ndim)
    found = [
        np.concatenate([joint.sum(axis=tuple(set(axes) - set(kept))).ravel() for kept in some])
        for some in (estimator.tables, [(axis,) for axis in axes])
    ]
    return found[0], found[1]


def curves_held(estimates: Sequence[Estimate], setting: Setting) -> np.ndarray:
    """Return in how many rounds the band holds all of the curve, and the quartiles' intervals all three."""
    truth = np.cumsum(setting.shares[:-1]) / setting.shares[:-1].sum()
    band = quartiles = 0
    for each in estimates:
        curve = each.cumulative(LEVEL)
        assert curve is not None
        band += bool(((curve.low <= truth + SLACK) & (truth <= curve.high + SLACK)).all())
        ends = [(curve.quantile(tau), curve.points[np.searchsorted(truth, tau - SLACK)]) for tau in QUARTILES]
        quartiles += all(found.low <= true <= found.high for found, true in ends)
    return np.array([band, quartiles])


def holds(estimates: np.ndarray, truth: np.ndarray, law: Any, n: int) -> np.ndarray:
    """Return whether each cell's truth is within its interval: accepted on both sides, shape (c,)."""
    if law.odds is not None:
        low, high = score_interval(estimates, law, n=n, z=Z)
        return np.asarray((low <= truth) & (truth <= high))
    within = np.clip(estimates, 0.0, 1.0)
    sides = (is_accepted(within, truth, law, n=n, z=z) for z in (Z, -Z))
    return np.logical_and(*sides)


def held_in(estimates: Sequence[Estimate], setting: Setting) -> np.ndarray:
    """Return in how many rounds each cell's truth lies within its interval, shape (cells,).

    Raises:
        AssertionError: If that of the first round is not what its ends say.
    """
    if setting.curve:
        return curves_held(estimates, setting)
    alone, many, found = estimates[0].intervals(LEVEL), len(estimates), []
    labels = len(estimates[0].values) > 0
    for kind, truth in zip(("values", "categories"), truths(setting), strict=True) if labels else ():
        middle = np.stack([getattr(each, kind) for each in estimates])
        if not estimates[0].has_laws:  # by the normal law
            spans = [each.intervals(LEVEL) for each in estimates]
            ends = np.array([[getattr(span, f"{kind}_{end}") for span in spans] for end in ("low", "high")])
            found.append(((ends[0] <= truth) & (truth <= ends[1])).sum(axis=0))
            continue
        law = stacked([getattr(each.laws, kind) for each in estimates])
        inside = holds(middle.ravel(), np.tile(truth, many), law, setting.devices).reshape(many, -1)
        told = ~np.isnan(middle).any(axis=0)  # what a channel hides has no interval
        low, high = (getattr(alone, f"{kind}_{end}") for end in ("low", "high"))
        check(inside[0], low, high, truth, told)
        found.append(inside.sum(axis=0)[told])
    if setting.mean is not None and alone.mean_low is not None and not math.isnan(alone.mean_low):
        laws: list[Any] = [each.laws.mean for each in estimates]  # type: ignore[union-attr]
        if isinstance(laws[0], JudgedMean):  # points go from -1 to 1
            law = stacked(laws)
            place = np.full(many, (setting.mean + 1.0) / 2.0)
            inside = law.unknown(Z) | holds(law.places, place, law, setting.devices)
        else:
            ends = np.array([law.interval(Z) for law in laws])
            inside = (ends[:, 0] <= setting.mean) & (setting.mean <= ends[:, 1])
        check(inside[:1], *np.array([[alone.mean_low], [alone.mean_high]]), np.array([setting.mean]))
        found.append(inside.sum(keepdims=True))
    return np.concatenate(found)


def check(inside: np.ndarray, low: np.ndarray, high: np.ndarray, truth: np.ndarray, told: Any = True) -> None:
    """Hold what is accepted of a round to the ends of its intervals, but for ends at the truth itself."""
    near = np.minimum(np.abs(low - truth), np.abs(high - truth)) < 1e-6
    assert ((inside == ((low <= truth) & (truth <= high))) | near | ~np.asarray(told)).all()


def covered(setting: Setting, rounds: int) -> np.ndarray:
    """Return the rounds in which every cell is covered, of the crowd and of the devices, shape (2, cells)."""
    seed = crc32(setting.name.encode())
    chance, source = np.random.default_rng(seed), seeded(seed)
    hits: Any = 0
    for start in range(0, rounds, TOGETHER):
        many = min(TOGETHER, rounds - start)
        drawn = counted(setting, many, chance, source)
        some = [setting.estimator(counts, setting.devices) for counts in drawn]
        crowd = [each.of_crowd(asked=setting.asked) for each in some]
        hits = hits + np.stack([held_in(crowd, setting), held_in(some, setting)])
    return np.asarray(hits)


def most(setting: Setting, hits: np.ndarray) -> list[int | None]:
    """Return the most hits of values apart from 0 and 1, and of those near; None where there are none."""
    if not setting.exact:
        return [None, None]
    n, shares = setting.devices, setting.shares
    expected = setting.estimator.expected_estimate(shares, n).of_crowd(asked=setting.asked)
    enough = n * shares * (1.0 - shares) >= ENOUGH
    near = np.minimum(shares, 1.0 - shares) < APART * expected.printed_errors[0]
    found = (hits[: len(shares)][enough & which] for which in (~near, near))
    return [int(some.max()) if len(some) else None for some in found]


def main() -> int:
    """Print the table, and return 1 if a cell is covered too seldom or too often, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--part", choices=PARTS, action="append")
    options = parser.parse_args()
    rounds, broken = options.rounds, False
    print("| setting | rounds | least | mean | most | near 0 or 1 | of the devices counted: least | mean |")
    print("|---|---|---|---|---|---|---|---|")
    for part in options.part or PARTS:
        for setting in settings(part):
            crowd, devices = covered(setting, rounds)
            chance = FALSE_ALARM / 10_000
            broken = broken or crowd.min() < binom.ppf(chance, rounds, LEAST)
            apart, near = most(setting, crowd)
            broken = broken or (apart is not None and apart > binom.isf(chance, rounds, MOST))
            shown = [crowd.min(), crowd.mean(), apart, near, devices.min(), devices.mean()]
            words = ["" if each is None else f"{each / rounds:.4f}" for each in shown]
            print(f"| {setting.name} | {rounds:,} | {' | '.join(words)} |", flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
