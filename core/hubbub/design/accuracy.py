"""How well a channel answers a question: exact standard errors at the planned number of devices.

Over the randomisation, for devices with shares F and rows m_x, the estimate F + B noise has

    covariance = (1/n) [ B diag(pi) B^T - diag(F) ],    pi = sum_x F_x m_x,

because B m_x is the unit vector of x. Its diagonal, and that of sums of its rows, come from the same code
that computes the errors of a release, applied to the expected counts n pi. Nothing is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channel import MAX_WEIGHTS
from hubbub.design.question import Objective, Question
from hubbub.estimation import Estimator
from hubbub.estimation.inverse import Inverse
from hubbub.finite import FiniteChannel
from hubbub.mechanisms.grr import GRR
from hubbub.mechanisms.pbgrr import PBGRR
from hubbub.wire import DIGEST_BYTES, ID_BYTES, Report, encode_report


@dataclass(frozen=True)
class Accuracy:
    """Standard errors at the planned number of devices, and what one report weighs.

    Missing is left out of every average: it is not what was asked.

    Attributes:
        value: Root mean square of the standard errors of the values' shares; inf where values are hidden.
        category: The same of the categories' shares; inf where one of them is hidden.
        mean: Standard error of the mean, in the question's units; None for labels without numbers.
        cdf: Root mean square of the standard errors of the cumulative shares, inf where values are hidden;
            None where there is no order or the matrix would be too large.
        leverage: The most devices by which one report can move the estimated number of devices with some
            value (of some category, where values are hidden): what one forged report is worth.
        bytes_per_report: Bytes of a report on the wire with the largest symbol, in an upload of its own kind.
    """

    value: float
    category: float
    mean: float | None
    cdf: float | None
    leverage: float
    bytes_per_report: int

    def cost(self, objective: Objective, question: Question) -> float:
        """The objective's value; inf where this cannot be answered."""
        if objective.quantity == "value":
            return self.value**2
        if objective.quantity == "category":
            return self.category**2
        if objective.quantity == "both":
            weight, many = objective.category_weight, (1.0, 1.0)
            if objective.of == "totals":
                many = (question.inputs - 1.0, len(question.sizes) - 1.0)
            return (1.0 - weight) * many[0] * self.value**2 + weight * many[1] * self.category**2
        error = self.mean if objective.quantity == "mean" else self.cdf
        return math.inf if error is None else error**2


def accuracy(channel: FiniteChannel, question: Question) -> Accuracy:
    """Gives what a channel of K inputs makes known, exactly.

    Raises:
        ParameterError: If the channel's inputs are not the question's.
    """
    estimator = Estimator(
        channel,
        category_of=question.category_of,
        points=question.points,
        missing=question.inputs - 1,
        rounding="stochastic" if question.kind == "grid" else "none",
    )
    foreseen = estimator.foresee(question.prior, question.devices)
    return Accuracy(
        value=_rms(foreseen.value_errors[:-1]),
        category=_rms(foreseen.category_errors[:-1]),
        mean=None if foreseen.mean_error is None else float(foreseen.mean_error),
        cdf=_cdf_error(channel, question, estimator.inverse),
        leverage=_leverage(channel, question, estimator.inverse),
        bytes_per_report=report_bytes(channel),
    )


def report_bytes(channel: FiniteChannel) -> int:
    """Gives the bytes of one report on the wire, its largest symbol and a small round."""
    return len(encode_report(Report(bytes(DIGEST_BYTES), 0, bytes(ID_BYTES), channel.outputs - 1)))


def _rms(errors: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _cdf_error(channel: FiniteChannel, question: Question, inverse: Inverse) -> float | None:
    """Root mean square error of the shares at or below each point but the last, which is a sum of all."""
    if question.points is None or channel.inputs * channel.outputs > MAX_WEIGHTS // 4:
        return None
    order = np.argsort(question.points[:-1], kind="stable")
    sums = np.cumsum(inverse.matrix()[order], axis=0)[:-1]
    if np.isnan(sums).any():
        return math.inf
    variances = (sums**2) @ channel.expected(question.prior) - np.cumsum(question.prior[order])[:-1]
    return _rms(np.sqrt(np.maximum(variances, 0.0) / question.devices)) if len(variances) else None


def _leverage(channel: FiniteChannel, question: Question, inverse: Inverse) -> float:
    """The largest entry of B in size, over values; over categories where values are hidden."""
    weights = [inverse.pull_back(_unit(question, x)) for x in _representatives(channel)]
    shown = [float(np.abs(w).max()) for w in weights if w is not None]
    if len(shown) < len(weights):
        groups = range(len(question.sizes))
        seen = [inverse.pull_back((question.category_of == c).astype(np.float64)) for c in groups]
        shown += [float(np.abs(w).max()) for w in seen if w is not None]
    return max(shown, default=math.inf)


def _unit(question: Question, x: int) -> NDArray[np.float64]:
    unit = np.zeros(question.inputs)
    unit[x] = 1.0
    return unit


def _representatives(channel: FiniteChannel) -> list[int]:
    """Inputs whose rows of B hold every size of entry that any row holds."""
    if isinstance(channel, GRR):
        return [0]
    if isinstance(channel, PBGRR):
        # Categories of one size have the same integers.
        firsts = np.unique(channel.sizes, return_index=True)[1]
        starts: list[int] = channel.starts[firsts].tolist()
        return starts
    return list(range(channel.inputs))
