"""Confidence intervals that hold in small rounds: the law of a cell's score, and its inversion."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.estimation.intervals.fieller import RatioMean
    from hubbub.estimation.intervals.laws import (
        CellLaw,
        JoinedLaw,
        MixedLaw,
        ScoreLaws,
        moments_of,
        two_valued,
    )
    from hubbub.estimation.intervals.population import plausible_populations, population_law
    from hubbub.estimation.intervals.skew_score import score_interval, skew_quantile
    from hubbub.estimation.intervals.tree_law import node_law

__all__ = [
    "CellLaw",
    "JoinedLaw",
    "MixedLaw",
    "RatioMean",
    "ScoreLaws",
    "moments_of",
    "node_law",
    "plausible_populations",
    "population_law",
    "score_interval",
    "skew_quantile",
    "two_valued",
]

attach(
    __name__,
    {
        "hubbub.estimation.intervals.fieller": ("RatioMean",),
        "hubbub.estimation.intervals.laws": (
            "CellLaw",
            "JoinedLaw",
            "MixedLaw",
            "ScoreLaws",
            "moments_of",
            "two_valued",
        ),
        "hubbub.estimation.intervals.population": (
            "plausible_populations",
            "population_law",
        ),
        "hubbub.estimation.intervals.tree_law": ("node_law",),
        "hubbub.estimation.intervals.skew_score": (
            "score_interval",
            "skew_quantile",
        ),
    },
)
