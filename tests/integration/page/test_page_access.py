"""Every page and state without a violation of axe-core's rules, light and dark, desk and phone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from browser import Browser
from page_axe import violations
from page_site import Site, opened, size, text, until
from page_states import PLACES, gallery
from selenium.webdriver.common.by import By


def emulate(browser: Browser, scheme: str) -> None:
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.mark.long  # every third state in CI, each where make evidence NAME=long runs it
def test_no_page_and_no_state_breaks_a_rule_of_axe(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(gallery())
    found: dict[str, list[str]] = {}
    try:
        step = 1 if "HUBBUB_TEST_LONG" in os.environ else 3
        for name, place in list(PLACES.items())[::step]:
            size(browser, 1280, 900)
            opened(browser, site, place.where)
            until(
                browser, True, lambda where=place: bool(browser.find_elements(By.CSS_SELECTOR, where.shows))
            )
            for selector in place.press:
                browser.find_element(By.CSS_SELECTOR, selector).click()
            for scheme, width in (("light", 1280), ("dark", 390)):
                emulate(browser, scheme)
                size(browser, width, 900)
                if broken := violations(browser):
                    found[f"{name}, {scheme}, {width} px"] = broken
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found == {}


def test_axe_would_find_a_missing_name_and_too_little_contrast(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """The control: a page made worse on purpose."""
    opened(browser, open_site(gallery()))
    until(browser, True, lambda: bool(browser.find_elements(By.CSS_SELECTOR, ".brief")))
    browser.execute_script(
        """const main = document.querySelector("main");
        main.append(document.createElement("button"));
        const pale = document.createElement("p");
        pale.textContent = "pale";
        pale.style.color = "#ddd";
        main.append(pale);"""
    )
    rules = {line.partition(":")[0] for line in violations(browser)}
    assert {"button-name", "color-contrast"} <= rules


def test_the_keyboard_reaches_every_control_and_links_say_where_they_led(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(gallery())
    opened(browser, site, PLACES["distribution"].where)
    until(browser, True, lambda: bool(browser.find_elements(By.CSS_SELECTOR, PLACES["distribution"].shows)))
    wanted = browser.execute_script(
        """return [...document.querySelectorAll("a[href], button, select, summary, [tabindex='0']")]
        .filter((node) => node.checkVisibility()).length;"""
    )
    seen = set()
    for _ in range(wanted + 2):
        browser.execute_cdp_cmd(
            "Input.dispatchKeyEvent",
            {"type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
        )
        mark = browser.execute_script(
            """const at = document.activeElement;
            const outline = getComputedStyle(at).outlineStyle;
            window.marks ??= new Map();
            if (!window.marks.has(at)) window.marks.set(at, window.marks.size);
            return [window.marks.get(at), at.tagName, outline];"""
        )
        if mark[1] != "BODY":
            seen.add(mark[0])
            assert mark[2] != "none", mark
    assert len(seen) >= wanted
    assert text(browser, "main h2")
