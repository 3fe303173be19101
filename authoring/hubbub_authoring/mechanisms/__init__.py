"""Every mechanism, by the function that compiles it: core's and those that compile to core's kinds."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.category_grr import CategoryGRR
    from hubbub.mechanisms.grr import GRR, grr
    from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS
    from hubbub.mechanisms.hashing.local_hashing import LocalHashing, local_hashing
    from hubbub.mechanisms.integers import integerise
    from hubbub.mechanisms.levels.levels import Levels, levels
    from hubbub.mechanisms.levels.set_levels import SetLevels
    from hubbub.mechanisms.participation import with_dummy_reports
    from hubbub.mechanisms.pbgrr import PBGRR
    from hubbub.mechanisms.registry import channel_from_spec
    from hubbub.mechanisms.rounding import stochastic, stochastic_many
    from hubbub.mechanisms.subset import SubsetSelection, subset_selection
    from hubbub.mechanisms.unary import Unary, unary
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
    from hubbub_authoring.mechanisms.boosted.search import least
    from hubbub_authoring.mechanisms.neighbourhood import Neighbourhood, neighbourhood
    from hubbub_authoring.mechanisms.pbgrr import pbgrr
    from hubbub_authoring.mechanisms.registry import REGISTERED

__all__ = [
    "GRR",
    "MAX_SYMBOLS",
    "METRICS",
    "PBGRR",
    "REGISTERED",
    "Absolute",
    "Boosted",
    "CategoryGRR",
    "Fixed",
    "Gamma",
    "KernelName",
    "Levels",
    "LocalHashing",
    "Metric",
    "Neighbourhood",
    "Region",
    "Relative",
    "ScalarChannel",
    "ScaleLaw",
    "SetLevels",
    "SubsetSelection",
    "TruncatedGaussian",
    "TwoPoint",
    "Unary",
    "UniformScale",
    "boosted",
    "brdp",
    "channel_from_spec",
    "duchi",
    "grr",
    "hybrid",
    "integerise",
    "least",
    "levels",
    "local_hashing",
    "neighbourhood",
    "pbgrr",
    "piecewise",
    "r2dp",
    "square_wave",
    "stochastic",
    "stochastic_many",
    "subset_selection",
    "unary",
    "with_dummy_reports",
]

attach(
    __name__,
    {
        "hubbub.mechanisms.category_grr": ("CategoryGRR",),
        "hubbub.mechanisms.grr": (
            "GRR",
            "grr",
        ),
        "hubbub.mechanisms.hashing.hash_pool": ("MAX_SYMBOLS",),
        "hubbub.mechanisms.hashing.local_hashing": (
            "LocalHashing",
            "local_hashing",
        ),
        "hubbub.mechanisms.integers": ("integerise",),
        "hubbub.mechanisms.levels.levels": (
            "Levels",
            "levels",
        ),
        "hubbub.mechanisms.levels.set_levels": ("SetLevels",),
        "hubbub.mechanisms.participation": ("with_dummy_reports",),
        "hubbub.mechanisms.pbgrr": ("PBGRR",),
        "hubbub.mechanisms.registry": ("channel_from_spec",),
        "hubbub.mechanisms.rounding": (
            "stochastic",
            "stochastic_many",
        ),
        "hubbub.mechanisms.subset": (
            "SubsetSelection",
            "subset_selection",
        ),
        "hubbub.mechanisms.unary": (
            "Unary",
            "unary",
        ),
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
        "hubbub_authoring.mechanisms.boosted.search": ("least",),
        "hubbub_authoring.mechanisms.neighbourhood": (
            "Neighbourhood",
            "neighbourhood",
        ),
        "hubbub_authoring.mechanisms.pbgrr": ("pbgrr",),
        "hubbub_authoring.mechanisms.registry": ("REGISTERED",),
    },
)
