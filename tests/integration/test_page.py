"""The dashboard in a real browser, against a real server: what a reader sees, what the browser asks for."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import pytest
import uvicorn
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from shown_view import ShownView, round_of, row, snapshot_of, survey_of

from hubbub.survey import Survey, survey_state
from hubbub_aggregator.web import documents
from hubbub_aggregator.web.api import create_app

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMEDRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        CHROMIUM is None or CHROMEDRIVER is None,
        reason="chromium and chromedriver are not installed (Debian: apt install chromium chromium-driver)",
    ),
]

A, B = "a" * 32, "b" * 32
Browser = webdriver.Chrome


class Site:
    """A uvicorn server in a thread over a view that a test changes; it can stop and come back at its port."""

    def __init__(self, snapshot: dict[str, Any]) -> None:
        self.view = ShownView(snapshot)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
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


@pytest.fixture
def open_site() -> Iterator[Callable[[dict[str, Any]], Site]]:
    sites: list[Site] = []

    def make(snapshot: dict[str, Any]) -> Site:
        sites.append(Site(snapshot))
        return sites[-1]

    yield make
    for site in sites:
        site.stop()


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--no-proxy-server",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(CHROMEDRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


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


def opened(browser: Browser, site: Site) -> None:
    browser.get(site.url)
    until(browser, "live", lambda: state(browser))


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


def test_new_numbers_appear_without_reload_jump_or_lost_place(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health(0.42)))
    opened(browser, site)
    number = f"#survey-{B} .values .number"
    until(browser, "42.00 ± 0.98 %", lambda: text(browser, number))
    browser.execute_script(
        """window.marker = "same document"; window.shift = 0; scrollTo(0, 380);
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
    until(browser, "Sealed", lambda: text(browser, f"#survey-{A} .badge"))
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
    until(browser, evil, lambda: text(browser, f"#survey-{A} h2"))
    assert text(browser, f"#survey-{A} .values .label") == evil
    for button in browser.find_elements(By.CSS_SELECTOR, ".toggle"):
        browser.execute_script("arguments[0].click()", button)
    assert text(browser, f"#survey-{B} .values tbody th") == evil + "0"
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.CSS_SELECTOR, "img, body script") == []
    assert complaints(browser) == []


def test_negative_estimates_are_drawn_below_zero_and_not_clamped(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    few = exactly(("yes", "c", 0.5), ("no", "c", -0.12), error=0.01)
    many = exactly(*((str(k), "c", -0.02 if k == 7 else 0.03) for k in range(60)), error=0.001)
    site = open_site(two(many, few))
    opened(browser, site)
    until(browser, "2", lambda: str(len(browser.find_elements(By.CSS_SELECTOR, f"#survey-{B} .values .bar"))))
    boxes = browser.execute_script(
        """const row = document.querySelectorAll(`#survey-${arguments[0]} .values .rows .row`)[1];
        for (const bar of row.querySelectorAll("*")) bar.style.transition = "none";
        const box = (name) => row.querySelector(name).getBoundingClientRect();
        return {zero: box(".zero").left, bar: box(".bar"), whisker: box(".whisker"), plot: box(".plot"),
                text: row.querySelector(".number").textContent};""",
        B,
    )
    assert plain(boxes["text"]) == "−12.0 ± 2.0 %"
    assert boxes["bar"]["right"] == pytest.approx(boxes["zero"], abs=0.5)
    assert boxes["bar"]["width"] > 20
    assert boxes["plot"]["left"] <= boxes["whisker"]["left"] < boxes["bar"]["left"]
    paths = browser.execute_script(
        """const at = (name) => document.querySelector(`#survey-${arguments[0]} .profile ${name}`);
        return {zero: Number(at(".zero").getAttribute("y")), dots: at(".dots").getAttribute("d")};""",
        A,
    )
    heights = [float(dot.split()[1].split("h")[0]) for dot in paths["dots"].split("M")[1:]]
    assert len(heights) == 60
    assert [k for k, height in enumerate(heights) if height > paths["zero"] + 5] == [7]


def test_the_table_holds_the_same_numbers_and_follows_updates(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health(0.42)))
    opened(browser, site)
    until(browser, True, lambda: visible(browser, f"#survey-{B} .values .rowchart"))
    button = browser.find_element(By.CSS_SELECTOR, f"#survey-{B} .values .toggle")
    assert button.get_attribute("aria-pressed") == "false"
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    assert not visible(browser, f"#survey-{B} .values .chart")

    def table() -> list[list[str]]:
        found: list[list[str]] = browser.execute_script(
            """return [...document.querySelectorAll(`#survey-${arguments[0]} .values tr`)]
            .map((row) => [...row.cells].map((cell) => cell.textContent));""",
            B,
        )
        return [[plain(cell) for cell in cells] for cells in found]

    head = ["Value", "Estimate", "± half width", "95 % interval"]
    rest = ["poor", "58.00 %", "0.98 %", "57.02 to 58.98 %"]
    until(browser, [head, ["good", "42.00 %", "0.98 %", "41.02 to 42.98 %"], rest], table)
    site.view.publish(two(visits(), health(-0.01)))
    until(browser, ["good", "−1.00 %", "0.98 %", "−1.98 to −0.02 %"], lambda: table()[1])
    button.send_keys(Keys.ENTER)
    until(browser, "−1.00 ± 0.98 %", lambda: text(browser, f"#survey-{B} .values .number"))
    assert visible(browser, f"#survey-{B} .values .chart")


