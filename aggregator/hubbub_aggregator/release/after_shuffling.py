"""A release's epsilon for readers who have it and nothing else: a statement beside the release, no promise.

Nothing here is part of a release: its bytes stay, and releases of any age get the statement. It follows from
the channel, the number of reports and DELTA (`hubbub.shuffling.epsilon_after_shuffling`), and presumes that
so many reports are honest. Two readers are told apart. One has the release alone: everybody's reports hide
everybody's. The other watched the round while it was open: its estimates moved in steps of at least the
minimum cohort, so a person is hidden by the reports of one step. Whoever sees single reports, such as a
collector, has the certified epsilon, which holds against everybody.

Memoised answers of several rounds repeat their noise: nothing is stated for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeAlias

from hubbub.errors import ParameterError
from hubbub.shuffling import epsilon_after_shuffling
from hubbub.survey import Survey

Document: TypeAlias = Mapping[str, Any]

DELTA: Final = 1e-6
"""The delta of every statement."""

MOST_WORK: Final = 2**18
"""The most pairs of inputs times outputs of a table without symmetries: about a second, once a survey."""

MOST_REPORTS: Final = 10**6
"""The most reports that are reckoned with: a second of work."""

ASSUMPTION: Final = (
    "a statement about this round, not a promise, and no budget counts by it: epsilon is for readers of this "
    "release alone and watched_epsilon for those who watched the round while it was open, if so many reports "
    "are honest; whoever sees single reports, such as the collector, has the certified epsilon"
)
"""The words that stand beside every statement."""

_DIGITS: Final = 3


class ShufflingStatements:
    """The statements of one process, each number reckoned once for a survey and a number of reports."""

    _known: ClassVar[dict[tuple[bytes, int], float | None]] = {}

    def of(self, survey: Survey | None, release: Document) -> dict[str, Any] | None:
        """Return the statement about a release as JSON types; None where there is none.

        There is none of a suppressed round, of memoised answers in several rounds, of a survey that nobody
        announced, and of a channel that is too large to look at.

        Args:
            survey: The survey, if it is known.
            release: A sealed round.
        """
        if survey is None or release["suppressed"] or _is_repeated(survey):
            return None
        groups = _groups(release)
        reports = one_digit(min(groups))
        # Steps of the round and parts of it by issuer cut each other, into groups that may be of one report.
        watched = 1 if len(groups) > 1 else one_digit(min(reports, max(survey.minimum_cohort, 1)))
        epsilon, watched_epsilon = (self._epsilon(survey, n) for n in (reports, watched))
        if epsilon is None or watched_epsilon is None:
            return None
        return {
            "delta": DELTA,
            "reports": reports,
            "epsilon": epsilon,
            "watched_reports": watched,
            "watched_epsilon": watched_epsilon,
            "assumption": ASSUMPTION,
        }

    def _epsilon(self, survey: Survey, reports: int) -> float | None:
        key = (survey.digest, reports)
        if key not in self._known:
            self._known[key] = _reckoned(survey, reports)
        return self._known[key]


def one_digit(count: int) -> int:
    """Return a count rounded down to one digit, MOST_REPORTS at most.

    Fewer reports hide a person less, so a number for them holds; and rounds of about a size share one number,
    so that many releases are stated in little time.

    >>> one_digit(20_190), one_digit(199), one_digit(12), one_digit(0)
    (20000, 100, 10, 0)
    """
    scale = int(10 ** (len(str(count)) - 1))
    return min(count // scale * scale, MOST_REPORTS)


def _reckoned(survey: Survey, reports: int) -> float | None:
    certified = survey.channel.epsilon
    if reports < 2:
        return certified
    try:
        found = epsilon_after_shuffling(survey.channel, reports, DELTA, most_work=MOST_WORK)
    except ParameterError:
        return None
    return min(_rounded_up(found), certified)


def _rounded_up(number: float) -> float:
    if number <= 0.0:
        return 0.0
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(number)))
    return math.ceil(number * scale) / scale


def _is_repeated(survey: Survey) -> bool:
    return survey.rounds > 1 and all(attribute.kind == "static" for attribute in survey.attributes)


def _groups(release: Document) -> list[int]:
    """Return the groups of reports that a release tells apart: all are one, but where it compares issuers."""
    groups = [int(line["accepted"]) for line in release.get("issuers", ())]
    groups.append(int(release["devices"]) - sum(groups))
    return [group for group in groups if group > 0] or [0]
