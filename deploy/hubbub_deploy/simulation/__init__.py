"""The simulator of many devices at once, by the agent's own decisions."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.simulation.device_simulator import Column, DeviceSimulator, SimulatedEnrolment
    from hubbub_deploy.simulation.session import SentRound, Session, Traffic, fetch_surveys, released
    from hubbub_deploy.simulation.tokens import TokenPool
    from hubbub_deploy.simulation.upload import UploadCounts

__all__ = [
    "Column",
    "DeviceSimulator",
    "SentRound",
    "Session",
    "SimulatedEnrolment",
    "TokenPool",
    "Traffic",
    "UploadCounts",
    "fetch_surveys",
    "released",
]

attach(
    __name__,
    {
        "hubbub_deploy.simulation.device_simulator": (
            "Column",
            "DeviceSimulator",
            "SimulatedEnrolment",
        ),
        "hubbub_deploy.simulation.session": (
            "SentRound",
            "Session",
            "Traffic",
            "fetch_surveys",
            "released",
        ),
        "hubbub_deploy.simulation.tokens": ("TokenPool",),
        "hubbub_deploy.simulation.upload": ("UploadCounts",),
    },
)
