"""The enrolment of a round: the share of the devices asked that is in it, and the bias of the rest.

Devices tell nobody that they refused: a refusal would be one more answer, seen even from those whose owner
said no. What is known is how many reports a round took, and what the operator states in public: how many
devices the survey was offered to, and the lifetime budget that all of them were shipped with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hubbub.errors import ParameterError
from hubbub.estimation import selection_bound
from hubbub.survey import Survey

_TURNS: Final = 2.33
"""Standard errors that the share of the absent is stated above its estimate, where devices answer in turn: by
the normal law it is too low in one round of a hundred."""


@dataclass(frozen=True, slots=True)
class FleetStatement:
    """The facts that an operator states about the devices.

    Attributes:
        asked: Devices that a survey was offered to, by its id; "" for every survey not named.
        budget: The lifetime epsilon of each device; None where it is not stated.

    Raises:
        ParameterError: If a number of devices is below 1, or the budget is not above 0.
    """

    asked: Mapping[str, int] = field(default_factory=dict)
    budget: float | None = None

    def __post_init__(self) -> None:
        for survey, devices in self.asked.items():
            if type(devices) is not int or devices < 1:
                raise ParameterError(
                    f"asked must be a number of devices, got {devices!r} for {survey or 'all'!r}"
                )
        if self.budget is not None and not (0 < self.budget < math.inf):
            raise ParameterError(f"fleet budget must be above 0, got {self.budget!r}")

    def of(self, survey: Survey, *, counted: int, enrolled: int) -> RoundEnrolment:
        """Return the enrolment of one round.

        Args:
            survey: The survey.
            counted: Reports accepted in the round.
            enrolled: The most reports of any round released so far, this one included.
        """
        asked = self.asked.get(survey.id, self.asked.get(""))
        # More reports than devices asked: the statement is wrong, or reports are forged. No rate follows.
        absent = None if asked is None or counted > asked else _absent(counted, asked, survey.rotation)
        return RoundEnrolment(enrolled, asked, absent, self.budget)


@dataclass(frozen=True, slots=True)
class RoundEnrolment:
    """The devices that are in a round, and those that are not.

    Attributes:
        enrolled: The most reports in one round so far: how many devices have joined, at least.
        asked: Devices that the survey was offered to, as stated; None if not stated.
        absent: The share of those asked that is not in this round, refused or absent; None if unknown. Of a
            rotating survey the largest that who had a turn by chance leaves possible.
        budget: Their lifetime epsilon, as stated; None if not stated.
    """

    enrolled: int
    asked: int | None
    absent: float | None
    budget: float | None

    def document(
        self, values: Sequence[Mapping[str, Any]], categories: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the enrolment as JSON types, with the bias bounds of a release's cells where they follow."""
        bias = None
        if self.absent is not None and self.budget is not None and values:
            bias = {"values": self._bounds(values), "categories": self._bounds(categories)}
        return {
            "enrolled": self.enrolled,
            "asked": self.asked,
            "absent": self.absent,
            "budget": self.budget,
            "bias": bias,
        }

    def _bounds(self, cells: Sequence[Mapping[str, Any]]) -> list[float]:
        ends = [[math.nan if cell[end] is None else cell[end] for cell in cells] for end in ("low", "high")]
        assert self.absent is not None and self.budget is not None  # noqa: S101 - see document
        found: list[float] = selection_bound(*ends, absent=self.absent, epsilon=self.budget).tolist()
        return found


def _absent(counted: int, asked: int, rotation: int) -> float:
    """Return the share of those asked that is not in a round; of a rotating survey its upper end.

    If a share 1 - d of the N asked would answer, each has its turn in this round with probability 1/w: the
    count n is binomial, and w n/N has the mean 1 - d and a variance of at most (w - 1)/N.
    """
    share = 1.0 - rotation * counted / asked + _TURNS * math.sqrt((rotation - 1) / asked)
    return min(max(share, 0.0), 1.0)
