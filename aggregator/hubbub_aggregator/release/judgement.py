"""The alerts of releases, from releases alone: nothing here looks at counts.

A round is judged beside the last earlier release that has estimates. Releases hold raw estimates and their
number of devices, and the survey holds the channel: that is all that the bounds of `hubbub.estimation` need,
so a round has the same alerts after every restart, and so have releases from before there were any.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.estimation import (
    Alert,
    AlertRules,
    RoundShares,
    SurveyNoise,
    impossible_alerts,
    joint_alerts,
    jump_alerts,
    margin_alerts,
    shared_devices,
    survey_noise,
)
from hubbub.survey import AnyEstimator, Survey

_LOG = logging.getLogger("hubbub.aggregator")

Document = Mapping[str, Any]

KEPT_ROUNDS: Final = 100
"""Releases of one survey whose alerts are kept, the newest."""

_CELLS: Final = 2**18
"""The most cells of a survey that are judged anew when a process starts: about a second."""

MOST_ALERTS: Final = 20
"""Alerts of one kind that a round lists, those furthest beyond their thresholds; the others are counted."""


class ReleaseJudge:
    """The judge of one process's releases.

    Args:
        rules: The thresholds.
    """

    def __init__(self, rules: AlertRules) -> None:
        self.rules = rules
        self._noise: dict[bytes, SurveyNoise] = {}

    def document(self, rounds: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the rules and what was found in rounds, as JSON types."""
        return {"rate": self.rules.rate, "margin_share": self.rules.margin_share, "rounds": rounds}

    def judge(
        self, survey: Survey, estimator: AnyEstimator, release: Document, earlier: Document | None
    ) -> dict[str, Any]:
        """Return the findings about a release with estimates, as JSON types.

        Args:
            survey: The survey.
            estimator: Its estimator.
            release: A sealed round.
            earlier: The last earlier release with estimates, if there is one.

        Returns:
            "round", "devices", "since" (the earlier round, null without one), "judged" (false where the
            mechanism has no bound that holds: only the margin is then known), "margin" (the share of forged
            reports that moves the largest value by its margin of error, or null), "alerts" (each with kind,
            family, label, statistic, threshold and rate) and "omitted", how many are not listed, by kind.
        """
        noise, shares = self._noise_of(survey, estimator), _shares(survey, release)
        # Every test has its part of the rate; issuers are tested where there are several.
        compared = _compared(release)
        rate = self.rules.rate / (3.0 if compared else 2.0)
        found = impossible_alerts(noise, shares, rate=rate)
        together: list[Alert] = []
        if earlier is not None:
            before = _shares(survey, earlier)
            shared = _shared(survey, earlier, release)
            # A change has its part of the rate once for the largest jump, and once for all cells together.
            found += jump_alerts(noise, before, shares, shared=shared, rate=rate / 2.0)
            if noise.is_bounded:
                together = joint_alerts(
                    survey.channel, estimator, before, shares, shared=shared, rate=rate / 2.0
                )
        margin: float | None = None
        small: list[Alert] = []
        if release.get("poison_margin"):
            margins = np.array(
                [np.inf if each is None else each for each in release["poison_margin"]["values"]]
            )
            margin, small = margin_alerts(shares, margins, below=self.rules.margin_share)
        listed = {kind: _furthest(found, kind) for kind in ("impossible", "jump")}
        issuers = _issuer_alerts(compared, rate)
        return {
            "round": release["round"],
            "devices": shares.n,
            "since": None if earlier is None else earlier["round"],
            "judged": noise.is_bounded,
            "margin": margin,
            "alerts": [
                *(
                    _document(alert, release)
                    for alert in (*listed["impossible"], *listed["jump"], *together, *small)
                ),
                *issuers[:MOST_ALERTS],
            ],
            "omitted": {
                kind: sum(1 for alert in found if alert.kind == kind) - len(some)
                for kind, some in listed.items()
            }
            | ({"issuer": len(issuers[MOST_ALERTS:])} if compared else {}),
        }

    def _noise_of(self, survey: Survey, estimator: AnyEstimator) -> SurveyNoise:
        """Return the noise of a survey, reckoned once; none where its channel gives no bound.

        A channel that the bounds do not know must not keep its rounds from being released.
        """
        if survey.digest not in self._noise:
            try:
                found = survey_noise(survey.channel, estimator)
            except ParameterError as error:
                _LOG.warning("releases of survey %s are not judged: %s", survey.id, error)
                found = SurveyNoise(None, None)
            self._noise[survey.digest] = found
        return self._noise[survey.digest]


