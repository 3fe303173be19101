"""Going on where records are gone for good: only on an operator's explicit word, and never in silence.

Retention that passed the store, or a store that was lost too late to rebuild, leaves offsets that nobody can
count. Counting goes on past them only by `adopt`, which writes down which offsets they were. How many reports
lay in them nobody knows, so no tally can name them: a release of a round that may have lost some says which
offsets are missing, and its accounting holds for all that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.survey import Survey

if TYPE_CHECKING:
    from hubbub_aggregator.counting import PartitionState


@dataclass(frozen=True, slots=True)
class LostRange:
    """Offsets of a partition that were never counted.

    Attributes:
        first: The first of them.
        end: The offset after the last: the next one that was counted.
        adopted_s: When the operator gave the word, seconds since 1970: rounds that began later lost nothing.
    """

    first: int
    end: int
    adopted_s: int

    def touches(self, survey: Survey, number: int, sealed_at: int | None) -> bool:
        """Whether reports of a round may lie in it.

        Args:
            survey: The survey.
            number: The round.
            sealed_at: The offset of its seal in this partition, None while it is open.
        """
        sealed_before = sealed_at is not None and sealed_at < self.first
        return not sealed_before and survey.round_start_s(number) <= self.adopted_s + survey.skew_s


def lost_of(survey: Survey, number: int, states: Mapping[int, PartitionState]) -> list[dict[str, int]]:
    """The offsets that a round may have lost, as JSON types: partition, from, until (which is not lost)."""
    found = []
    for partition, state in sorted(states.items()):
        known = state.rounds.get((survey.digest, number))
        for lost in state.lost:
            if lost.touches(survey, number, None if known is None else known.sealed_at):
                found.append({"partition": partition, "from": lost.first, "until": lost.end})
    return found


def new_surveys(known: Iterable[bytes], announced: Iterable[Survey]) -> dict[bytes, Survey]:
    """The announced surveys that a partition has not heard of: their records may be among the lost ones."""
    heard = set(known)
    return {survey.digest: survey for survey in announced if survey.digest not in heard}
