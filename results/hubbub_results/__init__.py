"""A reader of results for notebooks and scripts: surveys, releases, history, comparison, plots."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_results.comparison import Comparison
    from hubbub_results.connection import ResultsConnection, SurveyResults, connect
    from hubbub_results.errors import (
        BadAnswer,
        MissingExtra,
        NotComparable,
        NotFound,
        ResultsError,
        Unauthorized,
        Unreachable,
    )
    from hubbub_results.release import RoundResults
    from hubbub_results.tables import Table

__all__ = [
    "BadAnswer",
    "Comparison",
    "MissingExtra",
    "NotComparable",
    "NotFound",
    "ResultsConnection",
    "ResultsError",
    "RoundResults",
    "SurveyResults",
    "Table",
    "Unauthorized",
    "Unreachable",
    "connect",
]

attach(
    __name__,
    {
        "hubbub_results.comparison": ("Comparison",),
        "hubbub_results.connection": ("ResultsConnection", "SurveyResults", "connect"),
        "hubbub_results.errors": (
            "BadAnswer",
            "MissingExtra",
            "NotComparable",
            "NotFound",
            "ResultsError",
            "Unauthorized",
            "Unreachable",
        ),
        "hubbub_results.release": ("RoundResults",),
        "hubbub_results.tables": ("Table",),
    },
)
