"""Downloads from the page: one round and all releases, as the API's tables. A real browser."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import urllib3
from browser import Browser
from page_site import A, Site, health, on, opened, until, visible
from selenium.webdriver.common.by import By
from shown_view import snapshot_of, survey_of


def rounds() -> dict[str, Any]:
    many = [health(0.3 + 0.1 * k, sealed=k < 2) | {"round": k + 1} for k in range(3)]
    for each in many:
        each["consistent"] = {"values": [0.5, 0.5], "categories": [0.5, 0.5]}
    return snapshot_of(survey_of("health", *many, digest=A))


def fetched(browser: Browser, group: str, words: str) -> bytes:
    link = browser.find_element(By.XPATH, f"//*[contains(@class, '{group}')]//a[text()='{words}']")
    return urllib3.request("GET", str(link.get_attribute("href"))).data


def test_downloads_are_the_tables_of_the_api_with_times_and_views(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], tmp_path: Path
) -> None:
    opened(browser, open_site(rounds()), on(A, round=1))
    until(browser, True, lambda: visible(browser, ".all-releases"))
    one = list(csv.DictReader(io.StringIO(fetched(browser, "this-round", "CSV").decode())))
    assert {row["round"] for row in one} == {"1"}
    assert {row["view"] for row in one} >= {"raw", "consistent"}
    assert (one[0]["start"], one[0]["end"]) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    every = list(csv.DictReader(io.StringIO(fetched(browser, "all-releases", "CSV").decode())))
    assert {row["round"] for row in every} == {"1", "2"}
    file = tmp_path / "releases.parquet"
    file.write_bytes(fetched(browser, "all-releases", "Parquet"))
    found = duckdb.sql(f"SELECT DISTINCT round, view FROM '{file}'").fetchall()  # noqa: S608 - this test's
    assert set(found) >= {(k, view) for k in (1, 2) for view in ("raw", "consistent")}
    assert {number for number, _ in found} == {1, 2}
    assert b'"standard_error"' in fetched(browser, "this-round", "JSON")
    check = browser.find_element(By.CSS_SELECTOR, ".to-check")
    assert [link.text for link in check.find_elements(By.TAG_NAME, "a")] == ["release", "counts", "survey"]
    assert "its mistakes, not its lies" in check.text and "verify.html" in check.text
    assert fetched(browser, "to-check", "release").startswith(b'{"accounting"')


def test_parquet_is_offered_where_the_server_can_write_it(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub_aggregator.web.read_api.can_write_parquet", lambda: False)
    opened(browser, open_site(rounds()), on(A))
    until(browser, True, lambda: visible(browser, ".all-releases"))
    shown = [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".links a") if each.is_displayed()]
    assert shown == ["JSON", "CSV", "CSV"]


def test_a_survey_without_releases_offers_its_open_round_alone(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    opened(browser, open_site(snapshot_of(survey_of("health", health(), digest=A))), on(A))
    until(browser, True, lambda: visible(browser, ".this-round"))
    assert not visible(browser, ".all-releases")
