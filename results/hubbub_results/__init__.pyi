from hubbub_results.connection import (
    connect as connect,
    ResultsConnection as ResultsConnection,
    SurveyResults as SurveyResults,
)
from hubbub_results.errors import (
    BadAnswerError as BadAnswerError,
    MissingExtraError as MissingExtraError,
    NotComparableError as NotComparableError,
    NotFoundError as NotFoundError,
    ResultsError as ResultsError,
    UnauthorizedError as UnauthorizedError,
    UnreachableError as UnreachableError,
)
from hubbub_results.connection import RoundResults as RoundResults
from hubbub_results.tables import Comparison as Comparison, Table as Table
