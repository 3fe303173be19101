"""The page and what a release says beside its shares: curve, quartiles, bands, worth. A real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browser import Browser
from page_site import A, Site, complaints, exactly, on, opened, plain, text, until, visible
from selenium.webdriver.common.by import By
from shown_view import snapshot_of, survey_of
from surveys import LABELS

from hubbub import Survey
from hubbub_aggregator.release.after_shuffling import ShufflingStatements

SETS = (("mail", 0.4), ("maps", 0.3), ("more than 3", 0.123), ("missing", 0.02))


def shown(document: dict[str, Any]) -> dict[str, Any]:
    return snapshot_of(survey_of("x", document, digest=A))


def numbers(browser: Browser) -> list[str]:
    return [plain(each.text) for each in browser.find_elements(By.CSS_SELECTOR, ".values .rows .number")]


def test_the_curve_of_a_release_comes_first_with_its_band_and_the_quartiles(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = exactly(*((str(k), "answered", 0.2) for k in range(5)))
    document["cumulative"] = {
        "level": 0.95,
        "points": [0.0, 1.0, 2.0, 3.0, 4.0],
        "shares": [0.2, 0.4, 0.6, 0.8, 1.0],
        "errors": [0.01] * 5,
        "low": [0.15, 0.35, 0.55, 0.75, 0.95],
        "high": [0.25, 0.45, 0.65, 0.85, 1.0],
    }
    document["quantiles"] = [
        {"share": share, "estimate": at, "low": at - 1, "high": at + 1}
        for share, at in ((0.25, 1.0), (0.5, 2.0), (0.75, 3.0))
    ]
    opened(browser, open_site(shown(document)), on(A))
    until(browser, "At or below each value (5)", lambda: text(browser, ".values h3"))
    facts = plain(browser.find_element(By.CSS_SELECTOR, ".facts").text)
    assert "Median\n2 (1 to 3)\nquartiles 1 (0 to 2), 3 (2 to 4); all three at once, 95 %" in facts
    browser.find_element(By.CSS_SELECTOR, ".values .toggle").click()
    rows = [plain(row.text) for row in browser.find_elements(By.CSS_SELECTOR, ".values tbody tr")]
    assert rows[1] == "1 40.0 % 5.0 % 35.0 to 45.0 %"
    # .2 (.8) + .4 (.6) + .6 (.4) + .8 (.2) over four times .01 squared: 2,000, and 1 for noise in squares.
    assert "a plain sample of 2,001 devices with a value" in text(browser, ".values .worth")
    assert complaints(browser) == []


def test_what_readers_of_a_release_learn_stands_with_its_assumption(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    survey = Survey.parse(LABELS)
    document = exactly(("a", "c", 0.4), ("b", "d", 0.6)) | {"suppressed": False, "devices": 20_190}
    found = ShufflingStatements().of(survey, document)
    assert found is not None
    document["after_shuffling"] = found
    opened(browser, open_site(shown(document)), on(A))
    said = (
        f"Privacy, this release\nε ≤ {found['epsilon']}, δ 0.000001\n"
        "for readers of it alone, if 20,000 reports are honest; "
        f"{found['watched_epsilon']} who watched steps of 100. No promise."
    )
    until(browser, True, lambda: said in plain(browser.find_element(By.CSS_SELECTOR, ".facts").text))
    title = browser.find_element(By.XPATH, "//dt[text()='Privacy, this release']/..").get_attribute("title")
    assert title == found["assumption"]
    assert complaints(browser) == []


def test_intervals_hold_cell_by_cell_or_all_at_once_as_the_reader_chooses(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = exactly(("a", "c", 0.4), ("b", "d", 0.6))
    for row in document["values"] + document["categories"]:
        row.update(simultaneous_low=row["estimate"] - 0.02, simultaneous_high=row["estimate"] + 0.02)
    opened(browser, open_site(shown(document)), on(A))
    until(browser, ["40.00 ± 0.98 %", "60.00 ± 0.98 %"], lambda: numbers(browser))
    browser.find_element(By.LINK_TEXT, "Raw, all at once").click()
    until(browser, ["40.0 ± 2.0 %", "60.0 ± 2.0 %"], lambda: numbers(browser))
    assert "all values at once" in text(browser, ".form-words")


def test_the_worth_of_a_round_is_said_against_chance_and_forgery(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Two halves with errors 0.005: (1 - 2 (0.25 - 0.000025)) / (2 * 0.000025) = 10,001 devices.

    Two categories with errors 0.05 are worth 101, said under theirs.
    """
    document = exactly(("a", "c", 0.5), ("b", "d", 0.5), sealed=True)
    document["poison_margin"] = {"values": [41.2, None], "categories": [77.0]}
    for row in document["categories"]:
        row["error"] = 0.05
    opened(browser, open_site(shown(document)), on(A))
    until(browser, True, lambda: "a plain sample of 10,001 devices" in text(browser, ".values .worth"))
    assert "a plain sample of 101 devices" in text(browser, ".categories .worth")
    until(browser, True, lambda: "42 forged reports would be enough" in text(browser, ".strength"))
    assert visible(browser, ".strength")


def test_a_survey_of_sets_says_how_far_true_shares_may_be_above(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = exactly(*((label, "", share) for label, share in SETS), error=0.01)
    document["categories"] = []
    opened(browser, open_site(shown(document)), on(A))
    high = f"{100 * document['values'][-2]['high']:.1f}"
    until(browser, True, lambda: f"and 12.3 points more ({high} with noise)" in text(browser, ".strength"))
    assert "Devices with more than 3 items sent some of them" in text(browser, ".strength")
