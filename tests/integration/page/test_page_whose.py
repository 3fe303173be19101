"""The page says whose shares its intervals are of, and draws those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browser import Browser
from page_site import A, Site, complaints, exactly, on, opened, plain, until
from selenium.webdriver.common.by import By
from shown_view import snapshot_of, survey_of

CROWD = (
    "Intervals are of everybody who could have been asked, if those who answered are like a random part of "
    "them."
)
DEVICES = "Intervals are of the devices counted: they leave room for the noise alone."
WATCHED = "Intervals are of the devices counted so far, and hold at every look, however often you come back."


def with_ends(prefix: str, half: float, **more: Any) -> dict[str, Any]:
    found = exactly(("a", "some", 0.5), ("b", "some", 0.5), error=0.01, **more)
    for cell in (*found["values"], *found["categories"]):
        for end in ("low", "high", "simultaneous_low", "simultaneous_high"):
            cell[prefix + end] = cell["estimate"] + (half if end.endswith("high") else -half)
    return found


def said(browser: Browser) -> tuple[list[str], str]:
    notes = [plain(each.text) for each in browser.find_elements(By.CSS_SELECTOR, ".form-words") if each.text]
    return notes[1:], plain(browser.find_element(By.CSS_SELECTOR, ".figures .values .row .number").text)


def test_a_sealed_round_shows_the_crowd_and_on_asking_the_devices(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(snapshot_of(survey_of("x", with_ends("crowd_", 0.04, sealed=True), digest=A)))
    opened(browser, site, on(A))
    until(browser, ([CROWD], "50.0 ± 4.0 %"), lambda: said(browser))
    links = browser.find_elements(By.CSS_SELECTOR, ".whose a")
    assert [link.text for link in links] == ["Everybody who could have been asked", "The devices counted"]
    links[1].click()
    until(browser, ([DEVICES], "50.0 ± 2.0 %"), lambda: said(browser))
    assert browser.current_url.endswith("of=devices")
    assert complaints(browser) == []


def test_an_open_round_shows_the_band_that_holds_at_every_look(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(snapshot_of(survey_of("x", with_ends("always_", 0.06), digest=A)))
    opened(browser, site, on(A))
    until(browser, ([WATCHED], "50.0 ± 6.0 %"), lambda: said(browser))
    assert not browser.find_element(By.CSS_SELECTOR, ".whose").is_displayed()
    assert complaints(browser) == []


def test_a_curves_band_and_the_median_are_of_the_crowd_first(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = with_ends("crowd_", 0.04, sealed=True)
    document["cumulative"] = {"points": [0.0, 1.0], "shares": [0.5, 1.0], "errors": [0.01, 0.0]}
    for of, half in (("", 0.02), ("crowd_", 0.04)):
        document["cumulative"] |= {f"{of}low": [0.5 - half, 1.0], f"{of}high": [0.5 + half, 1.0]}
    ends = {"low": 1.0, "high": 3.0, "crowd_low": 0.0, "crowd_high": 4.0}
    document["quantiles"] = [{"share": share, "estimate": 2.0} | ends for share in (0.25, 0.5, 0.75)]
    opened(browser, open_site(snapshot_of(survey_of("x", document, digest=A))), on(A))
    until(browser, True, lambda: CROWD in plain(browser.find_element(By.CSS_SELECTOR, ".distribution").text))
    browser.find_element(By.CSS_SELECTOR, ".values .toggle").click()
    first = lambda: plain(browser.find_element(By.CSS_SELECTOR, ".values tbody tr td:last-child").text)  # noqa: E731 - a look
    until(browser, "46.0 to 54.0 %", first)
    assert "Median\n2 (0 to 4)" in plain(browser.find_element(By.CSS_SELECTOR, ".facts").text)
    browser.find_elements(By.CSS_SELECTOR, ".whose a")[1].click()
    until(browser, "48.0 to 52.0 %", first)
    assert complaints(browser) == []
