"""The comparison of estimates with a known truth, as tables and plots."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab.evaluation.audit import Sampler, audit
    from hubbub_lab.evaluation.evaluation import truth_of
    from hubbub_lab.evaluation.people import ReadValues, columns_of, quality, values_of
    from hubbub_lab.evaluation.plots import as_typed, plot
    from hubbub_lab.evaluation.rand_hie import load
    from hubbub_lab.evaluation.report import Evaluation, Rows, print_json, show
    from hubbub_lab.evaluation.tables import PLAIN, Coded, Spelling, read_people

__all__ = [
    "PLAIN",
    "Coded",
    "Evaluation",
    "ReadValues",
    "Rows",
    "Sampler",
    "Spelling",
    "as_typed",
    "audit",
    "columns_of",
    "load",
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
        "hubbub_lab.evaluation.audit": (
            "Sampler",
            "audit",
        ),
        "hubbub_lab.evaluation.evaluation": ("truth_of",),
        "hubbub_lab.evaluation.people": (
            "ReadValues",
            "columns_of",
            "quality",
            "values_of",
        ),
        "hubbub_lab.evaluation.plots": ("as_typed", "plot"),
        "hubbub_lab.evaluation.rand_hie": ("load",),
        "hubbub_lab.evaluation.report": (
            "Evaluation",
            "Rows",
            "print_json",
            "show",
        ),
        "hubbub_lab.evaluation.tables": (
            "PLAIN",
            "Spelling",
            "Coded",
            "read_people",
        ),
    },
)
