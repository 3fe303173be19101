"""The page of operations: workers, quotas, batches and refusals. A real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from browser import Browser
from node_fixture import World, in_round
from page_site import A, Site, opened, plain, state, text, until
from selenium.webdriver.common.by import By
from shown_view import round_of, snapshot_of, survey_of
from surveys import VISITS

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_lab.simulation.device_simulator import DeviceSimulator


def table(browser: Browser, caption: str) -> list[list[str]]:
    """The rows of the table whose caption begins so."""
    cells: list[list[str]] = browser.execute_script(
        """const found = [...document.querySelectorAll("main table")]
          .find((each) => each.caption.textContent.startsWith(arguments[0]));
        return [...found.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));""",
        caption,
    )
    return [[plain(cell) for cell in row] for row in cells]


def test_a_dashboard_says_when_workers_saved_and_how_full_quotas_are(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    line = {"issuer": "tokens.example", "accepted": 600, "duplicate": 2, "over_quota": 7}
    shown = round_of(tallies={"accepted": 900, "late": 100}) | {"issuers": [line, line | {"issuer": ""}]}
    survey = survey_of("visits", shown, digest=A) | {"quota": 1200}
    site = open_site(snapshot_of(survey, survey_of("free", round_of(), digest="b" * 32), lag=2))
    site.view.saved = lambda: {1: time.time() - 90.0}
    opened(browser, site, "?page=operations")
    until(browser, True, lambda: bool(re.fullmatch(r"9\d s ago", table(browser, "Workers")[1][4])))
    assert table(browser, "Workers")[0] == ["0", "10", "12", "2", "–"]
    rows = table(browser, "By survey")
    assert rows[0][1:] == ["1", "1,000", "900", "100", "1,200", "75.00 %"]
    assert rows[1][5:] == ["none", "–"]
    issuers = table(browser, "Issuers")
    assert [issuers[0][0], *issuers[0][2:]] == ["tokens.example", "1", "600", "66.67 %", "2", "7"]
    assert issuers[1][0] == "others"
    assert "collectors are processes of their own" in text(browser, "#gateway-words")
    assert not browser.find_element(By.CSS_SELECTOR, ".gateway table").is_displayed()


def test_a_node_shows_the_batches_and_refusals_of_its_gateway(browser: Browser, tmp_path: Path) -> None:
    survey = Survey.parse(VISITS)
    with World(tmp_path, [survey]) as world, world.living():
        world.turn(in_round(0))
        fleet = DeviceSimulator(50, budget=40.0, source=seeded(3))
        fleet.register(survey.attribute)
        fleet.set("visits", np.zeros(50, int).tolist())
        fleet.enrol(survey, now_s=in_round(0))
        fleet.answer(now_s=in_round(0))
        assert fleet.upload(world.url).outcomes == {"accepted": 50}
        browser.get(world.url + "/?page=operations")
        until(browser, "live", lambda: state(browser))
        until(browser, ["accepted", "50"], lambda: table(browser, "Reports answered")[0][:2])
        assert text(browser, "#gateway-words").startswith("The log takes batches · ")
        batches = {name: number for name, number, _ in table(browser, "Batches")}
        assert int(batches["Batches stored"]) >= 1
        assert batches["Batches forgotten"] == batches["Uploads shed: waited"] == "0"
        # A device uploads by itself, and the answers of other statuses have rows of their own.
        assert table(browser, "Uploads answered")[0][:2] == ["200", "50"]
        browser.get("about:blank")


def test_labels_of_metrics_are_read_as_they_are_written(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(snapshot_of()))
    lines = '# HELP a b\na_total{x="1 \\"2\\" \\\\ {3}",y=""} 4.0\nb 1e+3\nnot a sample\n'
    found = browser.execute_async_script(
        """const [lines, done] = arguments;
        import("/page/metrics.js").then(({ parse }) => done([...parse(lines)]), (e) => done(String(e)));""",
        lines,
    )
    assert found == [
        ["a_total", [{"labels": {"x": '1 "2" \\ {3}', "y": ""}, "value": 4}]],
        ["b", [{"labels": {}, "value": 1000}]],
    ]
