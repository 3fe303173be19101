"""The forms that a survey can have: what it asks for, and how the answer becomes an input of its channel."""

from __future__ import annotations

from typing import TypeAlias

from hubbub import estimation
from hubbub.survey.score import Score
from hubbub.survey.single import Single
from hubbub.survey.table import CrossTable

Form: TypeAlias = Single | CrossTable | Score
"""One attribute, the cross table of several, or a score of several numbers."""

AnyEstimator: TypeAlias = "estimation.AnyEstimator | estimation.MarginsEstimator | estimation.ScoreEstimator"
"""Whatever `Survey.estimator` gives: called with counts and n, it gives an Estimate."""
