"""The use of a lifetime budget over many rounds, and the least budget for several surveys at once.

A device that answers k of T rounds spends E/k on each. With N devices a round has n = N k/T of them, another
random part each time, so the variance of a share about that of all N is

    (T/k) [ V(E/k) + s (1 - k/T) ] / N

where V(e) is n times the variance of the noise at epsilon e, and s = f (1 - f) that of a person's value: who
is asked differs, too. k = T is the budget cut into T parts, k = 1 a panel in which everybody answers once.

Of several surveys every round is known as well as wanted. A survey of R rounds asks N devices, wants a
standard error se in each round, and may spend up to some epsilon on an answer. With k answers of epsilon e in
a life, a round's variance is (R/k) [V(e) + s (1 - k/R)] / N. So it is as wanted with

    k = R (V(e) + s) / (N se^2 + s)

and its cost k e is least where e (V(e) + s) is, whatever is wanted and whatever the other surveys cost. The
rotation is R/k, rounded down: never less accurate than wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.survey import MAX_ROTATION
from hubbub_authoring.design.comparison import Candidate
from hubbub_authoring.design.plan import INTERVAL_95, MOST_EPSILON, AccuracyPlan
from hubbub_authoring.mechanisms.workload import Workload

SHOWN: Final = (1, 2, 3, 4, 6, 8, 12)
"""Answers in a life that a table has, beside all."""

STEP: Final = 0.1
"""The fineness of the best epsilon of an answer: its cost is flat there."""

_EDGE: Final = 1e-9
"""Steps that a quotient of floats may be beside a whole number."""


@dataclass(frozen=True, slots=True)
class Spending:
    """One way of spending a lifetime budget.

    Attributes:
        answers: Of a device in its life, at most.
        rotation: Rounds of a cycle, in which a device answers one.
        epsilon: Of each answer, nats.
        devices: In a round, on average.
        half_interval: Half a 95 % interval of a round about all devices, in shares of 1 or the mean's unit;
            inf if no mechanism has one.
        mechanism: The best at this epsilon.
    """

    answers: int
    rotation: int
    epsilon: float
    devices: float
    half_interval: float
    mechanism: Candidate


class LifetimePlan:
    """The accuracy of a round over the ways of spending a lifetime budget.

    Args:
        workload: Its own epsilon and devices do not matter.
        rounds: T.
        budget: E, nats.
        devices: N, all that take part.

    Raises:
        ParameterError: If the objective is not one whose error is that of shares or of a mean.
    """

    def __init__(self, workload: Workload, *, rounds: int, budget: float, devices: int) -> None:
        self._spread, self._plan = spread(workload), AccuracyPlan(workload)
        self._rounds, self._budget, self._devices = rounds, budget, devices

    def of(self, rotation: int) -> Spending:
        """Return what a rotation buys: the budget is cut into as many parts as there are cycles."""
        answers = -(-self._rounds // rotation)
        epsilon = self._budget / answers
        n = self._devices / rotation
        found = self._plan.best(epsilon, 1)
        variance = (found.cost + self._spread * (1.0 - 1.0 / rotation)) / n
        return Spending(answers, rotation, epsilon, n, INTERVAL_95 * math.sqrt(variance), found)

    def table(self) -> list[Spending]:
        """Return the ways from an answer in every round to one in a life."""
        rotations = {1, *(-(-self._rounds // k) for k in SHOWN if k <= self._rounds)}
        return [self.of(rotation) for rotation in sorted(rotations)]

    def best_epsilon(self) -> float:
        """Return the epsilon, in steps of STEP up to MOST_EPSILON, at which a budget buys most per answer.

        That of the least e (V(e) + s): a life of many rounds has room for E/e answers. Beyond it another
        answer says more than a larger epsilon; below it one answer alone is best.
        """
        return cheapest_epsilon(lambda epsilon: self._plan.best(epsilon, 1).cost, self._spread)


def cheapest_epsilon(
    noise: Callable[[float], float], spread: float, *, least: float = STEP, most: float = MOST_EPSILON
) -> float:
    """Return the epsilon e, in steps of STEP or the most, at which e (V(e) + s) is least.

    It has one minimum: V falls and bends upward.

    Args:
        noise: V, n times the variance of the noise, by epsilon.
        spread: s.
        least: The least epsilon, a whole number of steps or the most.
        most: The most.
    """

    def at(step: int) -> float:
        return min(round(step * STEP, 1), most)

    low, high = math.ceil(least / STEP - _EDGE), math.ceil(most / STEP - _EDGE)
    while low < high:
        middle = (low + high) // 2
        here, next_one = (at(step) * (noise(at(step)) + spread) for step in (middle, middle + 1))
        low, high = (low, middle) if here <= next_one else (middle + 1, high)
    return at(low)


def spread(workload: Workload) -> float:
    """Return s, what the objective's variance is for the choice of one person, none of the noise.

    Raises:
        ParameterError: If the objective is not one whose error is that of shares or of a mean.
    """
    prior, objective = workload.prior, workload.objective
    quantity = objective.quantity
    if quantity not in ("value", "category", "both", "mean"):
        raise ParameterError(f"objective must be value, category, both or mean over time, got {quantity}")
    shares = np.bincount(workload.category_of, weights=prior)
    value, category = (float(np.mean(f[:-1] * (1.0 - f[:-1]))) for f in (prior, shares))
    if quantity == "mean":
        assert workload.points is not None  # noqa: S101 - a workload of a mean has points
        present = prior[:-1] / prior[:-1].sum()
        mean = float(present @ workload.points[:-1])
        return float(present @ (workload.points[:-1] - mean) ** 2) / float(prior[:-1].sum())
    if quantity == "both":
        weight, many = objective.category_weight, (1.0, 1.0)
        if objective.of == "totals":
            many = (workload.inputs - 1.0, len(workload.sizes) - 1.0)
        return (1.0 - weight) * many[0] * value + weight * many[1] * category
    return value if quantity == "value" else category


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
