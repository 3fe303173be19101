"""The words of the page for a survey and for a round, in a real browser against a real server."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import pytest
from page_site import (
    A,
    B,
    Browser,
    Site,
    exactly,
    health,
    on,
    opened,
    plain,
    scheduled,
    text,
    two,
    until,
    visible,
    visits,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from shown_view import round_of, snapshot_of, survey_of

from hubbub.survey import Survey, survey_state
from hubbub_aggregator.web import documents


def test_the_stage_of_a_round_and_its_devices_are_said_in_words(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    collecting = {"suppressed": True, "tallies": {"accepted": 37}}
    site = open_site(two(round_of(**collecting), round_of(sealed=True, **collecting)))
    opened(browser, site)
    until(browser, "Collecting", lambda: text(browser, f"#survey-{A} .badge"))
    opened(browser, site, on(A))
    until(browser, "Collecting", lambda: text(browser, f"#survey-{A} .badge"))
    said = "37 devices so far. No estimate is shown of fewer than 100"
    assert said in text(browser, f"#survey-{A} .withheld")
    assert not visible(browser, f"#survey-{A} .figures")
    assert browser.find_elements(By.CSS_SELECTOR, ".number, .profile") == []
    opened(browser, site, on(B))
    until(browser, "Withheld", lambda: text(browser, f"#survey-{B} .badge"))
    assert "fewer than its minimum cohort of 100" in text(browser, f"#survey-{B} .withheld")
    opened(browser, site, on(A))
    site.view.publish(two(visits(devices=12400), round_of(sealed=True, **collecting)))
    until(browser, "Provisional", lambda: text(browser, f"#survey-{A} .badge"))
    assert "as of 12,400 devices" in text(browser, f"#survey-{A} .state")
    assert "at least 100" in text(browser, f"#survey-{A} .state")
    site.view.publish(two(visits(devices=12500, sealed=True), round_of(sealed=True, **collecting)))
    until(browser, "Sealed", lambda: text(browser, f"#survey-{A} .badge"))
    assert "12,500 devices were counted" in text(browser, f"#survey-{A} .state")


def test_the_accounting_identity_is_shown_and_checked(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    tallies = {"accepted": 20190, "duplicate": 17, "early": 1, "late": 25, "invalid": 3, "over_quota": 2}
    snapshot = snapshot_of(survey_of("visits", visits(tallies=tallies), digest=A), unknown=4, lag=2)
    site = open_site(snapshot)
    wanted = (
        "20,238 received = 20,190 accepted + 17 duplicate + 1 early + 25 late + 3 invalid + 2 over quota"
        " ✓ adds up"
    )
    for where, place in ((on(A), f"#survey-{A}"), ("?page=operations", "#totals")):
        opened(browser, site, where)
        until(browser, wanted, lambda p=place: " ".join(text(browser, f"{p} .identity").split()))
    assert "8 log records wait" in text(browser, "#log-state")
    assert "4 reports of unknown surveys" in text(browser, "#log-state")
    snapshot["accounting"]["attempts"] += 1
    site.view.publish({**snapshot})
    until(browser, "✗ the parts give 20,238", lambda: text(browser, "#totals .verdict"))


def test_epsilon_is_shown_rounded_up_beside_the_declared_one(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = visits()
    document["epsilon"] = {"declared": 1.5, "certified": 1.4999981230001}
    site = open_site(snapshot_of(survey_of("visits", document, digest=A)))
    opened(browser, site, on(A))
    privacy = f"#survey-{A} .fact:nth-child(2)"
    until(browser, "ε ≤ 1.499999", lambda: text(browser, f"{privacy} .main"))
    assert text(browser, f"{privacy} .more") == "certified; 1.5 declared"


def test_who_is_missing_of_those_asked_is_said_with_its_bound(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LIVE_ROUNDS", 2)
    enrolment = {"enrolled": 900, "asked": 1000, "absent": 0.1, "budget": 2.0}
    enrolment["bias"] = {"values": [0.0123, 0.05], "categories": [0.004]}
    rounds = [health(0.31, sealed=True, devices=900) | {"round": number + 1} for number in range(4)]
    shown = snapshot_of(survey_of("health", *[r | {"enrolment": enrolment} for r in rounds], digest=A))
    site = open_site(shown)
    opened(browser, site, on(A))
    small = f"#survey-{A} .absence"
    until(browser, True, lambda: "10.0 % of the 1,000 devices asked are not in" in text(browser, small))
    assert "is more than 5.00 points away" in text(browser, small)
    assert "who stayed away for other reasons is not in this bound" in text(browser, small)
    choice = Select(browser.find_element(By.CSS_SELECTOR, f"#survey-{A} select"))
    assert [option.text for option in choice.options][-1] == "2 older: /api/v1/surveys"
    assert not choice.options[-1].is_enabled()
    site.view.publish(snapshot_of(survey_of("health", *rounds, digest=A)))
    until(browser, False, lambda: visible(browser, small))


@pytest.mark.parametrize(
    ("begins_in_s", "badge", "words"),
    [
        (3 * 3600 + 120, "Not begun", "Begins in 3 h."),
        (-120, "Waiting", "Waiting for the first 200 devices; round 1 of 5 ends in 58 min."),
        (-7 * 86400, "Over", "Over, nobody answered."),
    ],
)
def test_a_survey_without_answers_says_so_and_shows_nothing_that_looks_like_a_result(
    browser: Browser,
    open_site: Callable[[dict[str, Any]], Site],
    begins_in_s: float,
    badge: str,
    words: str,
) -> None:
    opened(browser, open_site(scheduled(time.time() + begins_in_s + 15)), on(A))
    until(browser, badge, lambda: text(browser, f"#survey-{A} .badge"))
    assert text(browser, f"#survey-{A} .moment") == words
    for part in (".meter", ".fill", ".figures", ".withheld", ".under", ".links a", "select"):
        found = browser.find_elements(By.CSS_SELECTOR, f"#survey-{A} {part}")
        assert not any(each.is_displayed() for each in found), part
    facts = [e.text for e in browser.find_elements(By.CSS_SELECTOR, f"#survey-{A} .fact") if e.is_displayed()]
    assert [fact.splitlines()[0] for fact in facts] == ["Privacy, per report", "Schedule"]
    assert "5 rounds of 60 min" in facts[1]


def test_the_page_and_the_command_line_say_a_surveys_state_in_the_same_words(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Against `survey_state`, at moments around every change of state and unit, for five counts."""
    survey = Survey.load(resources.files("hubbub_deploy") / "surveys" / "health.toml")
    opened(browser, open_site(snapshot_of()))
    begin, length, rounds = survey.start_s, survey.round_s, survey.rounds
    ends = [begin + length * k for k in range(rounds + 1)]
    late = [ends[-1] + survey.lateness_s]
    near = (0, -0.5, 1, -59, -119, -120, -150, -5399, -7200, -9000, -86400 * 2, -86400 * 2.5, -86400 * 9)
    moments = [at + by for at in (*ends, *late) for by in near]
    least = survey.minimum_cohort
    counts: list[dict[int, int]] = [{}, {0: 1}, {0: least - 1}, {0: least}, {0: 2 * least}]
    facts = {
        "minimum_cohort": least,
        "schedule": {
            "start": datetime.fromtimestamp(begin, UTC).isoformat(),
            "round_s": length,
            "rounds": rounds,
            "lateness_s": survey.lateness_s,
        },
    }
    surveys = [
        {**facts, "rounds": [{"round": r + 1, "accepted": n} for r, n in count.items()]} for count in counts
    ]
    said = browser.execute_async_script(
        """const [surveys, moments, done] = arguments;
        import("/page/states.js").then(({ surveyState }) => done(surveys.map((survey) =>
          moments.map((at) => { const { name, words } = surveyState(survey, at); return [name, words]; }))),
          (e) => done(String(e)));""",
        surveys,
        moments,
    )
    for accepted, words in zip(counts, said, strict=True):
        for at, found in zip(moments, words, strict=True):
            expected = survey_state(survey, at, accepted=accepted)
            assert found == [expected.name, expected.words], (at - begin, accepted)
    assert {name for words in said for name, _ in words} == {"begins", "waiting", "open", "late", "over"}


