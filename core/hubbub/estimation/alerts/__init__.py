"""Alerts on releases, and the noise of a round's estimates that bounds their false alarms."""

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
    from hubbub.estimation.alerts.score_noise import (
        ScoreNoise,
        SurveyNoise,
        survey_noise,
    )

__all__ = [
    "Alert",
    "AlertRules",
    "IssuerDeviation",
    "RoundShares",
    "ScoreNoise",
    "SurveyNoise",
    "impossible_alerts",
    "issuer_deviation",
    "joint_alerts",
    "jump_alerts",
    "margin_alerts",
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
        "hubbub.estimation.alerts.issuers": ("IssuerDeviation", "issuer_deviation"),
        "hubbub.estimation.alerts.joint": ("joint_alerts",),
        "hubbub.estimation.alerts.score_noise": ("ScoreNoise", "SurveyNoise", "survey_noise"),
    },
)
