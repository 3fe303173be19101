"""Local differential privacy for streams of reports: the mathematics and the contracts.

>>> import hubbub
>>> hubbub.mechanisms.grr(4, epsilon=1.0).outputs
4
"""

from hubbub import accounting, mechanisms, testing
from hubbub.channel import Channel
from hubbub.domain import Attribute
from hubbub.errors import BudgetError, HubbubError, ParameterError, SurveyError, WireError
from hubbub.estimation import Estimate, Estimator
from hubbub.survey import Survey

__all__ = [
    "Attribute",
    "BudgetError",
    "Channel",
    "Estimate",
    "Estimator",
    "HubbubError",
    "ParameterError",
    "Survey",
    "SurveyError",
    "WireError",
    "accounting",
    "mechanisms",
    "testing",
]
