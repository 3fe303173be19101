"""A real browser for the tests of the page, and sites that end with their test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser
from page_site import Site, size


@pytest.fixture(autouse=True)
def needs_chromium() -> None:
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium chromium-driver)")


@pytest.fixture
def open_site() -> Iterator[Callable[[dict[str, Any]], Site]]:
    sites: list[Site] = []

    def make(snapshot: dict[str, Any]) -> Site:
        sites.append(Site(snapshot))
        return sites[-1]

    yield make
    for site in sites:
        site.stop()


@pytest.fixture(scope="session")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def browser(shared_browser: Browser) -> Iterator[Browser]:
    shared_browser.get("about:blank")  # a new browser's first page asks for things of its own
    for kind in ("browser", "performance"):
        shared_browser.get_log(kind)
    size(shared_browser, 1280, 900)
    yield shared_browser
    with contextlib.suppress(Exception):
        shared_browser.execute_script("localStorage.clear()")
    shared_browser.get("about:blank")  # closes the stream, so that the server may stop
