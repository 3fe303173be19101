"""The comparison of estimates with a known truth, as tables and plots."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.evaluation.evaluation import truth_of
    from hubbub_deploy.evaluation.people import ReadValues, columns_of, quality, values_of
    from hubbub_deploy.evaluation.plots import plot
    from hubbub_deploy.evaluation.report import Evaluation, Rows, print_json, show
    from hubbub_deploy.evaluation.tables import Coded, read_people

__all__ = [
    "Coded",
    "Evaluation",
    "ReadValues",
    "Rows",
    "columns_of",
    "plot",
    "print_json",
    "quality",
    "read_people",
    "show",
    "truth_of",
    "values_of",
]

attach(
    __name__,
    {
        "hubbub_deploy.evaluation.evaluation": ("truth_of",),
        "hubbub_deploy.evaluation.people": (
            "ReadValues",
            "columns_of",
            "quality",
            "values_of",
        ),
        "hubbub_deploy.evaluation.plots": ("plot",),
        "hubbub_deploy.evaluation.report": (
            "Evaluation",
            "Rows",
            "print_json",
            "show",
        ),
        "hubbub_deploy.evaluation.tables": (
            "Coded",
            "read_people",
        ),
    },
)
