"""The tutorial docs/web.md, line by line, and the owner's element that its page has, at a phone's width."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser
from command import environment
from page_axe import violations
from redis_harness import free_port
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
LINES = re.findall(r"^ {4}(\S.*)$", (ROOT / "docs" / "web.md").read_text(encoding="utf-8"), re.MULTILINE)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand"),
]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of the tutorial's page, whose lines have run on two other ports."""
    ports = {"8780": str(free_port()), "8000": str(free_port())}

    def here(text: str) -> str:
        return re.sub("8780|8000", lambda found: ports[found[0]], text)

    for name, place in ((".venv", Path(sys.prefix)), ("docs", ROOT / "docs"), ("client", ROOT / "client")):
        (tmp_path / name).symlink_to(place)
    with contextlib.ExitStack() as servers:
        for line in map(here, LINES):
            if "http.server" in line or " node " in line:
                words = line.split()
                process = subprocess.Popen(
                    words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    env={**environment(), "PYTHONUNBUFFERED": "1"},
                )  # fmt: skip
                servers.callback(process.communicate)
                servers.callback(process.kill)
                assert process.stdout is not None
                assert "http" in process.stdout.readline().lower()
            else:
                subprocess.run(line, shell=True, cwd=tmp_path, check=True, env=environment())  # noqa: S602 - the page's own
        index = tmp_path / "site" / "index.html"
        index.write_text(here(index.read_text(encoding="utf-8")), encoding="utf-8")
        yield f"http://127.0.0.1:{ports['8000']}"


class Page:
    """The element of a page, as its owner reads it and presses its buttons."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def text(self) -> str:
        return str(
            self.browser.execute_script(
                "const {children} = document.querySelector('hubbub-owner').shadowRoot;"
                "return [...children].map((each) => each.innerText).join(' ');"
            )
        )

    def shows(self, *words: str) -> None:
        WebDriverWait(self.browser, 30, poll_frequency=0.05).until(
            lambda _: all(word in self.text() for word in words), f"{words} are not in: {self.text()}"
        )

    def press(self, button: str) -> None:
        pressed = self.browser.execute_script(
            "const {shadowRoot} = document.querySelector('hubbub-owner');"
            "const all = [...shadowRoot.querySelectorAll('button, input')];"
            "const own = all.find(({id, textContent}) => [id, textContent].includes(arguments[0]));"
            "own.focus(); own.click(); return own.id",
            button,
        )
        assert pressed


def test_the_tutorial_makes_a_page_whose_visitor_agrees_answers_leaves_and_forgets(
    tmp_path: Path, address: str
) -> None:
    with running_browser(tmp_path / "profile") as browser:
        metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get(address)
        page = Page(browser)
        page.shows("nobody has learned anything", "you have not said yes to it", "chooses the surveys")
        page.press("Take part")
        page.shows("taking part", "1 sent in 1 rounds", "at most 20.09.", "at most 95.26 % sure")
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            assert violations(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        page.press("Pause")
        page.shows("Paused: nothing is answered")
        focused = "return document.querySelector('hubbub-owner').shadowRoot.activeElement.textContent"
        assert browser.execute_script(focused) == "Resume"
        page.press("Resume")
        page.press("Leave this survey")
        page.shows("visits, version 1: left", "Take part")
        page.press("Forget everything")
        page.shows('tick "I want that" first')
        page.press("sure")
        page.press("Forget everything")
        page.shows("0 sent in 1 rounds", "at most 20.09.", "3.000 of 4 stay spent")
        browser.refresh()
        page.shows("0 sent in 1 rounds", "at most 20.09.", "3.000 of 4 stay spent", "version 1: left")
        severe = [each for each in browser.get_log("browser") if each["level"] == "SEVERE"]
        assert [each["message"] for each in severe if "favicon" not in each["message"]] == []
