"""Results as their readers get them, from a real node: the API by its description, tables, sealed bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_fixture import World
from published_node import published_node

from hubbub_aggregator.web.openapi import openapi_document

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with published_node(tmp_path_factory.mktemp("published")) as found:
        yield found


def schemathesis(world: World, folder: Path, *options: str, settings: str = "") -> str:
    """What the tool prints, which has found nothing wrong."""
    config = folder / "schemathesis.toml"
    config.write_text(settings, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", config),
            *("run", world.url + "/api/v1/openapi.json", "--seed", "1", "--no-color", *options),
        ],
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert "No issues found" in done.stdout
    operations = re.search(r"Selected: (\d+)/(\d+)\n\s+Tested: (\d+)", done.stdout)
    assert operations is not None
    assert set(operations.groups()) == {str(len(openapi_document()["paths"]) - 1)}, "all but the description"
    cases = re.search(r"(\d+) generated", done.stdout)
    assert cases is not None
    assert int(cases[1]) > 150
    return done.stdout


@pytest.mark.parametrize(
    "settings",
    ["", '[parameters]\n"path.survey" = "outpatient-visits"\n"path.round" = "0"\n'],
    ids=["any survey", "a survey that is there"],
)
def test_the_description_holds_for_a_real_node(world: World, tmp_path: Path, settings: str) -> None:
    schemathesis(world, tmp_path, "--max-examples", "5", settings=settings)
