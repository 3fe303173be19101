"""The owner's page in a real browser: bytes after sending, buttons, two widths, two themes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser
from devices import DAY_S, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, changed, opener
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from surveys import LABELS

from hubbub_client import Agent

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        CHROMIUM is None or CHROMEDRIVER is None,
        reason="chromium and chromedriver are not installed (Debian: apt install chromium chromium-driver)",
    ),
]


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def browser(shared_browser: Browser) -> Iterator[Browser]:
    shared_browser.get("about:blank")
    for kind in ("browser", "performance"):
        shared_browser.get_log(kind)
    size(shared_browser, 1400)
    yield shared_browser
    shared_browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture
def agent(tmp_path: Path, clock: Clock, collector: Collector) -> Iterator[Agent]:
    with opener(tmp_path, clock, collector) as make:
        made = make()
        for survey in (HEALTH_SURVEY, VISITS_SURVEY):
            assert made.enrol(survey).accepted
        yield made


def size(browser: Browser, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def text(browser: Browser, selector: str = "body") -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0]).textContent", selector))


def card(selector: str = "") -> str:
    return f"#survey-{HEALTH_SURVEY.digest.hex()} {selector}"


def press(browser: Browser, selector: str) -> None:
    """Clicks, and waits for the page that comes of it."""
    browser.execute_script("document.body.dataset.old = 'yes'")
    browser.find_element(By.CSS_SELECTOR, selector).click()
    WebDriverWait(browser, 10, poll_frequency=0.03).until(
        lambda b: b.execute_script("return document.readyState === 'complete' && !document.body.dataset.old")
    )


def complaints(browser: Browser) -> list[str]:
    return [each["message"] for each in browser.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]


def test_bytes_appear_after_sending_and_not_before(browser: Browser, agent: Agent) -> None:
    page = agent.serve_page()
    agent.answer()
    browser.get(page.url)
    assert "2 answers wait" in text(browser, "#waiting")
    assert browser.find_elements(By.CSS_SELECTOR, "pre") == []
    waiting = {report.id.hex() for report in agent._ledger.outbox(9)}
    assert not any(identity in browser.page_source for identity in waiting)
    spent = text(browser, "#spent")
    agent.upload()
    browser.refresh()
    shown = browser.execute_script("return [...document.querySelectorAll('pre')].map((e) => e.textContent)")
    sent = [report.data.hex() for asked in agent.account().surveys for report in asked.sent]
    assert sorted(found.replace(" ", "") for found in shown) == sorted(sent) and len(sent) == 2
    assert text(browser, "#spent") == spent == "4.000"  # here every answer costs the same
    assert not browser.find_elements(By.ID, "waiting")
    assert "likeliest from" in text(browser, card(".report"))
    assert complaints(browser) == []


def test_pausing_leaving_and_forgetting_work(browser: Browser, agent: Agent, clock: Clock) -> None:
    browser.get(agent.serve_page().url)
    press(browser, "#pause")
    assert text(browser, "#state").startswith("Paused") and agent.answer() == ()
    press(browser, "#resume")
    assert len(agent.answer()) == 2
    agent.upload()
    press(browser, card("#opt-out"))
    assert browser.execute_script(f"return document.querySelector('{card()}').dataset.state") == "left"
    assert not browser.find_elements(By.CSS_SELECTOR, card("#opt-out"))
    clock.now_s += DAY_S
    assert [answer.survey_id for answer in agent.answer()] == [VISITS_SURVEY.id]
    left = text(browser, "#left")
    browser.find_element(By.ID, "forget").click()  # the box is not ticked: the browser itself refuses
    assert agent.status().answers == 3
    browser.find_element(By.NAME, "sure").click()
    press(browser, "#forget")
    assert agent.status().answers == 0
    assert text(browser, "#left") == left and "before you had it forgotten" in text(browser)
    assert complaints(browser) == []


@pytest.mark.parametrize("width", [360, 1400])
def test_every_width_shows_all_without_sideways_scrolling(browser: Browser, agent: Agent, width: int) -> None:
    size(browser, width)
    agent.enrol(changed(LABELS, title='"A title of one long word: ' + "m" * 60 + '"', version="2"))
    agent.opt_out(refused := changed(LABELS, title='"' + "w" * 80 + '"', version="3"))
    agent.enrol(refused)
    agent.answer()
    agent.upload()
    browser.get(agent.serve_page().url)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = browser.execute_script(
        """return [...document.querySelectorAll(".card *")].filter((node) => {
          const box = node.getBoundingClientRect(), card = node.closest(".card").getBoundingClientRect();
          return box.width && (box.left < card.left - 0.5 || box.right > card.right + 0.5);
        }).map((node) => node.outerHTML);"""
    )
    assert outside == []


def test_the_theme_follows_the_system_and_stays_readable(browser: Browser, agent: Agent) -> None:
    """Contrast of every text with the ground behind it, WCAG AA."""
    agent.answer()
    agent.upload()
    grounds = set()
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(agent.serve_page().url)
        grounds.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        lowest = browser.execute_script(
            """const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
            const light = (colour) => numbers(colour).slice(0, 3).map((v) => v / 255)
              .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
              .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            const ground = (node) => {
              for (let at = node; at; at = at.parentElement) {
                const colour = getComputedStyle(at).backgroundColor;
                if (numbers(colour).length === 3 || numbers(colour)[3] > 0) return colour;
              }
            };
            return Math.min(...[...document.querySelectorAll("main *")].filter((node) => node.textContent)
              .map((node) => [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a))
              .map(([high, low]) => (high + 0.05) / (low + 0.05)));"""
        )
        assert lowest >= 4.5
    assert len(grounds) == 2


def test_nothing_is_asked_of_another_origin(browser: Browser, agent: Agent) -> None:
    page = agent.serve_page()
    browser.get(page.url)
    press(browser, "#pause")
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert {page.url, page.url + "page.css", page.url + "pause"} <= set(asked)
    assert [url for url in asked if not url.startswith((page.url, "about:", "data:,"))] == []
    assert complaints(browser) == []


def test_a_form_of_another_page_is_refused(browser: Browser, agent: Agent, tmp_path: Path) -> None:
    """Even one that knows the token."""
    other = tmp_path / "other.html"
    page = agent.serve_page()
    other.write_text(f'<form method="post" action="{page.url}pause"><button id="go">go</button></form>')
    browser.get(other.as_uri())
    browser.find_element(By.ID, "go").click()
    WebDriverWait(browser, 10).until(lambda b: "Forbidden" in b.page_source)
    assert not agent.status().paused