def _compared(release: Document) -> list[Document]:
    """Return the issuers of a release whose reports were compared with the others'."""
    return [line for line in release.get("issuers", ()) if line["p_value"] is not None]


def _issuer_alerts(compared: Sequence[Document], rate: float) -> list[dict[str, Any]]:
    """Return the issuers out of line, as JSON types, the least likely first.

    Args:
        compared: The lines of all issuers that were compared.
        rate: The probability that any is returned where issuers are random parts of all devices, at most.
    """
    each = rate / max(len(compared), 1)
    return [
        {
            "kind": "issuer",
            "family": "issuers",
            "label": line["issuer"],
            "statistic": line["p_value"],
            "threshold": each,
            "rate": rate,
        }
        for line in sorted(compared, key=lambda line: (line["p_value"], line["issuer"]))
        if line["p_value"] <= each
    ]


def _shares(survey: Survey, release: Document) -> RoundShares:
    place = None
    if not release["values"] and release["mean"] is not None and survey.points is not None:
        low, high = float(survey.points[0]), float(survey.points[-1])
        place = (float(release["mean"]["estimate"]) - low) / (high - low)
    values, categories = (
        np.array([cell["estimate"] for cell in release[family]], np.float64)
        for family in ("values", "categories")
    )
    return RoundShares(int(release["devices"]), values, categories, place)


def _shared(survey: Survey, before: Document, after: Document) -> int:
    """Return how many devices sent one memoised answer to both rounds, at least."""
    if any(attribute.kind != "static" for attribute in survey.attributes):
        return 0
    asked = (after.get("enrolment") or {}).get("asked")
    try:
        return shared_devices(int(before["devices"]), int(after["devices"]), asked=asked)
    except ParameterError:  # fewer asked than answered: the statement is wrong, and none are counted on
        return 0


def _furthest(alerts: Sequence[Alert], kind: str) -> list[Alert]:
    chosen = [alert for alert in alerts if alert.kind == kind]
    return sorted(chosen, key=lambda alert: (-alert.excess, alert.family, alert.cell))[:MOST_ALERTS]


def _document(alert: Alert, release: Document) -> dict[str, Any]:
    label = None
    if alert.kind != "joint" and alert.family in ("values", "categories"):
        label = release[alert.family][alert.cell]["label"]
    return {
        "kind": alert.kind,
        "family": alert.family,
        "label": label,
        "statistic": alert.statistic,
        "threshold": alert.threshold,
        "rate": alert.rate,
    }


class SurveyAlerts:
    """The findings about one survey's newest releases, brought up to date release by release.

    Args:
        judge: Who judges.
        survey: The survey.
        estimator: Its estimator.
    """

    def __init__(self, judge: ReleaseJudge, survey: Survey, estimator: AnyEstimator) -> None:
        self._judge, self._survey, self._estimator = judge, survey, estimator
        self._found: dict[int, dict[str, Any]] = {}

    def update(self, releases: Mapping[int, Document], new: Iterable[int]) -> None:
        """Judge new releases, and those after them, which have another round before them now.

        Args:
            releases: Every release of the survey by round.
            new: The rounds that were released since the last call.
        """
        shown = sorted(number for number, each in releases.items() if not each["suppressed"])
        kept = max(2, min(KEPT_ROUNDS, _CELLS // max(self._survey.channel.inputs, 1)))
        released = set(new)
        for before, number in zip([None, *shown], shown, strict=False):
            if number in shown[-kept:] and (number in released or before in released):
                earlier = None if before is None else releases[before]
                self._found[number] = self._judge.judge(
                    self._survey, self._estimator, releases[number], earlier
                )
        self._found = {number: self._found[number] for number in shown[-kept:] if number in self._found}

    def document(self) -> dict[str, Any]:
        """Return "rate" and "margin_share" as the rules have them, and "rounds", the oldest first."""
        return self._judge.document([self._found[number] for number in sorted(self._found)])
