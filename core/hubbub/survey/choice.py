"""The choice of "auto" in a survey file, and the mechanisms that it was made among."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Compared:
    """One mechanism that a choice was made among.

    Attributes:
        mechanism: Its name in a survey file.
        parameters: Its other keys there.
        label: Both, as people read them.
        cost: The objective's value, a squared error of shares or of the mean, or a share of missed reports;
            inf where it cannot answer or does not fit.
        refusal: Why it does not fit, or "".
    """

    mechanism: str
    parameters: Mapping[str, float | int | str]
    label: str
    cost: float
    refusal: str


@dataclass(frozen=True)
class Choice:
    """The mechanism that "auto" chose when the file was compiled, and those that it was chosen among.

    It is the author's: canonical bytes hold the channel that was chosen, not what it was compared with.

    Attributes:
        objective: What mechanisms were judged by.
        devices: How many it was judged for.
        compared: All of them, the chosen one first, then by cost.
    """

    objective: str
    devices: int
    compared: tuple[Compared, ...]

    @property
    def mechanism(self) -> str:
        """Name of the chosen mechanism."""
        return self.compared[0].mechanism

    @property
    def parameters(self) -> Mapping[str, float | int | str]:
        """Its other keys in a survey file."""
        return self.compared[0].parameters

    @property
    def why(self) -> str:
        """The reason for the choice, in a sentence."""
        first, rest = self.compared[0], self.compared[1:]
        said = (
            f"least exact error for the objective {self.objective} with {self.devices:,} devices, of "
            f"{len(self.compared)} compared"
        )
        if not rest or not math.isfinite(rest[0].cost):
            return f"{said}; no other one answers it"
        ratio = rest[0].cost / first.cost
        how = f"{ratio:.4g} times its cost" if ratio > 1.001 else "the same cost to 0.1 %, and less simple"
        return f"{said}; next is {rest[0].label} at {how}"
