"""The key `mechanism.participation` of a survey file: the declared channel behind a participation coin."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hubbub.channels import Channel
from hubbub.errors import ParameterError
from hubbub.mechanisms import with_dummy_reports
from hubbub.survey import Rules

KEY: Final = "participation"


def with_participation(rules: Rules, channel: Channel, value: object) -> Channel:
    """Return the channel that devices use: the compiled one, or its mixture with dummy reports.

    Args:
        rules: How to refuse.
        channel: What the mechanism compiled to, within the declared epsilon.
        value: The key's value, 1 where it is absent.

    Raises:
        SurveyError: If the value is no share, or the mixture cannot be told in integers.
    """
    key = f"mechanism.{KEY}"
    number = rules.real(key, value, 0.0, 1.0)
    if number == 1.0:
        return channel
    try:
        return with_dummy_reports(channel, participation=Fraction(repr(number)))
    except ParameterError as error:
        rules.refuse(key, f"must compile ({error})", value)
