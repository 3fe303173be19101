"""The checks of strict mode: what an app gets wrong in silence raises while the app is developed.

A device that serves its owner never raises on a value: what it sends must not depend on an error. So strict
mode is for development and tests. Its errors name the attribute, its rule and the type of what was given,
never the value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from hubbub.survey import Attribute, DictionaryDomain, IntegerDomain, LabelDomain, SetDomain, Survey
from hubbub_client.agent.encoded_value import encode
from hubbub_client.agent.policy import Policy
from hubbub_client.errors import AttributeRefusedError, ClientError

ENVIRONMENT: Final = "HUBBUB_STRICT"
"""The environment variable that makes every agent of a process strict: 1 or 0."""


def strict_mode(asked: bool | None) -> bool:
    """Return whether an agent is strict: as it was asked, else as the environment says, else not.

    Raises:
        ClientError: The environment says neither 0 nor 1.
    """
    if asked is not None:
        return asked
    said = os.environ.get(ENVIRONMENT, "0")
    if said not in {"", "0", "1"}:
        raise ClientError(f"{ENVIRONMENT} must be 0 or 1, got {said!r}")
    return said == "1"


def check_value(attribute: Attribute, value: object) -> None:
    """Accept None and every value in the domain, and refuse all others.

    Raises:
        AttributeRefusedError: The value is outside the domain, so that it would count as missing.
    """
    if value is not None and encode(attribute, value) == encode(attribute, None):
        raise AttributeRefusedError(
            f"a value of attribute {attribute.id!r} must be {_rule(attribute)}, or None for missing, got "
            f"one of type {type(value).__name__} that is not"
        )


def _rule(attribute: Attribute) -> str:
    """Return the rule of an attribute's domain in words."""
    domain = attribute.domain
    if isinstance(domain, SetDomain):
        return "a collection of its items"
    if isinstance(domain, DictionaryDomain):
        return "a text of its dictionary"
    if isinstance(domain, LabelDomain):
        return f"one of its {len(domain.labels)} labels"
    what = "a whole number" if isinstance(domain, IntegerDomain) else "a number"
    none = ' or "absent"' if domain.absent else ""
    return f"{what} from {domain.low} to {domain.high}{none}"


def check_opt_in(asked: Survey | str, registered: Mapping[str, Attribute], policy: Policy) -> None:
    """Accept a yes that can let a survey in, and refuse any other.

    Args:
        asked: What the owner said yes to.
        registered: The attributes that the host registered, by id.
        policy: The host's limits.

    Raises:
        AttributeRefusedError: It names an attribute that is not registered, that was registered with another
            kind or domain, or that the policy leaves out: it would never let a survey in.
    """
    if isinstance(asked, Survey):
        subject = f"an opt-in to survey {asked.id!r}"
        ids = [attribute.id for attribute in asked.attributes]
        for attribute in asked.attributes:
            if registered.get(attribute.id, attribute) != attribute:
                raise AttributeRefusedError(
                    f"{subject} is of no use: its attribute {attribute.id!r} is registered with another "
                    "kind or domain"
                )
    else:
        subject, ids = "an opt-in", [asked]
    for attribute_id in ids:
        if attribute_id not in registered:
            raise AttributeRefusedError(
                f"{subject} is of no use: attribute {attribute_id!r} must be registered first"
            )
        if policy.attributes is not None and attribute_id not in policy.attributes:
            raise AttributeRefusedError(
                f"{subject} is of no use: the policy's attributes must hold {attribute_id!r}"
            )
