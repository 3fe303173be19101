"""Bounds on the noise of unbiased scores that hold for every population and every number of reports.

A cell's estimate f^ is the mean of n independent scores, one per report, each within [low, high], with mean 1
for a device in the cell (*own*) and 0 for any other (*rest*). Of a centred variable X <= R of variance v,

    E exp(t X) <= (R^2 exp(-t v / R) + v exp(t R)) / (R^2 + v),    t >= 0   (Bennett 1962, Hoeffding 1963)

with equality for two values; where v is unknown, (high - mean)(mean - low) is never too small. By Markov's
inequality, for every t chosen without looking at the reports,

    P( f^ >= (L + n max(own(t), rest(t))) / (n t) ) <= exp(-L)

whatever the devices hold, own and rest being the logarithms of the bounds with the means put back. So the
thresholds here are conservative at every n: nothing in them is asymptotic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_WEIGHTS, Channel
from hubbub.estimation.alerts.level_noise import MOST_INPUTS, LevelSlack, level_scores
from hubbub.estimation.choice import Estimated
from hubbub.estimation.estimate import Estimate, Floats
from hubbub.estimation.intervals.laws import CellLaw, JoinedLaw, MixedLaw
from hubbub.estimation.inverses.inverse import Inverse
from hubbub.estimation.trees.tree import Tree

_GRID: Final = np.geomspace(1.0 / 32.0, 2.0, 56)
"""Candidates of t, as multiples of the best one for a normal law; the next one costs under 1 %."""

_CHUNK: Final = 2048
"""Cells whose grids are evaluated at a time: a few MiB."""

_LEAST_SHARE: Final = 1e-9
"""Smaller shares are read as this one."""

_FOR_SLACK: Final = 0.1
"""The part of a rate that goes to the numbers of reports about levels, where there are several."""

_MOST_PRODUCTS: Final = 2**31
"""Multiplications up to which the variances of a channel's matrix are computed, about a second."""


