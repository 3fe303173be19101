from hubbub import filter as filter, mechanisms as mechanisms, testing as testing
from hubbub.channels.channel import Channel as Channel
from hubbub.errors import (
    BudgetError as BudgetError,
    HubbubError as HubbubError,
    ParameterError as ParameterError,
    SurveyError as SurveyError,
    WireError as WireError,
)
from hubbub.estimation.estimate import Estimate as Estimate, Estimator as Estimator
from hubbub.survey.domain import Attribute as Attribute
from hubbub.survey.survey import Survey as Survey
from hubbub.version import __version__ as __version__
