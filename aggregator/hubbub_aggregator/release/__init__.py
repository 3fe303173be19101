"""The release of a round: publication gates while it is open, seals, estimates."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.release.comparison import IncomparableError, change, history
    from hubbub_aggregator.release.disclosure import (
        UNKNOWN,
        AcceptedSizes,
        Recount,
        Shown,
        cohort_of,
        why_no_recount,
    )
    from hubbub_aggregator.release.enrolment import FleetStatement
    from hubbub_aggregator.release.estimates import METHOD, METHODS, Method, no_estimates
    from hubbub_aggregator.release.judgement import KEPT_ROUNDS, MOST_ALERTS, ReleaseJudge, SurveyAlerts
    from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate, advance
    from hubbub_aggregator.release.round_release import (
        Document,
        Release,
        canonical_bytes,
        method_of,
        release,
        same_facts,
        sum_counts,
        timestamp,
    )
    from hubbub_aggregator.release.seal_clock import AgreedClock, SteadyClock
    from hubbub_aggregator.release.sealing import DEFAULT_GRACE_S, Sealer, due
    from hubbub_aggregator.release.views import empirical_bayes_values, round_ranks, round_views

__all__ = [
    "DEFAULT_GRACE_S",
    "KEPT_ROUNDS",
    "METHOD",
    "METHODS",
    "MOST_ALERTS",
    "UNKNOWN",
    "AcceptedCounts",
    "AcceptedSizes",
    "AgreedClock",
    "Document",
    "FleetStatement",
    "IncomparableError",
    "Method",
    "PublicationGate",
    "Recount",
    "Release",
    "ReleaseJudge",
    "Sealer",
    "Shown",
    "SteadyClock",
    "SurveyAlerts",
    "advance",
    "canonical_bytes",
    "change",
    "cohort_of",
    "due",
    "empirical_bayes_values",
    "history",
    "method_of",
    "no_estimates",
    "release",
    "round_ranks",
    "round_views",
    "same_facts",
    "sum_counts",
    "timestamp",
    "why_no_recount",
]

attach(
    __name__,
    {
        "hubbub_aggregator.release.comparison": (
            "IncomparableError",
            "change",
            "history",
        ),
        "hubbub_aggregator.release.disclosure": (
            "UNKNOWN",
            "AcceptedSizes",
            "Recount",
            "Shown",
            "cohort_of",
            "why_no_recount",
        ),
        "hubbub_aggregator.release.enrolment": ("FleetStatement",),
        "hubbub_aggregator.release.estimates": (
            "METHOD",
            "METHODS",
            "Method",
            "no_estimates",
        ),
        "hubbub_aggregator.release.judgement": (
            "KEPT_ROUNDS",
            "MOST_ALERTS",
            "ReleaseJudge",
            "SurveyAlerts",
        ),
        "hubbub_aggregator.release.provisional": (
            "PublicationGate",
            "AcceptedCounts",
            "advance",
        ),
        "hubbub_aggregator.release.round_release": (
            "Document",
            "Release",
            "canonical_bytes",
            "method_of",
            "release",
            "same_facts",
            "sum_counts",
            "timestamp",
        ),
        "hubbub_aggregator.release.seal_clock": (
            "AgreedClock",
            "SteadyClock",
        ),
        "hubbub_aggregator.release.views": (
            "empirical_bayes_values",
            "round_ranks",
            "round_views",
        ),
        "hubbub_aggregator.release.sealing": (
            "DEFAULT_GRACE_S",
            "Sealer",
            "due",
        ),
    },
)
