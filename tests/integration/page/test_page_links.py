"""Addresses of the page: survey, round and view in the link, back and forward. A real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from browser import Browser
from page_site import A, B, Site, complaints, exactly, health, on, opened, plain, text, until, visits
from page_states import DAY_S, state_of, year
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from shown_view import snapshot_of, survey_of

GROUPED = (("0", "none", 0.4), ("1", "some", 0.2), ("2", "some", 0.3), ("missing", "missing", 0.1))


def rounds(kind: str = "evolving") -> dict[str, Any]:
    """Two surveys: three rounds of health, one of grouped counts."""
    many = [
        health(good, sealed=number < 2, devices=900 + number) | {"round": number + 1}
        for number, good in enumerate((0.31, 0.42, 0.35))
    ]
    first = survey_of("health", *many, digest=A, title="Health")
    first["attributes"][0]["kind"] = kind
    return snapshot_of(first, survey_of("counts", exactly(*GROUPED), digest=B, title="Counts"))


def where(browser: Browser) -> str:
    return browser.current_url.rpartition("/")[2]


def follow(browser: Browser, words: str) -> None:
    browser.find_element(By.LINK_TEXT, words).click()


def rows(browser: Browser, figure: str) -> list[list[str]]:
    found: list[list[str]] = browser.execute_script(
        """return [...document.querySelectorAll(`${arguments[0]} .rows .row`)].map((row) =>
        [row.querySelector(".label").textContent, row.querySelector(".number").textContent]);""",
        figure,
    )
    return [[plain(cell) for cell in cells] for cells in found]


def test_links_lead_to_survey_round_and_view_and_back_and_forward_return(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(rounds()))
    until(browser, "All surveys · Hubbub", lambda: browser.title)
    browser.execute_script("window.marker = 'same document'")
    follow(browser, "Health")
    until(browser, "Health · round 3 · Hubbub", lambda: browser.title)
    assert browser.execute_script("return document.activeElement.textContent") == "Health"
    Select(browser.find_element(By.CSS_SELECTOR, "select")).select_by_value("1")
    until(browser, [["good", "31.00 ± 0.98 %"], ["poor", "69.00 ± 0.98 %"]], lambda: rows(browser, ".values"))
    assert where(browser) == f"?survey={A}&round=1"
    follow(browser, "Over rounds")
    until(browser, "?survey=" + A + "&view=history&round=1", lambda: where(browser))
    follow(browser, "Operations")
    until(browser, "Operations · Hubbub", lambda: browser.title)
    browser.back()
    until(browser, "Health · round 1 · Hubbub", lambda: browser.title)
    browser.back()
    until(browser, 2, lambda: len(rows(browser, ".values")))
    browser.back()
    until(browser, "Health · round 3 · Hubbub", lambda: browser.title)
    browser.back()
    until(browser, "All surveys · Hubbub", lambda: browser.title)
    browser.forward()
    until(browser, "Health · round 3 · Hubbub", lambda: browser.title)
    assert browser.execute_script("return window.marker") == "same document"
    assert complaints(browser) == []


def test_an_address_shows_the_same_when_it_is_opened_anew(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    site = open_site(rounds())
    opened(browser, site, on(A, round=2))
    until(browser, "Health · round 2 · Hubbub", lambda: browser.title)
    until(browser, ["good", "42.00 ± 0.98 %"], lambda: rows(browser, ".values")[0])
    assert browser.find_element(By.LINK_TEXT, "CSV").get_attribute("href").endswith(f"{A}/rounds/2.csv")
    opened(browser, site, f"#survey-{B}")
    until(browser, "Counts · round 1 · Hubbub", lambda: browser.title)
    assert where(browser) == f"?survey={B}"
    opened(browser, site, on("d" * 32))
    until(browser, "No such survey · Hubbub", lambda: browser.title)
    follow(browser, "All surveys")
    until(browser, "All surveys · Hubbub", lambda: browser.title)


def test_a_category_opens_into_its_values_and_closes_again(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(rounds()), on(B))
    until(browser, 4, lambda: len(rows(browser, ".values")))
    follow(browser, "some")
    inside = [["1", "20.00 ± 0.98 %"], ["2", "30.00 ± 0.98 %"]]
    until(browser, inside, lambda: rows(browser, ".values"))
    assert text(browser, ".values h3") == "Values in some (2)"
    assert where(browser) == f"?survey={B}&category=some"
    follow(browser, "Show all values")
    until(browser, 4, lambda: len(rows(browser, ".values")))


def test_a_margin_of_a_cross_table_opens_into_its_cells(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """A label may hold what stands between two of them."""
    ages, sexes = ("young / new", "old", "old / new"), ("F", "M")
    table = exactly(*((f"{age} / {sex}", "x", 1 / 6) for age in ages for sex in sexes))
    margins = exactly(
        *((f"a: {age}", "x", 1 / 3) for age in ages), *((f"b: {sex}", "x", 1 / 2) for sex in sexes)
    )
    table["categories"] = [{k: v for k, v in row.items() if k != "category"} for row in margins["values"]]
    for cell in table["values"]:
        cell["category"] = None
    survey = survey_of("table", table, digest=A)
    survey["attributes"] = [{"id": "a", "kind": "static"}, {"id": "b", "kind": "static"}]
    opened(browser, open_site(snapshot_of(survey)), on(A))
    until(
        browser,
        ["By a (3)", "By b (2)"],
        lambda: [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".categories h3")],
    )
    follow(browser, "M")
    of_men = ["young / new / M", "old / M", "old / new / M"]
    until(browser, of_men, lambda: [label for label, _ in rows(browser, ".values")])
    follow(browser, "Show all values")
    follow(browser, "young / new")
    until(
        browser,
        ["young / new / F", "young / new / M"],
        lambda: [label for label, _ in rows(browser, ".values")],
    )


def in_tree(found: dict[str, Any], *placed: tuple[int, str, str | None, float]) -> dict[str, Any]:
    """A release whose categories are these: level, label, what they are in, share."""
    rows = exactly(*((label, "x", share) for _, label, _, share in placed))["values"]
    found["categories"] = [
        {**row, "category": above, "tree_level": level}
        for row, (level, _, above, _) in zip(rows, placed, strict=True)
    ]
    return found


def test_a_tree_of_labels_opens_level_by_level(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """A branch that ends early is no part of itself; a part has its own name under what it is in."""
    shares = {"Madrid": 0.1, "Seville": 0.2, "Paris": 0.1, "Goa": 0.25, "Lima": 0.35}
    within = {"Madrid": "E / Spain", "Seville": "E / Spain", "Paris": "E / France", "Goa": "A / India"}
    table = exactly(*((city, within.get(city, "Lima's"), share) for city, share in shares.items()))
    for cell in table["values"]:
        cell["tree_level"] = 3
    placed = (
        (1, "E", None, 0.4),
        (1, "A", None, 0.25),
        (1, "Lima's", None, 0.35),
        (2, "E / Spain", "E", 0.3),
        (2, "E / France", "E", 0.1),
        (2, "A / India", "A", 0.25),
        (2, "Lima's", "Lima's", 0.35),
    )
    survey = survey_of("tree", in_tree(table, *placed), digest=A)
    opened(browser, open_site(snapshot_of(survey)), on(A))

    def heads() -> list[str]:
        return [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".categories h3")]

    def cities() -> list[str]:
        return [label for label, _ in rows(browser, ".values")]

    until(browser, ["Level 1 (3)"], heads)
    follow(browser, "E")
    until(browser, ["Level 1 (3)", "In E (2)"], heads)
    until(browser, ["Madrid", "Seville", "Paris"], cities)
    follow(browser, "Spain")
    until(browser, ["Madrid", "Seville"], cities)
    assert heads() == ["Level 1 (3)", "In E (2)"] and where(browser).endswith("category=E+%2F+Spain")
    follow(browser, "Lima's")
    until(browser, ["Lima"], cities)
    assert heads() == ["Level 1 (3)"]
    assert browser.find_elements(By.CSS_SELECTOR, ".heatmap") == []


def test_a_heat_map_has_a_picture_of_every_zoom(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Cells of 4 x 4 in Morton order: one is dark, at the place that its name says; missing is none."""
    names = [f"x {x}, y {y}" for y in range(4) for x in range(4)]
    order = sorted(
        range(16), key=lambda i: sum((i >> b & 1) << p for b, p in ((0, 0), (2, 1), (1, 2), (3, 3)))
    )
    table = exactly(
        *((names[i], "q", 0.85 if names[i] == "x 2, y 1" else 0.01) for i in order), ("missing", "q", 0.0)
    )
    for cell in table["values"]:
        cell["tree_level"] = 2
    quarters = [(1, f"quarter {i}", None, 0.87 if i == 1 else 0.04) for i in range(4)]
    survey = survey_of("map", in_tree(table, *quarters, (1, "missing", None, 0.0)), digest=A)
    survey["attributes"] = [{"id": "x", "kind": "static"}, {"id": "y", "kind": "static"}]
    opened(browser, open_site(snapshot_of(survey)), on(A))
    until(browser, 2, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".heatmap")))
    drawn = browser.find_elements(By.CSS_SELECTOR, ".heatmap")
    darkest = [each.find_elements(By.TAG_NAME, "path")[-1].get_attribute("d") for each in drawn]
    assert darkest == ["M1 1h1v1h-1z", "M2 2h1v1h-1z"]  # rows count from the top, y from below
    assert "x to the right, y upwards, 4 x 4" in (drawn[1].get_attribute("aria-label") or "")


