"""Utility first: from what an analyst wants to know to a mechanism and its parameters."""

from hubbub.design.accuracy import Accuracy, Errors, accuracy, foresee
from hubbub.design.comparison import Candidate, boost_curve, choose, compare, measured
from hubbub.design.question import Objective, Quantity, Question

__all__ = [
    "Accuracy",
    "Candidate",
    "Errors",
    "Objective",
    "Quantity",
    "Question",
    "accuracy",
    "boost_curve",
    "choose",
    "compare",
    "foresee",
    "measured",
]
