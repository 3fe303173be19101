"""The state of a survey at a moment, in the words that node, agent and page share, and the count of rounds.

People and programs say a round's number, from 1: pages, tables, commands, the API, a release. Whatever is a
key has its index, from 0: reports, seals, ledgers, stores, archives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.survey.survey import Survey

StateName: TypeAlias = Literal["begins", "waiting", "open", "late", "over"]

MOST_STEPS: Final = 1000
"""The most steps in which an open round is shown, where as many answer as are planned."""

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))
"""Name and length in seconds of each unit above the second; two of a unit are told in it."""


@dataclass(frozen=True, slots=True)
class SurveyState:
    """The state of a survey at a moment.

    Attributes:
        name: "begins", its first round has not begun; "waiting", a round is open and nothing of it is shown
            yet; "open", a round is open; "late", its last round has ended and late reports are still taken;
            "over".
        words: The same for people, such as "begins in 3 h".
        round: The open round, its index; None while none is open.
        until_s: When the state ends by the clock alone, seconds since 1970; None for "over".
    """

    name: StateName
    words: str
    round: int | None = None
    until_s: int | None = None


def survey_state(survey: Survey, now_s: float, *, accepted: Mapping[int, int] | None = None) -> SurveyState:
    """Return the state of a survey.

    Args:
        survey: The survey.
        now_s: The moment, seconds since 1970.
        accepted: Accepted reports by a round's index; a round that is not in it has none. None where
            nobody has counted, as on a device.
    """
    if now_s < survey.start_s:
        left = duration_words(survey.start_s - now_s)
        return SurveyState("begins", f"begins in {left}", until_s=survey.start_s)
    last = survey.rounds - 1
    if (current := survey.round_at(now_s)) is not None:
        return _open(survey, current, now_s, accepted)
    over_s = survey.round_end_s(last) + survey.lateness_s
    if now_s < over_s:
        words = f"its last round has ended; late answers are taken for {duration_words(over_s - now_s)} more"
        return SurveyState("late", words, until_s=over_s)
    return SurveyState("over", _over(survey, accepted))


def number_of_round(index: int) -> int:
    """Return the number of a round, from 1, of its index."""
    return index + 1


def index_of_round(number: int) -> int:
    """Return the index of a round, from 0, of its number.

    Raises:
        ParameterError: The number is below 1.
    """
    if number < 1:
        raise ParameterError(f"a round's number must be at least 1, got {number}")
    return number - 1


def round_words(survey: Survey, index: int) -> str:
    """Return the name of a round: "round 2 of 5".

    Args:
        survey: The survey.
        index: The round's index.
    """
    return f"round {number_of_round(index):,} of {survey.rounds:,}"


def duration_words(seconds: float) -> str:
    """Return a length of time in one unit, rounded to it, and never as 0: "40 s", "3 h"."""
    whole = max(math.ceil(seconds), 1)
    for name, length in _UNITS:
        if whole >= 2 * length:
            return f"{round(whole / length):,} {name}"
    return f"{whole} s"


def step_of(survey: Survey) -> int:
    """Return how many reports a step of an open round waits for: a cohort, or a part of those planned."""
    return max(survey.minimum_cohort, 1, -(-survey.planned_per_round // MOST_STEPS))


def _open(survey: Survey, current: int, now_s: float, accepted: Mapping[int, int] | None) -> SurveyState:
    until_s = survey.round_end_s(current)
    ends = f"{round_words(survey, current)} ends in {duration_words(until_s - now_s)}"
    # The first numbers of an open round are shown when as many devices again have come after them.
    first = 2 * step_of(survey)
    if accepted is not None and accepted.get(current, 0) < first:
        words = f"waiting for the first {first:,} devices; {ends}"
        return SurveyState("waiting", words, current, until_s)
    return SurveyState("open", ends, current, until_s)


def _over(survey: Survey, accepted: Mapping[int, int] | None) -> str:
    if accepted is None:
        return "over"
    most = max(accepted.values(), default=0)
    if most == 0:
        return "over, nobody answered"
    if most < survey.minimum_cohort:
        return f"over, no round had the {survey.minimum_cohort:,} devices that a release needs"
    return "over"
