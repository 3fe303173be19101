"""Utility first: from what an analyst wants to know to a mechanism and its parameters."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_authoring.design.asked import ASKED, Floors, frontier
    from hubbub_authoring.design.cohort import Cohort, cohort_widths, least_cohort
    from hubbub_authoring.design.comparison import (
        Candidate,
        answered,
        boost_curve,
        choose,
        compare,
        measured,
        measured_by_category,
        within_gain,
    )
    from hubbub_authoring.design.expected_error import (
        Accuracy,
        Errors,
        accuracy,
        expected_error,
        report_bytes,
    )
    from hubbub_authoring.design.guess import Guess, best_guess
    from hubbub_authoring.design.leverage import FORGED
    from hubbub_authoring.design.plan import MOST_EPSILON, AccuracyPlan
    from hubbub_authoring.mechanisms.workload import OBJECTIVES, QUANTITIES, Objective, Quantity, Workload

__all__ = [
    "ASKED",
    "FORGED",
    "MOST_EPSILON",
    "OBJECTIVES",
    "QUANTITIES",
    "Accuracy",
    "AccuracyPlan",
    "Candidate",
    "Cohort",
    "Errors",
    "Floors",
    "Guess",
    "Objective",
    "Quantity",
    "Workload",
    "accuracy",
    "answered",
    "best_guess",
    "boost_curve",
    "choose",
    "cohort_widths",
    "compare",
    "expected_error",
    "frontier",
    "least_cohort",
    "measured",
    "measured_by_category",
    "report_bytes",
    "within_gain",
]

attach(
    __name__,
    {
        "hubbub_authoring.design.asked": (
            "ASKED",
            "Floors",
            "frontier",
        ),
        "hubbub_authoring.design.cohort": (
            "Cohort",
            "cohort_widths",
            "least_cohort",
        ),
        "hubbub_authoring.design.comparison": (
            "Candidate",
            "answered",
            "boost_curve",
            "choose",
            "compare",
            "measured",
            "measured_by_category",
            "within_gain",
        ),
        "hubbub_authoring.design.expected_error": (
            "Accuracy",
            "Errors",
            "accuracy",
            "expected_error",
            "report_bytes",
        ),
        "hubbub_authoring.design.guess": (
            "Guess",
            "best_guess",
        ),
        "hubbub_authoring.design.leverage": ("FORGED",),
        "hubbub_authoring.design.plan": (
            "AccuracyPlan",
            "MOST_EPSILON",
        ),
        "hubbub_authoring.mechanisms.workload": (
            "OBJECTIVES",
            "Objective",
            "QUANTITIES",
            "Quantity",
            "Workload",
        ),
    },
)
