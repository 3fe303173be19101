"""Boosted mechanisms for numbers on a grid, with the scalar mechanisms built like them."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.boosted.boosted import Absolute, Boosted, Fixed, Relative, boosted, brdp
    from hubbub_authoring.mechanisms.boosted.grid import Region
    from hubbub_authoring.mechanisms.boosted.kernels import KernelName
    from hubbub_authoring.mechanisms.boosted.r2dp import METRICS, Metric, r2dp
    from hubbub_authoring.mechanisms.boosted.scalar import (
        ScalarChannel,
        duchi,
        hybrid,
        piecewise,
        square_wave,
    )
    from hubbub_authoring.mechanisms.boosted.scale_laws import (
        Gamma,
        ScaleLaw,
        TruncatedGaussian,
        TwoPoint,
        UniformScale,
    )
    from hubbub_authoring.mechanisms.boosted.search import largest, least

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
        "hubbub_authoring.mechanisms.boosted.boosted": (
            "Absolute",
            "Boosted",
            "Fixed",
            "Relative",
            "boosted",
            "brdp",
        ),
        "hubbub_authoring.mechanisms.boosted.grid": ("Region",),
        "hubbub_authoring.mechanisms.boosted.kernels": ("KernelName",),
        "hubbub_authoring.mechanisms.boosted.r2dp": (
            "METRICS",
            "Metric",
            "r2dp",
        ),
        "hubbub_authoring.mechanisms.boosted.scalar": (
            "ScalarChannel",
            "duchi",
            "hybrid",
            "piecewise",
            "square_wave",
        ),
        "hubbub_authoring.mechanisms.boosted.scale_laws": (
            "Gamma",
            "ScaleLaw",
            "TruncatedGaussian",
            "TwoPoint",
            "UniformScale",
        ),
        "hubbub_authoring.mechanisms.boosted.search": (
            "largest",
            "least",
        ),
    },
)
