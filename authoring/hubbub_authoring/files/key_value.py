"""The compiler of a key-value survey: a number that not every device has."""

from __future__ import annotations

from typing import Final

from hubbub.channels import Channel
from hubbub.errors import ABSENT
from hubbub.survey import FormRequest, KeyValue, check_attributes, check_share
from hubbub_authoring.design.key_value import MAX_POINTS, better, usual_grid

KEY_VALUE: Final = "key_value"
"""The name of the mechanism."""

KEYS: Final = ("share", "points")


def key_value_survey(request: FormRequest) -> tuple[KeyValue, Channel]:
    """Return the form and the channel of a key-value survey: the better of two at the planned share.

    Raises:
        SurveyError: If attribute or keys break a rule.
        ParameterError: If no integers keep the declared epsilon.
    """
    rules, asked, keys = request.rules, request.asked, request.keys
    if request.participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for key_value", request.participation)
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
    return better(attribute, share, points, request.epsilon)
