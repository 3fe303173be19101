from hubbub_results.connection import (
    connect as connect,
    ResultsConnection as ResultsConnection,
    SurveyResults as SurveyResults,
)
from hubbub_results.errors import (
    BadAnswer as BadAnswer,
    MissingExtra as MissingExtra,
    NotComparable as NotComparable,
    NotFound as NotFound,
    ResultsError as ResultsError,
    Unauthorized as Unauthorized,
    Unreachable as Unreachable,
)
from hubbub_results.release import RoundResults as RoundResults
from hubbub_results.tables import Comparison as Comparison, Table as Table
