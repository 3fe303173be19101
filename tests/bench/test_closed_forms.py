"""Closed forms beside the papers, recomputed: moments by integration, accepted counts by their chain."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from closed_forms import (
    accepted_in_many_parts,
    accepted_in_three_parts,
    accepted_in_two_parts,
    largest_normal,
    noise_errors,
)
from scipy.integrate import quad
from staircase import (
    Staircase,
    best_first,
    least_absolute_error,
    least_variance,
    stair_delta,
    stair_epsilon,
    stair_errors,
)

from hubbub_lab.continuous_noise.profile import AbsoluteRegion, BoostedNoise, Gaussian, Laplace


@pytest.mark.parametrize("kernel", [Gaussian(1.7), Laplace(0.8)])
@pytest.mark.parametrize("boost", [0.0, 0.6, 1.0])
def test_errors_of_boosted_noise_are_the_integrals_of_its_density(kernel, boost) -> None:
    law = BoostedNoise(kernel, AbsoluteRegion(1.3), boost)
    found = noise_errors(law)
    for power, moment in ((1, found.absolute), (2, found.square)):
        parts = [
            quad(lambda y, n=power: 2 * y**n * law.density(y, 0.0), low, high)[0]
            for low, high in ((0.0, 1.3), (1.3 + 1e-12, 40.0))
        ]
        assert moment == pytest.approx(sum(parts), rel=1e-8)


def chain(labels: int, epsilon: float) -> float:
    """The mean number of answers: states are how many false labels came, and whether the true one did."""
    whole = math.exp(epsilon) + labels - 1
    p, r = math.exp(epsilon) / whole, 1 / whole
    states = [(true, false) for true in (0, 1) for false in range(labels) if true + false < labels]
    place = {state: i for i, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for true, false in states:
        for after, chance in (((1, false), p * (1 - true)), ((true, false + 1), r * (labels - 1 - false))):
            if chance > 0:
                matrix[place[true, false], place.get(after, 0)] += chance
    return float(np.linalg.solve(np.eye(len(states)) - matrix, np.ones(len(states)))[0])


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 2.0])
@pytest.mark.parametrize("labels", [2, 3, 4, 12])
def test_accepted_counts_of_two_parts_are_those_of_the_chain(labels, epsilon) -> None:
    assert accepted_in_two_parts(labels, epsilon) == pytest.approx(chain(labels, epsilon), rel=1e-9)


def test_two_labels_give_equation_69_and_three_give_fewer_answers() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        two = 2 * math.tanh(epsilon) / math.tanh(epsilon / 2)
        assert accepted_in_two_parts(2, epsilon) == pytest.approx(two, rel=1e-12)
    assert accepted_in_two_parts(3, 1.0) < accepted_in_two_parts(2, 1.0)


def by_counts(labels: int, parts: int, epsilon: float) -> float:
    """Return the same by all counts less their least: (the true label's, numbers of others by count)."""
    whole = math.exp(epsilon) + labels - 1
    start = (0, (labels - 1, *(0,) * (parts - 1)))
    place, moves = {start: 0}, []
    queue = [start]
    for true, others in queue:
        row = []
        options = [(math.exp(epsilon) / whole, true + 1, list(others))]
        for count in range(parts):
            if others[count]:
                after = list(others)
                after[count] -= 1
                if count + 1 < parts:
                    after[count + 1] += 1
                    options.append((others[count] / whole, true, after))
                # an answer that leaves one label `parts` ahead of another is the last: no move
                elif true > 0 and others[0] == 0:
                    raise AssertionError("the least count must be 0")
        for chance, now, after in options:
            if now == parts:
                continue
            lap = now > 0 and after[0] == 0
            state = (now - lap, (*after[1:], 0) if lap else tuple(after))
            if state not in place:
                place[state] = len(place)
                queue.append(state)
            row.append((place[state], chance))
        moves.append(row)
    matrix = np.eye(len(place))
    for i, row in enumerate(moves):
        for j, chance in row:
            matrix[i, j] -= chance
    return float(np.linalg.solve(matrix, np.ones(len(place)))[0])


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 2.0])
@pytest.mark.parametrize("labels", [2, 3, 4, 7])
def test_accepted_counts_of_three_parts_are_those_of_the_chain(labels, epsilon) -> None:
    assert accepted_in_three_parts(labels, epsilon) == pytest.approx(by_counts(labels, 3, epsilon), rel=1e-9)
    assert by_counts(labels, 2, epsilon) == pytest.approx(accepted_in_two_parts(labels, epsilon), rel=1e-9)


