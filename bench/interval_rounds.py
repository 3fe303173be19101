"""Many rounds of one case at once: counts by the channel itself, intervals of all rounds in one bisection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from interval_cases import Case, Inputs
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.estimation import (
    Ends,
    Estimate,
    correlation,
    device_variances,
    difference,
    mean_correlation,
)
from hubbub.estimation.choice import AnyEstimator
from hubbub.estimation.intervals import MixedLaw, score_interval
from hubbub.estimation.intervals.laws import CellLaw, ReorderedLaw
from hubbub.estimation.intervals.tree_law import LevelLaw, LevelsLaw
from hubbub.testing import SeededSource, seeded

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

KINDS = ("values", "categories")
LEVEL = 0.95
Z = 1.959963984540054
CHUNK = 2**22
"""Devices times values that are perturbed at a time, at most, but for a single round."""
CELLS = 2**18
"""Cells whose intervals are found at a time, at most, but for a single round."""
SLACK = 1e-9


@dataclass
class Hits:
    """The rounds whose interval holds the truth.

    Attributes:
        rounds: Rounds that say something.
        cells: Per cell, shape (c,).
        together: Rounds whose simultaneous intervals all hold.
    """

    cells: NDArray[np.int64]
    rounds: int = 0
    together: int = 0

    def count(self, low: Floats, high: Floats, truth: Floats) -> None:
        """Count intervals of shape (rounds, c)."""
        self.cells += holds(low, high, truth).sum(axis=0)
        self.rounds += len(low)


@dataclass
class Found:
    """The counts of one case.

    Attributes:
        hits: By name: "values", "categories" and "mean"; with "normal " before it the control's; with
            "change " and "memoised change " those of a change between rounds.
        width: Of values: mean width by the laws, and of an oracle who knows every variance.
        silent: Rounds without estimates, since nobody reported about a level that needs reports.
    """

    hits: dict[str, Hits]
    width: tuple[float, float] = (0.0, 0.0)
    silent: int = 0


@dataclass
class Rounds:
    """The estimates of several rounds with their intervals, shape (rounds, c) each; the mean has one cell."""

    estimates: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    errors: dict[str, Floats] = field(default_factory=dict)
    together_low: dict[str, Floats] = field(default_factory=dict)
    together_high: dict[str, Floats] = field(default_factory=dict)


def holds(low: Floats, high: Floats, truth: Floats) -> NDArray[np.bool_]:
    """Return which intervals hold the truth; cells that the channel hides have none and count as holding."""
    return np.asarray((low <= truth + SLACK) & (truth - SLACK <= high) | np.isnan(low))


def tallies(channel: Channel, inputs: Inputs, runs: int, source: SeededSource) -> Iterator[Counts]:
    """Yield the counts of so many rounds of the same devices."""
    n = len(inputs)
    for symbols in symbols_of(channel, inputs, runs, source):
        for start in range(0, len(symbols), n):
            yield channel.tally(symbols[start : start + n])


def symbols_of(
    channel: Channel, inputs: Inputs, runs: int, source: SeededSource
) -> Iterator[NDArray[np.unsignedinteger]]:
    """Yield the symbols of several rounds, one after the other, as many as fit a chunk."""
    at_once = max(1, CHUNK // (len(inputs) * channel.inputs))
    for start in range(0, runs, at_once):
        yield channel.perturb(np.tile(inputs, min(at_once, runs - start)), source=source)


def stacked(laws: Sequence[CellLaw]) -> tuple[CellLaw, NDArray[np.intp] | None]:
    """Return the laws of several rounds as one, and the order of its cells within a round."""
    first = laws[0]
    if isinstance(first, ReorderedLaw):
        inner, _ = stacked([law.part for law in laws])  # type: ignore[attr-defined]  # all are such
        return inner, first.cells
    if isinstance(first, MixedLaw):

        def joined(name: str) -> Floats | None:
            parts = [getattr(law, name) for law in laws]
            return None if parts[0] is None else np.concatenate(parts, axis=-1)

        columns = {
            name: joined(name) for name in ("own", "far", "step", "near", "around", "observed", "odds")
        }
        return replace(first, **columns), None
    assert isinstance(first, LevelsLaw)
    cells = len(first.step)
    parts = []
    for k in range(len(first.parts)):
        own = [law.parts[k] for law in laws]  # type: ignore[attr-defined]  # all are such
        parts.append(
            LevelLaw(
                np.repeat([part.size for part in own], cells),  # type: ignore[arg-type]  # a size per cell
                np.concatenate([part.own for part in own], axis=-1),
                np.concatenate([part.rest for part in own], axis=-1),
            )
        )
    step = np.concatenate([law.step for law in laws])
    return LevelsLaw(first.n, parts, step), None


def shape_of(law: CellLaw) -> tuple[object, ...]:
    """Return what laws have in common that can be stacked."""
    if isinstance(law, ReorderedLaw):
        return ("reordered", *shape_of(law.part))
    if isinstance(law, LevelsLaw):
        return ("levels", len(law.parts))
    return ("mixed", *(getattr(law, name) is None for name in ("near", "around", "observed", "odds")))


def intervals(estimates: Sequence[Estimate], *, together: bool) -> Rounds:
    """Return the intervals of several rounds: those that `Estimate.intervals` gives one by one."""
    cells = max(1, CELLS // max(1, len(estimates[0].values)))
    parts = [
        _intervals(estimates[start : start + cells], together=together)
        for start in range(0, len(estimates), cells)
    ]
    names = ("estimates", "low", "high", "errors", "together_low", "together_high")
    columns = {
        name: {
            kind: np.concatenate([getattr(p, name)[kind] for p in parts]) for kind in getattr(parts[0], name)
        }
        for name in names
    }
    return Rounds(**columns)


def _intervals(estimates: Sequence[Estimate], *, together: bool) -> Rounds:
    shape = {kind: (len(estimates), len(getattr(estimates[0], kind))) for kind in KINDS}
    empty = {kind: np.full(shape[kind], np.nan) for kind in KINDS}
    found = Rounds(
        {kind: np.array([getattr(each, kind) for each in estimates]) for kind in KINDS},
        {kind: array.copy() for kind, array in empty.items()},
        {kind: array.copy() for kind, array in empty.items()},
        {kind: np.array([each.printed_errors[i] for each in estimates]) for i, kind in enumerate(KINDS)},
        {kind: array.copy() for kind, array in empty.items()} if together else {},
        {kind: array.copy() for kind, array in empty.items()} if together else {},
    )
    n = estimates[0].n
    for kind in KINDS:
        laws = [getattr(each.laws, kind) for each in estimates]
        shapes = [shape_of(law) for law in laws]
        for alike in set(shapes):
            rows = np.array([i for i, each in enumerate(shapes) if each == alike])
            law, order = stacked([laws[i] for i in rows])
            wanted = found.estimates[kind][rows]
            inner = wanted
            if order is not None:
                inner = np.empty_like(wanted)
                inner[:, order] = wanted
            for z, low, high in (
                (Z, found.low, found.high),
                (_z(shape[kind][1]), found.together_low, found.together_high),
            ):
                if not low:
                    continue
                ends = score_interval(inner.ravel(), law, n=n, z=z)
                for end, out in zip(ends, (low, high), strict=True):
                    table = end.reshape(inner.shape)
                    out[kind][rows] = table if order is None else table[:, order]
    means = [each.laws.mean for each in estimates]  # type: ignore[union-attr]  # they have laws
    ends = np.array([(np.nan, np.nan) if law is None else law.interval(Z) for law in means])
    found.estimates["mean"] = np.array([[each.mean] for each in estimates], np.float64)
    found.low["mean"], found.high["mean"] = ends[:, :1], ends[:, 1:]
    found.errors["mean"] = np.array([[each.mean_error] for each in estimates], np.float64)
    return found


def _z(cells: int) -> float:
    return -NormalDist().inv_cdf((1.0 - LEVEL) / (2.0 * cells))


def normal(estimates: Sequence[Estimate]) -> Rounds:
    """Return intervals by the normal law, too narrow in small rounds, together by Bonferroni."""
    found = Rounds({}, {}, {})
    for kind, error in (
        ("values", "value_errors"),
        ("categories", "category_errors"),
        ("mean", "mean_error"),
    ):
        centre = np.array([getattr(each, kind) for each in estimates]).reshape(len(estimates), -1)
        errors = np.array([getattr(each, error) for each in estimates]).reshape(centre.shape)
        found.estimates[kind] = centre
        found.low[kind], found.high[kind] = centre - Z * errors, centre + Z * errors
        wide = _z(centre.shape[1]) * errors
        found.together_low[kind], found.together_high[kind] = centre - wide, centre + wide
    return found


def truths(case: Case, estimator: AnyEstimator, inputs: Inputs) -> dict[str, Floats]:
    """Return the true shares of these devices, and their mean."""
    groups = estimator.category_of
    numbers = case.points[inputs]
    return {
        "values": np.bincount(inputs, minlength=case.values) / len(inputs),
        "categories": np.bincount(groups[inputs], minlength=int(groups.max()) + 1) / len(inputs),
        "mean": np.array([np.nanmean(numbers)]),
    }


def judge(case: Case, runs: int, seed: int) -> Found:
    """Return how often the intervals of so many rounds hold the truth.

    A quarter of the rounds are compared with a later one: of fresh answers, and of a half of the devices that
    send their first answer again.
    """
    estimator, source = case.estimator(), seeded(seed)
    channel, inputs, n = estimator.channel, case.inputs(), case.devices  # type: ignore[union-attr]
    truth, later = truths(case, estimator, inputs), case.later_inputs()
    later_truth = truths(case, estimator, later)
    names = [*KINDS, "mean"]
    found = Found(
        {
            f"{word}{name}": Hits(np.zeros(len(truth[name]), np.int64))
            for word in ("", "normal ", "change ", "memoised change ")
            for name in names
        }
    )
    pairs = max(runs // 4, 1)
    first, fresh, again, estimates = [], [], [], []
    for round_, counts in enumerate(_paired(channel, (inputs, later), runs, pairs, source)):
        made = [estimator(each, n) for each in counts]
        if any(np.isnan(each.categories).all() and np.isnan(each.values).all() for each in made):
            found.silent += 1
            continue
        estimates.append(made[0])
        if round_ < pairs:
            first.append(made[0])
            fresh.append(made[1])
            again.append(made[2])
    if not estimates:
        return found
    spans, control = intervals(estimates, together=True), normal(estimates)
    _same_as_one_by_one(spans, estimates[0])
    for word, each in (("", spans), ("normal ", control)):
        for name in names:
            hits = found.hits[f"{word}{name}"]
            hits.count(each.low[name], each.high[name], truth[name])
            if name in each.together_low:
                all_ = holds(each.together_low[name], each.together_high[name], truth[name])
                hits.together = int(all_.all(axis=1).sum())
    mixed = np.concatenate([inputs[: n // 2], later[n // 2 :]])
    befores = [
        Rounds(
            *(
                {k: a[: len(first)] for k, a in d.items()}
                for d in (spans.estimates, spans.low, spans.high, spans.errors)
            )
        )
    ]
    variances = _device_variances(estimates[0])
    for word, others, after, shared in (
        ("change ", fresh, later_truth, 0),
        ("memoised change ", again, truths(case, estimator, mixed), n // 2),
    ):
        if first:
            pair = befores[0], intervals(others, together=False)
            _count_changes(found, word, pair, (truth, after), n=n, shared=shared, variances=variances)
    found.width = _widths(spans, estimator, truth["values"], n)
    return found


def _paired(
    channel: Channel, devices: tuple[Inputs, Inputs], runs: int, pairs: int, source: SeededSource
) -> Iterator[list[Counts]]:
    """Yield every round's counts; of the first few, those of a later one, too, fresh and half memoised."""
    inputs, later = devices
    half = len(inputs) // 2
    for _ in range(pairs):
        here = channel.perturb(inputs, source=source)
        there = channel.perturb(later, source=source)
        more = channel.perturb(later[half:], source=source)
        yield [channel.tally(each) for each in (here, there, np.concatenate([here[:half], more]))]
    for counts in tallies(channel, inputs, runs - pairs, source):
        yield [counts]


