"""The alerts of releases, from releases alone: nothing here looks at counts.

A round is judged beside earlier releases that have estimates: of memoised answers beside the last one, of
fresh answers in windows of rounds (`window_jumps`). Releases hold raw estimates and their
number of devices, and the survey holds the channel: that is all that the bounds of `hubbub.estimation` need,
so a round has the same alerts after every restart, and so have releases from before there were any.

What windows a round has depends on the alerts before it. So that a start need not judge years anew, releases
are counted in blocks, and the judgement of a block begins with the first release of the block before.
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
    window_joints,
    window_jumps,
)
from hubbub.survey import AnyEstimator, Survey
from hubbub_aggregator.release.parts import part_alerts

_LOG = logging.getLogger("hubbub.aggregator")

Document = Mapping[str, Any]

KEPT_ROUNDS: Final = 100
"""Releases of one survey whose alerts are kept, the newest."""

_CELLS: Final = 2**18
"""The most cells of a survey that are judged anew when a process starts: about a second."""

BLOCK: Final = 64
"""Releases of a block: a round is compared with up to twice as many, a window is of up to as many."""

_BLOCK_CELLS: Final = 2**13
"""The most cells of a block, so that large surveys are judged at a start in seconds."""

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
        self,
        survey: Survey,
        estimator: AnyEstimator,
        release: Document,
        earlier: Document | None,
        *,
        rounds: Sequence[RoundShares],
        since: int = 0,
    ) -> dict[str, Any]:
        """Return the findings about a release with estimates, as JSON types.

        Args:
            survey: The survey.
            estimator: Its estimator.
            release: A sealed round.
            earlier: The last earlier release with estimates, if there is one.
            rounds: The estimates of earlier releases and of this one, in order of time.
            since: The first of them that windows of fresh answers reach back to.

        Returns:
            "round", "devices", "since" (the earlier round, null without one), "judged" (false where the
            mechanism has no bound that holds: only the margin is then known), "margin" (the share of forged
            reports that moves the largest value by its margin of error, or null), "alerts" (each with kind,
            family, label, statistic, threshold, rate, and of a change "window", how many of the last rounds
            are pooled, and "against", with how many before) and "omitted", how many are not listed, by kind.
        """
        noise, shares = self.noise_of(survey, estimator), rounds[-1]
        # Every test has its part of the rate; issuers are tested where there are several.
        compared = _compared(release)
        rate = self.rules.rate / (3.0 if compared else 2.0)
        found = impossible_alerts(noise, shares, rate=rate)
        jumps, together = self.changes(survey, estimator, earlier, release, rounds=rounds, since=since)
        found += jumps
        margin: float | None = None
        small: list[Alert] = []
        if release.get("poison_margin"):
            margins = np.array(
                [np.inf if each is None else each for each in release["poison_margin"]["values"]]
            )
            margin, small = margin_alerts(shares, margins, below=self.rules.margin_share)
        listed = {kind: _furthest(found, kind) for kind in ("impossible", "jump")}
        issuers, parts = _issuer_alerts(compared, rate), part_alerts(release)
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
                *parts[:MOST_ALERTS],
            ],
            "omitted": {
                kind: sum(1 for alert in found if alert.kind == kind) - len(some)
                for kind, some in listed.items()
            }
            | ({"issuer": len(issuers[MOST_ALERTS:])} if compared else {})
            | ({"part": len(parts[MOST_ALERTS:])} if survey.form.samples_parts else {}),
        }

    def changes(
        self,
        survey: Survey,
        estimator: AnyEstimator,
        earlier: Document | None,
        release: Document,
        *,
        rounds: Sequence[RoundShares],
        since: int,
    ) -> tuple[list[Alert], list[Alert]]:
        """Return how a release changed, the jumps and the joint change; see `judge`."""
        noise = self.noise_of(survey, estimator)
        if earlier is None or not noise.is_bounded:
            return [], []
        # A change has its part of the rate once for the largest jump, and once for all cells together.
        rate = self.rules.rate / (6.0 if _compared(release) else 4.0)
        channel = survey.channel
        if is_fresh(survey):
            return (
                window_jumps(noise, rounds, since=since, rate=rate),
                window_joints(channel, estimator, rounds, since=since, rate=rate),
            )
        shared = _shared(earlier, release)
        return (
            jump_alerts(noise, *rounds[-2:], shared=shared, rate=rate),
            joint_alerts(channel, estimator, *rounds[-2:], shared=shared, rate=rate),
        )

    def noise_of(self, survey: Survey, estimator: AnyEstimator) -> SurveyNoise:
        """Return the noise of a survey, reckoned once; none where its channel gives no bound.

        A channel that the bounds do not know must not keep its rounds from being released.
        """
        if survey.form.samples_parts:
            return SurveyNoise(None, None)  # what cannot be is not known, and the coin is looked at instead
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


def shares_of(survey: Survey, release: Document) -> RoundShares:
    """Return the raw estimates of a round that shows any."""
    place = None
    if not release["values"] and release["mean"] is not None and survey.points is not None:
        low, high = float(survey.points[0]), float(survey.points[-1])
        place = (float(release["mean"]["estimate"]) - low) / (high - low)
    values, categories = (
        np.array([cell["estimate"] for cell in release[family]], np.float64)
        for family in ("values", "categories")
    )
    return RoundShares(int(release["devices"]), values, categories, place)


def is_fresh(survey: Survey) -> bool:
    """Return whether devices answer anew in every round."""
    return any(attribute.kind != "static" for attribute in survey.attributes)


def _shared(before: Document, after: Document) -> int:
    """Return how many devices sent one memoised answer to both rounds, at least."""
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
        **({"window": alert.window, "against": alert.against} if alert.kind in ("jump", "joint") else {}),
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
        inputs = max(survey.channel.inputs, 1)
        self._kept = max(2, min(KEPT_ROUNDS, _CELLS // inputs))
        self._block = max(1, min(BLOCK, _BLOCK_CELLS // inputs)) if is_fresh(survey) else 1
        self._blocks: dict[int, _JudgedBlock] = {}

    def update(self, releases: Mapping[int, Document], new: Iterable[int]) -> None:
        """Judge new releases, and those after them, which have other rounds before them now.

        Args:
            releases: Every release of the survey by round.
            new: The rounds that were released since the last call.
        """
        shown = sorted(number for number, each in releases.items() if not each["suppressed"])
        released, size = set(new), self._block
        first = max(0, len(shown) - self._kept) // size
        blocks: dict[int, _JudgedBlock] = {}
        for place in range(first, -(-len(shown) // size)):
            start = max(0, (place - 1) * size)
            numbers = shown[start : (place + 1) * size]
            block = self._blocks.get(place)
            known = [] if block is None else block.numbers
            if block is None or known != numbers[: len(known)] or not released.isdisjoint(known):
                block = _JudgedBlock(self._judge, self._survey, self._estimator, place * size - start)
            for number in numbers[len(block.numbers) :]:
                block.add(number, releases)
            blocks[place] = block
        self._blocks = blocks

    def document(self) -> dict[str, Any]:
        """Return "rate" and "margin_share" as the rules have them, and "rounds", the oldest first."""
        found = [line for place in sorted(self._blocks) for line in self._blocks[place].found]
        return self._judge.document(found[-self._kept :])


class _JudgedBlock:
    """A block of releases, with those of the block before it that they are compared with.

    Args:
        judge: Who judges.
        survey: The survey.
        estimator: Its estimator.
        before: How many releases of the block before there are.
    """

    def __init__(self, judge: ReleaseJudge, survey: Survey, estimator: AnyEstimator, before: int) -> None:
        self._judge, self._survey, self._estimator, self._before = judge, survey, estimator, before
        self.numbers: list[int] = []
        self.found: list[dict[str, Any]] = []
        self._rounds: list[RoundShares] = []
        self._since = 0

    def add(self, number: int, releases: Mapping[int, Document]) -> None:
        """Take the next release: judge it, or look for a change if it is one of the block before."""
        release = releases[number]
        earlier = releases[self.numbers[-1]] if self.numbers else None
        self._rounds.append(shares_of(self._survey, release))
        judged = len(self.numbers) >= self._before
        self.numbers.append(number)
        about = (self._survey, self._estimator)
        if judged:
            line = self._judge.judge(*about, release, earlier, rounds=self._rounds, since=self._since)
            self.found.append(line)
            moved = any(alert["kind"] in ("jump", "joint") for alert in line["alerts"])
        else:
            jumps, together = self._judge.changes(
                *about, earlier, release, rounds=self._rounds, since=self._since
            )
            moved = bool(jumps or together)
        if moved:
            self._since = len(self.numbers)
