"""Kernels have the shapes of their formulas and keep epsilon in every region; recycling is boosting."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract

from hubbub.errors import ParameterError
from hubbub_authoring import mechanisms as m
from hubbub_authoring.mechanisms.boosted.grid import grid_of
from hubbub_authoring.mechanisms.boosted.kernels import GridKernel
from hubbub_authoring.mechanisms.boosted.scale_laws import Gamma, TwoPoint

LAW = TwoPoint(fast=5.0, slow=1.0, share=0.3)
KERNELS = {
    "laplace": {},
    "gaussian": {},
    "r2dp": {"law": LAW},
    "staircase": {},
}
REGIONS = {
    "absolute": m.Absolute(2),
    "searched": m.Absolute(),
    "relative": m.Relative(0.25, 1.0),
    "relative about the middle": m.Relative(0.5, 0.5, origin=4.0),
    "fixed": m.Fixed(1, 5),
}


class TestKernels(MechanismContract):
    cases: ClassVar = {
        "gaussian, relative": Case(
            lambda: m.boosted(13, epsilon=1.0, kernel="gaussian", region=m.Relative(0.2, 1.0)),
            1.0,
            "f475e16c044a8745f990afd23a99be499ee710baa08a58343551cf3e05de0b52",
        ),
        "r2dp, absolute, missing": Case(
            lambda: m.boosted(
                9, epsilon=3.0, kernel="r2dp", law=LAW, region=m.Absolute(2), boost=0.5, missing="input"
            ),
            3.0,
            "c0c0e5c2d2e440ac47da9ba91eff88a5407a80c7a5bcae94cf0c46d20f8f30e9",
        ),
        "staircase, fixed": Case(
            lambda: m.boosted(11, epsilon=4.0, kernel="staircase", region=m.Fixed(2, 8), boost=0.3),
            4.0,
            "63445e44832278cc81dd1d234aae809d8350a5a0e8dc259cfed53a9c23ce7957",
        ),
        "recycled gaussian": Case(
            lambda: m.brdp(11, epsilon=2.0, half_width=2, kernel="gaussian", kernel_epsilon=0.5),
            2.0,
            "29c89ea80c448673e839b42561fd954d93ba678ff14dbb4e404d733750f5d8fe",
        ),
    }


@pytest.mark.parametrize("missing", ["none", "input"])
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_uses_up_its_epsilon_in_every_region(kernel, region, missing):
    boost = {"boost": 0.4} if region == "fixed" else {}
    channel = m.boosted(
        9, epsilon=1.5, kernel=kernel, region=REGIONS[region], missing=missing, **KERNELS[kernel], **boost
    )
    assert channel.epsilon <= 1.5
    assert channel.epsilon == pytest.approx(1.5, rel=3e-6)
    assert math.isfinite(channel.design.mean_variance)


def shape(kernel, d, spread):
    if kernel == "gaussian":
        return math.exp(-spread * d * d)
    if kernel == "staircase":
        first = round(8 / (1 + math.exp(spread / 2))) / 8
        level = math.floor(d)
        return math.exp(-spread * (level + (d - level >= first)))
    factor = LAW.fitted(spread, 1.0).fast
    weights = [(5.0, 0.3), (1.0, 0.7)]
    top = sum(p * u for u, p in weights)
    return sum(p * u * math.exp(-u * d * factor / 5.0) for u, p in weights) / top


@pytest.mark.parametrize("kernel", ["gaussian", "r2dp", "staircase"])
def test_rows_follow_the_kernel_and_the_boost(kernel):
    channel = m.boosted(
        9,
        epsilon=3.0,
        kernel=kernel,
        region=m.Relative(0.25, 1.0),
        kernel_epsilon=0.8,
        boost=0.5,
        margin=4,
        **KERNELS[kernel],
    )
    for x in range(9):
        wanted = np.array(
            [
                shape(kernel, abs(y - x) / 8, 0.8) * (1.0 if abs(y - x) <= 0.25 * x + 1 else 0.5)
                for y in range(-4, 13)
            ]
        )
        np.testing.assert_allclose(channel.row(x) / channel.total, wanted / wanted.sum(), rtol=1e-5)


@pytest.mark.parametrize("kernel", ["laplace", "r2dp", "staircase"])
def test_kernel_epsilon_is_the_kernels_epsilon_when_its_tails_are_long(kernel):
    spread = 2.0
    found = GridKernel(kernel, KERNELS[kernel].get("law"))
    assert found.epsilon_of(found.spread_of(spread)) == pytest.approx(spread, abs=1e-9)
    weights = found.weights(8, 400, found.spread_of(spread))
    both = np.r_[weights[:0:-1], weights]
    ratios = [np.abs(np.log(both[d:]) - np.log(both[: len(both) - d])).max() for d in range(1, 9)]
    assert max(ratios) == pytest.approx(spread, abs=1e-9)


def test_gaussian_is_of_finite_epsilon_because_it_is_cut():
    """The log-ratio is largest at the far end: spread ((1 + margin)^2 - margin^2), but for the rows' sums."""
    for margin in (0, 4, 8):
        rows = grid_of(9, GridKernel("gaussian"), m.Absolute(0), margin).rows(1.0, 0.0)
        share = margin / 8
        sums = math.log(rows[4].max() / rows[0].max())
        epsilon = np.log(rows.max(axis=0) / rows.min(axis=0)).max()
        assert epsilon == pytest.approx(1.0 + 2.0 * share, abs=abs(sums) + 1e-9)


