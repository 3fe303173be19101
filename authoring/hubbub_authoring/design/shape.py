"""The error of a smoothed view's shape: an exact risk over populations that are smooth.

Unbiased shares pay for telling neighbouring points apart, which a smooth population does not need. The risk
here is that of the best linear estimate for a population whose shares are Gaussian about equal ones, with
covariance

    L_ij = (1/K)^2 e^(-(i - j)^2 / (2 l^2)),    l = K/8,

centred so that they sum to one: bumps about a third of the range wide, as high as the population itself. With
the information J = n P diag(1/pi) P^T of n reports about the shares, their covariance afterwards is
(L^-1 + J)^-1 = L (I + J L)^-1. Nothing is simulated. It stands for views that need the same assumption, such
as expectation maximisation with smoothing; where that view ends up is another matter, and measured elsewhere.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hubbub.channels import Channel
from hubbub_authoring.mechanisms.workload import Workload

MAX_POINTS: Final = 1024
"""Largest K: the risk takes a K by K inverse."""

_LENGTH: Final = 1.0 / 8.0
"""Correlation length of the shares, in ranges."""

_MISSING: Final = 0.25
"""Prior deviation of the share of those who have no number."""


def shape_error(channel: Channel, workload: Workload) -> float:
    """Return the root mean square error of the cumulative frequencies; inf where it has none.

    Args:
        channel: Over the workload's inputs.
        workload: About numbers, equally spaced, missing last.
    """
    inputs = workload.inputs
    if workload.points is None or inputs > MAX_POINTS:
        return math.inf
    rows = channel.probabilities()
    if rows is None:
        return math.inf
    order = np.append(np.argsort(workload.points[:-1], kind="stable"), inputs - 1)
    rows = rows[order]
    information = workload.devices * (rows / (workload.prior[order] @ rows)) @ rows.T
    points = inputs - 1
    place = np.arange(points)
    smooth = np.exp(-0.5 * ((place[:, None] - place) / (_LENGTH * inputs)) ** 2) / points**2
    centring = np.eye(points) - 1.0 / points
    before = np.zeros((inputs, inputs))
    before[:points, :points] = centring @ smooth @ centring
    # one direction more: somebody has no number, and all others have less of a share each
    away = np.append(np.full(points, -_MISSING / points), _MISSING)
    before += np.outer(away, away)
    after = before @ np.linalg.inv(np.eye(inputs) + information @ before)
    curve = np.diag(np.cumsum(np.cumsum(after[:points, :points], axis=0), axis=1))[:-1]
    return math.sqrt(float(np.mean(np.maximum(curve, 0.0))))
