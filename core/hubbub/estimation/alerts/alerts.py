"""Alerts on releases: estimates of no population, jumps beyond noise, and small poisoning margins.

Forged reports leave two traces in estimates. A share may move to where no population puts it, since one
forged report can add more than a device to a cell; and it may move from one round to the next by more than
noise and the turnover of devices do: two rounds count different people of one crowd. Both are tests of raw
estimates, whose false alarms are bounded at every number of reports and for every population, by the noise of
the channel's own rows (`score_noise`); a change, where those who answer are a random part of the crowd. A
forged share that stays within
what is possible, in a survey's first round, is not seen by anything that looks at one release. Where answers
are fresh, a change may be slower than noise: so windows of rounds are compared (`windows`). Many small
changes at once are the subject of a joint test, which is approximate (`joint`). The last alert is no test: it
says how few forged reports move the largest share out of its interval.

The rate of false alarms is that of a whole round: half of it goes to impossible estimates and half to
changes, a third where issuers are compared, too (`issuers`); of changes half to single jumps and half to the
joint test. Single tests share it evenly among cells and sides (Bonferroni), so it holds whatever the
dependence between cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.alerts.score_noise import (
    ScoreNoise,
    SurveyNoise,
    change_deviation,
    crowd_deviation,
    deviation,
    largest_share,
    least_share,
)
from hubbub.estimation.alerts.windows import RoundShares, Window, comparisons
from hubbub.estimation.estimate import Floats

AlertKind = Literal["impossible", "jump", "joint", "margin"]
Family = Literal["values", "categories", "total", "mean"]

ROUND_RATE: Final = 1e-3
"""The probability that an honest round raises any alert: one false alarm in a thousand rounds."""

MARGIN_SHARE: Final = 1e-3
"""The share of forged reports below which a margin is small: one sender in a thousand."""

_FOR_BOUND: Final = 1.0 / 8.0
"""The part of a jump's rate for each of two bounds on the true share; the rest goes to the two sides."""


@dataclass(frozen=True)
class AlertRules:
    """The thresholds of alerts.

    Attributes:
        rate: The probability of a false alarm in one round, all cells and kinds together.
        margin_share: The share of forged reports below which a poisoning margin raises an alert; 0 for none.

    Raises:
        ParameterError: If a number is out of range.
    """

    rate: float = ROUND_RATE
    margin_share: float = MARGIN_SHARE

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and 0.0 < self.rate < 1.0):
            raise ParameterError(f"alert rate must lie strictly between 0 and 1, got {self.rate!r}")
        if not (math.isfinite(self.margin_share) and 0.0 <= self.margin_share < 1.0):
            raise ParameterError(f"margin share must be at least 0 and below 1, got {self.margin_share!r}")


@dataclass(frozen=True)
class Alert:
    """One finding about one release.

    Attributes:
        kind: The test.
        family: The kind of estimate.
        cell: Its index in the family; 0 for the total and the mean.
        statistic: The estimate, the change, or the share of forged reports.
        threshold: The bound that it is beyond.
        rate: The probability that any alert of this kind is false in one round; 0 for a margin, which is a
            fact and no test.
        window: Of a change: how many of the last rounds are pooled.
        against: With how many rounds before they are compared.
    """

    kind: AlertKind
    family: Family
    cell: int
    statistic: float
    threshold: float
    rate: float
    window: int = 1
    against: int = 1

    @property
    def excess(self) -> float:
        """The distance of the statistic from its threshold, >= 0."""
        return abs(self.statistic - self.threshold)


def impossible_alerts(noise: SurveyNoise, shares: RoundShares, *, rate: float) -> list[Alert]:
    """Return the estimates that no population gives but with a small probability.

    Args:
        noise: Of the survey.
        shares: The round's raw estimates.
        rate: The probability that any is returned for an honest round, at most.
    """
    families = list(_families(noise, shares))
    sides = 2 * sum(int(np.isfinite(estimates).sum()) for _, _, estimates in families)
    found = []
    for family, part, estimates in families:
        each = rate / max(sides, 1)
        if family == "total":  # its truth is 1, neither more nor less
            whole = np.ones(1)
            low = 1.0 - deviation(part, shares.n, sign=-1, most=whole, rate=each)
            high = 1.0 + deviation(part, shares.n, sign=1, most=whole, rate=each)
        else:
            low = least_share(part, shares.n, rate=each)
            high = largest_share(part, shares.n, rate=each)
        for bound, beyond in ((low, estimates < low), (high, estimates > high)):
            found += [
                Alert("impossible", family, cell, float(estimates[cell]), float(bound[cell]), rate)
                for cell in np.flatnonzero(beyond).tolist()
            ]
    return found