def test_two_rounds_are_compared_with_an_interval_of_the_change(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Half widths are 0.98 points in each round: 0.98 times the root of 2 where noise is fresh."""
    site = open_site(rounds("evolving"))
    opened(browser, site, on(A, view="comparison"))
    fresh = [["good", "−7.0 ± 1.4 points"], ["poor", "7.0 ± 1.4 points"]]
    until(browser, fresh, lambda: rows(browser, ".change-of-values"))
    Select(browser.find_element(By.ID, "compare-first")).select_by_visible_text("1")
    until(browser, ["good", "4.0 ± 1.4 points"], lambda: rows(browser, ".change-of-values")[0])
    assert where(browser) == f"?survey={A}&view=comparison&round=3&against=1"
    said = text(browser, ".comparison")
    assert "2 of 2 cells changed by more than noise, taken together" in said
    assert "the errors of the two are independent" in said
    Select(browser.find_element(By.ID, "compare-first")).select_by_visible_text("3")
    until(
        browser, "A round is compared with another one: choose two.", lambda: text(browser, ".verdict-words")
    )


def test_a_number_is_followed_over_all_rounds(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(rounds()), on(A, view="history"))
    until(browser, "Value good (3)", lambda: text(browser, ".history h3"))
    browser.find_element(By.CSS_SELECTOR, ".history .toggle").click()
    wanted = [
        "1 1 Jan 2026 sealed 31.00 % 0.98 % 30.02 to 31.98 %",
        "2 2 Jan 2026 sealed 42.00 % 0.98 % 41.02 to 42.98 %",
        "3 3 Jan 2026 provisional 35.00 % 0.98 % 34.02 to 35.98 %",
    ]
    until(
        browser,
        wanted,
        lambda: [row[: len(each)] for row, each in zip(history(browser), wanted, strict=True)],
    )
    Select(browser.find_element(By.ID, "history-cell")).select_by_visible_text("Value poor")
    until(browser, True, lambda: history(browser)[0].startswith("1 1 Jan 2026 sealed 69.00 %"))


def history(browser: Browser) -> list[str]:
    """The rows of the table, without the spaces that align its digits."""
    found = [plain(row.text) for row in browser.find_elements(By.CSS_SELECTOR, ".history tbody tr")]
    return [row.replace("\u2007", "").replace("\u2008", "") for row in found]


def test_rounds_are_points_over_time_with_their_stage_and_no_bars(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Three rounds, and a fourth that nobody answered; the third is provisional, and so is the badge."""
    snapshot = rounds()
    snapshot["surveys"][0]["schedule"]["rounds"] = 4
    snapshot["surveys"][0]["rounds"][1] |= {"sealed": True, "suppressed": True, "devices": 0, "as_of": 0}
    opened(browser, open_site(snapshot), on(A, view="history"))
    until(browser, "Value good (4)", lambda: text(browser, ".history h3"))

    def drawn(name: str) -> list[tuple[float, float]]:
        path = browser.find_element(By.CSS_SELECTOR, f".history .profile {name}").get_attribute("d")
        return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", path)]

    until(browser, 1, lambda: len(drawn(".dots")))
    [(first, high)], [(third, low)] = drawn(".dots"), drawn(".dots.open")
    assert first < third and high > low  # time to the right, and 31 % below 35 %
    assert drawn(".hollow") == [(third, low)]
    bars = browser.find_element(By.CSS_SELECTOR, ".history .profile .bars")
    assert not bars.get_attribute("d")
    whiskers = "return getComputedStyle(document.querySelector('.history .whiskers')).stroke"
    ink = "return getComputedStyle(document.querySelector('.history .profile .dots')).color"
    assert browser.execute_script(whiskers) == browser.execute_script(
        ink
    )  # not muted as on provisional pages
    ticks = [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".history .ticks text")]
    assert ticks == ["1 Jan 2026", "2 Jan 2026", "3 Jan 2026", "4 Jan 2026"]
    browser.find_element(By.CSS_SELECTOR, ".history .toggle").click()
    assert [row.split(" ", 4)[4] for row in history(browser)][1::2] == [
        "withheld too few devices – –",
        "unanswered nobody answered – –",
    ]
    options = Select(browser.find_element(By.CSS_SELECTOR, "select")).options
    assert "Round 4 · nobody answered" in [each.text for each in options if not each.is_enabled()]


