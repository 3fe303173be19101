"""Estimates of several rounds side by side: the change between two, and a trend over all."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.estimation.rounds.change import (
        Difference,
        Ends,
        correlation,
        device_variances,
        difference,
        effective_sample_size,
        shared_devices,
    )
    from hubbub.estimation.rounds.trend import Trend, smoothed_trend

__all__ = [
    "Difference",
    "Ends",
    "Trend",
    "correlation",
    "device_variances",
    "difference",
    "effective_sample_size",
    "shared_devices",
    "smoothed_trend",
]

attach(
    __name__,
    {
        "hubbub.estimation.rounds.change": (
            "Difference",
            "Ends",
            "correlation",
            "device_variances",
            "difference",
            "effective_sample_size",
            "shared_devices",
        ),
        "hubbub.estimation.rounds.trend": ("Trend", "smoothed_trend"),
    },
)
