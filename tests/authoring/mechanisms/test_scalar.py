"""The published mechanisms for one number reproduce their published variances on a grid, exactly."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract

from hubbub.errors import ParameterError
from hubbub_authoring import mechanisms as m

MECHANISMS = {"duchi": m.duchi, "piecewise": m.piecewise, "hybrid": m.hybrid}

# Worst-case variance of one report of a number in [-1, 1].
PUBLISHED = {
    "duchi": {1.0: 4.683, 2.0: 1.724, 4.0: 1.076},
    "piecewise": {1.0: 5.224, 2.0: 1.228, 4.0: 0.2414},
    "hybrid": {1.0: 4.289, 2.0: 1.042, 4.0: 0.2190},
}


class TestOneNumber(MechanismContract):
    cases: ClassVar = {
        "duchi": Case(
            lambda: m.duchi(4, epsilon=1.0),
            1.0,
            "377c65fc1cb8c8ef7d329a427c77857fea4a8482e8cc609fc1f3f914a22e15dc",
        ),
        "duchi, missing": Case(
            lambda: m.duchi(17, epsilon=2.0, missing="input"),
            2.0,
            "437a886bc950cd7437596f429b145cc5e67e2cfe2d16e8e26916f329546de5fc",
        ),
        "piecewise": Case(
            lambda: m.piecewise(17, epsilon=1.5),
            1.5,
            "3bcef6217dee26cbec37a62b04223222812d3786c619f8338b6b2edcd0e38415",
        ),
        "hybrid, missing": Case(
            lambda: m.hybrid(9, epsilon=2.5, missing="input"),
            2.5,
            "e6ff7b6f8533db9a7d3d7c98ea5bf3c813a8dee3a632a6266425ea62e9d516dc",
        ),
        "square wave": Case(
            lambda: m.square_wave(17, epsilon=1.0),
            1.0,
            "3b6ce4e6ef196f99482d8251393ef8328185fdd15186cc9b12218b9de06f322a",
        ),
    }


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_worst_variance_is_the_published_one(name, epsilon):
    """On 1,025 points; a coarser grid has less, because nothing has to be told apart between its points."""
    channel = MECHANISMS[name](1025, epsilon=epsilon)
    assert channel.variances.max() == pytest.approx(PUBLISHED[name][epsilon], rel=4e-3)
    assert channel.epsilon <= epsilon


@pytest.mark.parametrize("missing", ["none", "input"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_readings_are_unbiased_and_missing_reads_zero(name, epsilon, missing):
    channel = MECHANISMS[name](33, epsilon=epsilon, missing=missing)
    points = np.linspace(-1.0, 1.0, 33)
    if missing == "input":
        points = np.append(points, 0.0)
    np.testing.assert_allclose(channel.weights() / channel.total @ channel.decoded, points, atol=1e-6)
    assert channel.epsilon == pytest.approx(epsilon, rel=2e-6)


def test_one_bit_has_the_textbook_probabilities():
    channel = m.duchi(3, epsilon=1.0)
    e = math.e
    assert channel.outputs == 2
    np.testing.assert_allclose(channel.row(2) / channel.total, [1 / (e + 1), e / (e + 1)], rtol=1e-6)
    np.testing.assert_allclose(channel.row(1) / channel.total, [0.5, 0.5], rtol=1e-6)


def test_hybrid_is_the_one_bit_at_small_epsilon():
    assert m.hybrid(9, epsilon=0.6) == m.duchi(9, epsilon=0.6)
    assert m.hybrid(9, epsilon=0.7) != m.duchi(9, epsilon=0.7)


@pytest.mark.parametrize(("epsilon", "half"), [(1e-5, 0.5), (1.0, 0.2561), (4.0, 0.030428)])
def test_square_wave_has_its_published_half_width(epsilon, half):
    region = m.square_wave(1001, epsilon=epsilon).design.region
    assert region.half_width == pytest.approx(1000 * half, abs=1.0)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_searched_boosted_noise_is_no_worse_than_all_of_them_on_average(epsilon):
    best = min(mechanism(33, epsilon=epsilon).variances.mean() for mechanism in MECHANISMS.values())
    assert m.boosted(33, epsilon=epsilon, kernel="uniform").design.mean_variance <= best


@pytest.mark.parametrize("mechanism", [*MECHANISMS.values(), m.square_wave])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 1}, "inputs must be"),
        ({"inputs": True}, "inputs must be"),
        ({"inputs": 10**6}, "inputs times outputs must be at most"),
        ({"epsilon": 0.0}, "epsilon must be within"),
        ({"missing": "maybe"}, "missing must be one of none, input"),
    ],
)
def test_wrong_arguments_are_refused(mechanism, arguments, message):
    with pytest.raises(ParameterError, match=message):
        mechanism(**({"inputs": 9, "epsilon": 1.0} | arguments))
