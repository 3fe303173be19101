"""No element of the page is wider than its box, on states taken from real releases with every fact."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from page_site import WIDTHS, A, B, Browser, Site, on, opened, size, too_wide, until
from page_states import CURVE, DAY_S, MEAN, PLACES, YEAR, gallery, hours, real_round, state_of, year
from selenium.webdriver.common.by import By
from shown_view import snapshot_of
from surveys import LABELS, VISITS

from hubbub.survey import Survey

C, D = "c" * 32, "d0" * 16


@pytest.fixture(scope="module")
def every_fact() -> dict[str, Any]:
    """A curve, a mean, labels that everybody answers, and a year of rounds, each as a server tells it."""
    now = time.time()
    answered = Survey.parse(LABELS.replace("epsilon = 1.0", "epsilon = 2.0"))
    few = real_round(answered, np.repeat([0, 1, 2, 3], 60))
    counts = np.random.default_rng(9).geometric(0.2, (2, 3000)).clip(1, 21) - 1
    grouped = [real_round(Survey.parse(VISITS), each, number=k) for k, each in enumerate(counts)]
    return snapshot_of(
        state_of("curve", "Hours of sleep", A, now - 5 * DAY_S, hours(CURVE, devices=3000), of=1),
        state_of("mean", "Hours of sleep", B, now - 5 * DAY_S, hours(MEAN), of=1),
        state_of("few", "Self-rated health, by few", C, now - 5 * DAY_S, [few], of=1),
        state_of("visits", "Visits", D, now - 5 * DAY_S, grouped, of=2),
        state_of("mood", "Mood", YEAR, now - 364.5 * DAY_S, year(), of=365),
    )


EVERY_OTHER = pytest.mark.parametrize("widths", [WIDTHS[::2], WIDTHS[1::2]], ids=["ends", "between"])


def wide(browser: Browser, widths: tuple[int, ...]) -> dict[int, list[str]]:
    found = {}
    for width in widths:
        size(browser, width, 900)
        browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
        )
        if each := too_wide(browser):
            found[width] = each
    return found


@pytest.mark.parametrize(
    "where",
    [
        "",
        on(A),
        on(A, show="raw"),
        on(B),
        on(B, show="raw"),
        on(C),
        on(YEAR, view="history"),
        on(D, view="comparison"),
        "?page=person",
    ],
)
@EVERY_OTHER
def test_nothing_is_wider_than_its_box_with_every_fact(
    browser: Browser,
    open_site: Callable[[dict[str, Any]], Site],
    every_fact: dict[str, Any],
    where: str,
    widths: tuple[int, ...],
) -> None:
    opened(browser, open_site(every_fact), where)
    until(browser, True, lambda: bool(browser.find_elements(By.CSS_SELECTOR, ".fact, .persons section")))
    for toggle in ([], browser.find_elements(By.CSS_SELECTOR, ".toggle")):
        for button in toggle:
            if button.is_displayed():
                button.click()
        assert wide(browser, widths) == {}


@pytest.fixture(scope="module")
def every_state() -> dict[str, Any]:
    return gallery()


def test_the_shares_of_every_picture_add_up(every_state: dict[str, Any]) -> None:
    """The pictures of the docs are of these documents; a release's raw shares add up to 1."""
    shown = [each for survey in every_state["surveys"] for each in survey["rounds"] if each["values"]]
    assert len(shown) > 300
    for document in shown:
        assert sum(cell["estimate"] for cell in document["values"]) == pytest.approx(1.0)
        margins = Counter(cell["label"].rpartition(": ")[0] for cell in document["categories"])
        for margin in margins:
            cells = [c for c in document["categories"] if c["label"].rpartition(": ")[0] == margin]
            assert sum(cell["estimate"] for cell in cells) == pytest.approx(1.0)


@pytest.mark.parametrize("name", PLACES)
@EVERY_OTHER
def test_nothing_is_wider_than_its_box_in_any_state(
    browser: Browser,
    open_site: Callable[[dict[str, Any]], Site],
    every_state: dict[str, Any],
    name: str,
    widths: tuple[int, ...],
) -> None:
    place = PLACES[name]
    opened(browser, open_site(every_state), place.where)
    until(browser, True, lambda: bool(browser.find_elements(By.CSS_SELECTOR, place.shows)))
    for selector in place.press:
        browser.find_element(By.CSS_SELECTOR, selector).click()
    assert wide(browser, widths) == {}


def test_a_word_that_leaves_its_box_would_be_found(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], every_fact: dict[str, Any]
) -> None:
    """The control: facts that do not wrap, as long ones once did not."""
    opened(browser, open_site(every_fact), on(C))
    until(browser, True, lambda: bool(browser.find_elements(By.CSS_SELECTOR, ".fact")))
    size(browser, 1024, 900)
    browser.execute_script(
        "for (const each of document.querySelectorAll('.main')) each.style.whiteSpace = 'nowrap'"
    )
    assert any("Answered" in each for each in too_wide(browser))
