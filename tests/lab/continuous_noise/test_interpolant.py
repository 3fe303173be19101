"""Chebyshev panels: as good as the function itself, near its zeros too, and over the whole half line."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub_authoring.mechanisms.boosted.scale_laws import TruncatedGaussian, UniformScale
from hubbub_lab.continuous_noise.random_scale import Interpolant, RandomScale

WHERE = np.concatenate([[0.0], np.geomspace(1e-9, 1e12, 4001)])


@pytest.mark.parametrize(
    "law",
    [
        UniformScale(0.3, 2.5),
        UniformScale(0.0, 1e-6),
        TruncatedGaussian(0.9, 0.7, 0.2, 4.0),
        TruncatedGaussian(-1.0, 0.8, 0.3),
        TruncatedGaussian(5.0, 0.1, 0.0),
    ],
)
def test_one_distance_at_a_time_gives_what_many_at_once_give(law):
    """The last law's transform has zeros close to the axis, at w = 500 and beyond."""
    kernel = RandomScale(law)
    logs, totals = kernel._logs(WHERE), kernel._log_totals(WHERE)
    # beside the largest summand, which is where digits are lost
    allowed = 1e-13 * np.maximum(1.0, np.abs(logs))
    assert (np.abs([kernel._log(w) for w in WHERE.tolist()] - logs) <= allowed).all()
    assert (np.abs([kernel._log_total(w) for w in WHERE.tolist()] - totals) <= allowed).all()


def test_panels_are_halved_where_a_zero_is_near():
    def function(w):
        return np.log((w - 10.0) ** 2 + 0.04)

    found = Interpolant(function, 1.0)
    for w in np.linspace(0.0, 40.0, 997).tolist():
        assert found(w) == pytest.approx(function(w), rel=1e-12, abs=1e-12)


def test_a_function_that_is_not_smooth_is_given_up_in_time():
    found = Interpolant(lambda w: np.abs(w - 3.3), 1.0)
    assert found(3.0) == pytest.approx(0.3, abs=1e-2)
