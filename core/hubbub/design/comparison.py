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
from hubbub.design.expected_error import Accuracy, Errors, accuracy, foresee, report_bytes
from hubbub.design.workload import Objective, Question
from hubbub.errors import ParameterError
from hubbub.mechanisms.boosted.kernels import KernelName
from hubbub.mechanisms.boosted.search import least
from hubbub.mechanisms.participation import with_cover

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


Measure = Callable[[str, Parameters, Question, Channel], Candidate]


def compare(question: Question) -> list[Candidate]:
    """Gives every mechanism that fits, least cost first, then those that do not answer or fit.

    Costs that differ by less than 0.1 % keep the order of simplicity: randomised response before what needs
    more explaining.
    """
    found = list(_grid(question) if question.kind == "grid" else _labels(question))
    best = min((candidate.cost for candidate in found), default=math.inf)
    ties = [candidate for candidate in found if candidate.cost <= best * (1.0 + TIE)]
    rest = sorted(
        (candidate for candidate in found if candidate not in ties),
        key=lambda candidate: (bool(candidate.refusal), candidate.cost),
    )
    return ties + rest


def choose(question: Question) -> Candidate:
    """Gives the mechanism of least cost.

    Raises:
        ParameterError: If none answers the question.
    """
    return answered(question, compare(question))[0]


def answered(question: Question, found: list[Candidate]) -> list[Candidate]:
    """Gives what was compared back, if the first of it answers the question.

    Raises:
        ParameterError: If it does not, hence none does.
    """
    first = found[0]
    if not math.isfinite(first.cost):
        why = f": {first.refusal}" if first.refusal else ""
        raise ParameterError(f"no mechanism can show the {question.objective.quantity} of this question{why}")
    return found


def measured(mechanism: str, parameters: Parameters, question: Question, channel: Channel) -> Candidate:
    """Gives a compiled channel as a candidate."""
    known = accuracy(channel, question)
    return Candidate(mechanism, parameters, channel, known, known.errors.cost(question))


def measured_by_category(
    mechanism: str, parameters: Parameters, question: Question, channel: Channel
) -> Candidate:
    """Gives a channel whose inputs are the question's categories as a candidate; it hides all values."""
    crowd = np.asarray(np.bincount(question.category_of, weights=question.prior), dtype=np.float64)
    asked = replace(
        question,
        category_of=np.arange(len(crowd)),
        prior=crowd,
        points=None,
        objective=Objective("category"),
    )
    known = accuracy(channel, asked)
    hidden = None if question.points is None else math.inf
    errors = Errors(math.inf, known.errors.category, hidden, hidden)
    return Candidate(mechanism, parameters, channel, replace(known, errors=errors), errors.cost(question))


def boost_curve(question: Question, boosts: list[float]) -> list[Candidate]:
    """Gives PB-GRR at each boost_epsilon."""
    return [
        measured("pbgrr", {"boost_epsilon": boost}, question, _covered(question, _pbgrr(question, boost)))
        for boost in boosts
    ]


def _labels(question: Question) -> Iterator[Candidate]:
    inputs, sizes, epsilon = question.inputs, question.sizes, question.epsilon
    yield _tried("grr", {}, question, lambda: mechanisms.grr(inputs, epsilon=epsilon))
    grouped = len(sizes) > 2 and max(sizes) > 1
    if grouped:
        for name, build in (("grr", mechanisms.grr), ("subset", mechanisms.subset_selection)):
            yield _tried(
                name,
                {"reading": "category"},
                question,
                lambda build=build: build(len(sizes), epsilon=epsilon),  # type: ignore[misc]  # binds the loop's
                measured_by_category,
            )
        yield _hashed(question, len(sizes), {"reading": "category"}, measured_by_category)
        if question.objective.quantity != "category":  # hiding the value is then the best boost
            yield _boosted_response(question)
            yield from (_level_sampling(question, oracles) for oracles in ("grr", "best"))
    yield from _sets_and_hashes(question)


def _sets_and_hashes(question: Question) -> Iterator[Candidate]:
    """What knows no order of the inputs, beside randomised response."""
    inputs, epsilon = question.inputs, question.epsilon
    yield _tried("subset", {}, question, lambda: mechanisms.subset_selection(inputs, epsilon=epsilon))
    yield _tried(
        "unary", {"variant": "optimised"}, question, lambda: mechanisms.unary(inputs, epsilon=epsilon)
    )
    yield _tried(
        "unary",
        {"variant": "symmetric"},
        question,
        lambda: mechanisms.unary(inputs, epsilon=epsilon, variant="symmetric"),
    )
    yield _hashed(question, inputs, {}, measured)


def _hashed(question: Question, inputs: int, parameters: Parameters, measure: Measure) -> Candidate:
    found = _tried(
        "local_hashing",
        parameters,
        question,
        lambda: mechanisms.local_hashing(inputs, epsilon=question.epsilon),
        measure,
    )
    if isinstance(found.channel, mechanisms.LocalHashing):
        parameters["buckets"] = found.channel.pool.buckets
    return found


def _pbgrr(question: Question, boost: float) -> Channel:
    return mechanisms.pbgrr(question.sizes, epsilon=question.epsilon, boost_epsilon=boost)


