"""Boosted mechanisms for numbers on a grid, with the scalar mechanisms built like them."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.boosted.boosted import Absolute, Boosted, Fixed, Relative, boosted, brdp
    from hubbub.mechanisms.boosted.grid import Region
    from hubbub.mechanisms.boosted.kernels import KernelName
    from hubbub.mechanisms.boosted.r2dp import METRICS, Metric, r2dp
    from hubbub.mechanisms.boosted.scalar import ScalarChannel, duchi, hybrid, piecewise, square_wave
    from hubbub.mechanisms.boosted.scale_laws import (
        Gamma,
        ScaleLaw,
        TruncatedGaussian,
        TwoPoint,
        UniformScale,
    )
    from hubbub.mechanisms.boosted.search import largest, least

__all__ = [
    "METRICS",
    "Absolute",
    "Boosted",
    "Fixed",
    "Gamma",
    "KernelName",
    "Metric",
    "Region",
    "Relative",
    "ScalarChannel",
    "ScaleLaw",
    "TruncatedGaussian",
    "TwoPoint",
    "UniformScale",
    "boosted",
    "brdp",
    "duchi",
    "hybrid",
    "largest",
    "least",
    "piecewise",
    "r2dp",
    "square_wave",
]

attach(
    __name__,
    {
        "hubbub.mechanisms.boosted.boosted": (
            "Absolute",
            "Boosted",
            "Fixed",
            "Relative",
            "boosted",
            "brdp",
        ),
        "hubbub.mechanisms.boosted.grid": ("Region",),
        "hubbub.mechanisms.boosted.kernels": ("KernelName",),
        "hubbub.mechanisms.boosted.r2dp": (
            "METRICS",
            "Metric",
            "r2dp",
        ),
        "hubbub.mechanisms.boosted.scalar": (
            "ScalarChannel",
            "duchi",
            "hybrid",
            "piecewise",
            "square_wave",
        ),
        "hubbub.mechanisms.boosted.scale_laws": (
            "Gamma",
            "ScaleLaw",
            "TruncatedGaussian",
            "TwoPoint",
            "UniformScale",
        ),
        "hubbub.mechanisms.boosted.search": (
            "largest",
            "least",
        ),
    },
)
