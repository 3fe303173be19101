"""Offsets that were never counted, by an operator's word: a value that a partition's state holds."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.survey import Survey


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range of offsets of a partition that were never counted.

    Attributes:
        first: The first of them.
        end: The offset after the last: the next one that was counted.
        skipped_s: When the operator gave the word, seconds since 1970: rounds that began later lost nothing.
    """

    first: int
    end: int
    skipped_s: int

    def touches(self, survey: Survey, number: int, sealed_at: int | None) -> bool:
        """Return whether reports of a round may lie in it.

        Args:
            survey: The survey.
            number: The round.
            sealed_at: The offset of its seal in this partition, None while it is open.
        """
        sealed_before = sealed_at is not None and sealed_at < self.first
        return not sealed_before and survey.round_start_s(number) <= self.skipped_s + survey.skew_s
