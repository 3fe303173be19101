"""The joint test of a change between two rounds: many small changes that no single cell shows.

The change d of all K estimates together has mean 0 where no share f of the crowd changed, and the covariance
F W, W = V(f) + diag f - f f': V is that of one report's noise, the rest that of whose report it is, since two
rounds count different people, and F = 1/n + 1/m - 2 s/(n m), s reports being the same in both rounds. The
statistic is the squared distance

    Q = d' (F W)^+ d        of mean r, the rank of W (chi-square, were noise normal)

Its law is taken as that of a gamma of the mean r and a variance of 2 r + r F3/(F^2 p), F3 = 1/n^3 + 1/m^3,
with p the least probability of any output: the second part bounds the fourth cumulants of reports, as it does
those of Pearson's statistic. W is taken at the pooled shares, made consistent, since it depends little on f.
All this is an approximation, unlike the bounds of `alerts`, and is made where every output is expected five
times in either round, at least; false alarms are simulated beside the stated rate (`make evidence
NAME=alerts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.estimation.alerts.alerts import Alert
from hubbub.estimation.alerts.windows import RoundShares, Window, comparisons
from hubbub.estimation.consistency import norm_sub
from hubbub.estimation.estimate import Floats
from hubbub.numeric.gamma import gamma_tail

if TYPE_CHECKING:
    from hubbub.channels.channel import Channel
    from hubbub.estimation.alerts.score_noise import Estimating

MOST_CELLS: Final = 256
"""Values up to which changes are tested jointly: a round's covariance then takes some ten milliseconds."""

LEAST_EXPECTED: Final = 5.0
"""Reports that every output must be expected to have, after Cochran; below, the tail is not the gamma's."""

_TINY: Final = 1e-9
"""The share of the largest variance below which a direction has none, such as the sum of all shares."""


def joint_alerts(
    channel: Channel,
    estimator: Estimating,
    before: RoundShares,
    after: RoundShares,
    *,
    shared: int = 0,
    rate: float,
) -> list[Alert]:
    """Return an alert if all values together changed between two rounds by more than noise and other devices.

    Args:
        channel: The survey's channel.
        estimator: Its estimator.
        before: The earlier round's raw estimates.
        after: The later one's.
        shared: Devices that sent one memoised answer to both, at least.
        rate: The probability of an alert where no share of the crowd changed, about.

    Returns:
        One alert or none; none, too, where the test is not made: where values are hidden or more than
        MOST_CELLS, or an output is expected less than LEAST_EXPECTED times.

    Raises:
        ParameterError: If more devices are shared than are in either round.
    """
    if not 0 <= shared <= min(before.n, after.n):
        raise ParameterError(f"shared must be within 0 to the devices of either round, got {shared}")
    pooled = (before.n * before.values + after.n * after.values) / (before.n + after.n)
    return _joints(channel, estimator, [Window(before, after)], pooled, shared=shared, rate=rate)


def window_joints(
    channel: Channel, estimator: Estimating, rounds: Sequence[RoundShares], *, since: int, rate: float
) -> list[Alert]:
    """Return an alert if all values together changed in any window of rounds, as in `joint_alerts`.

    Args:
        channel: The survey's channel.
        estimator: Its estimator.
        rounds: Of fresh answers in order of time, the last of which is judged; one or more.
        since: The first round of the reference; see `comparisons`.
        rate: The probability of an alert where no share of the crowd changed since, about.

    Returns:
        The one furthest beyond its threshold, or none.
    """
    found: list[Alert] = []
    for windows, whole, part in comparisons(rounds, since=since):
        found += _joints(channel, estimator, windows, whole.values, shared=0, rate=part * rate)
    found.sort(key=lambda alert: alert.threshold / alert.statistic)
    return [replace(alert, rate=rate) for alert in found[:1]]


def _joints(
    channel: Channel,
    estimator: Estimating,
    windows: Sequence[Window],
    pooled: Floats,
    *,
    shared: int,
    rate: float,
) -> list[Alert]:
    """Return `joint_alerts` of several windows, whose covariance is that at shares of all their reports."""
    if not 2 <= len(pooled) <= MOST_CELLS or not np.isfinite(pooled).all():
        return []
    shares = norm_sub(pooled, np.zeros(len(pooled), dtype=np.intp), np.ones(1))
    expected = channel.expected(shares)
    rarest = float(expected[expected > 0.0].min())
    fewer = max(min(before.n, after.n) for before, after in windows)
    if fewer * rarest < LEAST_EXPECTED:
        return []
    covariance = fewer * estimator.expected_estimate(shares, fewer).covariance()
    covariance += np.diag(shares) - np.outer(shares, shares)
    if not np.isfinite(covariance).all():
        return []
    variances, directions = np.linalg.eigh(covariance)
    seen = variances > _TINY * variances[-1]
    rank = int(seen.sum())
    found = []
    for before, after in windows:
        n, m = before.n, after.n
        factor = 1.0 / n + 1.0 / m - 2.0 * shared / (n * m)
        if min(n, m) * rarest < LEAST_EXPECTED or factor <= 0.0:  # too few, or the same reports in both
            continue
        change = after.values - before.values
        statistic = float(((directions[:, seen].T @ change) ** 2 / variances[seen]).sum() / factor)
        heavier = rank * (1.0 / n**3 + 1.0 / m**3) / (factor**2 * rarest)
        law = {"mean": float(rank), "variance": 2.0 * rank + heavier}
        each = rate / len(windows)
        if gamma_tail(rank * rank / law["variance"], statistic * rank / law["variance"]) < each:
            threshold = gamma_point(each, **law)
            found.append(Alert("joint", "values", 0, statistic, threshold, rate, after.rounds, before.rounds))
    return found


def gamma_point(rate: float, *, mean: float, variance: float) -> float:
    """Return the point that a gamma variable exceeds with a probability.

    Args:
        rate: The probability, above 0, below 1.
        mean: Its mean, > 0.
        variance: Its variance, > 0.
    """
    shape, scale = mean * mean / variance, variance / mean
    low, high = 0.0, shape + 1.0
    while gamma_tail(shape, high) > rate:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        if gamma_tail(shape, middle) > rate:
            low = middle
        else:
            high = middle
    return scale * high
