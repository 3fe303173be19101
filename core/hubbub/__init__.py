"""Local differential privacy for streams of reports: the mathematics and the contracts.

>>> import hubbub
>>> hubbub.mechanisms.grr(4, epsilon=1.0).outputs
4
"""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub import filter, mechanisms, testing  # noqa: A004 - the room's name
    from hubbub.channels.channel import Channel
    from hubbub.errors import BudgetError, HubbubError, ParameterError, SurveyError, WireError
    from hubbub.estimation.estimate import Estimate
    from hubbub.estimation.estimator import Estimator
    from hubbub.survey.domain import Attribute
    from hubbub.survey.survey import Survey
    from hubbub.version import __version__

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
    "__version__",
    "filter",
    "mechanisms",
    "testing",
]

attach(
    __name__,
    {
        "hubbub.channels.channel": ("Channel",),
        "hubbub.errors": (
            "BudgetError",
            "HubbubError",
            "ParameterError",
            "SurveyError",
            "WireError",
        ),
        "hubbub.estimation.estimate": ("Estimate",),
        "hubbub.estimation.estimator": ("Estimator",),
        "hubbub.survey.domain": ("Attribute",),
        "hubbub.survey.survey": ("Survey",),
        "hubbub.version": ("__version__",),
        "hubbub.filter": (),
        "hubbub.mechanisms": (),
        "hubbub.testing": (),
    },
)
