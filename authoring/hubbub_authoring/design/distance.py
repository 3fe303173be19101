"""The distance of a mechanism from the least error of any protocol, for every question that it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.errors import ParameterError
from hubbub.mechanisms import SetSelection, middle
from hubbub.survey import Bundle, KeyValue, Survey
from hubbub_authoring.design.asked import MAX_PROVED, Floors
from hubbub_authoring.design.comparison import by_category_alone
from hubbub_authoring.design.expected_error import MAX_CURVE, workload_estimator
from hubbub_authoring.design.key_value import Crowd, share_variance, survey_variance
from hubbub_authoring.floor.least import Floor, functional_floor, mean_floor, shares_floor, table_floor
from hubbub_authoring.floor.orbits import Weights
from hubbub_authoring.floor.spectral import range_gram, spectral_shares, spectral_tree
from hubbub_authoring.mechanisms.workload import Objective, Workload

WORDS: Final[Mapping[str, str]] = {
    "value": "values",
    "category": "categories",
    "both": "values and categories",
    "mean": "the mean",
    "cdf": "cumulative shares",
    "quantiles": "cumulative shares near the quartiles",
    "ranges": "ranges",
    "shape": "the shape of a smooth population",
    "hit": "reports near their value",
}
"""Every quantity in words."""


@dataclass(frozen=True)
class Distance:
    """The error of one question beside the least that any epsilon-LDP protocol can have.

    Attributes:
        asked: What is asked, in words.
        crowd: The crowd that both are for, in words.
        total: n times the summed variance over the randomisation of all that is asked, sampling left out; inf
            where it is hidden, None where a question has no such error.
        floor: A number that it cannot be below, on average over crowds drawn from `crowd`; None if not known.
        proof: What proves it; None without a floor.
        uniform: Whether the crowd is spread evenly: elsewhere a floor may be far below what is possible.
    """

    asked: str
    crowd: str
    total: float | None
    floor: float | None
    proof: str | None
    uniform: bool = True

    @property
    def above(self) -> float | None:
        """The share of the floor by which the error is above it; None where nothing can be said."""
        if not self.uniform or not self.floor or self.total is None or not math.isfinite(self.total):
            return None
        return max(0.0, self.total / self.floor - 1.0)

    def facts(self) -> dict[str, object]:
        """Return it as JSON types; what is hidden or not known is null."""
        finite = self.total is not None and math.isfinite(self.total)
        return {
            "asked": self.asked,
            "crowd": self.crowd,
            "total": self.total if finite else None,
            "floor": self.floor,
            "above_floor": self.above,
            "proof": self.proof,
        }


def distances(workload: Workload, channel: Channel) -> list[Distance]:
    """Return the distances of a channel: first that of the workload's objective, then of all that it shows.

    Curves and ranges are looked at where reports are made for them.

    Args:
        workload: The question, with the crowd that errors are for.
        channel: Over the workload's inputs, or over its categories.

    Raises:
        ParameterError: If the channel does not fit the workload.
    """
    floors, totals = Floors(workload), _totals(workload, channel)
    quantity = workload.objective.quantity
    crowd, k = floors.crowd, workload.inputs - 1
    low, high = middle(k)
    cells = {"value": k, "category": len(workload.sizes) - 1, "cdf": k - 1, "quantiles": high - low + 1}
    cells["ranges"] = k * (k + 1) // 2
    found = []
    for name in (quantity, *(name for name in totals if name != quantity)):
        floor = floors.of(name)
        scaled = None if floor is None else replace(floor, error=floor.error * cells.get(name, 1))
        found.append(_beside(WORDS[name], crowd, totals.get(name), scaled, uniform=floors.uniform))
    return found


def survey_distances(
    survey: Survey, *, objective: Objective | None = None, participation: float = 1.0
) -> list[Distance]:
    """Return the distances of a survey of any form at its planned devices, all inputs equally common.

    Of a cross table first its combinations, then the shares of its attributes; of a score its mean; of a tree
    of labels first all levels, of each the mean error, and then every level by itself.

    Args:
        survey: The survey.
        objective: What a survey of one attribute is judged by; None: what fits it.
        participation: The share of devices that answer, as its file has it.
    """
    if survey.form.alone:
        asked_of = Workload.of_survey(survey, objective=objective, participation=participation)
        return distances(asked_of, survey.channel)
    if survey.form.cell_levels is not None:
        return _of_tree(survey, participation)
    if isinstance(survey.form, KeyValue) or survey.form.of_sets:
        return [_of_sets(survey)] if survey.form.of_sets else _of_key_value(survey)
    inputs, devices, epsilon = survey.channel.inputs, survey.planned_per_round, survey.epsilon
    if survey.form.samples_parts:
        return _of_bundle(survey, cast(Bundle, survey.form))
    estimate = survey.estimator().expected_estimate(np.full(inputs, 1.0 / inputs), devices)
    if not survey.form.tells_values:
        low, high = (0.0, 1.0) if survey.points is None else survey.points
        # Of outputs at the ends the stated error is that of devices drawn at random: sampling is in it.
        sampling = float(high - low) ** 2 / 4.0
        total = devices * float(estimate.mean_error or 0.0) ** 2 - sampling
        found = mean_floor((low, high), epsilon=epsilon, missing=False) if epsilon <= MAX_PROVED else None
        return [_beside("the mean", "devices half of which are at either end of the output", total, found)]
    shape = [int(np.ptp(row)) + 1 for row in survey.category_of]
    crowd = f"devices spread evenly over {inputs:,} combinations, missing ones among them"
    each = [(j,) for j in range(len(shape))]
    known = []
    for asked, tables, errors, cells in (
        ("combinations", [tuple(range(len(shape)))], estimate.value_errors, [inputs]),
        ("shares of each attribute", each, estimate.category_errors, shape),
    ):
        found = table_floor(shape, tables, epsilon=epsilon) if epsilon <= MAX_PROVED else None
        if found is not None:
            found = found.behind_coin(participation, sampling=sum(1.0 - 1.0 / r for r in cells))
        known.append(_beside(asked, crowd, devices * float((errors**2).sum()), found))
    return known


def _of_sets(survey: Survey) -> Distance:
    """Return the distance of a survey of sets, for devices whose padded sets are drawn evenly.

    The floor is the spectral one of the workload "is cell i in the set" over the L-subsets of V' cells: its
    V' - 1 singular values are all alike, so that a cell's total error is at least
    (V' - 1) L (V' - L)/V'^2 4a/(a - 1)^2, a = e^epsilon, sampling L (V' - L)/V'^2 included.
    """
    channel = cast(SetSelection, survey.channel)
    cells, items = channel.bins, channel.inputs
    share = channel.most / cells
    found = survey.estimator().expected_estimate(np.full(items, share), 1)
    ratio = math.exp(survey.epsilon)
    floor = items * share * (1.0 - share) * ((cells - 1) * 4.0 * ratio / (ratio - 1.0) ** 2 - 1.0)
    crowd = f"devices whose sets are {channel.most} of {items} items and {channel.most} dummies, drawn evenly"
    total = float((found.value_errors**2).sum())
    return _beside("shares of items", crowd, total, Floor(max(floor, 0.0) * (1.0 - 2.0**-40), "spectral"))


def _of_tree(survey: Survey, participation: float) -> list[Distance]:
    """Return the distances of a tree of labels, its values equally common and nobody missing."""
    k, devices, epsilon = survey.channel.inputs - 1, survey.planned_per_round, survey.epsilon
    prior = np.append(np.full(k, 1.0 / k), 0.0)
    foreseen = survey.estimator().expected_estimate(prior, devices)
    sizes = [np.bincount(row[:-1] - row.min()) for row in survey.category_of]
    ends = np.cumsum([len(level) + 1 for level in sizes])
    parts = [*np.split(foreseen.category_errors, ends[:-1]), foreseen.value_errors]
    totals = [devices * float((errors[:-1] ** 2).sum()) for errors in parts]
    shares = [*(level / k for level in sizes), np.full(k, 1.0 / k)]
    sampling = [float((share * (1.0 - share)).sum()) for share in shares]
    crowd = f"devices spread evenly over {k:,} values"
    proved, known = epsilon <= MAX_PROVED, None
    with suppress(ParameterError):
        if proved:
            known = Floor(spectral_tree([level.tolist() for level in sizes], epsilon=epsilon), "spectral")
    cells = [len(share) for share in shares]
    each = [sum(x / m for x, m in zip(part, cells, strict=True)) for part in (totals, sampling)]
    found = [("all levels, the mean error of each", each[0], known, each[1])]
    for level, (total, part, share) in enumerate(zip(totals, sampling, shares, strict=True), start=1):
        floor = _level_floor(np.rint(k * share).astype(int).tolist(), epsilon) if proved else None
        found.append((f"level {level}", total, floor, part))
    return [
        _beside(
            asked,
            crowd,
            total,
            None if floor is None else floor.behind_coin(participation, sampling=part),
        )
        for asked, total, floor, part in found
    ]


def _level_floor(sizes: list[int], epsilon: float) -> Floor:
    """Return the floor of the summed error of one level's cells, of so many values each."""
    if max(sizes) == 1:
        return shares_floor(sizes, epsilon=epsilon, weights=Weights(float(len(sizes)), 0.0))
    return Floor(spectral_shares(sizes, epsilon=epsilon, weights=Weights(0.0, float(len(sizes)))), "spectral")


