"""Unbiased linear estimation from counts of symbols, with its errors."""

from hubbub.estimation.choice import AnyEstimator, estimator_for
from hubbub.estimation.consistency import Consistent
from hubbub.estimation.em import Smoothed
from hubbub.estimation.estimate import Estimate, Intervals
from hubbub.estimation.estimator import Estimator
from hubbub.estimation.margins import MarginsEstimator
from hubbub.estimation.poison import PoisonMargin
from hubbub.estimation.score import ScoreEstimator
from hubbub.estimation.tree_estimator import TreeEstimator

__all__ = [
    "AnyEstimator",
    "Consistent",
    "Estimate",
    "Estimator",
    "Intervals",
    "MarginsEstimator",
    "PoisonMargin",
    "ScoreEstimator",
    "Smoothed",
    "TreeEstimator",
    "estimator_for",
]