class Estimating(Protocol):
    """The part of an estimator that is read here."""

    @property
    def category_of(self) -> NDArray[Any]:
        """Category of every input, shape (K,), or a row for every grouping."""

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices of these shares."""


@dataclass(frozen=True, eq=False)
class ScoreNoise:
    """The facts about one report's score for c cells that bound its noise, shape (c,) each.

    Attributes:
        low: The least score.
        high: The largest.
        own: The variance for a device in the cell, at most.
        rest: The largest variance for any other device.
        extra: How many further independent scores of a device elsewhere are added: a category of sets is the
            sum of its values' scores, and bits of one set are independent or negatively associated.
        slack: The difference of the estimates from means of such scores, where there is one.
    """

    low: Floats
    high: Floats
    own: Floats
    rest: Floats
    extra: Floats
    slack: LevelSlack | None = None

    @classmethod
    def within(
        cls,
        low: Floats,
        high: Floats,
        *,
        own: Floats | None = None,
        rest: Floats | None = None,
        extra: Floats | None = None,
    ) -> ScoreNoise:
        """Return the noise of scores within two ends, of the largest variance that is possible there.

        Args:
            low: The least score, <= 0, shape (c,); nan for cells that the channel hides.
            high: The largest, >= 1.
            own: A smaller variance of a device in the cell, where it is known.
            rest: The same of all other devices.
            extra: Further scores that are added; None: none.
        """
        widest_own = np.maximum((high - 1.0) * (1.0 - low), 0.0)
        widest_rest = np.maximum(-high * low, 0.0)
        return cls(
            low,
            high,
            widest_own if own is None else np.minimum(own, widest_own),
            widest_rest if rest is None else np.minimum(rest, widest_rest),
            np.zeros(len(low)) if extra is None else extra,
        )

    def picked(self, cells: NDArray[np.intp] | slice) -> ScoreNoise:
        """Return the noise of some cells, of one level."""
        return ScoreNoise(
            self.low[cells], self.high[cells], self.own[cells], self.rest[cells], self.extra[cells]
        )

    def slack_at(self, n: int, rate: float) -> tuple[float, Floats | float]:
        """Return the rate that is left for the scores, and the most that else differs at n reports."""
        if self.slack is None:
            return rate, 0.0
        return (1.0 - _FOR_SLACK) * rate, self.slack.at(n, rate=_FOR_SLACK * rate)

    def logs(self, t: Floats) -> tuple[Floats, Floats]:
        """Return the logarithms of the bounds on E exp(t (b - mean)), own and rest, of the shape of t.

        Args:
            t: Of either sign, shape (..., c).
        """
        up = t >= 0.0
        size = np.abs(t)
        rest = _two_point(size, np.where(up, self.high, -self.low), self.rest)
        own = _two_point(size, np.where(up, self.high - 1.0, 1.0 - self.low), self.own)
        return own + self.extra * rest, rest * (1.0 + self.extra)

    def grid(self, n: float, log_rate: float) -> Floats:
        """Return candidates of t for sums over n reports, shape (len(grid), c), by design alone."""
        spread = np.maximum(self.own, self.rest) + self.extra * self.rest
        return np.asarray(_GRID[:, None] * np.sqrt(2.0 * log_rate * n / np.maximum(spread, 1e-12)))


@dataclass(frozen=True, eq=False)
class SurveyNoise:
    """The noise of all that a survey's releases estimate.

    Attributes:
        values: Of the values; None where the survey has no shares, or none that can be bounded.
        categories: Of the categories.
        total: Of the sum over all values, where it is not 1 by construction; its truth is 1.
        place: Of a score's mean, as its place between the two ends; None but for scores.
    """

    values: ScoreNoise | None
    categories: ScoreNoise | None
    total: ScoreNoise | None = None
    place: ScoreNoise | None = None

    @property
    def is_bounded(self) -> bool:
        """True if anything of the survey can be judged."""
        return self.values is not None or self.place is not None


def survey_noise(channel: Channel, estimator: Estimating) -> SurveyNoise:
    """Return the noise of a survey's estimates, from its design alone.

    Where reports are each about one of several levels, values and categories of more than `MOST_INPUTS`
    inputs are None.

    Args:
        channel: The survey's channel.
        estimator: Its estimator.
    """
    # A channel with an estimator of its own, such as orbits, has no levels.
    levels = None if isinstance(channel, Estimated) else getattr(channel, "levels", None) or None
    if levels is not None and sum(1 for level in levels if level.share > 0) > 1:
        tree: Tree | None = getattr(estimator, "tree", None)
        if tree is None or channel.inputs > MOST_INPUTS:
            return SurveyNoise(None, None)
        held = np.stack(list(_groups(estimator.category_of))).astype(np.float64)
        return SurveyNoise(_of_levels(tree, np.eye(channel.inputs)), _of_levels(tree, held))
    even = np.full(channel.inputs, 1.0 / channel.inputs)
    estimate = estimator.expected_estimate(even, channel.inputs)
    if not estimate.values.size:  # a score: yes or no about one of its ends
        odds = channel.expected(np.array([1.0, 0.0]))[1], channel.expected(np.array([0.0, 1.0]))[1]
        gap = odds[1] - odds[0]
        ends = np.array([-odds[0] / gap]), np.array([(1.0 - odds[0]) / gap])
        return SurveyNoise(None, None, place=ScoreNoise.within(*ends))
    values = _narrowed(channel, estimator, estimate, "values")
    if levels is None:
        categories = _narrowed(channel, estimator, estimate, "categories")
        return SurveyNoise(values, categories)
    sizes = np.concatenate([np.bincount(row - row.min()) for row in np.atleast_2d(estimator.category_of)])
    first = np.zeros(len(sizes), dtype=np.intp)
    categories = replace(values.picked(first), extra=sizes - 1.0)
    one = values.picked(slice(0, 1))
    total = None
    if levels[0].support.size is None:
        total = replace(one, extra=np.array([channel.inputs - 1.0]))
    return SurveyNoise(values, categories, total)


def least_share(noise: ScoreNoise, n: int, *, rate: float) -> Floats:
    """Return the estimates that a population gives with probability `rate` at most, or less, shape (c,).

    Args:
        noise: Of the cells.
        n: Reports, >= 1.
        rate: Above 0, below 1.
    """
    return -_extreme(noise, n, sign=-1.0, rate=rate)


def largest_share(noise: ScoreNoise, n: int, *, rate: float) -> Floats:
    """Return the estimates that a population gives with probability `rate` at most, or more, shape (c,)."""
    return _extreme(noise, n, sign=1.0, rate=rate)


def _extreme(noise: ScoreNoise, n: int, *, sign: float, rate: float) -> Floats:
    """Return how far from 0, in a direction, an estimate is whatever the devices hold, shape (c,)."""

    def log_of(part: ScoreNoise, t: Floats, _: Floats) -> Floats:
        own, rest = part.logs(t)
        return np.maximum(own + t, rest)

    return _reached(log_of, noise, n, sign=sign, most=np.zeros(len(noise.low)), rate=rate)


def _reached(
    log_of: Callable[[ScoreNoise, Floats, Floats], Floats],
    noise: ScoreNoise,
    n: int,
    *,
    sign: float,
    most: Floats,
    rate: float,
) -> Floats:
    """Return min over t of (L / n + log_of(sign t)) / t, the slack added: Markov's inequality, shape (c,)."""
    rate, slack = noise.slack_at(n, rate)
    log_rate = -math.log(rate)

    def reached(part: ScoreNoise, held: Floats) -> Floats:
        t = part.grid(1.0 / n, log_rate)
        return np.asarray(((log_rate / n + log_of(part, sign * t, held)) / t).min(axis=0))

    return np.asarray(_by_kind(reached, noise, most) + slack)


