"""Local differential privacy for streams of reports: the mathematics and the contracts."""

from hubbub import mechanisms
from hubbub.channel import Channel
from hubbub.domain import Attribute
from hubbub.errors import BudgetError, HubbubError, ParameterError, SurveyError, WireError
from hubbub.survey import Survey

__all__ = [
    "Attribute",
    "BudgetError",
    "Channel",
    "HubbubError",
    "ParameterError",
    "Survey",
    "SurveyError",
    "WireError",
    "mechanisms",
]
