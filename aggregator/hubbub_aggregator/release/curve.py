"""The cumulative shares and quartiles of a release, for surveys whose channel is made for them."""

from __future__ import annotations

from typing import Any, Final

from hubbub.estimation import Estimate, curve_cohort
from hubbub.survey import Survey

QUARTILES: Final = (0.25, 0.5, 0.75)
"""The quantiles that a release states; others are read from the curve's band."""


def no_curve(survey: Survey) -> dict[str, Any]:
    """Return the keys of a release that states no curve: none at all where a survey never has one."""
    return {"cumulative": None, "quantiles": []} if survey.channel.shows_curve else {}


def curve(survey: Survey, estimate: Estimate, level: float) -> dict[str, Any]:
    """Return the cumulative shares with their simultaneous band, and the quartiles with their intervals.

    Args:
        survey: The survey.
        estimate: That of the round.
        level: The coverage of the band, and of all quartiles at once.
    """
    least = curve_cohort(len(estimate.values))
    if not survey.channel.shows_curve or least is None or estimate.n < least:
        return no_curve(survey)
    found = estimate.cumulative(level)
    if found is None:
        return no_curve(survey)
    quantiles = [found.quantile(share) for share in QUARTILES]
    return {
        "cumulative": {
            "level": level,
            "points": found.points.tolist(),
            "shares": found.shares.tolist(),
            "errors": found.errors.tolist(),
            "low": found.low.tolist(),
            "high": found.high.tolist(),
        },
        "quantiles": [
            {"share": each.share, "estimate": each.estimate, "low": each.low, "high": each.high}
            for each in quantiles
        ],
    }
