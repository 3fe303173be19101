"""The smoothed view: what expectation maximisation promises, a known case, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.estimation import estimator_for
from hubbub.estimation.em import maximise, neighbours
from hubbub.testing import seeded
from hubbub_authoring import mechanisms as m

POINTS = 33
GRID = np.linspace(-1.0, 1.0, POINTS)


def bell(n):
    """A crowd of about n devices around the middle: inputs, and their shares."""
    shares = np.exp(-0.5 * (GRID / 0.3) ** 2)
    held = np.round(n * shares / shares.sum()).astype(int)
    return np.repeat(np.arange(POINTS), held), held / held.sum()


def rows_of(channel):
    return channel.weights() / channel.total


def test_the_likelihood_of_plain_steps_never_falls():
    rng = np.random.default_rng(4)
    for epsilon in (0.5, 2.0, 5.0):
        rows = rows_of(m.square_wave(POINTS, epsilon=epsilon))
        counts = rng.integers(0, 400, rows.shape[1])
        found = [maximise(rows, counts, tolerance=0.0, max_steps=k).log_likelihood for k in range(1, 60)]
        assert np.all(np.diff(found) >= -1e-9 * abs(found[0]))


def test_plain_steps_reach_the_linear_estimate_where_it_is_a_distribution():
    """As many symbols as inputs: the linear estimate makes the counts exactly as expected, the maximum."""
    channel = m.grr(4, epsilon=2.0)
    counts = np.array([4000, 2500, 2000, 1500])
    linear = estimator_for(channel)(counts, 10_000).values
    assert linear.min() > 0.0
    found = maximise(rows_of(channel), counts, tolerance=1e-12)
    assert found.settled
    np.testing.assert_allclose(found.values, linear, atol=1e-6)


def test_two_inputs_have_the_maximum_of_the_textbook():
    """Binary response with p = 3/4, 60 of 100 say yes: F = (0.6 - 1/4) / (1/2) = 0.7; 20 say yes: 0."""
    rows = np.array([[0.75, 0.25], [0.25, 0.75]])
    assert maximise(rows, [40, 60], tolerance=1e-13).values[1] == pytest.approx(0.7, abs=1e-5)
    assert maximise(rows, [80, 20], tolerance=1e-13).values[1] == pytest.approx(0.0, abs=1e-2)


def test_equal_counts_of_a_symmetric_channel_leave_equal_shares():
    found = maximise(rows_of(m.grr(7, epsilon=1.0)), np.full(7, 50), order=np.arange(7))
    np.testing.assert_allclose(found.values, 1 / 7)
    assert (found.steps, found.settled) == (1, True)


def test_a_smooth_crowd_is_seen_better_than_by_the_unbiased_estimate():
    """Ten collections of 10,000 devices at epsilon 1, seeds 0 to 9: shares, and their curve."""
    channel = m.square_wave(POINTS, epsilon=1.0)
    inputs, truth = bell(10_000)
    estimator, squares, curve = estimator_for(channel, points=GRID), np.zeros(2), np.zeros(2)
    for seed in range(10):
        counts = np.bincount(channel.perturb(inputs, source=seeded(seed)), minlength=channel.outputs)
        estimate = estimator(counts, len(inputs))
        view = estimate.smoothed()
        assert view.values.min() >= 0.0
        assert view.values.sum() == pytest.approx(1.0)
        assert view.settled
        assert view.log_likelihood <= maximise(rows_of(channel), counts).log_likelihood
        off = [shares - truth for shares in (view.values, estimate.values)]
        squares += [float(errors @ errors) for errors in off]
        curve += [np.abs(np.cumsum(errors)).sum() for errors in off]
    assert squares[0] < 0.1 * squares[1]
    assert curve[0] < curve[1]


def test_missing_is_no_neighbour_of_the_highest_number():
    channel = m.boosted(POINTS, epsilon=4.0, kernel="uniform", missing="input")
    points = np.append(GRID, np.nan)
    inputs = np.append(bell(20_000)[0], np.full(20_000, POINTS))
    counts = np.bincount(channel.perturb(inputs, source=seeded(5)), minlength=channel.outputs)
    view = estimator_for(channel, points=points, missing=POINTS)(counts, len(inputs)).smoothed()
    assert view.values[POINTS] == pytest.approx(0.5, abs=0.02)
    assert view.values[POINTS - 1] < 0.01


def test_inputs_in_another_order_are_smoothed_along_their_numbers():
    assert neighbours(np.array([2.0, 0.0, np.nan, 1.0]), 2).tolist() == [1, 3, 0]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: estimator_for(m.grr(4, epsilon=1.0))(np.array([1, 2, 3, 4]), 10).smoothed(), "got labels"),
        (lambda: neighbours(np.array([0.0, 1.0, 3.0]), None), "equally spaced"),
        (lambda: estimator_for(m.unary(4, epsilon=1.0))(np.array([3, 2, 3, 4]), 10).smoothed(), "got sets"),
        (
            lambda: estimator_for(m.grr(1025, epsilon=1.0), points=np.arange(1025.0))(
                np.ones(1025, dtype=int), 1025
            ).smoothed(),
            "K M <= 1048576, got 1050625",
        ),
        (lambda: maximise(np.eye(3), np.zeros(3)), "sum above 0, got a sum of 0"),
        (lambda: maximise(np.eye(3), np.ones(4)), r"counts must have shape \(3,\), got \(4,\)"),
    ],
)
def test_what_has_no_smoothed_view_says_why(ask, words):
    with pytest.raises(ParameterError, match=words):
        ask()
