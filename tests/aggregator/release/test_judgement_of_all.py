"""Every form and mechanism is judged: none ends its process, and honest rounds raise nothing."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import random_surveys
from random_surveys import MECHANISMS, attributes

from hubbub.estimation import AlertRules
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, Release, ReleaseJudge, SurveyAlerts

RULES = AlertRules(rate=1e-9, margin_share=0.0)
DEVICES = 600


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_honest_rounds_of_random_surveys_are_judged_and_raise_no_alert(mechanism: str) -> None:
    """Two surveys of each, two seeded rounds: a false alarm has a probability of 1e-9 a round."""
    chance = random.Random(f"alerts {mechanism}")  # noqa: S311 - test cases
    judged = 0
    for attempt in range(40):
        survey = random_surveys.survey(chance, attributes(chance), f"s{attempt}", mechanism)
        if survey is None or judged == 2:
            continue
        found = SurveyAlerts(ReleaseJudge(RULES), survey, survey.estimator())
        releases = {}
        for number in range(2):
            inputs = np.arange(DEVICES) % survey.channel.inputs
            counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(number)))
            tally = AcceptedCounts({0: 1}, counts, DEVICES)
            document = Release(survey, number, "sealed", tally, VerdictCounts()).document()
            releases[number] = json.loads(json.dumps(document))
            assert not document["suppressed"]
        found.update(releases, releases)
        lines = found.document()["rounds"]
        assert [line["alerts"] for line in lines] == [[], []]
        assert all(line["judged"] for line in lines)
        json.dumps(found.document(), allow_nan=False)
        judged += 1
    assert judged == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_rounds_of_very_few_devices_end_no_process(mechanism: str) -> None:
    """A cohort of one: levels that nobody was asked about, coins that all fell on one side, one report."""
    chance = random.Random(f"few {mechanism}")  # noqa: S311 - test cases
    seen = 0
    for attempt in range(60):
        survey = random_surveys.survey(chance, attributes(chance), f"s{attempt}", mechanism)
        if survey is None or seen == 2:
            continue
        seen += 1
        found, releases = SurveyAlerts(ReleaseJudge(RULES), survey, survey.estimator()), {}
        for number in range(4):
            devices = 1 + number
            inputs = np.arange(devices) % survey.channel.inputs
            counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(number)))
            tally = AcceptedCounts({0: 1}, counts, devices)
            document = Release(survey, number, "sealed", tally, VerdictCounts()).document()
            releases[number] = json.loads(json.dumps(document, allow_nan=False))
        found.update(releases, releases)
        assert [line["alerts"] for line in found.document()["rounds"]] == [[]] * len(releases)
    assert seen == 2
