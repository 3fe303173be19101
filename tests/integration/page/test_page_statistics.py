"""The page and the statistics of a cross table: tests of pairs, shares within groups, by choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from browser import Browser
from bundles import bundle
from page_site import A, B, Site, complaints, exactly, on, opened, until, visible
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from shown_view import round_of, snapshot_of, survey_of
from surveys import AGE_BY_SEX

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_aggregator.release.estimates import estimates
from hubbub_aggregator.release.parts import part_lines
from hubbub_aggregator.web import table_facts

SHARES = np.array([0.30, 0.15, 0.01, 0.15, 0.33, 0.02, 0.01, 0.02, 0.01])


def cells(browser: Browser, caption: str) -> list[list[str]]:
    rows = browser.find_elements(By.CSS_SELECTOR, f'.statistics [aria-label="{caption}"] tbody tr')
    return [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in rows]


def test_a_table_has_its_tests_and_shares_within_the_groups_chosen(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    survey = Survey.parse(AGE_BY_SEX)
    found = round_of(0, sealed=True, devices=20000)
    found |= estimates(survey, survey.estimator().expected_estimate(SHARES, 20000), level=0.95, asked=None)
    known = survey_of("age-by-sex", found, digest=A) | {"table": table_facts(survey)}
    known["attributes"] = [{"id": "age", "kind": "static"}, {"id": "sex", "kind": "static"}]
    other = survey_of("x", exactly(("1", "some", 1.0), sealed=True), digest=B)
    site = open_site(snapshot_of(known, other))
    opened(browser, site, on(A))
    until(browser, True, lambda: bool(cells(browser, "Shares within groups")))
    assert [row[:3] for row in cells(browser, "Shares within groups")] == [
        ["f", "child", "66.7"],
        ["f", "youth", "33.3"],
        ["m", "child", "31.3"],
        ["m", "youth", "68.8"],
    ]
    ((pair, p_value, strength, _, note),) = cells(browser, "Are they independent?")
    assert (pair, p_value, strength, note) == ("age, sex", "below 0.001", "0.35", "")
    choice = browser.find_element(By.CSS_SELECTOR, ".statistics select")
    Select(choice).select_by_visible_text("sex within age")
    until(browser, "child", lambda: (cells(browser, "Shares within groups") or [[""]])[0][0])
    link = browser.find_element(By.CSS_SELECTOR, ".statistics p a")
    assert str(link.get_attribute("href")).endswith("statistics.csv?kind=conditional&of=sex&given=age")
    opened(browser, site, on(B))
    until(browser, True, lambda: visible(browser, f"#survey-{B} .values .bar"))
    assert not visible(browser, ".statistics")
    assert complaints(browser) == []


def test_a_bundle_shows_a_table_at_a_time_margins_and_the_reports_about_each_part(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    survey = bundle({"age": 3, "sex": 2, "job": 2}, epsilon=4.0)
    crowd = np.random.default_rng(1).choice(survey.channel.inputs, 20_000)
    counts = survey.channel.tally(survey.channel.perturb(crowd, source=seeded(1)))
    found = round_of(0, sealed=True, devices=20_000)
    found |= estimates(survey, survey.estimator()(counts, 20_000), level=0.95, asked=None)
    lines = part_lines(survey, counts)
    known = survey_of("bundle", found | {"parts": lines}, digest=A) | {"table": table_facts(survey)}
    known["attributes"] = [{"id": each.id, "kind": "static"} for each in survey.attributes]
    site = open_site(snapshot_of(known))
    opened(browser, site, on(A))

    def labels() -> list[str]:
        return [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".values .row .label")]

    def heads() -> list[str]:
        return [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".figures h3")]

    first = [label for label in survey.input_labels if label[:3] == "age" and "sex" in label]
    until(browser, ["By age (4)", "By sex (3)", "By job (3)", "age \u00d7 sex (12)"], heads)
    assert labels() == first
    assert not visible(browser, ".worth")
    reported = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")]
                for row in browser.find_elements(By.CSS_SELECTOR, ".parts tbody tr")]  # fmt: skip
    assert [(name, said.replace(",", "")) for name, said, *_ in reported] == [
        (" \u00d7 ".join(line["attributes"]), str(line["reports"])) for line in lines
    ]
    choice = browser.find_element(By.CSS_SELECTOR, '[aria-label="Table shown"]')
    Select(choice).select_by_visible_text("sex \u00d7 job")
    until(browser, "sex \u00d7 job (9)", lambda: heads()[-1])
    assert labels() == [label for label in survey.input_labels if label[:3] == "sex"]
    browser.find_element(By.CSS_SELECTOR, ".figures").find_elements(By.LINK_TEXT, "1")[1].click()
    until(browser, [f"sex: 1 / job: {job}" for job in ("0", "1", "missing")], labels)
    assert complaints(browser) == []