def test_relative_region_widens_with_the_value():
    inside = grid_of(9, GridKernel("laplace"), m.Relative(0.5, 1.0, origin=4.0), None).inside
    assert inside.sum(axis=1).tolist() == [7, 5, 5, 3, 3, 3, 5, 5, 7]
    assert grid_of(9, GridKernel("laplace"), m.Relative(0.5, 1.0, origin=4.0), None).margin == 3


@pytest.mark.parametrize("kernel", ["laplace", "gaussian", "staircase"])
def test_recycling_noise_until_it_is_released_has_the_boosted_law(kernel):
    """The recycler as a chain: draw; inside, release; outside, release with 1 - q, else draw again."""
    channel = m.brdp(9, epsilon=2.0, half_width=2, kernel=kernel, kernel_epsilon=0.7, margin=5)
    q = channel.design.boost
    grid = grid_of(9, GridKernel(kernel), m.Absolute(2), 5)
    drawn = grid.rows(0.7, 0.0)
    released, pending = np.zeros_like(drawn), np.ones((9, 1))
    for _ in range(300):
        released += pending * np.where(grid.inside, drawn, (1 - q) * drawn)
        pending = pending * q * np.where(grid.inside, 0.0, drawn).sum(axis=1, keepdims=True)
    assert pending.max() < 1e-20
    np.testing.assert_allclose(channel.weights() / channel.total, released, atol=2e-7)


def test_recycled_outputs_are_acceptable_as_often_as_the_design_says():
    channel = m.brdp(21, epsilon=3.0, half_width=3, recycling=0.8)
    rows = channel.weights() / channel.total
    inside = grid_of(21, GridKernel("laplace"), m.Absolute(3), 3).inside
    assert (rows * inside).sum(axis=1).min() == pytest.approx(channel.design.confidence, abs=1e-6)
    assert channel.design.confidence > m.brdp(21, epsilon=3.0, half_width=3, recycling=0.0).design.confidence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "r2dp"}, "law must be a scale law for kernel r2dp"),
        ({"law": Gamma(2.0, 1.0)}, "law must be a scale law for kernel r2dp, and only there"),
        ({"region": m.Relative(-0.1, 1.0)}, r"region.share must be a number in \[0"),
        ({"region": m.Relative(0.1, -1.0)}, r"region.half_width must be a number in \[0"),
        ({"region": m.Relative(0.1, 1.0, math.nan)}, "region.origin must be a number"),
        (
            {"kernel": "gaussian", "kernel_epsilon": 9.0, "region": m.Absolute(1)},
            "kernel_epsilon must be at most",
        ),
    ],
)
def test_wrong_kernels_and_regions_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        m.boosted(9, **({"epsilon": 1.0} | arguments))


def test_half_width_of_budget_recycling_is_refused_by_name():
    with pytest.raises(ParameterError, match=r"half_width must be a number in \[0"):
        m.brdp(9, epsilon=1.0, half_width=-1)