def _device_variances(estimate: Estimate) -> dict[str, tuple[float, float] | None]:
    """Return what a release's errors tell of the devices in a cell and of others; nothing for a mean."""
    spans, found = estimate.intervals(), {}
    for kind, errors in zip(KINDS, estimate.printed_errors, strict=True):
        low, high = (getattr(spans, kind + end) for end in ("_low", "_high"))
        ends = Ends(getattr(estimate, kind), low, high, Z * errors)
        found[kind] = device_variances([(ends, errors, estimate.n)])
    return {**found, "mean": None}


def _count_changes(
    found: Found,
    word: str,
    rounds: tuple[Rounds, Rounds],
    truth: tuple[dict[str, Floats], dict[str, Floats]],
    *,
    n: int,
    shared: int,
    variances: dict[str, tuple[float, float] | None],
) -> None:
    for name in (*KINDS, "mean"):
        ends = [
            Ends(each.estimates[name], each.low[name], each.high[name], Z * each.errors[name])
            for each in rounds
        ]
        r = correlation(*ends, devices=(n, n), shared=shared, variances=variances[name])
        if name == "mean" and shared:
            r = np.array([[_least_of_means(*pair)] for pair in zip(*map(_mean_rows, rounds), strict=True)])
        change = difference(*ends, correlation=r)
        found.hits[f"{word}{name}"].count(change.low, change.high, truth[1][name] - truth[0][name])