def test_a_year_of_rounds_is_readable(browser: Browser, open_site: Callable[[dict[str, Any]], Site]) -> None:
    """All 363 rounds that were answered, though the live document lists a hundred; and at most 12 dates."""
    start = time.time() - 364.5 * DAY_S
    opened(
        browser,
        open_site(snapshot_of(state_of("mood", "Mood", A, start, year(), of=365))),
        on(A, view="history"),
    )
    dots = "return document.querySelector('.history .dots').getAttribute('d').split('M').length - 1"
    until(browser, 362, lambda: browser.execute_script(dots))
    assert "2 rounds have no estimates" in text(browser, ".history")
    ticks = browser.find_elements(By.CSS_SELECTOR, ".history .ticks text")
    assert 4 <= len(ticks) <= 12
    browser.find_element(By.CSS_SELECTOR, ".history .profile").send_keys(Keys.END)
    assert text(browser, ".history .readout").startswith("Round 365, ")
    assert "provisional" in text(browser, ".history .readout")


def test_memoised_answers_are_compared_and_it_is_said_how_many_devices_are_in_both(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Of 902 asked, at least 900 of 900 and 902 are in both: that is said.

    The invented errors are those of no channel, so nobody can tell how noisy the devices of a cell are, and
    nothing is taken off; tests/core/estimation/rounds hold what is taken off of real releases.
    """
    snapshot = rounds("static")
    opened(browser, open_site(snapshot), on(A, view="comparison", against=1))
    until(browser, ["good", "4.0 ± 1.4 points"], lambda: rows(browser, ".change-of-values")[0])
    assert "How many are in both is not known" in text(browser, ".comparison")
    snapshot = rounds("static")
    snapshot["surveys"][0]["rounds"][2]["enrolment"] = {"asked": 902}
    opened(browser, open_site(snapshot), on(A, view="comparison", against=1))
    until(browser, True, lambda: "At least 900 devices are in both" in text(browser, ".comparison"))
    assert rows(browser, ".change-of-values")[0] == ["good", "4.0 ± 1.4 points"]


def test_rounds_of_two_surveys_are_compared_or_refused_with_the_reason(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    old = survey_of("health", health(0.31, sealed=True), digest=A, title="Health")
    new = survey_of("health-again", health(0.42, sealed=True), digest=B, title="Health again")
    other = survey_of("counts", exactly(*GROUPED, sealed=True), digest="c" * 32, title="Counts")
    new["attributes"] = old["attributes"]
    opened(browser, open_site(snapshot_of(old, new, other)), on(B))
    follow(browser, "Two rounds compared")
    until(browser, True, lambda: "choose a round of another survey" in text(browser, ".verdict-words"))
    origin = Select(browser.find_element(By.ID, "compare-origin"))
    assert [option.text for option in origin.options] == ["this survey", "Health", "Counts"]
    origin.select_by_visible_text("Health")
    wanted = [["good", "11.0 ± 1.4 points"], ["poor", "−11.0 ± 1.4 points"]]
    until(browser, wanted, lambda: rows(browser, ".change-of-values"))
    assert where(browser) == f"?survey={B}&view=comparison&from={A}"
    assert "Two surveys draw noise of their own" in text(browser, ".comparison")
    Select(browser.find_element(By.ID, "compare-origin")).select_by_visible_text("Counts")
    rule = "surveys must ask for the same attributes, got counts and health"
    until(browser, f"These two rounds cannot be compared: {rule}.", lambda: text(browser, ".verdict-words"))
    assert not browser.find_element(By.CSS_SELECTOR, ".comparison .figures").is_displayed()
    browser.back()
    until(browser, wanted, lambda: rows(browser, ".change-of-values"))


def test_a_smoothed_trend_stands_beside_the_raw_rounds_and_says_its_bandwidth(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Three releases with equal errors and no drift in sight: every level is their mean, of three rounds."""
    many = [health(good, sealed=True) | {"round": k + 1} for k, good in enumerate((0.410, 0.411, 0.409))]
    survey = survey_of("health", *many, health(0.6) | {"round": 4}, digest=A, title="Health")
    survey["attributes"][0]["kind"] = "evolving"
    site = open_site(snapshot_of(survey))
    opened(browser, site, on(A, view="history"))
    until(browser, True, lambda: "averaging about 3.0 rounds" in text(browser, ".history .legend"))
    shown = (
        """return document.querySelector(".history .trendline").getAttribute("d").match(/[ML]/g).length;"""
    )
    assert browser.execute_script(shown) == 3  # the open round is not smoothed
    browser.find_element(By.CSS_SELECTOR, ".history .toggle").click()
    cells = history(browser)
    assert cells[0] == "1 1 Jan 2026 sealed 41.00 % 0.98 % 40.02 to 41.98 % 41.00 %"
    assert cells[1] == "2 2 Jan 2026 sealed 41.10 % 0.98 % 40.12 to 42.08 % 41.00 %"
    assert cells[3] == "4 4 Jan 2026 provisional 60.00 % 0.98 % 59.02 to 60.98 % –"
    survey["attributes"][0]["kind"] = "static"
    opened(browser, open_site(snapshot_of(survey)), on(A, view="history"))
    until(browser, True, lambda: "No trend: answers are memoised" in text(browser, ".history"))
    assert not browser.find_element(By.CSS_SELECTOR, ".history .legend").is_displayed()


def test_a_history_of_many_rounds_is_one_request_and_a_line(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    many = [health(0.4 + 0.001 * k, sealed=True) | {"round": k + 1} for k in range(40)]
    survey = survey_of("health", *many, digest=A)
    survey["attributes"][0]["kind"] = "evolving"
    opened(browser, open_site(snapshot_of(survey)), on(A, view="history"))
    line = """return document.querySelector(".history .trendline").getAttribute("d").split("L").length;"""
    until(browser, 40, lambda: browser.execute_script(line))
    asked = """return performance.getEntriesByType("resource").map(({ name }) => name)
        .filter((name) => name.includes("/api/") && !/live|events|parquet/.test(name)).length;"""
    assert browser.execute_script(asked) <= 2  # the history, and the shown round's poison margin
    browser.find_element(By.CSS_SELECTOR, ".history .profile").send_keys(Keys.HOME)
    assert ", smoothed 40." in text(browser, ".history .readout")


def test_a_number_whose_values_are_noise_shows_its_mean_first_and_raw_by_a_link(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """79 values with errors 0.05 are a plain sample of about 5; with errors 0.005, of more than 79."""
    site = open_site(snapshot_of(survey_of("visits", visits(error=0.05), digest=A)))
    opened(browser, site, on(A))
    until(browser, [["Mean", "38.500 ± 0.062"]], lambda: rows(browser, ".values"))
    said = text(browser, ".form-words")
    assert "tells the mean" in said and "does not tell single values" in said
    axis = [float(each.text) for each in browser.find_elements(By.CSS_SELECTOR, ".values .axis text")]
    assert min(axis) == 0 and max(axis) >= 75
    assert browser.find_elements(By.CSS_SELECTOR, ".values .curve") == []
    follow(browser, "Raw")
    until(browser, "Values (79)", lambda: text(browser, ".values h3"))
    assert where(browser) == f"?survey={A}&show=raw"
    opened(browser, open_site(snapshot_of(survey_of("visits", visits(), digest=A))), on(A))
    until(browser, "Values (79)", lambda: text(browser, ".values h3"))
    assert "Cumulative" not in text(browser, ".forms")  # a running sum of the raw would have no band


def test_the_card_of_many_labels_shows_its_five_largest(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    shares = [(f"town {k}", "answered", k / 100) for k in range(13)] + [("missing", "missing", 0.22)]
    opened(browser, open_site(snapshot_of(survey_of("town", exactly(*shares), digest=A))))
    wanted = [f"town {k}" for k in (12, 11, 10, 9, 8)]
    until(browser, wanted, lambda: [label for label, _ in rows(browser, ".brief")])
    assert "The 5 largest of 13." in text(browser, ".brief")


def test_a_table_is_sorted_by_its_heads_with_the_decimals_in_a_column(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    document = exactly(("a", "c", 0.2), ("b", "c", 0.5), ("d", "d", 0.3))
    document["values"][0].update(low=0.1, high=0.3)  # 20 ± 10 has no decimals, 50.00 ± 0.98 has two
    opened(browser, open_site(snapshot_of(survey_of("x", document, digest=A))), on(A))
    until(browser, 3, lambda: len(rows(browser, ".values")))
    browser.find_element(By.CSS_SELECTOR, ".values .toggle").click()

    def column(number: int) -> list[str]:
        cells: list[str] = browser.execute_script(
            """return [...document.querySelectorAll(".values tbody tr")]
            .map((row) => row.cells[arguments[0]].textContent);""",
            number,
        )
        return cells

    until(browser, ["a", "b", "d"], lambda: column(0))
    assert [len(cell.removesuffix(" %")) for cell in column(2)] == [5, 5, 5]
    head = browser.find_elements(By.CSS_SELECTOR, ".values thead button")[2]
    head.click()
    assert column(0) == ["b", "d", "a"]
    assert (
        browser.find_element(By.CSS_SELECTOR, ".values [aria-sort]").get_attribute("aria-sort")
        == "descending"
    )
    head.click()
    assert column(0) == ["a", "d", "b"]
    head.click()
    assert column(0) == ["a", "b", "d"]


def test_what_one_person_gives_up_is_said_as_odds_rounded_up(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """At epsilon 2: e^2 = 7.389..., and 7.389 / 8.389 = 88.08 %; of three rounds e^6 = 403.43, 99.75 %."""
    opened(browser, open_site(rounds()), "?page=person")
    until(browser, 2, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".persons section")))
    said = text(browser, ".persons section")
    assert "at most 88.1 % likely: odds move by a factor of at most 7.39." in said
    assert "All its 3 rounds" in said
    assert "at most 99.8 % likely: odds move by a factor of at most 403.43." in said
    every = text(browser, ".all-surveys")  # three rounds of 2, and 2 of one that asks once
    assert "every round of all 2 surveys: epsilon at most 8 in sum." in every
    assert "10 to the power of 4" in every


def test_the_operator_sees_lag_refusals_and_what_stands_still(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    tallies = {"accepted": 900, "late": 75, "over_quota": 25}
    snapshot = snapshot_of(survey_of("visits", visits(tallies=tallies), digest=A), lag=2)
    snapshot["unsealed"] = "the clock must not run backwards"
    opened(browser, open_site(snapshot), "?page=operations")
    until(browser, "No round is sealed: the clock must not run backwards.", lambda: text(browser, "#trouble"))
    shown = browser.find_element(By.CSS_SELECTOR, ".operations").text
    assert "Late 75 7.50 %" in shown
    assert "Over quota 25 2.50 %" in shown
    assert "8 log records wait" in shown
    assert "0 10 12 2" in shown  # partition, counted up to, end, waiting
