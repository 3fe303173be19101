"""The limits of what a device may be asked: those that its host sets, and the owner's answers.

A no is never overridden: not by a yes to something else, not by the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from hubbub.survey import Survey
from hubbub_client.errors import ClientError
from hubbub_client.surveys.load import SurveyLoad
from hubbub_client.surveys.schedule import Refusal

MAX_SLOTS: Final = 10_000
"""Answers of one survey that cost budget: a round an hour for a year. Each is a row that is read at every
opening, whatever it costs, and a survey announces 100,000 of them in 141 bytes."""

MAX_LEDGER_SLOTS: Final = 50_000
"""The most answers of all surveys since the last `forget`: some seconds of reading at every opening."""

MAX_LEDGER_BYTES: Final = 2**26
"""Canonical bytes of all surveys ever joined, which are read at every opening: tens of thousands of ordinary
ones, four of the largest."""

MAX_LEDGER_WORK: Final = 2**33
"""Comparisons of two weights that opening makes, see `SurveyLoad`: some five seconds. A grid of 1,000 points
takes a sixth of it, one of 100 points a four-hundredth."""

MAX_LEDGER_MEMORY: Final = 2**29
"""Bytes that what surveys say takes in memory once the ledger is open: 512 MiB, sixty of the largest."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The host's limits on surveys.

    Attributes:
        max_epsilon: Largest epsilon of one answer; None for no limit but the budget.
        attributes: Ids of attributes that surveys may ask for; None for every registered one.
        require_opt_in: "yes": the owner must have said yes to the survey or to every attribute that it asks
            for. "no": the host vouches that the owner agreed in another way; a no is heeded all the same.
        max_slots: Most answers that cost budget of one survey: its rounds, its cycles if it rotates, or one
            if all its attributes are static.
        max_ledger_slots: Most answers that cost budget of all surveys that were joined since the last
            `forget`.
        max_ledger_bytes: Most canonical bytes of all surveys ever joined.
        max_ledger_work: Most comparisons of two weights that opening the ledger makes, 2 x 10^9 a second.
        max_ledger_memory: Most bytes that it then holds of surveys and their divergences. Both count the
            answers that were reserved since the last `forget`.

    Raises:
        ClientError: If the largest epsilon is not above 0, or another limit is below 1.
    """

    max_epsilon: float | None = None
    attributes: frozenset[str] | None = None
    require_opt_in: Literal["yes", "no"] = "yes"
    max_slots: int = MAX_SLOTS
    max_ledger_slots: int = MAX_LEDGER_SLOTS
    max_ledger_bytes: int = MAX_LEDGER_BYTES
    max_ledger_work: int = MAX_LEDGER_WORK
    max_ledger_memory: int = MAX_LEDGER_MEMORY

    def __post_init__(self) -> None:
        if self.max_epsilon is not None and not self.max_epsilon > 0:
            raise ClientError(f"max_epsilon must be above 0, got {self.max_epsilon!r}")
        for name in _COUNTS:
            if not getattr(self, name) >= 1:
                raise ClientError(f"{name} must be at least 1, got {getattr(self, name)!r}")

    def holds(self, slots: int, *, ledger_slots: int, ledger_bytes: int, ledger_load: SurveyLoad) -> bool:
        """Return whether a survey keeps within the limits.

        Args:
            slots: Slots of the survey, with those that were reserved before.
            ledger_slots: Slots of the whole ledger, the survey's included.
            ledger_bytes: Canonical bytes of all surveys in the ledger, this one's included.
            ledger_load: Work and memory of the whole ledger, the survey's included.
        """
        return (
            slots <= self.max_slots
            and ledger_slots <= self.max_ledger_slots
            and ledger_bytes <= self.max_ledger_bytes
            and ledger_load.work <= self.max_ledger_work
            and ledger_load.held <= self.max_ledger_memory
        )


_COUNTS: Final = ("max_slots", "max_ledger_slots", "max_ledger_bytes", "max_ledger_work", "max_ledger_memory")


def subject_of(asked: Survey | str) -> str:
    """Return the subject of a yes or no: a survey's digest, or an attribute's id.

    Another version of a survey has another digest, so that a yes to one is none to the other.
    """
    return f"survey:{asked.digest.hex()}" if isinstance(asked, Survey) else f"attribute:{asked}"


def consent(survey: Survey, policy: Policy, said: Mapping[str, bool]) -> Refusal | None:
    """Return why the host or the owner does not allow a survey, None if both do.

    Args:
        survey: The survey.
        policy: The host's limits.
        said: Subject to yes or no.
    """
    asked = [attribute.id for attribute in survey.attributes]
    if policy.attributes is not None and not policy.attributes.issuperset(asked):
        return "not_allowed"
    to_survey = said.get(subject_of(survey))
    to_attributes = [said.get(subject_of(attribute_id)) for attribute_id in asked]
    if False in (to_survey, *to_attributes):
        return "opted_out"
    if policy.require_opt_in == "yes" and not (to_survey or all(to_attributes)):
        return "not_opted_in"
    return None