def test_the_stage_of_a_round_and_its_devices_are_said_in_words(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    collecting = {"suppressed": True, "tallies": {"accepted": 37}}
    site = open_site(two(round_of(**collecting), round_of(sealed=True, **collecting)))
    opened(browser, site)
    until(browser, "Collecting", lambda: text(browser, f"#survey-{A} .badge"))
    assert text(browser, f"#survey-{B} .badge") == "Withheld"
    said = "37 devices so far. No estimate is shown of fewer than 100"
    assert said in text(browser, f"#survey-{A} .withheld")
    assert "fewer than its minimum cohort of 100" in text(browser, f"#survey-{B} .withheld")
    assert not visible(browser, f"#survey-{A} .figures")
    assert browser.find_elements(By.CSS_SELECTOR, ".number, .profile") == []
    site.view.publish(two(visits(devices=12400), round_of(sealed=True, **collecting)))
    until(browser, "Provisional", lambda: text(browser, f"#survey-{A} .badge"))
    assert "as of 12,400 devices" in text(browser, f"#survey-{A} .state")
    assert "at least 100" in text(browser, f"#survey-{A} .state")
    site.view.publish(two(visits(devices=12500, sealed=True), round_of(sealed=True, **collecting)))
    until(browser, "Sealed", lambda: text(browser, f"#survey-{A} .badge"))
    assert "12,500 devices were counted" in text(browser, f"#survey-{A} .state")


def test_the_accounting_identity_is_shown_and_checked(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    tallies = {"accepted": 20190, "duplicate": 17, "early": 1, "late": 25, "invalid": 3, "over_quota": 2}
    snapshot = snapshot_of(survey_of("visits", visits(tallies=tallies), digest=A), unknown=4, lag=2)
    site = open_site(snapshot)
    opened(browser, site)
    wanted = (
        "20,238 received = 20,190 accepted + 17 duplicate + 1 early + 25 late + 3 invalid + 2 over quota"
        " ✓ adds up"
    )
    for place in ("#totals", f"#survey-{A}"):
        until(browser, wanted, lambda p=place: " ".join(text(browser, f"{p} .identity").split()))
    assert "8 log records wait" in text(browser, "#log-state")
    assert "4 reports of unknown surveys" in text(browser, "#log-state")
    snapshot["accounting"]["attempts"] += 1
    site.view.publish({**snapshot})
    until(browser, "✗ the parts give 20,238", lambda: text(browser, "#totals .verdict"))


def test_epsilon_is_shown_rounded_up_beside_the_declared_one(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = visits()
    document["epsilon"] = {"declared": 1.5, "certified": 1.4999981230001}
    site = open_site(snapshot_of(survey_of("visits", document, digest=A)))
    opened(browser, site)
    privacy = f"#survey-{A} .fact:nth-child(2)"
    until(browser, "ε ≤ 1.499999", lambda: text(browser, f"{privacy} .main"))
    assert text(browser, f"{privacy} .more") == "certified; 1.5 declared"


def test_a_lost_connection_is_said_and_mended(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health(0.42)))
    opened(browser, site)
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
        browser.get(site.url)
        until(browser, "polling", lambda: state(browser))
        assert text(browser, "#connection") == "Live, by polling"
        site.view.publish(two(visits(), health(0.48)))
        until(browser, "48.00 ± 0.98 %", lambda: text(browser, f"#survey-{B} .values .number"), seconds=15)
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_an_older_round_can_be_chosen_and_stays_chosen(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    def rounds(newest: float) -> dict[str, Any]:
        old, new = health(0.31, sealed=True, devices=900), health(newest, devices=500)
        return snapshot_of(survey_of("health", old, {**new, "round": 1}, digest=A))

    site = open_site(rounds(0.42))
    opened(browser, site)
    number = f"#survey-{A} .values .number"
    until(browser, "42.00 ± 0.98 %", lambda: text(browser, number))
    choice = Select(browser.find_element(By.CSS_SELECTOR, f"#survey-{A} select"))
    assert [option.text for option in choice.options] == [
        "Newest: round 2",
        "Round 2 · provisional, 500 devices",
        "Round 1 · sealed, 900 devices",
    ]
    choice.select_by_value("0")
    until(browser, "31.00 ± 0.98 %", lambda: text(browser, number))
    assert text(browser, f"#survey-{A} .badge") == "Sealed"
    assert browser.find_element(By.LINK_TEXT, "CSV").get_attribute("href").endswith(f"{A}/rounds/0.csv")
    site.view.publish(rounds(0.44))
    until(browser, "Round 2: provisional, 500 devices.", lambda: text(browser, f"#survey-{A} .news"))
    assert text(browser, number) == "31.00 ± 0.98 %"
    choice.select_by_value("newest")
    until(browser, "44.00 ± 0.98 %", lambda: text(browser, number))


def test_the_profile_reads_values_out_by_keyboard(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health()))
    opened(browser, site)
    until(browser, True, lambda: visible(browser, f"#survey-{A} .profile"))
    plot = browser.find_element(By.CSS_SELECTOR, f"#survey-{A} .profile")
    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    said = "2 (group 0): 1.20 ± 0.98 %, 95 % interval 0.22 to 2.18 %"
    assert plain(plot.get_attribute("aria-valuetext")) == said
    assert text(browser, f"#survey-{A} .readout") == said
    plot.send_keys(Keys.END)
    assert plot.get_attribute("aria-valuetext").startswith("missing: 4.00")


@pytest.mark.parametrize("width", [320, 360, 768, 1280, 2560])
def test_every_width_shows_all_without_sideways_scrolling(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], width: int
) -> None:
    size(browser, width, 800)
    long = exactly(
        *((f"a rather long answer, number {k}", f"a long category name {k // 3}", 0.1) for k in range(9))
    )
    site = open_site(two(visits(), long))
    opened(browser, site)
    until(browser, 9, lambda: len(browser.find_elements(By.CSS_SELECTOR, f"#survey-{B} .values .bar")))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = browser.execute_script(
        """const names = "main .number, main .main, main .more, .term, .badge, .profile";
        return [...document.querySelectorAll(names)]
        .filter((node) => node.getClientRects().length)
        .filter((node) => { const box = node.getBoundingClientRect(), card = node.closest(".card, .totals")
          .getBoundingClientRect(); return box.left < card.left || box.right > card.right + 0.5; })
        .map((node) => node.textContent);"""
    )
    assert outside == []


def test_five_thousand_values_are_fetched_apart_and_drawn_with_few_elements(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    shares = [(f"v{k}", f"c{k // 500}", 1 / 5000) for k in range(5000)]
    site = open_site(snapshot_of(survey_of("large", exactly(*shares), digest=A)))
    opened(browser, site)
    until(browser, "Values (5,000)", lambda: text(browser, f"#survey-{A} .values h3"))
    assert browser.execute_script("return document.querySelectorAll('.profile *').length") < 150
    assert "Each column spans" in text(browser, f"#survey-{A} .readout")
    assert complaints(browser) == []


def test_numbers_carry_the_digits_that_their_width_supports(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(snapshot_of()))
    cases = {  # (estimate, low, high) as fractions -> text
        (0.1234567, 0.1134567, 0.1334567): "12.3 ± 1.0 %",
        (0.1234567, 0.12335, 0.1235634): "12.346 ± 0.011 %",
        (-0.0004, -0.01, 0.0092): "−0.04 ± 0.96 %",
        (-0.00001, -0.05, 0.04998): "0.0 ± 5.0 %",
        (0.5, 0.1, 0.9): "50 ± 40 %",
        (12.5, 2.5, 22.5): "1,250 ± 1,000 %",
        (0.25, 0.25, 0.25): "25.00 ± 0.00 %",
        (0.5, 0.49004, 0.50996): "50.0 ± 1.0 %",
    }
    rows = [{"estimate": e, "low": low, "high": high} for e, low, high in cases]
    texts = browser.execute_async_script(
        """const [rows, done] = arguments;
        import("/page/format.js")
          .then(({ share }) => done(rows.map((row) => share(row).text)), (e) => done(String(e)));""",
        rows,
    )
    assert [plain(found) for found in texts] == list(cases.values())


def test_an_axis_holds_zero_and_all_rows_and_stands_still_while_they_settle(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(snapshot_of()))
    first, kept, grown, shrunk, empty = browser.execute_async_script(
        """const done = arguments[arguments.length - 1];
        import("/page/scale.js").then(({ domain }) => {
          const rows = (low, high) => [{ estimate: (low + high) / 2, low, high }];
          const first = domain(rows(0.1, 0.53));
          const kept = domain(rows(0.2, 0.4), first);
          const grown = domain(rows(-0.31, 0.4), kept);
          const shrunk = domain(rows(0.01, 0.02), grown);
          done([first, kept, grown, shrunk, domain([])]);
        }, (e) => done(String(e)));"""
    )
    assert kept == first
    for found, low, high in ((first, 0.1, 0.53), (grown, -0.31, 0.4), (shrunk, 0.01, 0.02), (empty, 0, 0)):
        assert found["low"] <= min(low, 0)
        assert found["high"] >= high
        assert 0 in found["ticks"]
        assert 2 <= len(found["ticks"]) <= 8
    assert shrunk["high"] < 0.03


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


def test_who_is_missing_of_those_asked_is_said_with_its_bound(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LIVE_ROUNDS", 2)
    enrolment = {"enrolled": 900, "asked": 1000, "absent": 0.1, "budget": 2.0}
    enrolment["bias"] = {"values": [0.0123, 0.05], "categories": [0.004]}
    rounds = [health(0.31, sealed=True, devices=900) | {"round": number} for number in range(4)]
    shown = snapshot_of(survey_of("health", *[r | {"enrolment": enrolment} for r in rounds], digest=A))
    site = open_site(shown)
    opened(browser, site)
    small = f"#survey-{A} .absence"
    until(browser, True, lambda: "10.0 % of the 1,000 devices asked are not in" in text(browser, small))
    assert "is more than 5.00 points away" in text(browser, small)
    assert "who stayed away for other reasons is not in this bound" in text(browser, small)
    choice = Select(browser.find_element(By.CSS_SELECTOR, f"#survey-{A} select"))
    assert [option.text for option in choice.options][-1] == "2 older: /api/surveys"
    assert not choice.options[-1].is_enabled()
    site.view.publish(snapshot_of(survey_of("health", *rounds, digest=A)))
    until(browser, False, lambda: visible(browser, small))


def test_a_score_shows_its_mean_and_no_shares(browser, open_site) -> None:
    score = round_of(shares=(), mean=0.62, devices=900)
    assert score["mean"] is not None and score["values"] == []
    site = open_site(snapshot_of(survey_of("activity", score, title="Activity", digest=A)))
    browser.get(site.url)
    until(browser, "Activity", lambda: text(browser, f"#survey-{A} h2"))
    until(browser, True, lambda: visible(browser, f"#survey-{A} .facts"))
    facts = browser.find_element(By.CSS_SELECTOR, f"#survey-{A} .facts").text
    assert "Mean" in facts and "95 % interval" in plain(facts)
    assert not visible(browser, f"#survey-{A} .figures")
    assert not visible(browser, f"#survey-{A} .withheld")


def scheduled(start_s: float, *rounds: dict[str, Any], of: int = 5, round_s: int = 3600) -> dict[str, Any]:
    """A snapshot of one survey that begins at a time."""
    survey = survey_of("visits", *rounds, digest=A)
    start = datetime.fromtimestamp(start_s, UTC).isoformat().replace("+00:00", "Z")
    survey["schedule"] = {"start": start, "round_s": round_s, "rounds": of}
    return snapshot_of(survey)


@pytest.mark.parametrize(
    ("begins_in_s", "badge", "words"),
    [
        (3 * 3600 + 120, "Not begun", "Begins in 3 h."),
        (-120, "Waiting", "Waiting for the first 200 devices; round 1 of 5 ends in 58 min."),
        (-7 * 86400, "Over", "Over, nobody answered."),
    ],
)
def test_a_survey_without_answers_says_so_and_shows_nothing_that_looks_like_a_result(
    browser: Browser,
    open_site: Callable[[dict[str, Any]], Site],
    begins_in_s: float,
    badge: str,
    words: str,
) -> None:
    opened(browser, open_site(scheduled(time.time() + begins_in_s + 15)))
    until(browser, badge, lambda: text(browser, f"#survey-{A} .badge"))
    assert text(browser, f"#survey-{A} .moment") == words
    for part in (".meter", ".fill", ".figures", ".withheld", ".under", ".links a", "select"):
        found = browser.find_elements(By.CSS_SELECTOR, f"#survey-{A} {part}")
        assert not any(each.is_displayed() for each in found), part
    facts = [e.text for e in browser.find_elements(By.CSS_SELECTOR, f"#survey-{A} .fact") if e.is_displayed()]
    assert [fact.splitlines()[0] for fact in facts] == ["Privacy, per report", "Schedule"]
    assert "5 rounds of 60 min" in facts[1]


def test_the_page_and_the_command_line_say_a_surveys_state_in_the_same_words(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Against `survey_state`, at moments around every change of state and unit, for five counts."""
    survey = Survey.load(resources.files("hubbub_deploy") / "surveys" / "health.toml")
    opened(browser, open_site(snapshot_of()))
    begin, length, rounds = survey.start_s, survey.round_s, survey.rounds
    ends = [begin + length * k for k in range(rounds + 1)]
    late = [ends[-1] + survey.lateness_s]
    near = (0, -0.5, 1, -59, -119, -120, -150, -5399, -7200, -9000, -86400 * 2, -86400 * 2.5, -86400 * 9)
    moments = [at + by for at in (*ends, *late) for by in near]
    least = survey.minimum_cohort
    counts: list[dict[int, int]] = [{}, {0: 1}, {0: least - 1}, {0: least}, {0: 2 * least}]
    facts = {
        "minimum_cohort": least,
        "schedule": {
            "start": datetime.fromtimestamp(begin, UTC).isoformat(),
            "round_s": length,
            "rounds": rounds,
            "lateness_s": survey.lateness_s,
        },
    }
    surveys = [
        {**facts, "rounds": [{"round": r, "accepted": n} for r, n in count.items()]} for count in counts
    ]
    said = browser.execute_async_script(
        """const [surveys, moments, done] = arguments;
        import("/page/states.js").then(({ surveyState }) => done(surveys.map((survey) =>
          moments.map((at) => { const { name, words } = surveyState(survey, at); return [name, words]; }))),
          (e) => done(String(e)));""",
        surveys,
        moments,
    )
    for accepted, words in zip(counts, said, strict=True):
        for at, found in zip(moments, words, strict=True):
            expected = survey_state(survey, at, accepted=accepted)
            assert found == [expected.name, expected.words], (at - begin, accepted)
    assert {name for words in said for name, _ in words} == {"begins", "waiting", "open", "late", "over"}


def test_a_survey_that_nobody_has_answered_opens_its_card_with_the_first_round(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(scheduled(time.time() - 120))
    opened(browser, site)
    until(browser, "Waiting", lambda: text(browser, f"#survey-{A} .badge"))
    site.view.publish(scheduled(time.time() - 120, health(0.42)))
    until(browser, "42.00 ± 0.98 %", lambda: text(browser, f"#survey-{A} .values .number"))
    assert visible(browser, f"#survey-{A} .links")


def test_a_plan_of_no_devices_has_no_bar_that_could_be_full(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    survey = survey_of("visits", health(), digest=A, planned_devices=0)
    opened(browser, open_site(snapshot_of(survey)))
    until(browser, "1,000 accepted", lambda: text(browser, f"#survey-{A} .fact .more"))
    assert not visible(browser, f"#survey-{A} .fact .meter")


def test_answered_and_missing_are_one_line_where_there_are_no_categories(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    plain_survey = exactly(("yes", "answered", 0.5), ("no", "answered", 0.3), ("missing", "missing", 0.2))
    opened(browser, open_site(two(plain_survey, visits())))
    until(browser, True, lambda: visible(browser, f"#survey-{A} .values"))
    assert not visible(browser, f"#survey-{A} .categories")
    facts = plain(browser.find_element(By.CSS_SELECTOR, f"#survey-{A} .facts").text)
    assert "Answered\n80.00 ± 0.98 %\nmissing 20.00 ± 0.98 %" in facts
    assert visible(browser, f"#survey-{B} .categories")
    assert "Answered" not in browser.find_element(By.CSS_SELECTOR, f"#survey-{B} .facts").text
