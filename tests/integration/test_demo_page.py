"""The page docs/demo.html, opened from a disk with the network off: a round, sealed and checked."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from browser import CHROMEDRIVER, CHROMIUM, running_browser
from page_axe import violations
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "docs" / "demo.html"
OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
TRUTH = (34, 26, 20, 13, 7)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand"),
]


def test_it_is_what_the_script_makes_of_the_modules_and_below_a_megabyte() -> None:
    """If not: `.venv/bin/python client/web/tools/inline.py demo docs/demo.html`."""
    made = runpy.run_path(str(ROOT / "client" / "web" / "tools" / "inline.py"))["page"]("demo")
    assert DEMO.read_text(encoding="utf-8") == made
    assert DEMO.stat().st_size < 2**20


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_round_of_ten_thousand_devices_is_sealed_and_right(tmp_path: Path, width: int, scheme: str) -> None:
    """A share misses the truth by 4.9 standard errors with probability 10^-6; margins are 1.96 of them."""
    with running_browser(tmp_path) as browser:
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", OFFLINE)
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(DEMO.as_uri())
        WebDriverWait(browser, 60).until(lambda b: b.execute_script("return document.body.dataset.done"))
        for row, truth in zip(browser.find_elements(By.CSS_SELECTOR, "#shares tr"), TRUTH, strict=True):
            share, margin = (float(n) for n in re.findall(r"([\d.]+)(?: %|$)", row.text))
            assert abs(share - truth) < margin / 1.96 * 4.9
            bar = row.find_element(By.CSS_SELECTOR, ".bar").size["width"]
            plot = row.find_element(By.CSS_SELECTOR, ".plot").size["width"]
            assert bar == pytest.approx(plot * share / 50, abs=1.5)
        marks = browser.find_elements(By.CSS_SELECTOR, "#checks li")
        assert [mark.get_attribute("class") for mark in marks] == ["right"] * 5
        assert re.fullmatch("[0-9a-f]{64}", browser.find_element(By.ID, "seal").text)
        browser.find_element(By.ID, "send").click()
        assert len(browser.find_element(By.ID, "yours").text.split(", ")) == 12
        browser.find_element(By.ID, "reveal").click()
        assert browser.find_element(By.CSS_SELECTOR, ".truth").is_displayed()
        assert violations(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        asked = [line for line in browser.get_log("performance") if 'requestWillBeSent"' in line["message"]]
        assert not [line for line in asked if "http" in line["message"].split('"url":"')[1][:4]]
        assert browser.get_log("browser") == []