def jump_alerts(
    noise: SurveyNoise, before: RoundShares, after: RoundShares, *, shared: int = 0, rate: float
) -> list[Alert]:
    """Return the estimates that changed between two rounds by more than noise and other devices make them.

    The hypothesis is that every share of the crowd is the same, of which the devices of either round are a
    random part. A true change is found as well: the alert says that something moved, not who moved it.

    Args:
        noise: Of the survey.
        before: The earlier round's raw estimates.
        after: The later one's.
        shared: Devices that sent one memoised answer to both, at least; see `shared_devices`.
        rate: The probability that any is returned where no share changed, at most.

    Raises:
        ParameterError: If more devices are shared than are in either round.
    """
    if not 0 <= shared <= min(before.n, after.n):
        raise ParameterError(f"shared must be within 0 to the devices of either round, got {shared}")
    most = before if before.n >= after.n else after
    return _jumps(noise, [Window(before, after)], most, shared=shared, rate=rate)


def window_jumps(
    noise: SurveyNoise, rounds: Sequence[RoundShares], *, since: int, rate: float
) -> list[Alert]:
    """Return the estimates that changed in any window of rounds by more than noise and other devices do.

    It is `jump_alerts` of rounds of more reports; of every cell at most one is returned, of the window in
    which it is furthest beyond its threshold.

    Args:
        noise: Of the survey.
        rounds: Of fresh answers in order of time, the last of which is judged; one or more.
        since: The first round of the reference; see `comparisons`.
        rate: The probability that any is returned where no share changed since, at most.
    """
    furthest: dict[tuple[Family, int], Alert] = {}
    for windows, whole, part in comparisons(rounds, since=since):
        for alert in _jumps(noise, windows, whole, shared=0, rate=part * rate):
            best = furthest.setdefault((alert.family, alert.cell), alert)
            if alert.statistic / alert.threshold > best.statistic / best.threshold:
                furthest[alert.family, alert.cell] = alert
    return [replace(alert, rate=rate) for alert in furthest.values()]


def _jumps(
    noise: SurveyNoise, windows: Sequence[Window], known: RoundShares, *, shared: int, rate: float
) -> list[Alert]:
    """Return `jump_alerts` of several windows, in which the shares are bounded by one of their estimates."""
    families = [each for each in _families(noise, known) if each[0] != "total"]
    cells = sum(int(np.isfinite(best).sum()) for _, _, best in families)
    each = rate / max(cells, 1)
    found = []
    for i, (family, part, best) in enumerate(families):
        bound = np.ones(len(best))
        for _ in range(2):  # the second bound has the variance of shares below the first
            s = crowd_deviation(_of(part, known), known.n, sign=-1, most=bound, rate=_FOR_BOUND * each)
            bound = np.clip(best + s, 0.0, bound)
        for before, after in windows:
            limit = change_deviation(
                _of(part, before, after),
                before.n,
                after.n,
                shared=shared,
                most=bound,
                rate=(1.0 - 2.0 * _FOR_BOUND) * each / (2.0 * len(windows)),
            )
            earlier, later = (
                [shares for name, _, shares in _families(noise, side) if name != "total"][i]
                for side in (before, after)
            )
            change = later - earlier
            found += [
                Alert(
                    "jump",
                    family,
                    cell,
                    float(change[cell]),
                    math.copysign(limit[cell], change[cell]),
                    rate,
                    window=after.rounds,
                    against=before.rounds,
                )
                for cell in np.flatnonzero(np.abs(change) > limit).tolist()
            ]
    return found


def _of(noise: ScoreNoise, *spans: RoundShares) -> ScoreNoise:
    """Return the noise of pooled rounds, if any are."""
    most = max(span.rounds for span in spans)
    if noise.slack is None or most == 1:
        return noise
    fewest = min(span.fewest or span.n for span in spans)
    return replace(noise, slack=replace(noise.slack, rounds=most, fewest=fewest))


def margin_alerts(
    shares: RoundShares, margins: NDArray[np.float64], *, below: float
) -> tuple[float | None, list[Alert]]:
    """Return the poisoning margin of the largest value as a share of forged reports, and an alert if small.

    Args:
        shares: The round's raw estimates.
        margins: The forged reports that move each value by its margin of error, shape (K,); inf where none
            are enough, nan where hidden (`PoisonMargin`).
        below: The share under which it is an alert.

    Returns:
        The share of forged reports among all, None where no number is enough or nothing is told.
    """
    known = np.isfinite(shares.values) & ~np.isnan(margins)
    if not known.any():
        return None, []
    cell = int(np.argmax(np.where(known, shares.values, -np.inf)))
    if not math.isfinite(margins[cell]):
        return None, []
    share = float(margins[cell] / (shares.n + margins[cell]))
    return share, [Alert("margin", "values", cell, share, below, 0.0)] if share < below else []


def _families(noise: SurveyNoise, shares: RoundShares) -> Iterator[tuple[Family, ScoreNoise, Floats]]:
    if noise.values is not None:
        yield "values", noise.values, shares.values
    if noise.categories is not None:
        yield "categories", noise.categories, shares.categories
    if noise.total is not None:
        yield "total", noise.total, shares.values.sum(keepdims=True)
    if noise.place is not None and shares.place is not None:
        yield "mean", noise.place, np.array([shares.place])
