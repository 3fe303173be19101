"""The laws of orbits' scores: by enumeration of every set, at very many values, and in small rounds."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.estimation import estimator_for
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.short import compiled
from hubbub.testing import seeded
from hubbub_authoring.floor import Weights
from hubbub_authoring.mechanisms.orbits import best_mixture


def every_set(channel: OrbitChannel) -> tuple[list[bytes], np.ndarray]:
    """Return the sets that can be sent, and their probabilities for every input, shape (K, sets)."""
    width = channel.width
    sets = [bits.to_bytes(width, "little") for bits in range(1 << channel.inputs)]
    sent = [symbol for symbol in sets if channel.admits(symbol)]
    return sent, np.exp(np.array([channel.log_likelihood(symbol) for symbol in sent])).T


@pytest.mark.parametrize(
    ("sizes", "epsilon", "missing"),
    [
        ([2, 2, 2], 1.0, True),
        ([3, 3], 3.0, True),
        ([1, 3, 2], 2.0, True),
        ([5], 1.0, True),
        ([3, 3], 1.0, False),
    ],
)
def test_orbit_laws_are_those_of_every_set(sizes: list[int], epsilon: float, missing: bool) -> None:
    """A score of every set by the estimator itself; its moments from the sets' probabilities."""
    weights = Weights(0.5, 0.5) if len(sizes) > 1 else Weights(1.0, 0.0)
    channel = compiled(
        sizes,
        best_mixture(sizes, epsilon=epsilon, weights=weights, missing=missing),
        epsilon=epsilon,
        missing=missing,
    )
    estimator = estimator_for(channel)
    sent, rows = every_set(channel)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-9)
    one = [estimator(channel.tally(np.frombuffer(symbol, np.uint8)[None, :]), 1) for symbol in sent]
    inputs = channel.inputs
    symbols = channel.perturb(np.arange(300) % inputs, source=seeded(8))
    estimate = estimator(channel.tally(symbols), 300)
    laws = estimate.laws
    assert laws is not None
    view = np.array(estimate.values)
    shift = max((view[np.argsort(-view)[:r]].sum() - 1.0) / r for r in range(1, inputs + 1))
    crowds = [trust * np.maximum(view - shift, 0.0) + (1.0 - trust) / inputs for trust in (0.5, 0.9)]
    labels = estimator.category_of
    indicators = [np.eye(inputs), np.equal.outer(np.arange(labels.max() + 1), labels).astype(float)]
    for kind, law, members in zip(
        ("values", "categories"), (laws.values, laws.categories), indicators, strict=True
    ):
        scores = np.array([getattr(each, kind) for each in one]).T
        for cell, inside in enumerate(members):
            for share in (0.0, 0.3, 1.0):
                rest = []
                for crowd in crowds:
                    others = crowd * (1 - inside)
                    if others.sum() < 1e-9:
                        continue
                    # Every device has a mean of its own, so moments are about the mean of each kind.
                    chance = others @ rows / others.sum()
                    rest.append([float(chance @ scores[cell] ** power) for power in (2, 3)])
                worst = max(rest, default=[0.0, 0.0])
                own = inside @ rows / inside.sum()
                mine = [float(own @ (scores[cell] - 1.0) ** power) for power in (2, 3)]
                wanted = [share * a + (1 - share) * b for a, b in zip(mine, worst, strict=True)]
                found = law.moments(np.full(len(members), share))
                np.testing.assert_allclose(
                    [found[0][cell], found[1][cell]], 300 * np.array(wanted), rtol=1e-7, atol=1e-7
                )


def test_orbit_intervals_of_very_many_values_take_no_step_for_each_pair() -> None:
    """A hundred thousand values at once, in part of a second; a step for each pair would take hours."""
    many, size = 100, 1000
    clustered = [size] * 25 + [0] * 75
    spread = [250] * many
    mixture = [([clustered], False, 0.4), ([spread], False, 0.3), ([spread], True, 0.3)]
    channel = compiled([size] * many, mixture, epsilon=1.0, missing=True)
    points = np.append(np.linspace(0.0, 1.0, channel.values), np.nan)
    estimator = estimator_for(channel, points=points, missing=channel.values)
    symbols = channel.perturb(np.arange(60) % channel.inputs, source=seeded(1))
    estimate = estimator(channel.tally(symbols), 60)
    for spans in (estimate.intervals(), estimate.simultaneous()):
        assert (spans.values_low < spans.values_high).all()
        assert spans.mean_low is not None and spans.mean_high is not None
        assert 0.0 <= spans.mean_low < spans.mean_high <= 1.0
