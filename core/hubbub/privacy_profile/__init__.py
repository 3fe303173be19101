"""Exact delta(epsilon) of continuous noise, boosted and mixed, and its composition; never on a device."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.privacy_profile.boost import (
        AbsoluteRegion,
        BoostedNoise,
        FixedRegion,
        Interval,
        Region,
        boost_for,
        hardest,
    )
    from hubbub.privacy_profile.noise import NoiseKernel
    from hubbub.privacy_profile.pair import PairLoss
    from hubbub.privacy_profile.pair_search import PairSearch
    from hubbub.privacy_profile.profile import Profile
    from hubbub.privacy_profile.scaled import scaled

__all__ = [
    "AbsoluteRegion",
    "BoostedNoise",
    "FixedRegion",
    "Interval",
    "NoiseKernel",
    "PairLoss",
    "PairSearch",
    "Profile",
    "Region",
    "boost_for",
    "hardest",
    "scaled",
]

attach(
    __name__,
    {
        "hubbub.privacy_profile.boost": (
            "AbsoluteRegion",
            "BoostedNoise",
            "FixedRegion",
            "Interval",
            "Region",
            "boost_for",
            "hardest",
        ),
        "hubbub.privacy_profile.noise": ("NoiseKernel",),
        "hubbub.privacy_profile.pair": ("PairLoss",),
        "hubbub.privacy_profile.pair_search": ("PairSearch",),
        "hubbub.privacy_profile.profile": ("Profile",),
        "hubbub.privacy_profile.scaled": ("scaled",),
    },
)
