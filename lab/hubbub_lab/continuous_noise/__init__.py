"""Exact delta(epsilon) of continuous noise, boosted and mixed, and its composition; never on a device."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab.continuous_noise.boost import (
        AbsoluteRegion,
        BoostedNoise,
        FixedRegion,
        Interval,
        Region,
        boost_for,
        hardest,
    )
    from hubbub_lab.continuous_noise.direction import (
        Target,
        category_confidence,
        least_epsilon,
        least_epsilon_of_categories,
        most_boost_of_categories,
        most_confidence,
        narrowest_region,
    )
    from hubbub_lab.continuous_noise.noise import NoiseKernel
    from hubbub_lab.continuous_noise.noise_direction import NoiseDesign, NoiseTarget
    from hubbub_lab.continuous_noise.pair import PairLoss
    from hubbub_lab.continuous_noise.pair_search import PairSearch
    from hubbub_lab.continuous_noise.profile import Profile
    from hubbub_lab.continuous_noise.scaled import scaled

__all__ = [
    "AbsoluteRegion",
    "BoostedNoise",
    "FixedRegion",
    "Interval",
    "NoiseDesign",
    "NoiseKernel",
    "NoiseTarget",
    "PairLoss",
    "PairSearch",
    "Profile",
    "Region",
    "Target",
    "boost_for",
    "category_confidence",
    "hardest",
    "least_epsilon",
    "least_epsilon_of_categories",
    "most_boost_of_categories",
    "most_confidence",
    "narrowest_region",
    "scaled",
]

attach(
    __name__,
    {
        "hubbub_lab.continuous_noise.boost": (
            "AbsoluteRegion",
            "BoostedNoise",
            "FixedRegion",
            "Interval",
            "Region",
            "boost_for",
            "hardest",
        ),
        "hubbub_lab.continuous_noise.direction": (
            "Target",
            "category_confidence",
            "least_epsilon",
            "least_epsilon_of_categories",
            "most_boost_of_categories",
            "most_confidence",
            "narrowest_region",
        ),
        "hubbub_lab.continuous_noise.noise": ("NoiseKernel",),
        "hubbub_lab.continuous_noise.noise_direction": (
            "NoiseDesign",
            "NoiseTarget",
        ),
        "hubbub_lab.continuous_noise.pair": ("PairLoss",),
        "hubbub_lab.continuous_noise.pair_search": ("PairSearch",),
        "hubbub_lab.continuous_noise.profile": ("Profile",),
        "hubbub_lab.continuous_noise.scaled": ("scaled",),
    },
)
