"""The page and its server: updates, streams, polling, safety. A real browser against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from page_site import (
    A,
    B,
    Browser,
    Site,
    complaints,
    exactly,
    health,
    on,
    opened,
    size,
    state,
    text,
    two,
    until,
    visits,
)
from selenium.webdriver.common.by import By
from shown_view import round_of, snapshot_of, survey_of


def test_new_numbers_appear_without_reload_jump_or_lost_place(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    size(browser, 1280, 500)
    site = open_site(two(visits(), health(0.42)))
    opened(browser, site, on(B))
    number = f"#survey-{B} .values .number"
    until(browser, "42.00 ± 0.98 %", lambda: text(browser, number))
    browser.execute_script(
        """window.marker = "same document"; window.shift = 0; scrollTo(0, 120);
        new PerformanceObserver((list) => { for (const e of list.getEntries()) window.shift += e.value; })
          .observe({ type: "layout-shift" });"""
    )
    before = browser.execute_script("return scrollY")
    assert before > 0
    for step, good in enumerate((0.43, 0.5, 0.61, 0.55), start=1):
        devices = 1000 * 10**step
        site.view.publish(two(visits(devices=devices), health(good, devices=devices)))
        until(browser, f"{100 * good:.2f} ± 0.98 %", lambda: text(browser, number))
    until(browser, "10,000,000", lambda: text(browser, f"#survey-{B} .facts .main"))
    site.view.publish(two(visits(devices=devices, sealed=True), health(0.55, devices=devices, sealed=True)))
    until(browser, "Sealed", lambda: text(browser, f"#survey-{B} .badge"))
    assert browser.execute_script("return window.marker") == "same document"
    assert browser.execute_script("return scrollY") == before
    assert browser.execute_script("return window.shift") < 0.01
    assert complaints(browser) == []


def test_nothing_is_asked_of_another_origin(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health()))
    opened(browser, site)
    site.view.publish(two(visits(devices=2000), health()))
    until(browser, "2,000", lambda: text(browser, f"#survey-{A} .facts .main"))
    entries = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert len(entries) >= 5
    asked = []
    for entry in browser.get_log("performance"):
        message = webdriver_message(entry)
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            asked.append(message["params"].get("request", message["params"])["url"])
    assert {site.url, site.url + "page/page.js", site.url + "page/style.css"} <= set(asked)
    assert [url for url in {*asked, *entries} if not url.startswith((site.url, "about:", "data:,"))] == []
    assert complaints(browser) == []


def webdriver_message(entry: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(entry["message"])["message"]
    return message


def test_text_of_surveys_is_shown_and_never_run(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    evil = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
    few = exactly((evil, evil + "c", 0.5), ("b", "d", 0.3), ("e", "d", 0.2))
    many = exactly(*((f"{evil}{k}", f"{evil}{k // 10}", 0.01) for k in range(60)))
    site = open_site(
        snapshot_of(
            survey_of(evil, few, digest=A, title=evil),
            survey_of("many", many, round_of(1, suppressed=True), digest=B, title=f"\"'>{evil}"),
        )
    )
    opened(browser, site)
    until(browser, evil, lambda: text(browser, f"#survey-{A} h3"))
    places = (on(A, category=evil + "c"), on(B, view="history"), "?page=operations", "?page=person")
    for where in places:
        opened(browser, site, where)
        assert browser.execute_script("return window.hacked") is None
        assert browser.find_elements(By.CSS_SELECTOR, "img, body script") == []
    opened(browser, site, on(A))
    until(browser, evil, lambda: text(browser, f"#survey-{A} .values .label"))
    opened(browser, site, on(B))
    until(browser, f"\"'>{evil}", lambda: text(browser, f"#survey-{B} h2"))
    for button in browser.find_elements(By.CSS_SELECTOR, ".toggle"):
        browser.execute_script("arguments[0].click()", button)
    assert text(browser, f"#survey-{B} .values tbody th") == evil + "0"
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.CSS_SELECTOR, "img, body script") == []
    assert complaints(browser) == []


def test_pages_that_were_left_hold_no_stream_that_the_next_one_needs(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """A browser opens six connections to a server, and keeps pages that were left for the way back."""
    site = open_site(two(visits(), health(0.42)))
    browser.set_page_load_timeout(10)
    try:
        for where in ["", on(A), on(B), "?page=operations"] * 2:
            opened(browser, site, where)
        browser.back()
        until(browser, "live", lambda: state(browser))
        site.view.publish(two(visits(), health(0.48)))
        until(browser, "48.00 ± 0.98 %", lambda: text(browser, f"#survey-{B} .values .number"))
    finally:
        browser.set_page_load_timeout(300)


def test_a_lost_connection_is_said_and_mended(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health(0.42)))
    opened(browser, site, on(B))
    site.stop()
    until(browser, "lost", lambda: state(browser), seconds=20)
    assert text(browser, "#connection").startswith("Connection lost, numbers of ")
    assert text(browser, f"#survey-{B} .values .number") == "42.00 ± 0.98 %"
    site.view.publish(two(visits(), health(0.47)))
    site.start()
    until(browser, "live", lambda: state(browser), seconds=30)
    until(browser, "47.00 ± 0.98 %", lambda: text(browser, f"#survey-{B} .values .number"))


def test_without_event_streams_the_page_polls(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health(0.42)))
    script = browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.EventSource;"}
    )
    try:
        browser.get(site.url + on(B))
        until(browser, "polling", lambda: state(browser))
        assert text(browser, "#connection") == "Live, by polling"
        site.view.publish(two(visits(), health(0.48)))
        until(browser, "48.00 ± 0.98 %", lambda: text(browser, f"#survey-{B} .values .number"), seconds=15)
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_the_theme_follows_the_system_until_the_reader_chooses(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    def ground() -> str:
        return str(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))

    site = open_site(two(visits(), health()))
    grounds = {}
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        opened(browser, site)
        grounds[scheme] = ground()
    assert grounds["light"] != grounds["dark"]
    button = browser.find_element(By.ID, "theme")
    button.click()
    assert (button.text, ground()) == ("Theme: light", grounds["light"])
    opened(browser, site)
    assert (text(browser, "#theme"), ground()) == ("Theme: light", grounds["light"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
