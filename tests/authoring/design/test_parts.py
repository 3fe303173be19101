"""Shares of parts beside closed forms, other programmes and stated optima."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from hubbub.errors import ParameterError
from hubbub.mechanisms import BundleEstimator
from hubbub_authoring.design.parts import design_parts, least_shares
from hubbub_authoring.floor.least import table_floor


def pairs(count: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(count), 2))


def test_shares_and_error_are_the_known_optima():
    single = design_parts((3, 4, 5), [(0,), (1,), (2,)], epsilon=1.0)
    shares = [part.share / 2**32 for part in single.channel.parts]
    assert shares == pytest.approx([0.260062, 0.334298, 0.405640], abs=5e-6)
    assert single.total == pytest.approx(72.108432, rel=1e-6)
    double = design_parts((2, 3, 4), pairs(3), epsilon=2.0)
    shares = [part.share / 2**32 for part in double.channel.parts]
    assert shares == pytest.approx([0.258469, 0.312251, 0.429280], abs=5e-6)
    assert double.total == pytest.approx(29.842689, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_total_is_what_the_estimator_expects_and_never_below_the_floor(epsilon: float):
    readings, tables = (2, 3, 4), pairs(3)
    designed = design_parts(readings, tables, epsilon=epsilon, order=3)
    expected = BundleEstimator(designed.channel, tables=tables).uniform_estimate(10**6)
    assert 10**6 * float((expected.value_errors**2).sum()) == pytest.approx(designed.total, rel=1e-5)
    floor = table_floor(list(readings), tables, epsilon=epsilon)
    assert floor is not None and floor.error <= designed.total * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_bounds_what_another_solver_finds(seed: int):
    random = np.random.default_rng(seed)
    holds = random.random((7, 5)) < 0.5
    holds[np.arange(5), np.arange(5)] = True
    told, cost = random.random(7) + 0.1, random.random(5) + 0.1
    shares, error, gap = least_shares(holds, told, cost)

    def by(logits: np.ndarray) -> float:
        w = np.exp(np.maximum(logits - logits.max(), -50.0))  # a search may wander off
        return float((cost / (w / w.sum() @ (holds * told[:, None]))).sum())

    other = min(minimize(by, random.normal(size=7), options={"maxiter": 2_000}).fun for _ in range(3))
    assert shares.sum() == pytest.approx(1.0)
    assert error / (1 + gap) <= other * (1 + 1e-9)
    assert error <= other * (1 + 1e-5)


def test_larger_parts_are_chosen_where_they_tell_more():
    at_three = design_parts((2, 2, 2, 2), pairs(4), epsilon=3.0, order=3)
    assert {len(part.members) for part in at_three.channel.parts} == {3}
    asked = design_parts((2, 2, 2, 2), pairs(4), epsilon=3.0)
    assert at_three.total < 0.7 * asked.total
    at_four = design_parts((2, 2, 2, 2), pairs(4), epsilon=4.0, order=4)
    assert [part.members for part in at_four.channel.parts] == [(0, 1, 2, 3)]
    assert at_four.total == pytest.approx(3.088, rel=1e-3)


@pytest.mark.parametrize(
    ("readings", "epsilon", "without", "beside"),
    [
        ((4,) * 10, 1.0, 1.2014, 1.0024),
        ((4,) * 10, 0.5, 1.198, 1.034),
        ((4,) * 10, 2.0, 1.200, 1.1075),
        ((9, 8, 16, 7, 14, 6, 5, 2, 41, 2), 1.0, 1.0982, 1.0661),
    ],
)
def test_interactions_come_as_near_the_floor_as_was_derived(
    readings: tuple[int, ...], epsilon: float, without: float, beside: float
):
    """Ten attributes, all pairs: the specification states 1.201 and 1.002, 1.098 and 1.066 at epsilon 1."""
    floor = table_floor(list(readings), pairs(10), epsilon=epsilon)
    tables = design_parts(readings, pairs(10), epsilon=epsilon)
    both = design_parts(readings, pairs(10), epsilon=epsilon, kinds="interactions")
    assert tables.total / floor.error == pytest.approx(without, abs=1e-3)
    assert both.total / floor.error == pytest.approx(beside, abs=1e-3)
    assert both.gap < 1e-5 and floor.error <= both.total * (1 + 1e-9)
    expected = BundleEstimator(both.channel, tables=pairs(10)).uniform_estimate(10**6)
    assert 10**6 * float((expected.value_errors**2).sum()) == pytest.approx(both.total, rel=1e-5)


def test_interactions_are_left_out_where_they_gain_nothing():
    for readings, epsilon in (((4,) * 10, 4.0), ((3, 4, 5), 1.0)):
        tables = pairs(len(readings))
        both = design_parts(readings, tables, epsilon=epsilon, kinds="interactions")
        assert both.channel == design_parts(readings, tables, epsilon=epsilon).channel


def test_weights_move_shares_to_what_counts():
    plain, heavy = (
        design_parts((3, 3, 3), pairs(3), epsilon=1.0, weights=weights).channel.parts[0].share
        for weights in (None, [4.0, 1.0, 1.0])
    )
    assert heavy > 1.2 * plain


def test_ten_attributes_of_adult_take_the_devices_that_were_stated():
    """Devices for a mean cell error of .01, as the specification of bundles derived and refereed them."""
    readings = tuple(size + 1 for size in (9, 7, 16, 7, 14, 5, 2, 5, 2, 2))
    cells = sum(math.prod(readings[j] for j in table) for table in pairs(10))
    for epsilon, devices in ((1.0, 1_031_234), (2.0, 202_633), (4.0, 22_680)):
        designed = design_parts(readings, pairs(10), epsilon=epsilon)
        assert designed.total / (cells * 1e-4) == pytest.approx(devices, rel=1e-5)


def test_too_many_parts_are_refused():
    with pytest.raises(ParameterError, match="parts must be"):
        design_parts((2,) * 32, pairs(32), epsilon=1.0, order=4)
