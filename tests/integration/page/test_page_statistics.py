"""The page and the statistics of a cross table: tests of pairs, shares within groups, by choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from browser import Browser
from bundles import bundle
from page_axe import violations
from page_site import A, B, Site, complaints, exactly, on, opened, size, until, visible
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


def choose(browser: Browser, name: str, text: str) -> None:
    Select(browser.find_element(By.CSS_SELECTOR, f'[aria-label="{name}"]')).select_by_visible_text(text)


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
    choose(browser, "Attributes shown", "sex within age")
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
    choose(browser, "Table shown", "sex \u00d7 job")
    until(browser, "sex \u00d7 job (9)", lambda: heads()[-1])
    assert labels() == [label for label in survey.input_labels if label[:3] == "sex"]
    browser.find_element(By.CSS_SELECTOR, ".figures").find_elements(By.LINK_TEXT, "1")[1].click()
    until(browser, [f"sex: 1 / job: {job}" for job in ("0", "1", "missing")], labels)
    assert complaints(browser) == []


def test_every_statistic_is_on_the_page_by_choice(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    """Each row's number is near the crowd's: within .05 at 200,000 devices, more than 6 errors."""
    survey = bundle({"age": 3, "sex": 2, "job": 2}, epsilon=4.0)
    table = np.zeros((4, 3, 3))
    table[:3, :2, :2] = np.array([[[6, 2], [3, 1]], [[2, 4], [2, 4]], [[1, 1], [2, 2]]]) / 30.0
    counts = survey.channel.tally(
        survey.channel.perturb(
            np.random.default_rng(2).choice(36, 200_000, p=table.ravel()), source=seeded(3)
        )
    )
    found = round_of(0, sealed=True, devices=200_000)
    found |= estimates(survey, survey.estimator()(counts, 200_000), level=0.95, asked=None)
    known = survey_of("bundle", found | {"parts": part_lines(survey, counts)}, digest=A)
    known |= {"table": table_facts(survey)}
    known["attributes"] = [{"id": each.id, "kind": "static"} for each in survey.attributes]
    site = open_site(snapshot_of(known))
    opened(browser, site, on(A))
    until(browser, True, lambda: bool(cells(browser, "Shares within groups")))
    choose(browser, "Attributes shown", "job within age")

    def shown(caption: str, names: int) -> dict[tuple[str, ...], float]:
        until(browser, True, lambda: bool(cells(browser, caption)))
        return {
            tuple(row[:names]): float(row[names].replace("\u2212", "-")) for row in cells(browser, caption)
        }

    crowd = table.sum(axis=1)[:3, :2]
    within = crowd[:, 1] / crowd.sum(axis=1)
    for kind, names, due in (
        ("Means within groups", 1, {(str(u),): within[u] for u in range(3)}),
        ("Differences between groups", 2, {("0 - 1", "1"): 100.0 * (within[0] - within[1])}),
        ("Odds ratios", 2, {("1", "1"): (8 / 4) / (6 / 12)}),
        ("Shares by a census", 1, {("1",): 100.0 * within.mean()}),
    ):
        choose(browser, "Statistic shown", kind)
        rows = shown(kind, names)
        for name, truth in due.items():
            scale = 1.0 if abs(truth) < 5.0 else 100.0
            assert abs(rows[name] - truth) < 0.05 * max(scale, truth), (kind, name)
    census = browser.find_element(By.CSS_SELECTOR, ".statistics textarea")
    census.clear()
    census.send_keys("0,1\n1,0\n2,0\n")
    choose(browser, "Statistic shown", "Means within groups")
    choose(browser, "Statistic shown", "Shares by a census")
    until(browser, True, lambda: abs(shown("Shares by a census", 1)[("1",)] - 100.0 * within[0]) < 5.0)
    choose(browser, "Statistic shown", "Least squares")
    until(browser, ["intercept", "age"], lambda: [row[0] for row in cells(browser, "Least squares")])
    browser.find_element(By.CSS_SELECTOR, ".statistics input[value=sex]").click()
    until(browser, ["intercept", "age", "sex"], lambda: [row[0] for row in cells(browser, "Least squares")])
    x = np.array([[1.0, age, sex] for age in range(3) for sex in range(2) for _ in range(2)])
    y, w = np.tile([0.0, 1.0], 6), table[:3, :2, :2].ravel()
    truth = np.linalg.solve((x * w[:, None]).T @ x, (x * w[:, None]).T @ y)
    for (_, number), due_one in zip(shown("Least squares", 1).items(), truth, strict=True):
        assert abs(number - due_one) < 0.05
    for box in browser.find_elements(By.CSS_SELECTOR, ".statistics input:checked"):
        box.click()
    until(browser, "This cannot be said: on must be attributes other than job, got none.",
          lambda: browser.find_element(By.CSS_SELECTOR, ".statistics [role=status]").text)  # fmt: skip
    for kind in ("Least squares", "Shares by a census"):
        choose(browser, "Statistic shown", kind)
        assert violations(browser) == []
        size(browser, 390, 900)
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(wide) <= 0
        size(browser, 1280, 900)
    for cell in known["rounds"][0]["values"]:
        if cell["label"][:3] == "age" and "sex" in cell["label"]:
            cell["estimate"] = None
    opened(browser, open_site(snapshot_of(known)), on(A))
    until(browser, "–", lambda: cells(browser, "Are they independent?")[0][1])
