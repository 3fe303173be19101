"""The words for a survey's state, at every moment at which they change."""

from __future__ import annotations

import pytest
from surveys import LABELS

from hubbub.survey import Survey, duration_words, round_words, survey_state

TEXT = (
    LABELS.replace('round = "1d"', 'round = "2m"')
    .replace('lateness = "1h"', 'lateness = "30s"')
    .replace('skew = "5m"', 'skew = "0s"')
)


def survey(*, rounds: int = 5, cohort: int = 100, planned: int = 5000) -> Survey:
    lines = [
        f"rounds = {rounds}"
        if line.startswith("rounds =")
        else f"minimum_cohort = {cohort}"
        if line.startswith("minimum_cohort =")
        else line
        for line in TEXT.replace("planned_devices = 5000", f"planned_devices = {planned}").splitlines()
    ]
    return Survey.parse("\n".join(lines))


ASKED = survey()
START = ASKED.start_s


@pytest.mark.parametrize(
    ("at_s", "accepted", "said"),
    [
        (-3 * 3600, None, ("begins", "begins in 3 h", None, 0)),
        (-0.4, {}, ("begins", "begins in 1 s", None, 0)),
        (0, None, ("open", "round 1 of 5 ends in 2 min", 0, 120)),
        (0, {}, ("waiting", "waiting for the first 200 devices; round 1 of 5 ends in 2 min", 0, 120)),
        (80, {0: 199}, ("waiting", "waiting for the first 200 devices; round 1 of 5 ends in 40 s", 0, 120)),
        (80, {0: 200}, ("open", "round 1 of 5 ends in 40 s", 0, 120)),
        (
            120,
            {0: 200},
            ("waiting", "waiting for the first 200 devices; round 2 of 5 ends in 2 min", 1, 240),
        ),
        (599.5, {4: 200}, ("open", "round 5 of 5 ends in 1 s", 4, 600)),
        (600, {}, ("late", "its last round has ended; late answers are taken for 30 s more", None, 630)),
        (630, None, ("over", "over", None, None)),
        (630, {}, ("over", "over, nobody answered", None, None)),
        (630, {2: 99}, ("over", "over, no round had the 100 devices that a release needs", None, None)),
        (630, {2: 100}, ("over", "over", None, None)),
    ],
)
def test_the_state_is_said_in_words(at_s, accepted, said) -> None:
    found = survey_state(ASKED, START + at_s, accepted=accepted)
    until_s = None if found.until_s is None else found.until_s - START
    assert (found.name, found.words, found.round, until_s) == said


@pytest.mark.parametrize("accepted", [None, {}, {0: 250}])
def test_a_state_lasts_until_the_moment_that_it_names(accepted) -> None:
    moment, seen = float(START - 1), []
    while True:
        found = survey_state(ASKED, moment, accepted=accepted)
        seen.append(found.name)
        if found.until_s is None:
            break
        before = survey_state(ASKED, found.until_s - 0.001, accepted=accepted)
        assert (before.name, before.round) == (found.name, found.round)
        moment = found.until_s
    assert [seen[0], *seen[-2:], len(seen)] == ["begins", "late", "over", 8]


def test_a_survey_of_tiny_cohorts_waits_for_two_devices() -> None:
    tiny = survey(cohort=1, planned=50)
    assert survey_state(tiny, START, accepted={0: 1}).words.startswith("waiting for the first 2 devices")
    assert survey_state(tiny, START, accepted={0: 2}).name == "open"


def test_a_survey_of_many_devices_waits_for_two_steps_of_a_thousandth() -> None:
    large = survey(planned=1_000_001)
    said = survey_state(large, START, accepted={0: 2001})
    assert said.words.startswith("waiting for the first 2,002 devices")
    assert survey_state(large, START, accepted={0: 2002}).name == "open"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1 s"),
        (0.2, "1 s"),
        (118.5, "119 s"),
        (119.5, "2 min"),
        (160, "3 min"),
        (2 * 3600 - 1, "120 min"),
        (2 * 3600, "2 h"),
        (3 * 3600 - 5, "3 h"),
        (2 * 86_400, "2 d"),
        (2000 * 86_400, "2,000 d"),
    ],
)
def test_a_length_of_time_is_told_in_one_unit(seconds, words) -> None:
    assert duration_words(seconds) == words


def test_people_count_rounds_from_one() -> None:
    assert round_words(ASKED, 0) == "round 1 of 5"
    assert round_words(survey(rounds=10_000), 9_999) == "round 10,000 of 10,000"
