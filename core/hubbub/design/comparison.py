"""All mechanisms that fit a question, each tuned for its objective, compared by exact variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hubbub import mechanisms
from hubbub.channels.channel import Channel
from hubbub.design.expected_error import Accuracy, Errors, accuracy, expected_error, report_bytes
from hubbub.design.workload import Objective, Workload
from hubbub.errors import ParameterError
from hubbub.mechanisms.boosted.kernels import KernelName
from hubbub.mechanisms.boosted.search import least
from hubbub.mechanisms.participation import with_dummy_reports

LEAST_SHARE: Final = 1 / 64
"""The smallest share of epsilon tried as boost_epsilon, and of reports as a level's: less is nothing."""

MAX_REPORT_BYTES: Final = 1024
"""Larger reports are listed and not chosen: a phone's radio and a day of the log are paid in bytes."""

TIE: Final = 1e-3
"""Costs within this share of the least count as equal; the mechanism listed first is then taken."""

GRID_KERNELS: Final[tuple[KernelName, ...]] = ("uniform", "laplace", "gaussian", "staircase")

Parameters = dict[str, float | int | str]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One mechanism with its parameters, compiled and measured; or why it does not fit.

    Attributes:
        mechanism: Its name in a survey file.
        parameters: Its other keys in a survey file.
        channel: Over the question's inputs, or its categories where they are what is read; None where it does
            not fit.
        accuracy: What it makes known; None where it does not fit.
        cost: The objective's value; inf where the mechanism cannot answer it.
        refusal: Why it does not fit, or "".
    """

    mechanism: str
    parameters: Parameters
    channel: Channel | None
    accuracy: Accuracy | None
    cost: float
    refusal: str = ""

    @property
    def label(self) -> str:
        """The mechanism and its parameters, as people read them."""
        inside = ", ".join(f"{key} {_text(value)}" for key, value in self.parameters.items())
        return f"{self.mechanism} ({inside})" if inside else self.mechanism


Measure = Callable[[str, Parameters, Workload, Channel], Candidate]


def compare(workload: Workload) -> list[Candidate]:
    """Return every mechanism that fits, least cost first, then those that do not answer or fit.

    Costs that differ by less than 0.1 % keep the order of simplicity: randomised response before what needs
    more explaining.
    """
    found = list(_grid(workload) if workload.kind == "grid" else _labels(workload))
    best = min((candidate.cost for candidate in found), default=math.inf)
    ties = [candidate for candidate in found if candidate.cost <= best * (1.0 + TIE)]
    rest = sorted(
        (candidate for candidate in found if candidate not in ties),
        key=lambda candidate: (bool(candidate.refusal), candidate.cost),
    )
    return ties + rest


def choose(workload: Workload) -> Candidate:
    """Return the mechanism of least cost.

    Raises:
        ParameterError: If none answers the question.
    """
    return answered(workload, compare(workload))[0]


def answered(workload: Workload, found: list[Candidate]) -> list[Candidate]:
    """Return what was compared back, if the first of it answers the question.

    Raises:
        ParameterError: If it does not, hence none does.
    """
    first = found[0]
    if not math.isfinite(first.cost):
        why = f": {first.refusal}" if first.refusal else ""
        raise ParameterError(f"no mechanism can show the {workload.objective.quantity} of this question{why}")
    return found


def measured(mechanism: str, parameters: Parameters, workload: Workload, channel: Channel) -> Candidate:
    """Return a compiled channel as a candidate."""
    known = accuracy(channel, workload)
    return Candidate(mechanism, parameters, channel, known, known.errors.cost(workload))


def measured_by_category(
    mechanism: str, parameters: Parameters, workload: Workload, channel: Channel
) -> Candidate:
    """Return a channel whose inputs are the question's categories as a candidate; it hides all values."""
    crowd = np.asarray(np.bincount(workload.category_of, weights=workload.prior), dtype=np.float64)
    asked = replace(
        workload,
        category_of=np.arange(len(crowd)),
        prior=crowd,
        points=None,
        objective=Objective("category"),
    )
    known = accuracy(channel, asked)
    hidden = None if workload.points is None else math.inf
    errors = Errors(math.inf, known.errors.category, hidden, hidden)
    return Candidate(mechanism, parameters, channel, replace(known, errors=errors), errors.cost(workload))


