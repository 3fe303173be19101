"""Filters and odometers to compare with the filter of devices."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab.filters.approximate import ApproximateFilter
    from hubbub_lab.filters.odometer import Odometer
    from hubbub_lab.filters.simplified import SimplifiedFilter

__all__ = ["ApproximateFilter", "Odometer", "SimplifiedFilter"]

attach(
    __name__,
    {
        "hubbub_lab.filters.approximate": ("ApproximateFilter",),
        "hubbub_lab.filters.odometer": ("Odometer",),
        "hubbub_lab.filters.simplified": ("SimplifiedFilter",),
    },
)
