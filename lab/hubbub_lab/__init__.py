"""Proofs, simulation and evaluation; never on a device, never in a running server."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab import continuous_noise, evaluate, evaluation, filters, simulation

__all__ = ["continuous_noise", "evaluate", "evaluation", "filters", "simulation"]

attach(
    __name__,
    {
        "hubbub_lab.continuous_noise": (),
        "hubbub_lab.evaluate": (),
        "hubbub_lab.evaluation": (),
        "hubbub_lab.filters": (),
        "hubbub_lab.simulation": (),
    },
)