def boost_curve(workload: Workload, boosts: list[float]) -> list[Candidate]:
    """Return PB-GRR at each boost_epsilon."""
    return [
        measured(
            "pbgrr",
            {"boost_epsilon": boost},
            workload,
            _with_participation(workload, _pbgrr(workload, boost)),
        )
        for boost in boosts
    ]


def _labels(workload: Workload) -> Iterator[Candidate]:
    inputs, sizes, epsilon = workload.inputs, workload.sizes, workload.epsilon
    yield _tried("grr", {}, workload, lambda: mechanisms.grr(inputs, epsilon=epsilon))
    grouped = len(sizes) > 2 and max(sizes) > 1
    if grouped:
        for name, build in (("grr", mechanisms.grr), ("subset", mechanisms.subset_selection)):
            yield _tried(
                name,
                {"reading": "category"},
                workload,
                lambda build=build: build(len(sizes), epsilon=epsilon),  # type: ignore[misc]  # binds the loop's
                measured_by_category,
            )
        yield _hashed(workload, len(sizes), {"reading": "category"}, measured_by_category)
        if workload.objective.quantity != "category":  # hiding the value is then the best boost
            yield _boosted_response(workload)
            yield from (_level_sampling(workload, oracles) for oracles in ("grr", "best"))
    yield from _sets_and_hashes(workload)


def _sets_and_hashes(workload: Workload) -> Iterator[Candidate]:
    """Yield the mechanisms that know no order of the inputs, beside randomised response."""
    inputs, epsilon = workload.inputs, workload.epsilon
    yield _tried("subset", {}, workload, lambda: mechanisms.subset_selection(inputs, epsilon=epsilon))
    yield _tried(
        "unary", {"variant": "optimised"}, workload, lambda: mechanisms.unary(inputs, epsilon=epsilon)
    )
    yield _tried(
        "unary",
        {"variant": "symmetric"},
        workload,
        lambda: mechanisms.unary(inputs, epsilon=epsilon, variant="symmetric"),
    )
    yield _hashed(workload, inputs, {}, measured)


def _hashed(workload: Workload, inputs: int, parameters: Parameters, measure: Measure) -> Candidate:
    found = _tried(
        "local_hashing",
        parameters,
        workload,
        lambda: mechanisms.local_hashing(inputs, epsilon=workload.epsilon),
        measure,
    )
    if isinstance(found.channel, mechanisms.LocalHashing):
        parameters["buckets"] = found.channel.pool.buckets
    return found


def _pbgrr(workload: Workload, boost: float) -> Channel:
    return mechanisms.pbgrr(workload.sizes, epsilon=workload.epsilon, boost_epsilon=boost)


def _boosted_response(workload: Workload) -> Candidate:
    epsilon = workload.epsilon
    boost = least(
        lambda boost: _cost(workload, lambda: _pbgrr(workload, boost)), epsilon * LEAST_SHARE, epsilon
    )
    return _tried("pbgrr", {"boost_epsilon": boost}, workload, lambda: _pbgrr(workload, boost))


def _level_sampling(workload: Workload, oracles: str) -> Candidate:
    def build(share: float) -> Channel:
        return mechanisms.levels(
            workload.sizes,
            epsilon=workload.epsilon,
            shares=[share, 1.0 - share],
            oracles="best" if oracles == "best" else "grr",
        )

    share = least(lambda share: _cost(workload, lambda: build(share)), LEAST_SHARE, 1.0 - LEAST_SHARE)
    parameters: Parameters = {"category_share": share, "oracles": oracles}
    return _tried("levels", parameters, workload, lambda: build(share))


