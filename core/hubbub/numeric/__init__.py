"""Exact rationals, outward rounding and randomness."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.numeric.exact import HEADROOM, MAX_EPSILON, MIN_EPSILON, checked_epsilon, exp_below, log_above
    from hubbub.numeric.randomness import MAX_TOTAL, SYSTEM, Source, UniformInteger, Words, bernoulli

__all__ = [
    "HEADROOM",
    "MAX_EPSILON",
    "MAX_TOTAL",
    "MIN_EPSILON",
    "SYSTEM",
    "Source",
    "UniformInteger",
    "Words",
    "bernoulli",
    "checked_epsilon",
    "exp_below",
    "log_above",
]

attach(
    __name__,
    {
        "hubbub.numeric.exact": (
            "HEADROOM",
            "MAX_EPSILON",
            "MIN_EPSILON",
            "checked_epsilon",
            "exp_below",
            "log_above",
        ),
        "hubbub.numeric.randomness": (
            "MAX_TOTAL",
            "SYSTEM",
            "Source",
            "UniformInteger",
            "Words",
            "bernoulli",
        ),
    },
)
