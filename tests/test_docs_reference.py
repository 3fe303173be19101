"""The generated reference has every path, column, mechanism, key and setting that the code has."""

from __future__ import annotations

import re
import runpy
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from hubbub.survey.forms import forms_by_mechanism
from hubbub_aggregator.export import COLUMNS
from hubbub_aggregator.web.openapi import openapi_document
from hubbub_authoring.mechanisms.registry import mechanisms
from hubbub_deploy.cluster_settings import ClusterSettings

DOCS: Final = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "_site" / "reference.py"))


def test_every_path_has_its_parameters(reference: dict[str, Any]) -> None:
    description = openapi_document()
    page = reference["http"]()
    parts = {part.split("\n")[0]: part for part in page.split("\n## GET ")[1:]}
    assert list(parts) == list(description["paths"])
    shared = description["components"]["parameters"]
    for path, item in description["paths"].items():
        asked = [*item.get("parameters", []), *item["get"].get("parameters", [])]
        found = [shared[each["$ref"].rsplit("/", 1)[1]] if "$ref" in each else each for each in asked]
        assert re.findall(r"^- `(\w+)`", parts[path], re.M) == [each["name"] for each in found]


def test_every_column_is_told_in_its_order(reference: dict[str, Any]) -> None:
    table = reference["http"]().partition("## Columns of the tables")[2]
    rows = [line.split("|")[1].strip(" `") for line in table.splitlines() if line.startswith("| `")]
    assert rows == [column.name for column in COLUMNS]


def test_every_mechanism_and_key_is_told(reference: dict[str, Any]) -> None:
    page = reference["mechanisms"]()
    for name, entry in mechanisms().items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert row.replace("\\|", "").count("|") == 5, f"a bar of {name} would end its cell"
        for key in entry.keys:
            assert re.search(rf"\b{key.name}\b", row), f"the sentence of {key.name} must name it"
    for name, form in forms_by_mechanism().items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"- `{name}`:")]
        assert all(f"`{key}`" in row for key in (*form.keys, *form.terms))


def test_every_setting_of_a_cluster_is_told(reference: dict[str, Any]) -> None:
    page = reference["settings"]().partition("Of a cluster")[2]
    for each in fields(ClusterSettings):
        if each.name != "limits":  # those of a collector, which have a table of their own
            rows = [line for line in page.splitlines() if line.startswith(f"| `{each.name}` |")]
            assert len(rows[0].split("|")[3].strip()) > 7


def test_a_link_to_the_reference_leads_to_a_page_of_it(reference: dict[str, Any]) -> None:
    source = (DOCS / "_site" / "reference.py").read_text(encoding="utf-8")
    made = set(re.findall(r'^        "(\w+)": \w+\(\),$', source, re.M))
    linked = set()
    for page in DOCS.glob("*.md"):
        linked |= set(re.findall(r"\(reference/(\w+)\.md", page.read_text(encoding="utf-8")))
    assert len(linked) >= 4 and linked <= made
