"""docs/api.md says what the description and the tables say."""

from __future__ import annotations

import re
from pathlib import Path

from hubbub_aggregator.export import COLUMNS
from hubbub_aggregator.web.openapi import openapi_document

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_page_has_every_path_with_its_parameters_and_no_other() -> None:
    description = openapi_document()
    listed = {}
    for path, parameters in re.findall(r"^\| `(/\S*)` \|.*\|([^|]*)\|$", PAGE, re.MULTILINE):
        listed[path] = set(re.findall(r"`(\w+)`", parameters))
    shared = description["components"]["parameters"]
    described = {}
    for path, item in description["paths"].items():
        asked = [*item.get("parameters", []), *item["get"].get("parameters", [])]
        found = [shared[each["$ref"].rsplit("/", 1)[1]] if "$ref" in each else each for each in asked]
        described[path] = {each["name"] for each in found if each["in"] == "query"}
    assert listed == described


def test_the_page_has_every_column_in_its_order() -> None:
    lines = PAGE[PAGE.index("| column |") :].split("\n\n")[0].splitlines()[2:]
    named = [name for line in lines for name in line.split("|")[1].replace(" ", "").split(",")]
    assert named == [column.name for column in COLUMNS]
