"""What forged reports can move: published check values, closed forms, and every report of small channels."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.estimation import estimator_for
from hubbub.mechanisms.levels.levels import levels
from hubbub.mechanisms.orbits.estimator import OrbitEstimator
from hubbub.mechanisms.orbits.short import compiled
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.unary import unary
from hubbub_authoring import mechanisms
from hubbub_authoring.design import Workload, accuracy
from hubbub_authoring.design.leverage import ends, worst_mean
from hubbub_authoring.floor import Weights
from hubbub_authoring.mechanisms.orbits import best_mixture

# PB-GRR, 3 categories of 2, epsilon 1, boost .5: computed apart from explicit matrices.
KNOWN = {(0,): 5.256371, (0, 1): 2.689900, (0, 2): 4.833896, (0, 2, 4): 4.411421}


def gain(channel, targets):
    unit = np.bincount(targets, minlength=channel.inputs).astype(np.float64)
    return ends(estimator_for(channel), unit, np.full(channel.inputs, 1.0 / channel.inputs))[1]


@pytest.mark.parametrize(("targets", "known"), KNOWN.items(), ids=str)
def test_gain_of_pbgrr_is_the_published_one(targets, known):
    assert gain(mechanisms.pbgrr([2, 2, 2], epsilon=1.0, boost_epsilon=0.5), targets) == pytest.approx(
        known, abs=2e-6
    )


@pytest.mark.parametrize("r", [1, 2, 4])
def test_gain_follows_the_closed_forms_of_symmetric_channels(r):
    channel = mechanisms.grr(9, epsilon=1.5)
    p, q = channel.t / channel.total, channel.u / channel.total
    assert gain(channel, range(r)) == pytest.approx((1 - r * q) / (p - q), rel=1e-9)
    for sets, most in ((subset_selection(9, epsilon=1.0), None), (unary(9, epsilon=1.0), r)):
        support = sets.levels[0].support
        p, q = float(support.p), float(support.q)
        top = min(r, sets.size) if most is None else most
        assert gain(sets, range(r)) == pytest.approx((top - r * q) / (p - q), rel=1e-9)


def test_gain_of_levels_is_the_best_report_s():
    """Every (level, set) of a small channel: its score from a round in which the levels got their shares."""
    channel = levels([4, 4], epsilon=0.5)
    estimator, targets = estimator_for(channel), [0, 1, 5]
    prior = np.full(8, 1 / 8)
    n = 1e9
    expected = n * channel.expected(prior)
    every = [k.to_bytes(channel.width, "little") for k in range(2 ** (8 * channel.width))]
    sent = channel.contains(np.frombuffer(b"".join(every), dtype=np.uint8).reshape(-1, channel.width))
    start = estimator.expected_estimate(prior, int(n)).values[targets].sum()
    most = -np.inf
    for symbol in (s for s, known in zip(every, sent, strict=True) if known):
        bits = channel.tally(np.frombuffer(symbol, dtype=np.uint8)[None, :])
        # A millionth forged, all of it with this report.
        forged = 1e-6 * n
        after = estimator._estimate(expected + forged * bits, n + forged)
        most = max(most, (after.values[targets].sum() - start) / 1e-6)
    assert gain(channel, targets) - 3 / 8 == pytest.approx(most, rel=1e-3)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("targets", [[0], [0, 1], [0, 3], [0, 1, 3], [2, 4, 7]], ids=str)
def test_gain_of_orbits_is_the_best_report_s(missing, targets):
    mixture = best_mixture([3, 3, 3], epsilon=1.0, weights=Weights(0.5, 0.5), missing=missing)
    channel = compiled([3, 3, 3], mixture, epsilon=1.0, missing=missing)
    estimator = OrbitEstimator(channel)
    every = np.frombuffer(b"".join(k.to_bytes(2, "little") for k in range(2**16)), dtype=np.uint8).reshape(
        -1, 2
    )
    most = max(
        estimator(channel.tally(symbol[None, :]), 1).values[targets].sum()
        for symbol in every[channel.contains(every)]
    )
    assert gain(channel, targets) == pytest.approx(most, rel=1e-9)


def test_targets_that_a_channel_hides_have_no_gain():
    with pytest.raises(ParameterError, match="targets must be told apart"):
        gain(mechanisms.CategoryGRR([2, 3], 3, 1), [0])


def numbered(points: int, kind: str = "grid") -> Workload:
    return Workload.uniform(
        kind=kind,
        epsilon=1.0,
        category_of=np.append(np.zeros(points, dtype=np.intp), 1),
        devices=1000,
        points=np.append(np.arange(points, dtype=np.float64), np.nan),
        objective=None,
    )


@pytest.mark.parametrize("forged", [0.01, 0.05])
def test_mean_moves_by_no_more_than_is_said_and_nearly_so_much(forged):
    """Every report that all forgers could send, from expected counts and the estimator of releases."""
    question = numbered(7)
    for channel in (
        mechanisms.grr(8, epsilon=1.0),
        mechanisms.boosted(7, epsilon=1.0, kernel="uniform", missing="input"),
    ):
        estimator = estimator_for(
            channel, category_of=question.category_of, points=question.points, missing=7, rounding="none"
        )
        honest = channel.expected(question.prior)
        found = []
        for y in range(channel.outputs):
            counts = (1.0 - forged) * honest + forged * (np.arange(channel.outputs) == y)
            found.append(abs(estimator._estimate(1e6 * counts, 10**6).mean - 3.0))
        bound = accuracy(channel, question).mean_moved(forged)
        assert max(found) <= bound * (1 + 1e-9)
        assert max(found) >= 0.5 * bound
        assert bound > forged * 3.0  # more than by lying about the value
        assert accuracy(channel, question).mean_moved(0.9) == np.inf  # nobody need seem to have a value


def test_mean_of_trees_and_orbits_has_a_bound_above_that_of_a_lie():
    question = numbered(6, "labels")
    for channel in (
        mechanisms.tree(6, epsilon=1.0),
        compiled(
            [6],
            best_mixture([6], epsilon=1.0, weights=Weights(1.0, 0.0), missing=True),
            epsilon=1.0,
            missing=True,
        ),
    ):
        found = accuracy(channel, question).mean_moved(0.01)
        assert 0.01 * 2.5 < found < 0.5
    estimator = estimator_for(
        mechanisms.grr(7, epsilon=1.0),
        category_of=question.category_of,
        points=question.points,
        missing=6,
        rounding="none",
    )
    with pytest.raises(ParameterError, match="forged must be within 0 to 1"):
        worst_mean(estimator, question.prior, question.points, forged=1.5)
