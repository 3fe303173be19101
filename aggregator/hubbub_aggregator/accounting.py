"""What became of everything that asked to be counted: attempts are the sum of the verdicts, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VERDICTS: Final = ("accepted", "duplicate", "early", "late", "invalid", "over_quota")


@dataclass(frozen=True, slots=True)
class Accounting:
    """What became of everything that asked to be counted.

    Attributes:
        attempts: Everything that the gateway judged.
        accepted: Counted, once each.
        duplicate: Reports whose id had been accepted before.
        early: Rounds that had not begun.
        late: Rounds that were over (gateway) or sealed (here).
        invalid: Symbols or rounds that the survey does not have.
        over_quota: More than the round takes.
    """

    attempts: int = 0
    accepted: int = 0
    duplicate: int = 0
    early: int = 0
    late: int = 0
    invalid: int = 0
    over_quota: int = 0

    def __add__(self, other: Accounting) -> Accounting:
        return Accounting(
            self.attempts + other.attempts,
            self.accepted + other.accepted,
            self.duplicate + other.duplicate,
            self.early + other.early,
            self.late + other.late,
            self.invalid + other.invalid,
            self.over_quota + other.over_quota,
        )

    @property
    def holds(self) -> bool:
        """Whether attempts are the sum of the verdicts, and nothing is negative."""
        verdicts = self.as_tuple()[1:]
        return self.attempts == sum(verdicts) and min(verdicts) >= 0

    def as_tuple(self) -> tuple[int, ...]:
        """The numbers in the order of the fields."""
        return (
            self.attempts,
            self.accepted,
            self.duplicate,
            self.early,
            self.late,
            self.invalid,
            self.over_quota,
        )

    def as_dict(self) -> dict[str, int]:
        """The numbers by name."""
        return dict(zip(("attempts", *VERDICTS), self.as_tuple(), strict=True))


NOTHING: Final = Accounting()
