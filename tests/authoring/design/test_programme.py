"""A programme of surveys at its least cost: beside closed forms, a random search and simulated rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hubbub_authoring.design import PlannedSurvey, WantedSurvey, planned, widened

EXAMPLE = ((3, 0.3, 52, 0.02), (12, 0.1, 52, 0.01), (91, 0.02, 12, 0.01), (12, 0.1, 365, 0.02))
"""Inputs, share of the cell, rounds, standard error wanted."""


def law(inputs: int, f: float) -> Callable[[float], float]:
    """n times the variance of a cell of share f, the best of randomised response and all subset sizes."""

    def variance(epsilon: float) -> float:
        a, found = math.exp(epsilon), []
        for size in range(1, inputs // 2 + 1):
            p = size * a / (size * a + inputs - size)
            q = (p * (size - 1) + (1 - p) * size) / (inputs - 1)
            found.append((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
        return min(found)

    return variance


def example(cap: float) -> list[WantedSurvey]:
    return [
        WantedSurvey(str(i), rounds, error, cap, law(inputs, f), f * (1 - f))
        for i, (inputs, f, rounds, error) in enumerate(EXAMPLE)
    ]


def on_average(surveys: list[WantedSurvey], devices: int) -> float:
    """The spending of a device where rotations need not be whole."""
    total = 0.0
    for each in surveys:
        plan = planned(each, devices)
        assert plan is not None
        total += plan.epsilon * each.answers(plan.epsilon, devices)
    return total


@pytest.mark.parametrize(
    ("devices", "cap", "cost"),
    [
        (100_000, 1.0, 51.2),
        (100_000, 2.0, 21.6),
        (100_000, 4.0, 9.01),
        (20_000, 2.0, 106.0),
        (20_000, 4.0, 44.3),
        (1_000_000, 1.0, 5.14),
        (1_000_000, 2.0, 2.17),
        (1_000_000, 4.0, 0.905),
    ],
)
def test_the_least_budget_of_four_surveys(devices: int, cap: float, cost: float) -> None:
    assert float(f"{on_average(example(cap), devices):.3g}") == cost


def test_rotations_are_rounded_down_so_that_no_error_is_above_the_one_wanted() -> None:
    plans = [plan for each in example(2.0) if (plan := planned(each, 100_000)) is not None]
    assert [plan.rotation for plan in plans] == [86, 15, 13, 61]
    assert sum(plan.spent for plan in plans) == pytest.approx(21.96, abs=0.005)
    assert [plan.reserved for plan in plans] == [2.0, 8.0, 2.0, 12.0]
    for plan in plans:
        assert plan.error <= plan.wanted.error
        assert replace(plan, rotation=plan.rotation + 1).error > plan.wanted.error


def test_what_no_epsilon_allowed_reaches_has_no_plan() -> None:
    """Answers in every round are the most there are: then all of the error is noise."""
    for each in (*example(1.0), *example(2.0)):
        reached = each.variance(each.most_epsilon) / 20_000 <= each.error**2
        assert (planned(each, 20_000) is not None) == reached
    assert None in [planned(each, 20_000) for each in example(1.0)]


def test_no_epsilon_and_no_number_of_answers_costs_less() -> None:
    """20,000 draws of epsilon and answers a life that reach the wanted error, for each survey."""
    draws = np.random.default_rng(31)
    for each in example(4.0):
        plan = planned(each, 100_000)
        assert plan is not None
        least = plan.epsilon * each.answers(plan.epsilon, 100_000)
        for epsilon, k in zip(
            draws.uniform(0.3, 4.0, 20_000), draws.uniform(0.1, each.rounds, 20_000), strict=True
        ):
            if epsilon * k >= least:
                continue
            s, part = each.spread, k / each.rounds
            reached = (each.variance(epsilon) + s * (1 - part)) / part / 100_000
            assert reached > each.error**2 * 0.998


def test_an_epsilon_with_too_many_answers_is_left_for_the_next_that_has_few_enough() -> None:
    """At the epsilon of least cost 14 answers in 12 rounds would be needed."""
    variance = law(3, 0.5)
    free = planned(WantedSurvey("x", 12, 0.1, 8.0, variance, 0.25), 10_000)
    assert free is not None
    cheap = free.epsilon
    error = math.sqrt((variance(cheap) / 10_000) * 0.8)
    bound = planned(WantedSurvey("x", 12, error, 8.0, variance, 0.25), 10_000)
    assert bound is not None and bound.rotation == 1
    assert bound.epsilon > cheap and bound.wanted.answers(bound.epsilon - 0.1, 10_000) > 12


def test_errors_are_widened_until_a_budget_holds_them() -> None:
    surveys = example(2.0)
    assert widened(surveys, 100_000, 24.0) == 1.0
    factor = widened(surveys, 100_000, 12.0)
    assert factor is not None and factor > 1.0

    def reserved(by: float) -> float:
        wide = [planned(replace(each, error=each.error * by), 100_000) for each in surveys]
        return sum(math.inf if plan is None else plan.reserved for plan in wide)

    assert reserved(factor) <= 12.0 < reserved(factor / 1.002)
    assert widened(surveys, 100_000, 0.3) is None


def test_a_plan_is_a_value() -> None:
    wanted = example(1.0)[0]
    assert PlannedSurvey(wanted, 1000, 1.0, 52).reserved == 1.0