def test_a_survey_that_nobody_has_answered_opens_its_card_with_the_first_round(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(scheduled(time.time() - 120))
    opened(browser, site, on(A))
    until(browser, "Waiting", lambda: text(browser, f"#survey-{A} .badge"))
    site.view.publish(scheduled(time.time() - 120, health(0.42)))
    until(browser, "42.00 ± 0.98 %", lambda: text(browser, f"#survey-{A} .values .number"))
    assert visible(browser, f"#survey-{A} .links")


def test_a_plan_of_no_devices_has_no_bar_that_could_be_full(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    survey = survey_of("visits", health(), digest=A, planned_devices=0)
    opened(browser, open_site(snapshot_of(survey)), on(A))
    until(browser, "1,000 accepted", lambda: text(browser, f"#survey-{A} .fact .more"))
    assert not visible(browser, f"#survey-{A} .fact .meter")


def test_answered_and_missing_are_one_line_where_there_are_no_categories(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    plain_survey = exactly(("yes", "answered", 0.5), ("no", "answered", 0.3), ("missing", "missing", 0.2))
    site = open_site(two(plain_survey, visits()))
    opened(browser, site, on(A))
    until(browser, True, lambda: visible(browser, f"#survey-{A} .values"))
    assert browser.find_elements(By.CSS_SELECTOR, f"#survey-{A} .categories") == []
    facts = plain(browser.find_element(By.CSS_SELECTOR, f"#survey-{A} .facts").text)
    assert "Answered\n80.00 ± 0.98 %\nmissing 20.00 ± 0.98 %" in facts
    opened(browser, site, on(B))
    until(browser, True, lambda: visible(browser, f"#survey-{B} .categories"))
    assert "Answered" not in browser.find_element(By.CSS_SELECTOR, f"#survey-{B} .facts").text
