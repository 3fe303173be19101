"""Utility first: from what an analyst wants to know to a mechanism and its parameters."""

from hubbub.design.accuracy import Accuracy, Errors, accuracy, foresee
from hubbub.design.comparison import Candidate, boost_curve, choose, compare, measured, measured_by_category
from hubbub.design.direction import (
    Target,
    category_confidence,
    least_epsilon,
    least_epsilon_of_categories,
    most_boost_of_categories,
    most_confidence,
    narrowest_region,
)
from hubbub.design.noise_direction import NoiseDesign, NoiseTarget
from hubbub.design.question import Objective, Quantity, Question

__all__ = [
    "Accuracy",
    "Candidate",
    "Errors",
    "NoiseDesign",
    "NoiseTarget",
    "Objective",
    "Quantity",
    "Question",
    "Target",
    "accuracy",
    "boost_curve",
    "category_confidence",
    "choose",
    "compare",
    "foresee",
    "least_epsilon",
    "least_epsilon_of_categories",
    "measured",
    "measured_by_category",
    "most_boost_of_categories",
    "most_confidence",
    "narrowest_region",
]