def _boosted_response(question: Question) -> Candidate:
    epsilon = question.epsilon
    boost = least(
        lambda boost: _cost(question, lambda: _pbgrr(question, boost)), epsilon * LEAST_SHARE, epsilon
    )
    return _tried("pbgrr", {"boost_epsilon": boost}, question, lambda: _pbgrr(question, boost))


def _level_sampling(question: Question, oracles: str) -> Candidate:
    def build(share: float) -> Channel:
        return mechanisms.levels(
            question.sizes,
            epsilon=question.epsilon,
            shares=[share, 1.0 - share],
            oracles="best" if oracles == "best" else "grr",
        )

    share = least(lambda share: _cost(question, lambda: build(share)), LEAST_SHARE, 1.0 - LEAST_SHARE)
    parameters: Parameters = {"category_share": share, "oracles": oracles}
    return _tried("levels", parameters, question, lambda: build(share))


def _grid(question: Question) -> Iterator[Candidate]:
    points, epsilon = question.inputs - 1, question.epsilon
    for kernel in GRID_KERNELS:
        yield _boosted_noise(question, kernel)
    for name, build in (
        ("square_wave", mechanisms.square_wave),
        ("hybrid", mechanisms.hybrid),
        ("piecewise", mechanisms.piecewise),
        ("duchi", mechanisms.duchi),
    ):
        yield _tried(name, {"points": points}, question, _bound(build, points, epsilon))
    yield _tried("grr", {"points": points}, question, lambda: mechanisms.grr(points + 1, epsilon=epsilon))
    for candidate in _sets_and_hashes(question):
        candidate.parameters["points"] = points
        yield candidate
    within = question.objective.within
    if within is not None and question.points is not None:
        step = float(question.points[points - 1] - question.points[0]) / (points - 1)
        yield _tried(
            "r2dp",
            {"points": points, "within": within},
            question,
            lambda: mechanisms.r2dp(points, epsilon=epsilon, within=within / step, missing="input"),
        )


def _bound(build: Callable[..., Channel], points: int, epsilon: float) -> Callable[[], Channel]:
    return lambda: build(points, epsilon=epsilon, missing="input")


def _boosted_noise(question: Question, kernel: KernelName) -> Candidate:
    """Boosted noise with its split searched for the mean, its half width for the objective."""
    points, epsilon = question.inputs - 1, question.epsilon

    def build(width: float | None) -> mechanisms.Boosted:
        region = mechanisms.Absolute(width)
        return mechanisms.boosted(points, epsilon=epsilon, kernel=kernel, region=region, missing="input")

    width: float | None = None
    if question.objective.within is not None:
        return _nearest_noise(question, kernel, question.objective.within)
    if question.objective.quantity != "mean":
        costs: dict[int, float] = {}

        def judge(steps: int) -> float:
            if steps not in costs:
                costs[steps] = _cost(question, lambda: build(float(steps)))
            return costs[steps]

        stride = max(1, (points - 1) // 8)
        best = min(range(0, points, stride), key=judge)
        while stride > 1:
            stride = (stride + 1) // 2
            best = min((w for w in (best - stride, best, best + stride) if 0 <= w < points), key=judge)
        width = float(best)
    parameters: Parameters = {"kernel": kernel, "points": points}
    found = _tried("boosted", parameters, question, lambda: build(width))
    if found.channel is not None and question.points is not None:
        design = build(width).design
        if isinstance(design.region, mechanisms.Absolute):
            step = (question.points[points - 1] - question.points[0]) / (points - 1)
            found.parameters["half_width"] = float(design.region.width * step)
    return found


def _nearest_noise(question: Question, kernel: KernelName, within: float) -> Candidate:
    """Boosted noise with its split searched for reports near their value."""
    points, epsilon = question.inputs - 1, question.epsilon
    parameters: Parameters = {"kernel": kernel, "points": points}

    def build() -> Channel:
        assert question.points is not None  # noqa: S101 - a question about hits has numbers
        step = float(question.points[points - 1] - question.points[0]) / (points - 1)
        width = float(math.floor(within / step * (1.0 + 1e-9)))
        region = mechanisms.Absolute(width)
        found = mechanisms.boosted(
            points, epsilon=epsilon, kernel=kernel, region=region, missing="input", aim="hits"
        )
        parameters["half_width"] = width * step
        if kernel == "uniform":  # its boost is whatever epsilon allows
            return found
        parameters["boost"] = found.design.boost
        return mechanisms.boosted(
            points, epsilon=epsilon, kernel=kernel, region=region, missing="input", boost=found.design.boost
        )

    return _tried("boosted", parameters, question, build)


def _tried(
    mechanism: str,
    parameters: Parameters,
    question: Question,
    build: Callable[[], Channel],
    measure: Measure = measured,
) -> Candidate:
    try:
        channel = _covered(question, build())
        size = report_bytes(channel)
        if size > MAX_REPORT_BYTES:
            raise ParameterError(f"a report must have at most {MAX_REPORT_BYTES} bytes, got {size}")
        return measure(mechanism, parameters, question, channel)
    except ParameterError as error:
        return Candidate(mechanism, parameters, None, None, math.inf, str(error))


def _covered(question: Question, channel: Channel) -> Channel:
    return with_cover(channel, participation=Fraction(repr(question.participation)))


def _cost(question: Question, build: Callable[[], Channel]) -> float:
    try:
        return foresee(_covered(question, build()), question).cost(question)
    except ParameterError:
        return math.inf


def _text(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
