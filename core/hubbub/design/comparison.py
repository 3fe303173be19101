"""All mechanisms that fit a question, each tuned for its objective, compared by exact variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from hubbub import mechanisms
from hubbub.design.accuracy import Accuracy, accuracy
from hubbub.design.question import Question
from hubbub.errors import ParameterError
from hubbub.finite import FiniteChannel
from hubbub.mechanisms.boost_search import least

LEAST_BOOST: Final = 1 / 64
"""The smallest share of epsilon tried as boost_epsilon: below it values are as good as hidden."""

TIE: Final = 1e-3
"""Costs within this share of the least count as equal; the mechanism listed first is then taken."""

Parameters = dict[str, float | int | str]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One mechanism with its parameters, compiled and measured; or why it does not fit.

    Attributes:
        mechanism: Its name in a survey file.
        parameters: Its other keys in a survey file.
        channel: Over the question's inputs; None where it does not fit.
        accuracy: What it makes known; None where it does not fit.
        cost: The objective's value; inf where the mechanism cannot answer it.
        refusal: Why it does not fit, or "".
    """

    mechanism: str
    parameters: Parameters
    channel: FiniteChannel | None
    accuracy: Accuracy | None
    cost: float
    refusal: str = ""

    @property
    def label(self) -> str:
        """The mechanism and its parameters, as people read them."""
        inside = ", ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in self.parameters.items()
        )
        return f"{self.mechanism} ({inside})" if inside else self.mechanism


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
    first = compare(question)[0]
    if not math.isfinite(first.cost):
        raise ParameterError(f"no mechanism can show the {question.objective.quantity} of this question")
    return first


def measured(mechanism: str, parameters: Parameters, question: Question, channel: FiniteChannel) -> Candidate:
    """Gives a compiled channel as a candidate."""
    known = accuracy(channel, question)
    return Candidate(mechanism, parameters, channel, known, known.cost(question.objective, question))


def boost_curve(question: Question, boosts: list[float]) -> list[Candidate]:
    """Gives PB-GRR at each boost_epsilon."""
    return [
        measured("pbgrr", {"boost_epsilon": boost}, question, _pbgrr(question, boost)) for boost in boosts
    ]


def _labels(question: Question) -> Iterator[Candidate]:
    sizes, epsilon = question.sizes, question.epsilon
    yield _tried("grr", {}, question, lambda: mechanisms.grr(question.inputs, epsilon=epsilon))
    if len(sizes) < 3 or max(sizes) == 1:
        return  # without categories of several values the rest is randomised response again
    yield _tried("grr", {"reading": "category"}, question, lambda: _pbgrr(question, 0.0))
    if question.objective.quantity == "category":
        return  # hiding the value is then the best boost, and already listed
    boost = least(
        lambda boost: _cost(question, lambda: _pbgrr(question, boost)), epsilon * LEAST_BOOST, epsilon
    )
    yield _tried("pbgrr", {"boost_epsilon": boost}, question, lambda: _pbgrr(question, boost))


def _pbgrr(question: Question, boost: float) -> FiniteChannel:
    return mechanisms.pbgrr(question.sizes, epsilon=question.epsilon, boost_epsilon=boost)


def _grid(question: Question) -> Iterator[Candidate]:
    points = question.inputs - 1
    for kernel in ("uniform", "laplace"):
        yield _tried(
            "boosted",
            {"kernel": kernel, "points": points},
            question,
            lambda kernel=kernel: mechanisms.boosted(  # type: ignore[misc]  # a default binds the loop's value
                points, epsilon=question.epsilon, kernel=kernel, missing="input"
            ),
        )
    yield _tried(
        "grr", {"points": points}, question, lambda: mechanisms.grr(points + 1, epsilon=question.epsilon)
    )


def _tried(
    mechanism: str, parameters: Parameters, question: Question, build: Callable[[], FiniteChannel]
) -> Candidate:
    try:
        channel = build()
        return measured(mechanism, parameters, question, channel)
    except ParameterError as error:
        return Candidate(mechanism, parameters, None, None, math.inf, str(error))


def _cost(question: Question, build: Callable[[], FiniteChannel]) -> float:
    try:
        return accuracy(build(), question).cost(question.objective, question)
    except ParameterError:
        return math.inf