def deviation(noise: ScoreNoise, n: int, *, sign: int, most: Floats, rate: float) -> Floats:
    """Return by how much estimates miss their truth with probability `rate` at most, shape (c,).

    Args:
        noise: Of the cells.
        n: Reports, >= 1.
        sign: 1 for estimates above the truth, -1 for those below.
        most: The largest true share, shape (c,).
        rate: Above 0, below 1.
    """

    def log_of(part: ScoreNoise, t: Floats, held: Floats) -> Floats:
        own, rest = part.logs(t)
        return np.asarray(rest + held * np.maximum(own - rest, 0.0))

    return _reached(log_of, noise, n, sign=sign, most=_rounded_up(most), rate=rate)


def crowd_deviation(noise: ScoreNoise, n: int, *, sign: int, most: Floats, rate: float) -> Floats:
    """Return by how much estimates miss the crowd's truth with probability `rate` at most, shape (c,).

    The devices counted are a random part of the crowd: so their scores differ by the noise and by who they
    are. Where a stated number of devices was asked, the bound holds, too: draws without replacement are
    nearer to the truth (Hoeffding 1963, theorem 4). Arguments as those of `deviation`, of the crowd.
    """
    return _reached(_drawn, noise, n, sign=sign, most=_rounded_up(most), rate=rate)


def change_deviation(
    noise: ScoreNoise, before: int, after: int, *, shared: int, most: Floats, rate: float
) -> Floats:
    """Return by how much an estimate changes, one way, with probability `rate` at most where no truth did.

    The truth is the crowd's, of which either round's devices are a random part. A device that sends its first
    answer again has one score in both rounds, which goes out but for the difference of 1/n.

    Args:
        noise: Of the cells.
        before: Reports of the earlier round, >= 1.
        after: Reports of the later one, >= 1.
        shared: Devices that sent one answer to both, at least; 0 is wider and always right.
        most: The crowd's largest true share, shape (c,).
        rate: Above 0, below 1.

    Returns:
        Shape (c,), for either sign.
    """
    kinds = (
        (before - shared, before, -1.0 / before),
        (after - shared, after, 1.0 / after),
        (shared, min(before, after), 1.0 / after - 1.0 / before),
    )
    (rate, slack), (_, later) = noise.slack_at(before, rate), noise.slack_at(after, rate)
    if noise.slack is not None:
        rate *= (1.0 - 2.0 * _FOR_SLACK) / (1.0 - _FOR_SLACK)  # both rounds have theirs
    log_rate = -math.log(rate)

    def changed(part: ScoreNoise, held: Floats) -> Floats:
        t = part.grid(1.0 / (1.0 / before + 1.0 / after), log_rate)
        worst = np.full(len(held), -np.inf)
        for sign in (1.0, -1.0):
            log = np.zeros_like(t)
            for reports, round_reports, weight in kinds:
                if reports:
                    each = reports * _drawn(part, sign * weight * t, held)
                    if shared:  # those who stay may be unlike those who leave, and those who come
                        own, rest = part.logs(sign * weight * t)
                        members = np.minimum(held * round_reports, reports)
                        each = np.maximum(each, reports * rest + members * np.maximum(own - rest, 0.0))
                    log += each
            worst = np.maximum(worst, ((log_rate + log) / t).min(axis=0))
        return worst

    return np.asarray(_by_kind(changed, noise, _rounded_up(most)) + slack + later)


def _drawn(part: ScoreNoise, t: Floats, most: Floats) -> Floats:
    """Return the largest log E exp(t (b - f)) of a device drawn from a crowd of share f <= most.

    It is log(f exp(own + t) + (1 - f) exp(rest)) - t f: concave in f, so its summit or the nearest end.

    Args:
        part: The noise of the cells.
        t: Of either sign, shape (..., c).
        most: Shape (c,).
    """
    own, rest = part.logs(t)
    gap = np.expm1(own + t - rest)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        summit = (gap - t) / (t * gap)
    f = np.clip(np.nan_to_num(summit), 0.0, most)
    at_ends = np.maximum(rest, rest + np.log1p(most * gap) - t * most)
    return np.asarray(np.maximum(at_ends, rest + np.log1p(f * gap) - t * f))


def _two_point(t: Floats, span: Floats, variance: Floats) -> Floats:
    """Return log((R^2 exp(-t v/R) + v exp(t R)) / (R^2 + v)) with R = span."""
    far = np.maximum(span, 1e-12)
    odds = variance / (far * far + variance)
    up = t * far
    return np.asarray(up + np.log(odds + (1.0 - odds) * np.exp(-(t * variance / far + up))))


