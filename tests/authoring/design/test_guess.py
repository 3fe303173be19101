"""The best guess of an input from its report: every report of small channels, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.channels.finite import FiniteChannel
from hubbub.mechanisms.levels.levels import levels
from hubbub.mechanisms.orbits.short import compiled
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.unary import unary
from hubbub_authoring import mechanisms
from hubbub_authoring.design.leverage import best_guess
from hubbub_authoring.floor import Weights
from hubbub_authoring.mechanisms.orbits import best_mixture


def orbit_channel(missing):
    mixture = best_mixture([3, 3, 3], epsilon=1.0, weights=Weights(0.5, 0.5), missing=missing)
    return compiled([3, 3, 3], mixture, epsilon=1.0, missing=missing)


CHANNELS = {
    "grr": lambda: mechanisms.grr(6, epsilon=1.0),
    "pbgrr": lambda: mechanisms.pbgrr([3, 2, 2], epsilon=2.0, boost_epsilon=0.7),
    "subset": lambda: subset_selection(8, epsilon=1.0),
    "unary": lambda: unary(6, epsilon=1.0),
    "levels": lambda: levels([4, 4], epsilon=0.5),
    "levels, unequal": lambda: levels([3, 2, 1], epsilon=0.5),
    "orbits": lambda: orbit_channel(False),
    "orbits, missing": lambda: orbit_channel(True),
}


def table_of(channel) -> np.ndarray:
    """P(y|x) of every report, shape (K, reports): the weights, or the likelihoods of all sets admitted."""
    if isinstance(channel, FiniteChannel):
        return channel.weights() / channel.total
    every = [n.to_bytes(channel.width, "little") for n in range(2 ** (8 * channel.width))]
    sent = channel.contains(np.frombuffer(b"".join(every), dtype=np.uint8).reshape(-1, channel.width))
    symbols = [symbol for symbol, admitted in zip(every, sent, strict=True) if admitted]
    return np.exp(np.array([channel.log_likelihood(symbol) for symbol in symbols])).T


@pytest.mark.parametrize("build", CHANNELS.values(), ids=CHANNELS)
def test_guess_is_that_over_every_report(build):
    channel = build()
    table = table_of(channel)
    assert np.allclose(table.sum(axis=1), 1.0)
    found = best_guess(channel)
    assert found.average == pytest.approx(table.max(axis=0).sum() / channel.inputs, rel=1e-9)
    assert found.worst == pytest.approx((table.max(axis=0) / table.sum(axis=0)).max(), rel=1e-9)
    assert found.blind == 1 / channel.inputs
    assert found.blind < found.average <= found.worst * (1 + 1e-12)


def test_guess_of_unary_encoding_is_the_published_one():
    found = best_guess(unary(6, epsilon=1.0))
    assert (found.average, found.worst) == (
        pytest.approx(0.279957, abs=2e-6),
        pytest.approx(0.352187, abs=2e-6),
    )
