"""Closed forms beside the papers, recomputed: moments by integration, accepted counts by their chain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closed_forms import accepted_in_two_parts, noise_errors
from scipy.integrate import quad

from hubbub.privacy_profile.profile import AbsoluteRegion, BoostedNoise, Gaussian, Laplace


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
