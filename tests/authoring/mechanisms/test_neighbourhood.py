"""Overlapping neighbourhoods: exact epsilon, unbiased estimates, a refusal where nothing would be known."""

from __future__ import annotations

import math
import re
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract

from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator
from hubbub_authoring import mechanisms as m

# Regions of a map that share borders; the last one is an island.
BORDERS = np.zeros((6, 6), dtype=bool)
for one, other in [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4)]:
    BORDERS[one, other] = BORDERS[other, one] = True


class TestNeighbourhood(MechanismContract):
    cases: ClassVar = {
        "ratings": Case(
            lambda: m.neighbourhood(5, epsilon=2.0, boost_epsilon=1.5, window=1),
            2.0,
            "7fd92d6c525a2ac3797bcee4df31e03046d95ec0079c2c3da10316e7520e8c04",
        ),
        "map, missing": Case(
            lambda: m.neighbourhood(6, epsilon=1.0, boost_epsilon=0.8, relation=BORDERS, missing="input"),
            1.0,
            "a91ce1073d34a16233a8a70f9261c5c0659d2a58073db4aed163cb75e52be064",
        ),
        "by rows": Case(
            lambda: m.neighbourhood(9, epsilon=3.0, boost_epsilon=0.3, window=3),
            3.0,
            "4efcd885c0be0966c985818d43b0c9e0cabe40febe4970debddb401939a8011b",
        ),
    }


@pytest.mark.parametrize(("boost", "scheme"), [(2.0, "columns"), (1.5, "columns"), (0.2, "rows")])
@pytest.mark.parametrize("missing", ["none", "input"])
def test_near_misses_are_likelier_by_the_factor_asked_for(boost, scheme, missing):
    channel = m.neighbourhood(9, epsilon=2.0, boost_epsilon=boost, window=2, missing=missing)
    assert channel.scheme == scheme
    weights = channel.weights().astype(float)
    values = range(9)
    if scheme == "columns":
        assert channel.nominal_epsilon == 2.0
        for y in values:
            for x in values:
                log = math.log(weights[y, y] / weights[x, y])
                wanted = 0.0 if x == y else boost if abs(x - y) <= 2 else 2.0
                assert log == pytest.approx(wanted, abs=1e-5)
    else:
        assert boost < channel.nominal_epsilon < 2.0
        for x in values:
            row = weights[x, :9]
            for y in values:
                wanted = 0.0 if x == y else boost if abs(x - y) <= 2 else channel.nominal_epsilon
                assert math.log(row[x] / row[y]) == pytest.approx(wanted, abs=1e-5)
    assert channel.epsilon == pytest.approx(2.0, rel=2e-6)
    if missing == "input":
        assert len({channel.weight(x, 9) for x in values}) == (1 if scheme == "columns" else 3)


def test_scaling_rows_at_the_same_nominal_epsilon_would_overspend():
    weights = np.where(BORDERS, math.exp(0.5), 1.0)
    np.fill_diagonal(weights, math.exp(2.0))
    rows = weights / weights.sum(axis=1, keepdims=True)
    assert np.log(rows.max(axis=0) / rows.min(axis=0)).max() > 2.1
    assert m.neighbourhood(6, epsilon=2.0, boost_epsilon=1.5, relation=BORDERS).epsilon <= 2.0


def test_full_boost_epsilon_is_randomised_response():
    channel = m.neighbourhood(7, epsilon=1.0, boost_epsilon=1.0, window=2)
    grr = m.grr(7, epsilon=1.0)
    np.testing.assert_allclose(channel.weights() / channel.total, grr.weights() / grr.total, rtol=1e-6)


def test_disjoint_neighbourhoods_are_the_categories_of_pbgrr():
    sizes = [3, 1, 4]
    owner = np.repeat(range(3), sizes)
    channel = m.neighbourhood(8, epsilon=2.0, boost_epsilon=1.0, relation=owner[:, None] == owner[None, :])
    pbgrr = m.pbgrr(sizes, epsilon=2.0, boost_epsilon=1.0)
    np.testing.assert_allclose(channel.weights() / channel.total, pbgrr.weights() / pbgrr.total, rtol=1e-6)


@pytest.mark.parametrize("arguments", [{"window": 1}, {"window": 3}, {"relation": BORDERS}])
def test_estimates_are_unbiased_and_their_error_is_the_one_promised(arguments):
    channel = m.neighbourhood(6, epsilon=2.0, boost_epsilon=1.2, devices=5000, **arguments)
    estimator = InverseEstimator(channel)
    for x in range(6):
        found = estimator(channel.row(x), channel.total).values
        np.testing.assert_allclose(found, np.eye(6)[x], atol=1e-9)
    foreseen = estimator.expected_estimate(np.full(6, 1 / 6), 5000).value_errors
    assert channel.standard_error == pytest.approx(foreseen.max(), rel=1e-5)
    assert channel.condition == pytest.approx(np.linalg.cond(channel.weights() / channel.total), rel=1e-5)


def test_what_nobody_could_estimate_is_refused_with_the_nearest_that_works():
    arguments = {"epsilon": 1.0, "window": 3, "devices": 2000}
    with pytest.raises(ParameterError, match=r"condition number.*boost_epsilon must be at least") as refusal:
        m.neighbourhood(30, boost_epsilon=0.01, **arguments)
    nearest = float(re.search(r"at least ([0-9.]+), got 0.01", str(refusal.value))[1])
    assert m.neighbourhood(30, boost_epsilon=nearest, **arguments).standard_error <= 1.0
    with pytest.raises(ParameterError, match="condition number"):
        m.neighbourhood(30, boost_epsilon=nearest - 0.01, **arguments)
    with pytest.raises(ParameterError, match="not even boost_epsilon = epsilon would do"):
        m.neighbourhood(30, boost_epsilon=0.01, **(arguments | {"devices": 1}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 1}, "inputs must be an integer within 2"),
        ({"inputs": 10**4}, "inputs must be an integer within 2"),
        ({"epsilon": 0}, "epsilon must be within"),
        ({"boost_epsilon": 0.0}, "boost_epsilon must be within"),
        ({"boost_epsilon": 1.5}, "boost_epsilon must be at most epsilon"),
        ({"window": -1}, "window must be an integer of at least 0, got -1"),
        ({"window": None}, "either window or relation"),
        ({"relation": BORDERS}, "either window or relation"),
        ({"window": None, "relation": BORDERS[:5]}, r"relation must be bool of shape \(6, 6\)"),
        ({"window": None, "relation": BORDERS.astype(int)}, "relation must be bool"),
        ({"devices": 0}, "devices must be an integer of at least 1"),
        ({"missing": "yes"}, "missing must be one of none, input"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        m.neighbourhood(**({"inputs": 6, "epsilon": 1.0, "boost_epsilon": 0.5, "window": 1} | arguments))
