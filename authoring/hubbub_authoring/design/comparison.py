"""All mechanisms that fit a workload, each tuned for its objective, compared by exact variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from hubbub.channels import Channel
from hubbub.errors import ParameterError
from hubbub.mechanisms import with_dummy_reports
from hubbub_authoring.design.expected_error import Accuracy, Errors, accuracy, expected_error, report_bytes
from hubbub_authoring.mechanisms.mechanism import Parameters, Trial
from hubbub_authoring.mechanisms.pbgrr import pbgrr
from hubbub_authoring.mechanisms.registry import mechanisms_for
from hubbub_authoring.mechanisms.workload import Objective, Workload

Told: TypeAlias = Callable[[str, int, int], None]
"""A listener that hears which mechanism comes next, its place from 1, and how many there are."""

MAX_REPORT_BYTES: Final = 1024
"""Larger reports are listed and not chosen: a phone's radio and a day of the log are paid in bytes."""

TIE: Final = 1e-3
"""Costs within this share of the least count as equal; the mechanism listed first is then taken."""


Comparison: TypeAlias = "Callable[[Workload], list[Candidate]]"
"""A way to compare mechanisms: `compare`, or a `Study`."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One mechanism with its parameters, compiled and measured; or why it does not fit.

    Attributes:
        mechanism: Its name in a survey file.
        parameters: Its other keys in a survey file.
        channel: Over the workload's inputs, or over its categories where these are asked for; None where it
            does not fit.
        accuracy: What it makes known; None where it does not fit.
        cost: The objective's value; inf where the mechanism cannot answer it, or is refused.
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


class Study:
    """The comparisons of one run of a command, each made once; it is called as `compare` is.

    Args:
        told: Hears which mechanism comes next, its place from 1, and how many there are.
    """

    def __init__(self, told: Told) -> None:
        self._told = told
        self._made: dict[object, list[Candidate]] = {}

    def __call__(self, workload: Workload) -> list[Candidate]:
        """Return what `compare` returns, of a question that was asked before without another comparison."""
        if workload.key not in self._made:
            self._made[workload.key] = compare(workload, told=self._told)
        return self._made[workload.key]


def compare(workload: Workload, *, told: Told | None = None) -> list[Candidate]:
    """Return every mechanism that fits, least cost first, then those that do not answer or fit.

    Costs that differ by less than 0.1 % keep the order of simplicity: randomised response before what needs
    more explaining. One whose estimates forged reports can move farther than the workload allows is refused.

    Args:
        workload: The question.
        told: See `Study`.
    """
    known = mechanisms_for("numbers" if workload.kind == "grid" else "labels")
    tried: list[tuple[int, Candidate]] = []
    for place, (name, entry) in enumerate(known.items(), start=1):
        if told is not None:
            told(name, place, len(known))
        for trial in entry.trials(workload, partial(_cost, workload)):
            tried.append((trial.simplicity, within_gain(workload, _tried(workload, name, trial))))
    found = [candidate for _, candidate in sorted(tried, key=lambda pair: pair[0])]
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
        ParameterError: If none answers the workload.
    """
    return answered(workload, compare(workload))[0]


def answered(workload: Workload, found: list[Candidate]) -> list[Candidate]:
    """Return the comparison unchanged, if its first mechanism answers the workload.

    Raises:
        ParameterError: If it does not, hence none does.
    """
    first = found[0]
    if not math.isfinite(first.cost):
        movable = [one for one in found if one.accuracy is not None and one.refusal]
        if movable and workload.max_gain is not None:
            least = min(movable, key=_gain)
            raise ParameterError(
                f"max_gain must be at least {_up(_gain(least))} for this question, which {least.label} has, "
                f"got {workload.max_gain:g}"
            )
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
    """Return a channel whose inputs are the workload's categories as a candidate; it hides all values."""
    known = accuracy(channel, by_category_alone(workload))
    hidden = None if workload.points is None else math.inf
    errors = Errors(math.inf, known.errors.category, hidden, hidden)
    return Candidate(mechanism, parameters, channel, replace(known, errors=errors), errors.cost(workload))


def by_category_alone(workload: Workload) -> Workload:
    """Return the workload whose inputs are the categories of another one, each alone in its own."""
    population = np.asarray(np.bincount(workload.category_of, weights=workload.prior), dtype=np.float64)
    return replace(
        workload,
        category_of=np.arange(len(population)),
        prior=population,
        points=None,
        objective=Objective("category"),
    )


def boost_curve(workload: Workload, boosts: list[float]) -> list[Candidate]:
    """Return PB-GRR at each boost_epsilon."""
    return [
        measured(
            "pbgrr",
            {"boost_epsilon": boost},
            workload,
            _with_participation(
                workload, pbgrr(workload.sizes, epsilon=workload.epsilon, boost_epsilon=boost)
            ),
        )
        for boost in boosts
    ]


def _tried(workload: Workload, mechanism: str, trial: Trial) -> Candidate:
    try:
        built = trial.build()
        parameters = trial.parameters if trial.told is None else trial.told(built)
        channel = _with_participation(workload, built)
        size = report_bytes(channel)
        if size > MAX_REPORT_BYTES:
            raise ParameterError(f"a report must have at most {MAX_REPORT_BYTES} bytes, got {size}")
        measure = measured_by_category if trial.by_category else measured
        return measure(mechanism, dict(parameters), workload, channel)
    except ParameterError as error:
        return Candidate(mechanism, dict(trial.parameters), None, None, math.inf, str(error))


def within_gain(workload: Workload, found: Candidate) -> Candidate:
    """Return the candidate, refused if forged reports can move its estimates too far."""
    most = workload.max_gain
    if most is None or not math.isfinite(found.cost) or _gain(found) <= most:
        return found
    rule = f"1 % of forged reports must move a share by at most {most:g} points, got {_up(_gain(found))}"
    return replace(found, cost=math.inf, refusal=rule)


def _gain(found: Candidate) -> float:
    return math.inf if found.accuracy is None else found.accuracy.gain


def _up(number: float) -> str:
    """Return a number with four digits, rounded up."""
    scale = 10.0 ** (3 - math.floor(math.log10(number)))
    return f"{math.ceil(number * scale) / scale:g}"


def _with_participation(workload: Workload, channel: Channel) -> Channel:
    return with_dummy_reports(channel, participation=Fraction(repr(workload.participation)))


def _cost(workload: Workload, build: Callable[[], Channel]) -> float:
    try:
        return expected_error(_with_participation(workload, build()), workload).cost(workload)
    except ParameterError:
        return math.inf


def _text(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
