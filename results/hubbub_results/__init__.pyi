from hubbub_results.comparison import Comparison as Comparison
from hubbub_results.connection import (
    ResultsConnection as ResultsConnection,
    SurveyResults as SurveyResults,
    connect as connect,
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
from hubbub_results.tables import Table as Table
