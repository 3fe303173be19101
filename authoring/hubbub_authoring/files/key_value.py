"""The compiler of a key-value survey: a number that not every device has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hubbub.channels import Channel
from hubbub.errors import ABSENT
from hubbub.survey import DeclaredAttribute, KeyValue, Rules, check_attributes, check_share
from hubbub_authoring.design.key_value import MAX_POINTS, better, usual_grid

KEY_VALUE: Final = "key_value"
"""The name of the mechanism."""

KEYS: Final = ("share", "points")


def key_value_survey(
    rules: Rules,
    asked: Sequence[DeclaredAttribute],
    keys: Mapping[str, object],
    *,
    epsilon: float,
    participation: object,
) -> tuple[KeyValue, Channel]:
    """Return the form and the channel of a key-value survey: the better of two at the planned share.

    Args:
        rules: How to refuse.
        asked: Its attribute, alone.
        keys: Those of [mechanism].
        epsilon: Declared.
        participation: As declared.

    Raises:
        SurveyError: If attribute or keys break a rule.
        ParameterError: If no integers keep the declared epsilon.
    """
    if participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for key_value", participation)
    check_attributes(rules, [each.attribute for each in asked], 1, 1)
    attribute = asked[0].attribute
    if not attribute.tells_absent:
        rules.refuse(f"{asked[0].key}.absent", "must be true for the mechanism key_value", ABSENT)
    if categories := asked[0].categories:
        rules.refuse("category", "must not be given for a key-value survey", categories[0].name)
    if "share" not in keys:
        rules.refuse("mechanism.share", "must be given: the share planned to have a number", ABSENT)
    share = check_share(rules, keys["share"])
    usual = usual_grid(attribute)
    points = rules.integer("mechanism.points", keys.get("points", usual), min(3, usual), MAX_POINTS)
    return better(attribute, share, points, epsilon)
