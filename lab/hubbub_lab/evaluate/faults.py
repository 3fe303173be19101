"""The faults of an evaluation: what goes wrong between devices and collector, as shares."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

WORDS: Final = {
    "loss": "reports that never arrive",
    "duplicates": "reports that are sent twice",
    "skew": "devices whose clock is a round ahead: their reports are early",
    "fakes": "reports of liars for every honest device; they claim the first value",
    "drift": "devices that hold the next value when the round is over: the truth has moved on",
}
"""The meaning of each share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultMix:
    """A mix of faults that happen together; each is a share from 0 to 1, see `WORDS`."""

    loss: float = 0.0
    duplicates: float = 0.0
    skew: float = 0.0
    fakes: float = 0.0
    drift: float = 0.0

    @classmethod
    def parse(cls, text: str) -> FaultMix:
        """Return the faults of a text such as "loss=0.1+fakes=0.01", or "none".

        Raises:
            ValueError: If a fault is unknown or given twice, or a share is none.
        """
        found: dict[str, float] = {}
        for part in [] if text == "none" else text.split("+"):
            name, _, number = part.partition("=")
            if name not in WORDS:
                raise ValueError(f"a fault must be one of {', '.join(WORDS)}, got {name!r}")
            if name in found:
                raise ValueError(f"a fault must be given once, got {name} again in {text!r}")
            try:
                found[name] = float(number)
            except ValueError:
                found[name] = -1.0
            if not 0.0 <= found[name] <= 1.0:
                raise ValueError(f"{name} must be a share from 0 to 1, got {number!r}")
        return cls(**found)

    @property
    def label(self) -> str:
        """The faults as the command line has them; "none" without any."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return "+".join(f"{name}={share:g}" for name, share in given.items() if share) or "none"
