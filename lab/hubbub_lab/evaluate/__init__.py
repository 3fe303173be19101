"""Surveys compared on data of known truth, by error and by what they reveal."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab.evaluate.data import DataSpec, data_set, drafted
    from hubbub_lab.evaluate.faults import FaultMix
    from hubbub_lab.evaluate.page import page_of
    from hubbub_lab.evaluate.results import EvaluationResults
    from hubbub_lab.evaluate.run import CaseKey, EvaluationPlan, evaluate
    from hubbub_lab.evaluate.surveys import AUTO, OWN, SurveyMaker, mechanism_name

__all__ = [
    "AUTO",
    "OWN",
    "CaseKey",
    "DataSpec",
    "EvaluationPlan",
    "EvaluationResults",
    "FaultMix",
    "SurveyMaker",
    "data_set",
    "drafted",
    "evaluate",
    "mechanism_name",
    "page_of",
]

attach(
    __name__,
    {
        "hubbub_lab.evaluate.data": (
            "DataSpec",
            "data_set",
            "drafted",
        ),
        "hubbub_lab.evaluate.faults": ("FaultMix",),
        "hubbub_lab.evaluate.page": ("page_of",),
        "hubbub_lab.evaluate.results": ("EvaluationResults",),
        "hubbub_lab.evaluate.run": (
            "CaseKey",
            "EvaluationPlan",
            "evaluate",
        ),
        "hubbub_lab.evaluate.surveys": (
            "AUTO",
            "OWN",
            "SurveyMaker",
            "mechanism_name",
        ),
    },
)
