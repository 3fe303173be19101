"""The simulator of many devices at once, by the agent's own decisions."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.simulation.device_simulator import Column, DeviceSimulator, SimulatedEnrolment
    from hubbub_deploy.simulation.upload import UploadCounts

__all__ = [
    "Column",
    "DeviceSimulator",
    "SimulatedEnrolment",
    "UploadCounts",
]

attach(
    __name__,
    {
        "hubbub_deploy.simulation.device_simulator": (
            "Column",
            "DeviceSimulator",
            "SimulatedEnrolment",
        ),
        "hubbub_deploy.simulation.upload": ("UploadCounts",),
    },
)
