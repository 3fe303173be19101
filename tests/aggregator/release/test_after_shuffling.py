"""The statement beside a release: the designer's own number, never for a case that it does not cover."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from asgi_reader import get
from shown_view import ShownView, round_of, snapshot_of, survey_of
from surveys import DISEASES, LABELS, VISITS

from hubbub import Survey
from hubbub.shuffling import epsilon_after_shuffling
from hubbub.testing import seeded
from hubbub_aggregator.counting.issuers import IssuerTally
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, Release
from hubbub_aggregator.release.after_shuffling import (
    DELTA,
    MOST_REPORTS,
    MOST_WORK,
    ShufflingStatements,
    one_digit,
)
from hubbub_aggregator.web import create_app
from hubbub_aggregator.web.documents import without_suppressed

HEALTH = Survey.parse(LABELS)


def released(survey: Survey, devices: int, *, issuers: int = 0) -> dict[str, Any]:
    """A release of so many devices, and of issuers with as many reports each of the rest."""
    channel = survey.channel
    counts = channel.tally(channel.perturb(np.arange(devices) % channel.inputs, source=seeded(1)))
    tallies = {f"issuer {i}": IssuerTally(counts // (i + 2), devices // (i + 2)) for i in range(issuers)}
    tally = AcceptedCounts({0: 1}, counts, devices)
    made = Release(survey, 0, "sealed", tally, VerdictCounts(), issuers=tallies)
    return json.loads(json.dumps(made.document()))


@pytest.mark.parametrize("devices", [150, 4273, 60_000])
def test_statement_is_the_designers_number_for_no_more_reports_than_there_were(devices: int) -> None:
    found = ShufflingStatements().of(HEALTH, released(HEALTH, devices))
    assert found is not None
    assert devices / 2 < found["reports"] <= devices
    assert (found["delta"], found["watched_reports"]) == (DELTA, HEALTH.minimum_cohort)
    for reports, epsilon in (("reports", "epsilon"), ("watched_reports", "watched_epsilon")):
        exact = epsilon_after_shuffling(HEALTH.channel, found[reports], DELTA)
        assert exact <= found[epsilon] <= min(1.01 * exact, HEALTH.channel.epsilon)
    assert found["epsilon"] >= epsilon_after_shuffling(HEALTH.channel, devices, DELTA)
    assert "not a promise" in found["assumption"] and "honest" in found["assumption"]


def test_no_byte_of_a_release_says_it() -> None:
    made = released(HEALTH, 4000)
    assert "after_shuffling" not in made
    assert ShufflingStatements().of(HEALTH, made) is not None


def test_nothing_is_said_where_it_would_not_hold() -> None:
    statements = ShufflingStatements()
    assert statements.of(None, released(HEALTH, 4000)) is None
    assert statements.of(HEALTH, released(HEALTH, 20)) is None  # suppressed
    static = Survey.parse(VISITS)
    assert static.rounds == 2 and statements.of(static, released(static, 4000)) is None
    once = Survey.parse(VISITS.replace("rounds = 2", "rounds = 1"))
    assert statements.of(once, released(once, 4000)) is not None


def test_a_table_without_symmetries_is_too_much_work_beside_counting() -> None:
    survey = Survey.parse(DISEASES.replace("points = 31", "points = 63"))
    channel = survey.channel
    assert channel.inputs**2 * channel.bins > MOST_WORK
    assert ShufflingStatements().of(survey, released(survey, 4000)) is None
    smaller = Survey.parse(DISEASES)
    assert smaller.rounds == 1 and ShufflingStatements().of(smaller, released(smaller, 4000)) is not None


def test_issuers_that_a_release_compares_split_the_reports_that_hide_a_person() -> None:
    found = ShufflingStatements().of(HEALTH, released(HEALTH, 6000, issuers=2))
    assert found is not None
    assert found["reports"] == 1000  # 3,000, 2,000, and the rest
    assert (found["watched_reports"], found["watched_epsilon"]) == (1, HEALTH.channel.epsilon)
    alone = ShufflingStatements().of(HEALTH, released(HEALTH, 6000))
    assert alone is not None and alone["epsilon"] < found["epsilon"]


@pytest.mark.parametrize("count", [0, 1, 7, 99, 100, 101, 199, 1999, 999_999])
def test_one_digit_is_never_more_and_more_than_half(count: int) -> None:
    found = one_digit(count)
    assert count / 2 < found <= count or found == count == 0
    assert len(str(found).rstrip("0")) <= 1


def test_more_reports_than_are_reckoned_with_are_so_many() -> None:
    assert one_digit(7 * 10**6) == MOST_REPORTS


def test_the_api_hands_it_on_but_for_too_few_devices() -> None:
    beside = ShufflingStatements().of(HEALTH, released(HEALTH, 4000))
    sealed = round_of(0, sealed=True) | {"after_shuffling": beside}
    app = create_app(ShownView(snapshot_of(survey_of("visits", sealed))))
    answer = get(app, "/api/v1/surveys/visits/rounds/1")
    assert answer.status == 200 and answer.json["after_shuffling"] == beside
    few = round_of(0, sealed=True, suppressed=True) | {"after_shuffling": beside}
    assert without_suppressed(few)["after_shuffling"] is None
