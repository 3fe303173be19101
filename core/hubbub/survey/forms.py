"""The forms that a survey can have, and their estimators."""

from __future__ import annotations

from typing import TypeAlias

from hubbub import estimation

AnyEstimator: TypeAlias = "estimation.AnyEstimator | estimation.MarginsEstimator | estimation.ScoreEstimator"
"""Whatever `Survey.estimator` gives: called with counts and n, it gives an Estimate."""
