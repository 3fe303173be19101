"""The page of one survey: rounds, views, comparison. A real browser against a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from page_site import (
    A,
    Browser,
    Site,
    health,
    on,
    opened,
    text,
    until,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from shown_view import snapshot_of, survey_of


def test_an_older_round_can_be_chosen_and_stays_chosen(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    def rounds(newest: float) -> dict[str, Any]:
        old, new = health(0.31, sealed=True, devices=900), health(newest, devices=500)
        return snapshot_of(survey_of("health", old, {**new, "round": 2}, digest=A))

    site = open_site(rounds(0.42))
    opened(browser, site, on(A))
    number = f"#survey-{A} .values .number"
    until(browser, "42.00 ± 0.98 %", lambda: text(browser, number))
    choice = Select(browser.find_element(By.CSS_SELECTOR, f"#survey-{A} select"))
    assert [option.text for option in choice.options] == [
        "Newest: round 2",
        "Round 2 · provisional, 500 devices",
        "Round 1 · sealed, 900 devices",
    ]
    choice.select_by_value("1")
    until(browser, "31.00 ± 0.98 %", lambda: text(browser, number))
    assert text(browser, f"#survey-{A} .badge") == "Sealed"
    # Another round of the survey is still open, so the words say which one is final.
    assert "Round 1 is final: 900 devices were counted" in text(browser, f"#survey-{A}")
    assert browser.find_element(By.LINK_TEXT, "CSV").get_attribute("href").endswith(f"{A}/rounds/1.csv")
    site.view.publish(rounds(0.44))
    until(browser, "Round 2: provisional, 500 devices.", lambda: text(browser, f"#survey-{A} .news"))
    assert text(browser, number) == "31.00 ± 0.98 %"
    choice.select_by_value("newest")
    until(browser, "44.00 ± 0.98 %", lambda: text(browser, number))
