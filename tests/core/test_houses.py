"""Core knows nothing of the houses of authors and of the lab, and a device loads nothing of them."""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import hubbub_authoring.mechanisms
from hubbub.channels import Channel
from hubbub.mechanisms.registry import KINDS

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
ABOVE = re.compile(r"hubbub_(?:authoring|lab)\b|\b(?:authoring|lab)/")
# Survey.load and Survey.parse read TOML for whoever asks, and import authoring when they do.
LOADS = ("core/hubbub/survey/survey.py", "from hubbub_authoring import files as authoring")
DEVICE = """
import sys
from pathlib import Path
from hubbub import Survey
from hubbub.filter import BayesianFilter
from hubbub_client import Agent
from hubbub_client.surveys.schedule import scheduled_query
for path in sys.argv[1:]:
    loaded = Survey.load(path)
    survey = Survey.from_canonical(loaded.canonical)
    static = all(each.kind == "static" for each in survey.attributes)
    query = scheduled_query(survey, -1 if static else 0, pin_version=0)
    symbol = survey.channel.perturb(survey.input_of(*[None] * len(survey.form.reads)))
    print(survey.channel.kind, len(survey.channel.description) > 0, symbol is not None, query.keys != ())
print(*(name for name in sys.modules if name.split(".")[0] in ("hubbub_authoring", "hubbub_lab")))
"""


@pytest.mark.parametrize("house", ["core", "client", "topic", "collector", "aggregator", "results"])
def test_what_runs_on_devices_and_servers_names_no_house_of_authors_not_even_as_text(house: str) -> None:
    found, allowed = [], 0
    for folder, folders, files in os.walk(ROOT / house):
        folders[:] = [each for each in folders if each not in {"node_modules", "__pycache__"}]
        for path in sorted(Path(folder, file) for file in files if not file.endswith(".so")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                if (path.relative_to(ROOT).as_posix(), line.partition("  #")[0].strip()) == LOADS:
                    allowed += 1
                elif ABOVE.search(line):
                    found.append(f"{path.relative_to(ROOT)}: {line.strip()}")
    assert found == []
    assert allowed == (2 if house == "core" else 0)
    assert ABOVE.search('Registration("grr", "hubbub_authoring.mechanisms.oracles")')  # control


def test_a_device_on_compiled_bytes_loads_nothing_of_authors_for_any_kind_and_form() -> None:
    files = sorted(GOLDEN.glob("survey-*.bin"))
    others = (GOLDEN / "sets.bin", GOLDEN / "bundle.bin", GOLDEN / "key-value.bin")
    files = [path for path in (*files, *others) if path.with_suffix(".toml").exists()]
    done = subprocess.run(
        [sys.executable, "-c", DEVICE, *map(str, files)], capture_output=True, text=True, check=True
    )
    *lines, loaded = done.stdout.splitlines()
    assert loaded == ""
    assert {line.split()[0] for line in lines} == set(KINDS)
    assert len(lines) == len(files) > 15 and all(line.endswith("True True True") for line in lines)
    # Control: reading TOML does load authors.
    code = (
        f"import sys; from hubbub import Survey; Survey.load({str(files[0].with_suffix('.toml'))!r})\n"
        "print('hubbub_authoring.files.toml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_channels_that_authors_define_travel_as_kinds_of_core() -> None:
    package = hubbub_authoring.mechanisms
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        import_module(module.name)
    found, left = [], [Channel]
    while left:
        left += (kind := left.pop()).__subclasses__()
        found += [kind] if kind.__module__.startswith(package.__name__) else []
    assert {kind.__name__ for kind in found} >= {"Boosted", "Neighbourhood", "ScalarChannel"}
    assert {kind.kind for kind in found} <= set(KINDS)
