"""The simulator of many devices at once, by the agent's own decisions."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.simulation.device_simulator import Column, Fleet, FleetEnrolment
    from hubbub_deploy.simulation.upload import UploadCounts

__all__ = [
    "Column",
    "Fleet",
    "FleetEnrolment",
    "UploadCounts",
]

attach(
    __name__,
    {
        "hubbub_deploy.simulation.device_simulator": (
            "Column",
            "Fleet",
            "FleetEnrolment",
        ),
        "hubbub_deploy.simulation.upload": ("UploadCounts",),
    },
)