def test_many_parts_follow_two_terms_within_a_constant_and_not_the_first_alone() -> None:
    """Both terms are off by less than 2 reports; the first alone, as Conjecture D.1 has it, by ever more."""
    assert largest_normal(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-6)
    assert largest_normal(1) == pytest.approx(0.0, abs=1e-9)
    for labels, parts in ((2, 8), (2, 16), (3, 8), (3, 16), (3, 24), (4, 8)):
        assert abs(by_counts(labels, parts, 1.0) - accepted_in_many_parts(labels, 1.0, parts)) < 2.0
    drift = math.expm1(1.0) / (math.e + 2)
    short = [parts / drift - by_counts(3, parts, 1.0) for parts in (6, 12, 24)]
    assert short[1] - short[0] > 0.8 and short[2] - short[1] > 1.0


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_errors_of_a_staircase_are_integrals_of_its_density_and_least_at_the_best_share(epsilon) -> None:
    for first in (0.2, 0.7):
        kernel = Staircase(epsilon, 1.5, first)
        ends = [0.0, *(kink for kink in kernel.kinks if 0 < kink < 250)]
        absolute, square = (
            sum(
                2 * kernel.density((low + high) / 2) * (high**power - low**power) / power
                for low, high in pairwise(ends)
            )
            for power in (2, 3)
        )
        assert stair_errors(kernel) == pytest.approx((absolute, square), rel=1e-7)
        assert 2 * kernel.tail(0.0) == pytest.approx(1.0, rel=1e-12)
        assert kernel.mass(0.3, 2.2) == pytest.approx(quad_of(kernel, 0.3, 2.2), rel=1e-9)
    for place, least in ((0, least_absolute_error), (1, least_variance)):
        best = best_first(epsilon, ("absolute", "square")[place])
        at = [stair_errors(Staircase(epsilon, 1.0, best + step))[place] for step in (-1e-3, 0.0, 1e-3)]
        assert at[1] == pytest.approx(least(epsilon), rel=1e-9)
        assert at[1] < min(at[0], at[2])


def quad_of(kernel: Staircase, low: float, high: float) -> float:
    ends = [low, *(kink for kink in kernel.kinks if low < kink < high), high]
    return sum(kernel.density((a + b) / 2) * (b - a) for a, b in pairwise(ends))


def test_a_staircase_costs_its_epsilon_and_a_boost_its_leap() -> None:
    plain = BoostedNoise(Staircase(1.2, 1.0, 0.4))
    assert stair_epsilon(plain, 1.0) == pytest.approx(1.2, rel=1e-12)
    assert stair_delta(plain, 1.0, 1.2) == pytest.approx(0.0, abs=1e-15)
    boosted = BoostedNoise(Staircase(1.2, 1.0, 0.4), AbsoluteRegion(0.5), 0.6)
    assert stair_epsilon(boosted, 1.0) == pytest.approx(1.2 - math.log(0.4), rel=1e-12)
    grid = np.arange(-2500, 2500) / 100 + 0.005  # every jump is a whole hundredth: the sums are exact
    for law in (plain, boosted):
        here, there = (np.array([law.density(y, x) for y in grid.tolist()]) for x in (0.0, 1.0))
        for epsilon in (0.0, 0.7, 1.5):
            brute = float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum() / 100)
            assert stair_delta(law, 1.0, epsilon) == pytest.approx(brute, abs=1e-9)
