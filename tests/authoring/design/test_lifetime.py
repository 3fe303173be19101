"""A lifetime budget spent over many rounds, beside closed forms and a simulated life."""

from __future__ import annotations

import math

import numpy as np
import pytest
from surveys import small

from hubbub.errors import ParameterError
from hubbub.survey.survey import Survey
from hubbub_authoring.design import LifetimePlan, Objective, Workload

DEVICES = 10_000


def workload(inputs: int, quantity: str = "value", *, rows: str = "") -> Workload:
    text = small("steps", f'type = "integer"\nlow = 0\nhigh = {inputs - 2}') + rows
    return Workload.of_survey(Survey.parse(text), objective=Objective(quantity))


def subset(inputs: int, epsilon: float) -> float:
    """n Var of a cell of share 1/(K - 1) by subset selection, the better of two sizes."""
    a, f, found = math.exp(epsilon), 1 / (inputs - 1), []
    near = math.floor(inputs / (a + 1))
    for size in (near, near + 1):
        p = size * a / (size * a + inputs - size)
        q = (p * (size - 1) + (1 - p) * size) / (inputs - 1)
        found.append((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
    return min(found)


@pytest.mark.parametrize("rotation", [1, 6, 12])
def test_a_way_has_the_noise_of_its_devices_and_the_choice_of_them(rotation: int) -> None:
    plan = LifetimePlan(workload(91), rounds=12, budget=0.5, devices=DEVICES)
    found, f = plan.of(rotation), 1 / 90
    assert (found.answers, found.epsilon) == (12 // rotation, 0.5 / (12 // rotation))
    assert found.mechanism.mechanism == "subset"
    noise = subset(91, found.epsilon)
    variance = rotation * (noise + f * (1 - f) * (1 - 1 / rotation)) / DEVICES
    assert (found.half_interval / 1.96) ** 2 == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize(("inputs", "best"), [(3, 2.7), (12, 4.5)])
def test_the_best_epsilon_of_an_answer_is_that_of_the_least_cost(inputs: int, best: float) -> None:
    """K 3 and 12 (f 1/2 and 1/11): 2.7 and 4.5 by scanning e (V + s) for randomised response and subsets."""
    plan = LifetimePlan(workload(inputs), rounds=52, budget=1.0, devices=DEVICES)
    assert plan.best_epsilon() == best


def test_small_budgets_are_best_spent_at_once_and_large_ones_in_several_answers() -> None:
    """K 3: one answer at 1, two at 4 and three at 8, over 52 rounds."""
    for budget, answers in ((1.0, 1), (4.0, 2), (8.0, 3)):
        table = LifetimePlan(workload(3), rounds=52, budget=budget, devices=DEVICES).table()
        assert [each.answers for each in table] == [52, 11, 8, 6, 4, 3, 2, 1]
        assert min(table, key=lambda each: each.half_interval).answers == answers


def test_a_life_of_one_round_has_one_way() -> None:
    (only,) = LifetimePlan(workload(3), rounds=1, budget=1.0, devices=DEVICES).table()
    assert (only.rotation, only.answers, only.devices) == (1, 1, DEVICES)


@pytest.mark.parametrize("quantity", ["mean", "category"])
def test_the_choice_of_devices_is_simulated(quantity: str) -> None:
    """The variance of 10,000 chosen tenths of 600 people, without noise: within 5 standard errors, 7 %."""
    rows = '[[category]]\nname = "few"\nvalues = [0, 1]\n[[category]]\nname = "many"\nrange = [2, 5]\n'
    asked = workload(7, quantity, rows=rows)
    plan = LifetimePlan(asked, rounds=10, budget=9.0, devices=600)
    people = np.repeat(np.arange(6.0), 100)
    told = people if quantity == "mean" else (people < 2).astype(float)
    order = np.random.default_rng(9).random((10_000, 600)).argpartition(60, axis=1)[:, :60]
    chosen = told[order].mean(axis=1).var()
    every, tenth = plan.of(1), plan.of(10)
    noise = 1.96**2 * tenth.mechanism.cost * 10 / 600
    assert (tenth.half_interval**2 - noise) / 1.96**2 == pytest.approx(chosen, rel=0.07)
    assert (every.half_interval / 1.96) ** 2 == pytest.approx(every.mechanism.cost / 600)


def test_an_objective_that_is_no_share_and_no_mean_is_refused() -> None:
    with pytest.raises(ParameterError, match="value, category, both or mean over time, got cdf"):
        LifetimePlan(workload(7, "cdf"), rounds=12, budget=1.0, devices=DEVICES)