def _rounded_up(shares: Floats) -> Floats:
    """Return shares within 0 to 1, rounded up to powers of 2^(1/8): few different ones, none too small."""
    clipped = np.clip(shares, _LEAST_SHARE, 1.0)
    return np.asarray(np.minimum(2.0 ** (np.ceil(8.0 * np.log2(clipped)) / 8.0), 1.0))


def _by_kind(bound: Callable[[ScoreNoise, Floats], Floats], noise: ScoreNoise, most: Floats) -> Floats:
    """Return a bound for every cell, reckoned once for cells that are alike."""
    columns = np.stack([noise.low, noise.high, noise.own, noise.rest, noise.extra, most])
    told = np.isfinite(columns).all(axis=0)
    found = np.full(len(most), np.nan)
    if told.any():
        kinds, kind_of = np.unique(columns[:, told], axis=1, return_inverse=True)
        each = [
            bound(ScoreNoise(*kinds[:5, start : start + _CHUNK]), kinds[5, start : start + _CHUNK])
            for start in range(0, kinds.shape[1], _CHUNK)
        ]
        found[told] = np.concatenate(each)[kind_of]
    return found


def _groups(category_of: NDArray[np.intp]) -> Iterator[NDArray[np.bool_]]:
    for row in np.atleast_2d(category_of):
        for category in range(int(row.min()), int(row.max()) + 1):
            yield row == category


def _narrowed(
    channel: Channel, estimator: Estimating, estimate: Estimate, family: Literal["values", "categories"]
) -> ScoreNoise:
    """Return the noise between the ends of scores, of smaller variances where the design has them exactly."""
    reach = estimate.reach()
    low, high = getattr(reach, f"{family}_low"), getattr(reach, f"{family}_high")
    widest = ScoreNoise.within(low, high)
    if isinstance(channel, Estimated):
        return widest  # its laws mix the other devices as they are estimated: no bound for all populations
    laws = estimate.laws
    law: CellLaw | None = None if laws is None else getattr(laws, family)
    parts = law.parts if isinstance(law, JoinedLaw) else (law,)
    mixed = [part for part in parts if isinstance(part, MixedLaw)]
    if len(mixed) == len(parts):
        own = np.concatenate([part.own[0] for part in mixed])
        rest = np.concatenate([_larger(part) for part in mixed])
        exact = np.concatenate([_is_exact(part) for part in mixed])
        widest = ScoreNoise.within(
            low, high, own=np.where(exact, own, np.inf), rest=np.where(exact, rest, np.inf)
        )
        if exact.all():
            return widest
    inverse: Inverse | None = getattr(estimator, "inverse", None)
    inputs, symbols = channel.inputs, channel.bins
    if inverse is None or inputs * symbols > MAX_WEIGHTS or inputs * inputs * symbols > _MOST_PRODUCTS:
        return widest
    held = np.eye(inputs)
    if family == "categories":
        held = np.stack(list(_groups(estimator.category_of))).astype(np.float64)
    found = _variances(held @ inverse.matrix(), held, channel)
    return ScoreNoise.within(low, high, own=found[0], rest=found[1])


def _of_levels(tree: Tree, held: Floats) -> ScoreNoise:
    """Return the noise of cells that hold inputs, shape (c, K), from reports about levels."""
    scores = level_scores(tree, held.T)
    inside, each = held > 0.0, scores.variances.T
    noise = ScoreNoise.within(
        scores.low,
        scores.high,
        own=np.where(inside, each, 0.0).max(axis=1),
        rest=np.where(inside, 0.0, each).max(axis=1),
    )
    return replace(noise, slack=scores.slack)


def _larger(law: MixedLaw) -> Floats:
    near = law.far if law.near is None else law.near
    return np.asarray(np.maximum(law.far[0], near[0]))


def _is_exact(law: MixedLaw) -> NDArray[np.bool_]:
    """Return the cells whose moments are those of every device of a kind, not of a plausible population."""
    if law.observed is None:
        return np.ones(law.own.shape[1], np.bool_)
    return np.asarray(np.isneginf(law.observed))


def _variances(scores: Floats, held: Floats, channel: Channel) -> tuple[Floats, Floats]:
    """Return the largest variance of every cell's score, of members and of others, shape (c,) each.

    Args:
        scores: Shape (c, M); nan where the channel hides a cell.
        held: 1 where a cell holds an input, shape (c, K).
        channel: Whose rows reports are drawn from.
    """
    rows = channel.probabilities()
    if rows is None:
        return np.full(len(scores), np.inf), np.full(len(scores), np.inf)
    each = (scores * scores) @ rows.T - held
    inside = held > 0.0
    own = np.where(inside, each, 0.0).max(axis=1)
    rest = np.where(inside, 0.0, each).max(axis=1)
    return np.where(np.isnan(own), np.inf, own), np.where(np.isnan(rest), np.inf, rest)
