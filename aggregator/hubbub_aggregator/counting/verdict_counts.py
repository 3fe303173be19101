"""The verdict counts of a round: attempts are always the sum of the verdicts."""

from __future__ import annotations

from typing import Final, NamedTuple


class VerdictCounts(NamedTuple):
    """The counts of every verdict among the reports that asked to be counted.

    Attributes:
        attempts: Everything that the gateway judged.
        accepted: Counted, once each.
        duplicate: Reports whose id had been accepted before.
        early: Rounds that had not begun.
        late: Rounds that were over (gateway) or sealed (here).
        invalid: Symbols or rounds that the survey does not have.
        over_quota: More than the round takes; old gateways refused some of them.
    """

    attempts: int = 0
    accepted: int = 0
    duplicate: int = 0
    early: int = 0
    late: int = 0
    invalid: int = 0
    over_quota: int = 0

    def __add__(self, other: VerdictCounts) -> VerdictCounts:  # type: ignore[override]  # sums, as numbers do
        return VerdictCounts(
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
        """True if attempts are the sum of the verdicts, and nothing is negative."""
        return self.attempts == sum(self[1:]) and min(self) >= 0

    def as_dict(self) -> dict[str, int]:
        """Return the numbers by name, attempts first."""
        return self._asdict()


NOTHING: Final = VerdictCounts()