def _of_key_value(survey: Survey) -> list[Distance]:
    """Return the distances of the mean among those who have a number, and of their share.

    The mean is a ratio: its floor is that of the gradient at the planned crowd, for many devices.
    """
    form = cast(KeyValue, survey.form)
    crowd, f = Crowd.of(form.attribute, form.share), form.share
    mean, share = survey_variance(form, survey.channel), share_variance(form, survey.channel)
    one, three = np.array([1.0, 0.0, 0.0]), np.array([f, 1.0 - f, 0.0])
    found = [
        ("the mean among those who have a number", mean, crowd.sampling, crowd.gradient(), crowd.prior()),
        ("the share who have a number", share, f * (1.0 - f), one, three),
    ]
    known = []
    for asked, total, sampling, functional, prior in found:
        proved = survey.epsilon <= MAX_PROVED
        floor = functional_floor(functional, prior, epsilon=survey.epsilon) if proved else None
        words = f"devices of which {100.0 * f:g} % have a number, spread evenly over its range"
        known.append(_beside(asked, words, total - sampling, floor, uniform=False))
    return known


def _of_bundle(survey: Survey, form: Bundle) -> list[Distance]:
    devices, shape = survey.planned_per_round, list(form.shape)
    foreseen = form.estimator(survey.channel).uniform_estimate(devices)
    crowd = f"devices spread evenly over {survey.channel.inputs:,} combinations, missing ones among them"
    known = []
    for asked, tables, errors in (
        ("tables", list(form.tables), foreseen.value_errors),
        ("shares of each attribute", [(j,) for j in range(len(shape))], foreseen.category_errors),
    ):
        found = table_floor(shape, tables, epsilon=survey.epsilon) if survey.epsilon <= MAX_PROVED else None
        known.append(_beside(asked, crowd, devices * float((errors**2).sum()), found))
    return known


