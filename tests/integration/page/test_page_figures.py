"""The pictures and tables of the page. A real browser against a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
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
    plain,
    size,
    text,
    two,
    until,
    visible,
    visits,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from shown_view import round_of, snapshot_of, survey_of


def test_negative_estimates_are_drawn_below_zero_and_not_clamped(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    few = exactly(("yes", "c", 0.5), ("no", "c", -0.12), error=0.01)
    many = exactly(*((str(k), "c", -0.02 if k == 7 else 0.03) for k in range(60)), error=0.001)
    site = open_site(two(many, few))
    opened(browser, site, on(B))
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
    opened(browser, site, on(A, show="raw"))
    until(browser, True, lambda: visible(browser, f"#survey-{A} .profile"))
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
    opened(browser, site, on(B))
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
    assert (
        text(browser, f"#survey-{B} .values .tablebox > p")
        == "Intervals are cut to 0 to 100 %; estimates are not."
    )
    site.view.publish(two(visits(), health(-0.01)))
    until(browser, ["good", "−1.00 %", "0.98 %", "−1.98 to −0.02 %"], lambda: table()[1])
    button.send_keys(Keys.ENTER)
    until(browser, "−1.00 ± 0.98 %", lambda: text(browser, f"#survey-{B} .values .number"))
    assert visible(browser, f"#survey-{B} .values .chart")


def test_the_profile_reads_values_out_by_keyboard(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(two(visits(), health()))
    opened(browser, site, on(A, show="raw"))
    until(browser, True, lambda: visible(browser, f"#survey-{A} .profile"))
    plot = browser.find_element(By.CSS_SELECTOR, f"#survey-{A} .profile")
    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    said = "2 (group 0): 1.20 ± 0.98 %, 95 % interval 0.22 to 2.18 %"
    assert plain(plot.get_attribute("aria-valuetext")) == said
    assert text(browser, f"#survey-{A} .readout") == said
    plot.send_keys(Keys.END)
    assert plot.get_attribute("aria-valuetext").startswith("missing: 4.00")


@pytest.mark.parametrize("where", ["", on(A), on(B), "?page=operations", "?page=person"])
def test_every_width_shows_all_without_sideways_scrolling(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], where: str
) -> None:
    long = exactly(
        *((f"a rather long answer, number {k}", f"a long category name {k // 3}", 0.1) for k in range(9))
    )
    site = open_site(two(visits(), long))
    opened(browser, site, where)
    parts = "#main .facts, #main table, #main section"
    until(browser, True, lambda: len(browser.find_elements(By.CSS_SELECTOR, parts)) > 0)
    for width in (320, 360, 768, 1280, 2560):
        size(browser, width, 800)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        outside = browser.execute_script(
            """const names = "main .number, .main, .more, .term, .badge, .profile, .forms a, .tabs a";
            const box = (node) => node.getBoundingClientRect();
            return [...document.querySelectorAll(names)].filter((node) => node.getClientRects().length)
            .filter((node) => { const frame = box(node.closest(".card, .totals, section"));
              return box(node).left < frame.left || box(node).right > frame.right + 0.5; })
            .map((node) => node.className + " " + node.textContent);"""
        )
        assert outside == [], width


def test_five_thousand_values_are_fetched_apart_and_drawn_with_few_elements(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    shares = [(f"v{k}", f"c{k // 500}", 1 / 5000) for k in range(5000)]
    site = open_site(snapshot_of(survey_of("large", exactly(*shares), digest=A)))
    opened(browser, site, on(A))
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
        (-0.01, 0, 0.02): "−1.0 (0.0 to 2.0) %",  # cut to what is possible: the estimate lies outside
        (0.004, 0, 0.03): "0.4 (0.0 to 3.0) %",
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


def test_a_score_shows_its_mean_and_no_shares(browser, open_site) -> None:
    score = round_of(shares=(), mean=0.62, devices=900)
    assert score["mean"] is not None and score["values"] == []
    site = open_site(snapshot_of(survey_of("activity", score, title="Activity", digest=A)))
    opened(browser, site, on(A))
    until(browser, "Activity", lambda: text(browser, f"#survey-{A} h2"))
    until(browser, True, lambda: visible(browser, f"#survey-{A} .facts"))
    facts = browser.find_element(By.CSS_SELECTOR, f"#survey-{A} .facts").text
    assert "Mean" in facts and "95 % interval" in plain(facts)
    assert not visible(browser, f"#survey-{A} .figures")
    assert not visible(browser, f"#survey-{A} .withheld")
