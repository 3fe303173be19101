"""Unbiased linear estimation from counts of symbols, with its errors."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.estimation.alerts.alerts import (
        Alert,
        AlertRules,
        RoundShares,
        impossible_alerts,
        jump_alerts,
        margin_alerts,
    )
    from hubbub.estimation.alerts.issuers import IssuerDeviation, issuer_deviation
    from hubbub.estimation.alerts.joint import joint_alerts
    from hubbub.estimation.alerts.score_noise import ScoreNoise, SurveyNoise, survey_noise
    from hubbub.estimation.choice import AnyEstimator, estimator_for
    from hubbub.estimation.consistency import Consistent
    from hubbub.estimation.cumulative import MAX_CURVE, Cumulative, Quantile, curve_cohort
    from hubbub.estimation.em import Smoothed
    from hubbub.estimation.estimate import Estimate, Intervals
    from hubbub.estimation.estimator import Estimator
    from hubbub.estimation.inverses.block import BlockInverse, CollapsedInverse
    from hubbub.estimation.inverses.inverse import Arithmetic, Inverse, Numbers, Solution, excess, quotients
    from hubbub.estimation.margins import MarginsEstimator
    from hubbub.estimation.poison import PoisonMargin, Reach
    from hubbub.estimation.ranks import rank_sets
    from hubbub.estimation.rounds.change import (
        Difference,
        Ends,
        correlation,
        device_variances,
        difference,
        effective_sample_size,
        shared_devices,
    )
    from hubbub.estimation.rounds.trend import Trend, smoothed_trend
    from hubbub.estimation.score import ScoreEstimator
    from hubbub.estimation.selection import selection_bound
    from hubbub.estimation.shrinkage import empirical_bayes
    from hubbub.estimation.tree_estimator import TreeEstimator
    from hubbub.estimation.trees.tree import Tree

__all__ = [
    "MAX_CURVE",
    "Alert",
    "AlertRules",
    "AnyEstimator",
    "Arithmetic",
    "BlockInverse",
    "CollapsedInverse",
    "Consistent",
    "Cumulative",
    "Difference",
    "Ends",
    "Estimate",
    "Estimator",
    "Intervals",
    "Inverse",
    "IssuerDeviation",
    "MarginsEstimator",
    "Numbers",
    "PoisonMargin",
    "Quantile",
    "Reach",
    "RoundShares",
    "ScoreEstimator",
    "ScoreNoise",
    "Smoothed",
    "Solution",
    "SurveyNoise",
    "Tree",
    "TreeEstimator",
    "Trend",
    "correlation",
    "curve_cohort",
    "device_variances",
    "difference",
    "effective_sample_size",
    "empirical_bayes",
    "estimator_for",
    "excess",
    "impossible_alerts",
    "issuer_deviation",
    "joint_alerts",
    "jump_alerts",
    "margin_alerts",
    "quotients",
    "rank_sets",
    "selection_bound",
    "shared_devices",
    "smoothed_trend",
    "survey_noise",
]

attach(
    __name__,
    {
        "hubbub.estimation.alerts.alerts": (
            "Alert",
            "AlertRules",
            "RoundShares",
            "impossible_alerts",
            "jump_alerts",
            "margin_alerts",
        ),
        "hubbub.estimation.alerts.issuers": (
            "IssuerDeviation",
            "issuer_deviation",
        ),
        "hubbub.estimation.alerts.joint": ("joint_alerts",),
        "hubbub.estimation.alerts.score_noise": (
            "ScoreNoise",
            "SurveyNoise",
            "survey_noise",
        ),
        "hubbub.estimation.choice": (
            "AnyEstimator",
            "estimator_for",
        ),
        "hubbub.estimation.consistency": ("Consistent",),
        "hubbub.estimation.cumulative": (
            "Cumulative",
            "MAX_CURVE",
            "Quantile",
            "curve_cohort",
        ),
        "hubbub.estimation.em": ("Smoothed",),
        "hubbub.estimation.estimate": (
            "Estimate",
            "Intervals",
        ),
        "hubbub.estimation.estimator": ("Estimator",),
        "hubbub.estimation.inverses.block": (
            "BlockInverse",
            "CollapsedInverse",
        ),
        "hubbub.estimation.inverses.inverse": (
            "Arithmetic",
            "Inverse",
            "Numbers",
            "Solution",
            "excess",
            "quotients",
        ),
        "hubbub.estimation.margins": ("MarginsEstimator",),
        "hubbub.estimation.poison": (
            "PoisonMargin",
            "Reach",
        ),
        "hubbub.estimation.ranks": ("rank_sets",),
        "hubbub.estimation.rounds.change": (
            "Difference",
            "Ends",
            "correlation",
            "device_variances",
            "difference",
            "effective_sample_size",
            "shared_devices",
        ),
        "hubbub.estimation.rounds.trend": (
            "Trend",
            "smoothed_trend",
        ),
        "hubbub.estimation.score": ("ScoreEstimator",),
        "hubbub.estimation.selection": ("selection_bound",),
        "hubbub.estimation.shrinkage": ("empirical_bayes",),
        "hubbub.estimation.tree_estimator": ("TreeEstimator",),
        "hubbub.estimation.trees.tree": ("Tree",),
    },
)
