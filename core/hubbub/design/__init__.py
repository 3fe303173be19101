"""Utility first: from what an analyst wants to know to a mechanism and its parameters."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.design.cohort import Cohort, cohort_widths, least_cohort
    from hubbub.design.comparison import (
        Candidate,
        answered,
        boost_curve,
        choose,
        compare,
        measured,
        measured_by_category,
        within_gain,
    )
    from hubbub.design.direction import (
        Target,
        category_confidence,
        least_epsilon,
        least_epsilon_of_categories,
        most_boost_of_categories,
        most_confidence,
        narrowest_region,
    )
    from hubbub.design.expected_error import Accuracy, Errors, accuracy, expected_error, report_bytes
    from hubbub.design.floor.asked import ASKED, Floors, frontier
    from hubbub.design.guess import Guess, best_guess
    from hubbub.design.leverage import FORGED
    from hubbub.design.noise_direction import NoiseDesign, NoiseTarget
    from hubbub.design.plan import MOST_EPSILON, AccuracyPlan
    from hubbub.design.shuffling import epsilon_after_shuffling
    from hubbub.design.workload import OBJECTIVES, QUANTITIES, Objective, Quantity, Workload

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
    "NoiseDesign",
    "NoiseTarget",
    "Objective",
    "Quantity",
    "Target",
    "Workload",
    "accuracy",
    "answered",
    "best_guess",
    "boost_curve",
    "category_confidence",
    "choose",
    "cohort_widths",
    "compare",
    "epsilon_after_shuffling",
    "expected_error",
    "frontier",
    "least_cohort",
    "least_epsilon",
    "least_epsilon_of_categories",
    "measured",
    "measured_by_category",
    "most_boost_of_categories",
    "most_confidence",
    "narrowest_region",
    "report_bytes",
    "within_gain",
]

attach(
    __name__,
    {
        "hubbub.design.cohort": (
            "Cohort",
            "cohort_widths",
            "least_cohort",
        ),
        "hubbub.design.comparison": (
            "Candidate",
            "answered",
            "boost_curve",
            "choose",
            "compare",
            "measured",
            "measured_by_category",
            "within_gain",
        ),
        "hubbub.design.direction": (
            "Target",
            "category_confidence",
            "least_epsilon",
            "least_epsilon_of_categories",
            "most_boost_of_categories",
            "most_confidence",
            "narrowest_region",
        ),
        "hubbub.design.expected_error": (
            "Accuracy",
            "Errors",
            "accuracy",
            "expected_error",
            "report_bytes",
        ),
        "hubbub.design.floor.asked": ("ASKED", "Floors", "frontier"),
        "hubbub.design.guess": ("Guess", "best_guess"),
        "hubbub.design.leverage": ("FORGED",),
        "hubbub.design.noise_direction": (
            "NoiseDesign",
            "NoiseTarget",
        ),
        "hubbub.design.plan": ("MOST_EPSILON", "AccuracyPlan"),
        "hubbub.design.shuffling": ("epsilon_after_shuffling",),
        "hubbub.design.workload": (
            "OBJECTIVES",
            "Objective",
            "QUANTITIES",
            "Quantity",
            "Workload",
        ),
    },
)
