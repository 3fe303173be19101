"""What a device may be asked at all: limits that its host sets, and what its owner said.

A no is never overridden: not by a yes to something else, not by the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hubbub.survey import Survey
from hubbub_client.errors import ClientError
from hubbub_client.schedule import Refusal


@dataclass(frozen=True, slots=True)
class Policy:
    """What the host lets surveys ask.

    Attributes:
        max_epsilon: Largest epsilon of one answer; None for no limit but the budget.
        attributes: Ids of attributes that surveys may ask for; None for every registered one.
        require_opt_in: "yes": the owner must have said yes to the survey or to every attribute that it asks
            for. "no": the host vouches that the owner agreed in another way; a no is heeded all the same.

    Raises:
        ClientError: If the largest epsilon is not above 0.
    """

    max_epsilon: float | None = None
    attributes: frozenset[str] | None = None
    require_opt_in: Literal["yes", "no"] = "yes"

    def __post_init__(self) -> None:
        if self.max_epsilon is not None and not self.max_epsilon > 0:
            raise ClientError(f"max_epsilon must be above 0, got {self.max_epsilon!r}")


def subject_of(asked: Survey | str) -> str:
    """What a yes or no is kept under: a survey's exact terms by its digest, or an attribute by its id.

    Another version of a survey has another digest, so that a yes to one is none to the other.
    """
    return f"survey:{asked.digest.hex()}" if isinstance(asked, Survey) else f"attribute:{asked}"


def consent(survey: Survey, policy: Policy, said: Mapping[str, bool]) -> Refusal | None:
    """Why a survey may not be answered for want of its owner's word or the host's leave; None if it may.

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
