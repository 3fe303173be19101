"""The accuracy over epsilon and devices: what is scaled agrees with a comparison at these very numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub_authoring.design import AccuracyPlan, Objective, Workload, compare

HALF_95 = 1.959963984540054


def asked(quantity: str, devices: int = 20_000) -> Workload:
    category_of = np.array([0] * 6 + [1] * 6 + [2])
    points = np.append(np.arange(12.0), np.nan)
    within = 1.0 if quantity == "hit" else None
    return Workload.uniform(
        kind="labels",
        epsilon=1.0,
        category_of=category_of,
        devices=devices,
        points=points,
        objective=Objective(quantity, within=within),
    )


def anew(workload: Workload, epsilon: float, devices: int) -> float:
    """Return half a 95 % interval, from a comparison at these very numbers."""
    return float(
        HALF_95 * min(c.cost for c in compare(replace(workload, epsilon=epsilon, devices=devices))) ** 0.5
    )


@pytest.mark.parametrize("quantity", ["value", "category", "both", "mean", "cdf", "shape"])
def test_an_error_is_that_of_a_comparison_at_these_very_numbers(quantity: str) -> None:
    workload = asked(quantity)
    plan = AccuracyPlan(workload)
    for epsilon, devices in ((0.5, 1_000), (2.0, 300_000)):
        # Ties within 0.1 % of the cost go to the simpler mechanism, and an interval is 1.96 standard errors.
        assert plan.error(epsilon, devices) == pytest.approx(anew(workload, epsilon, devices), rel=6e-4)


def test_the_least_epsilon_and_the_fewest_devices_reach_what_is_wanted_and_less_does_not() -> None:
    workload = asked("value")
    plan = AccuracyPlan(workload)
    for wanted in (0.01, 0.05):
        epsilon = plan.least_epsilon(30_000, wanted)
        assert epsilon is not None
        assert anew(workload, epsilon, 30_000) <= wanted * 1.001
        assert anew(workload, round(epsilon - 0.01, 2), 30_000) > wanted * 0.999
        devices = plan.fewest_devices(1.0, wanted)
        assert devices is not None
        assert anew(workload, 1.0, devices) <= wanted * 1.001
        assert anew(workload, 1.0, round(devices * 0.99)) > wanted


def test_what_cannot_be_had_is_none() -> None:
    plan = AccuracyPlan(asked("value"))
    assert plan.least_epsilon(10, 1e-4) is None
    assert plan.fewest_devices(0.01, 1e-9) is None


def test_the_distance_of_one_report_falls_with_no_number_of_devices() -> None:
    with pytest.raises(ParameterError, match="objective must be about many devices, got hit"):
        AccuracyPlan(asked("hit"))
