"""The simulator of many devices at once, by the agent's own decisions."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab.simulation.device_simulator import Column, DeviceSimulator, SimulatedEnrolment
    from hubbub_lab.simulation.session import SentRound, Session, Traffic, fetch_surveys, released
    from hubbub_lab.simulation.tokens import TokenPool
    from hubbub_lab.simulation.upload import UploadCounts

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
        "hubbub_lab.simulation.device_simulator": (
            "Column",
            "DeviceSimulator",
            "SimulatedEnrolment",
        ),
        "hubbub_lab.simulation.session": (
            "SentRound",
            "Session",
            "Traffic",
            "fetch_surveys",
            "released",
        ),
        "hubbub_lab.simulation.tokens": ("TokenPool",),
        "hubbub_lab.simulation.upload": ("UploadCounts",),
    },
)