def _beside(
    asked: str, crowd: str, total: float | None, found: Floor | None, *, uniform: bool = True
) -> Distance:
    error, proof = (None, None) if found is None else (found.error, found.proof)
    return Distance(asked, crowd, total, error, proof, uniform)


def _totals(workload: Workload, channel: Channel) -> dict[str, float]:
    """Return n times the summed variance of every quantity that a channel shows."""
    devices, quantity = workload.devices, workload.objective.quantity
    by_category = channel.inputs < workload.inputs
    asked = by_category_alone(workload) if by_category else workload
    foreseen = workload_estimator(channel, asked).expected_estimate(asked.prior, devices)
    found: dict[str, float] = {}
    if not by_category:
        found["value"] = devices * _sum(foreseen.value_errors[:-1] ** 2)
    if len(workload.sizes) > 2 or quantity in ("category", "both"):
        found["category"] = devices * _sum(foreseen.category_errors[:-1] ** 2)
    if quantity == "both":
        weights, k, m = Floors(workload).weights("both"), workload.inputs - 1, len(workload.sizes) - 1
        values = found.get("value", math.inf)
        found["both"] = weights.value * values / k + weights.category * found["category"] / m
    if by_category or workload.points is None:
        return found
    if foreseen.mean_error is not None:
        found["mean"] = devices * float(foreseen.mean_error) ** 2
    if workload.inputs <= MAX_CURVE and (channel.shows_curve or quantity in ("cdf", "quantiles")):
        order = np.argsort(workload.points[:-1], kind="stable")
        covariance = devices * foreseen.covariance()[np.ix_(order, order)]
        curve = np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1))[:-1]
        low, high = middle(workload.inputs - 1)
        found["cdf"] = _sum(curve)
        if quantity == "quantiles":
            found["quantiles"] = _sum(curve[low - 1 : high])
        found["ranges"] = _sum(range_gram(workload.inputs - 1) * covariance)
    return found


def _sum(variances: NDArray[np.float64]) -> float:
    """Return the sum; inf where one of them is hidden."""
    return math.inf if np.isnan(variances).any() else float(variances.sum())
