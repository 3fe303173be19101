"""A server of the dashboard over handmade documents, and what tests ask a real browser about its page."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import uvicorn
from browser import Browser
from redis_harness import free_port
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from shown_view import ShownView, round_of, row, snapshot_of, survey_of

from hubbub_aggregator.web.api import create_app

A, B = "a" * 32, "b" * 32


class Site:
    """A uvicorn server in a thread over a view that a test changes; it can stop and come back at its port."""

    def __init__(self, snapshot: dict[str, Any]) -> None:
        self.view = ShownView(snapshot)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.start()

    def start(self) -> None:
        app = create_app(self.view, poll_s=0.02, closing=lambda: self._server.should_exit)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, host="127.0.0.1", port=self.port, log_level="error", timeout_graceful_shutdown=2
            )
        )
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        waiting = threading.Event()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            waiting.wait(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


def size(browser: Browser, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def until(browser: Browser, expected: object, look: Callable[[], object], seconds: float = 10) -> None:
    """Waits until a look shows what is expected; says what it showed last if it never does."""
    seen: list[object] = [None]

    def holds(_: Browser) -> bool:
        with contextlib.suppress(Exception):  # an element that is not there yet
            seen[0] = look()
        return seen[0] == expected

    with contextlib.suppress(Exception):
        WebDriverWait(browser, seconds, poll_frequency=0.03).until(holds)
    assert seen[0] == expected


def text(browser: Browser, selector: str) -> str:
    found = browser.execute_script("return document.querySelector(arguments[0]).textContent.trim()", selector)
    return plain(found)


def plain(found: str) -> str:
    """The text with ordinary spaces for the narrow ones before a percent sign."""
    return found.replace("\u202f", " ")


def visible(browser: Browser, selector: str) -> bool:
    return browser.find_element(By.CSS_SELECTOR, selector).is_displayed()


def state(browser: Browser) -> str:
    return str(browser.execute_script("return document.body.dataset.connection"))


def opened(browser: Browser, site: Site, where: str = "") -> None:
    """Opens a place of the page: "" for all surveys, `on(A)` for one of them."""
    browser.get(site.url + where)
    until(browser, "live", lambda: state(browser))


def on(digest: str, **more: object) -> str:
    return "?" + urlencode({"survey": digest, **more})


def complaints(browser: Browser) -> list[str]:
    return [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ]


def exactly(
    *shares: tuple[str, str, float], error: float = 0.005, devices: int = 1000, **more: Any
) -> dict[str, Any]:
    """A round whose estimates are the numbers given."""
    document = round_of(shares=shares, devices=devices, **more)
    document["values"] = [row(label, share, error, category=category) for label, category, share in shares]
    names = list(dict.fromkeys(category for _, category, _ in shares))
    document["categories"] = [row(n, sum(s for _, c, s in shares if c == n), error) for n in names]
    return document


def visits(**more: Any) -> dict[str, Any]:
    """79 values in six categories."""
    shares = [(str(k), f"group {k // 16}", 0.012) for k in range(78)] + [("missing", "missing", 0.04)]
    return exactly(*shares, mean=38.5, **more)


def two(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return snapshot_of(
        survey_of("visits", first, digest=A), survey_of("health", second, digest=B, title="Health")
    )


def health(good: float = 0.42, **more: Any) -> dict[str, Any]:
    return exactly(("good", "good", good), ("poor", "poor", 1 - good), **more)


def scheduled(start_s: float, *rounds: dict[str, Any], of: int = 5, round_s: int = 3600) -> dict[str, Any]:
    """A snapshot of one survey that begins at a time."""
    survey = survey_of("visits", *rounds, digest=A)
    start = datetime.fromtimestamp(start_s, UTC).isoformat().replace("+00:00", "Z")
    survey["schedule"] = {"start": start, "round_s": round_s, "rounds": of}
    return snapshot_of(survey)


WIDTHS = (320, 360, 414, 768, 1024, 1440, 2560)
"""Widths in pixels at which a page is looked at, from the narrowest phone to a wall."""


def too_wide(browser: Browser) -> list[str]:
    """Return what is wider than its box on the page as it stands, and labels of a chart that touch.

    What scrolls by itself, and a name that ends in an ellipsis, have their box's width by design.
    """
    found: list[str] = browser.execute_script(
        """const seen = (node) => node.checkVisibility() && node.getClientRects().length;
        const name = (node) => `${node.tagName}.${node.getAttribute("class")}`;
        const told = (node) => `${name(node)}: ${node.textContent.slice(0, 60)}`;
        const wide = [...document.querySelectorAll("body *:not(svg *, svg)")].filter((node) => {
          const style = getComputedStyle(node);
          const meant = style.overflowX !== "visible" || style.display === "inline";
          return seen(node) && !meant && node.scrollWidth > node.clientWidth + 1;
        });
        const touching = [...document.querySelectorAll(".profile, .axis")].filter(seen).flatMap((plot) => {
          const texts = [...plot.querySelectorAll("text")]
            .filter((text) => text.textContent && getComputedStyle(text).visibility === "visible");
          const boxes = texts.map((text) => text.getBoundingClientRect());
          const over = (a, b) => a.left < b.right && b.left < a.right;
          const meet = (a, b) => over(a, b) && a.top < b.bottom - 2 && b.top < a.bottom - 2;
          return texts.filter((_, i) => boxes.slice(i + 1).some((box) => meet(boxes[i], box)));
        });
        const beyond = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [];
        return [...wide.map(told), ...touching.map((text) => `touches: ${told(text)}`), ...beyond];"""
    )
    return found
