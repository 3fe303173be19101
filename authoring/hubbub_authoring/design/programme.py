"""The least budget for several surveys at once, so that every round of each is known as well as wanted.

A survey of R rounds asks N devices, wants a standard error se in each round, and may spend up to some epsilon
on an answer. With k answers of epsilon e in a life, a round's variance is (R/k) [V(e) + s (1 - k/R)] / N, as
`lifetime` has it. So it is as wanted with

    k = R (V(e) + s) / (N se^2 + s)

and its cost k e is least where e (V(e) + s) is, whatever is wanted and whatever the other surveys cost. The
rotation is R/k, rounded down: never less accurate than wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from hubbub.survey import MAX_ROTATION
from hubbub_authoring.design.lifetime import STEP, cheapest_epsilon

_WIDEST: Final = 2.0**20
"""By how much errors may grow at most."""

_FINE: Final = 1.001
"""The fineness of that growth."""


@dataclass(frozen=True, slots=True)
class WantedSurvey:
    """One survey of a programme.

    Attributes:
        name: Its id.
        rounds: R.
        error: The standard error wanted in each round, in shares of 1 or the mean's unit, > 0.
        most_epsilon: The most that an answer may cost, nats.
        variance: n times the variance of the noise of n answers, by epsilon: V(e); inf where it hides all.
        spread: s, what the variance is for the choice of one person.
    """

    name: str
    rounds: int
    error: float
    most_epsilon: float
    variance: Callable[[float], float]
    spread: float

    def answers(self, epsilon: float, devices: int) -> float:
        """Return k, the answers in a life that are needed at an epsilon, on average; inf if none are enough.

        Args:
            epsilon: Of an answer, nats.
            devices: N.
        """
        needed = self.variance(epsilon) + self.spread
        return self.rounds * needed / (devices * self.error**2 + self.spread)


@dataclass(frozen=True, slots=True)
class PlannedSurvey:
    """A survey of a programme with the epsilon and the rotation that cost least.

    Attributes:
        wanted: What was wanted of it.
        devices: N.
        epsilon: Of each answer, nats.
        rotation: Rounds of a cycle, in which a device answers one.
    """

    wanted: WantedSurvey
    devices: int
    epsilon: float
    rotation: int

    @property
    def error(self) -> float:
        """The standard error of a round, in the unit of the one wanted and at most that."""
        noise, spread = self.wanted.variance(self.epsilon), self.wanted.spread
        return math.sqrt((noise + spread * (1.0 - 1.0 / self.rotation)) * self.rotation / self.devices)

    @property
    def spent(self) -> float:
        """The loss of a device over all rounds, nats, on average: rounds / rotation answers."""
        return self.epsilon * self.wanted.rounds / self.rotation

    @property
    def reserved(self) -> float:
        """The most that a device may lose over all rounds, nats, which its budget must hold."""
        return self.epsilon * -(-self.wanted.rounds // self.rotation)


def planned(survey: WantedSurvey, devices: int) -> PlannedSurvey | None:
    """Return a survey with its epsilon and rotation of least cost; None if no epsilon allowed is enough.

    Where the least cost lies at an epsilon that needs more answers than there are rounds, the least epsilon
    with as many as there are is the nearest to it.

    Args:
        survey: The survey.
        devices: N, all that take part.
    """
    most = survey.most_epsilon
    low, high = 1, math.ceil(most / STEP)
    if survey.answers(most, devices) > survey.rounds:
        return None
    while low < high:  # the first step whose answers are few enough, as they fall with epsilon
        middle = (low + high) // 2
        enough = survey.answers(round(middle * STEP, 1), devices) <= survey.rounds
        low, high = (low, middle) if enough else (middle + 1, high)
    least = min(round(low * STEP, 1), most)
    epsilon = cheapest_epsilon(survey.variance, survey.spread, least=least, most=most)
    rotation = math.floor(survey.rounds / survey.answers(epsilon, devices))
    return PlannedSurvey(survey, devices, epsilon, min(MAX_ROTATION, rotation))


def widened(surveys: Iterable[WantedSurvey], devices: int, budget: float) -> float | None:
    """Return by how much all wanted errors must grow for a budget to hold a programme, None if it never does.

    Args:
        surveys: The surveys.
        devices: N.
        budget: Lifetime epsilon, nats.

    Returns:
        A factor above 1, to a part in a thousand, rounded up; 1 if the budget holds it as it is.
    """
    surveys = tuple(surveys)

    def fits(factor: float) -> bool:
        found = [planned(replace(each, error=each.error * factor), devices) for each in surveys]
        return sum(math.inf if each is None else each.reserved for each in found) <= budget

    if fits(1.0):
        return 1.0
    low, high = 1.0, 2.0
    while not fits(high):
        low, high = high, 2.0 * high
        if high > _WIDEST:
            return None
    while high > low * _FINE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
