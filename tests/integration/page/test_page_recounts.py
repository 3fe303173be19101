"""The page and the recounts beside a release: named for whom they leave out, and never in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browser import Browser
from page_site import A, Site, complaints, exactly, on, opened, text, until, visible
from selenium.webdriver.common.by import By
from shown_view import snapshot_of, survey_of


def site_of(*recounts: dict[str, Any]) -> dict[str, Any]:
    rounds = [
        exactly(("1", "some", 0.5), ("2", "some", 0.5), index=number, sealed=True) for number in range(2)
    ]
    survey = survey_of("x", *rounds, digest=A)
    return snapshot_of(survey | ({"recounts": list(recounts)} if recounts else {}))


def recount(*without: str, **more: Any) -> dict[str, Any]:
    document = exactly(("1", "some", 0.4), ("2", "some", 0.6), index=1, sealed=True, **more)
    return document | {"recount": {"without_issuers": list(without)}}


def test_recounts_are_told_beside_the_numbers_of_the_release(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(site_of())
    opened(browser, site, on(A))
    until(browser, True, lambda: visible(browser, ".values .bar"))
    assert not visible(browser, ".recounts")
    before = text(browser, ".values")
    site.view.publish(
        site_of(recount("<b>leaky</b>", devices=700), recount("<b>leaky</b>", "other", suppressed=True))
    )
    until(
        browser,
        [
            "Without the reports that “<b>leaky</b>” vouched for: 700 devices.",
            "Without the reports that “<b>leaky</b>” and “other” vouched for: too few devices for estimates.",
        ],
        lambda: [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".recounts li")],
    )
    assert text(browser, ".values") == before
    link = browser.find_element(By.CSS_SELECTOR, ".recounts a")
    assert str(link.get_attribute("href")).endswith(f"/api/v1/surveys/{A}/rounds/2/recounts")
    opened(browser, site, on(A, round=1))
    until(browser, False, lambda: visible(browser, ".recounts"))
    assert complaints(browser) == []