def _grid(workload: Workload) -> Iterator[Candidate]:
    points, epsilon = workload.inputs - 1, workload.epsilon
    for kernel in GRID_KERNELS:
        yield _boosted_noise(workload, kernel)
    for name, build in (
        ("square_wave", mechanisms.square_wave),
        ("hybrid", mechanisms.hybrid),
        ("piecewise", mechanisms.piecewise),
        ("duchi", mechanisms.duchi),
    ):
        yield _tried(name, {"points": points}, workload, _bound(build, points, epsilon))
    yield _tried("grr", {"points": points}, workload, lambda: mechanisms.grr(points + 1, epsilon=epsilon))
    for candidate in _sets_and_hashes(workload):
        candidate.parameters["points"] = points
        yield candidate
    within = workload.objective.within
    if within is not None and workload.points is not None:
        step = float(workload.points[points - 1] - workload.points[0]) / (points - 1)
        yield _tried(
            "r2dp",
            {"points": points, "within": within},
            workload,
            lambda: mechanisms.r2dp(points, epsilon=epsilon, within=within / step, missing="input"),
        )


def _bound(build: Callable[..., Channel], points: int, epsilon: float) -> Callable[[], Channel]:
    return lambda: build(points, epsilon=epsilon, missing="input")


def _boosted_noise(workload: Workload, kernel: KernelName) -> Candidate:
    """Return boosted noise with its split searched for the mean, its half width for the objective."""
    points, epsilon = workload.inputs - 1, workload.epsilon

    def build(width: float | None) -> mechanisms.Boosted:
        region = mechanisms.Absolute(width)
        return mechanisms.boosted(points, epsilon=epsilon, kernel=kernel, region=region, missing="input")

    width: float | None = None
    if workload.objective.within is not None:
        return _nearest_noise(workload, kernel, workload.objective.within)
    if workload.objective.quantity != "mean":
        costs: dict[int, float] = {}

        def judge(steps: int) -> float:
            if steps not in costs:
                costs[steps] = _cost(workload, lambda: build(float(steps)))
            return costs[steps]

        stride = max(1, (points - 1) // 8)
        best = min(range(0, points, stride), key=judge)
        while stride > 1:
            stride = (stride + 1) // 2
            best = min((w for w in (best - stride, best, best + stride) if 0 <= w < points), key=judge)
        width = float(best)
    parameters: Parameters = {"kernel": kernel, "points": points}
    found = _tried("boosted", parameters, workload, lambda: build(width))
    if found.channel is not None and workload.points is not None:
        design = build(width).design
        if isinstance(design.region, mechanisms.Absolute):
            step = (workload.points[points - 1] - workload.points[0]) / (points - 1)
            found.parameters["half_width"] = float(design.region.width * step)
    return found


def _nearest_noise(workload: Workload, kernel: KernelName, within: float) -> Candidate:
    """Return boosted noise with its split searched for reports near their value."""
    points, epsilon = workload.inputs - 1, workload.epsilon
    parameters: Parameters = {"kernel": kernel, "points": points}

    def build() -> Channel:
        assert workload.points is not None  # noqa: S101 - a question about hits has numbers
        step = float(workload.points[points - 1] - workload.points[0]) / (points - 1)
        width = float(math.floor(within / step * (1.0 + 1e-9)))
        region = mechanisms.Absolute(width)
        found = mechanisms.boosted(
            points, epsilon=epsilon, kernel=kernel, region=region, missing="input", objective="hits"
        )
        parameters["half_width"] = width * step
        if kernel == "uniform":  # its boost is whatever epsilon allows
            return found
        parameters["boost"] = found.design.boost
        return mechanisms.boosted(
            points, epsilon=epsilon, kernel=kernel, region=region, missing="input", boost=found.design.boost
        )

    return _tried("boosted", parameters, workload, build)


def _tried(
    mechanism: str,
    parameters: Parameters,
    workload: Workload,
    build: Callable[[], Channel],
    measure: Measure = measured,
) -> Candidate:
    try:
        channel = _with_participation(workload, build())
        size = report_bytes(channel)
        if size > MAX_REPORT_BYTES:
            raise ParameterError(f"a report must have at most {MAX_REPORT_BYTES} bytes, got {size}")
        return measure(mechanism, parameters, workload, channel)
    except ParameterError as error:
        return Candidate(mechanism, parameters, None, None, math.inf, str(error))


def _with_participation(workload: Workload, channel: Channel) -> Channel:
    return with_dummy_reports(channel, participation=Fraction(repr(workload.participation)))


def _cost(workload: Workload, build: Callable[[], Channel]) -> float:
    try:
        return expected_error(_with_participation(workload, build()), workload).cost(workload)
    except ParameterError:
        return math.inf


def _text(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
