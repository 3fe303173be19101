"""Unbiased linear estimation from counts of symbols, with its errors."""

from hubbub.estimation.consistency import Consistent
from hubbub.estimation.estimate import Estimate, Intervals
from hubbub.estimation.estimator import Estimator

__all__ = ["Consistent", "Estimate", "Estimator", "Intervals"]