def _mean_rows(rounds: Rounds) -> list[tuple[float, float, float, float]]:
    """Return of every round the mean, its error, the share of devices with a value, and its error."""
    return list(
        zip(
            rounds.estimates["mean"][:, 0].tolist(),
            rounds.errors["mean"][:, 0].tolist(),
            (1.0 - rounds.estimates["categories"][:, -1]).tolist(),
            rounds.errors["categories"][:, -1].tolist(),
            strict=True,
        )
    )


def _least_of_means(
    before: tuple[float, float, float, float], after: tuple[float, float, float, float]
) -> float:
    _, errors, answered, noise = zip(before, after, strict=True)
    return mean_correlation(after[0] - before[0], errors=errors, answered=answered, noise=noise)


def _widths(spans: Rounds, estimator: AnyEstimator, truth: Floats, n: int) -> tuple[float, float]:
    half = Z * estimator.expected_estimate(truth, n).value_errors
    shown = np.isfinite(half) & np.isfinite(spans.low["values"]).all(axis=0)
    if not shown.any():
        return 0.0, 0.0
    centre = spans.estimates["values"][:, shown]
    low, high = (np.clip(centre + side * half[shown], 0.0, 1.0) for side in (-1, 1))
    own = spans.high["values"][:, shown] - spans.low["values"][:, shown]
    return float(own.mean()), float((high - low).mean())


def _same_as_one_by_one(spans: Rounds, estimate: Estimate) -> None:
    """Refuse to go on if the intervals of all rounds at once are not those of a round."""
    for each, low, high in (
        (estimate.intervals(), spans.low, spans.high),
        (estimate.simultaneous(), spans.together_low, spans.together_high),
    ):
        for kind in KINDS:
            np.testing.assert_allclose(getattr(each, f"{kind}_low"), low[kind][0], atol=1e-9)
            np.testing.assert_allclose(getattr(each, f"{kind}_high"), high[kind][0], atol=1e-9)
