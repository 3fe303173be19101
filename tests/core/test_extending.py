"""docs/extending.md is followed as it stands: its blocks make a mechanism that keeps the contract of all."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|text|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLLOWED = """
import hashlib, sys
import numpy as np
from hubbub.authoring.toml import mechanism_keys
from hubbub.design.comparison import compare
from hubbub.design.workload import Workload
from hubbub.mechanisms import nearness
from hubbub.survey import Survey
assert mechanism_keys()["nearness"] == ("reach",)
text = open(sys.argv[1], encoding="utf-8").read()
survey = Survey.parse(text)
assert Survey.from_canonical(survey.canonical) == survey
rows = survey.channel.weights() / survey.channel.total
assert rows[3, 3] > rows[3, 2] > rows[3, 1] > 0.0
# The name is known, a wrong key is not: both are read from the registry.
for wrong, rule in (("reach = 0.5", "reach = 7.0"), ("reach = 0.5", "window = 1")):
    try:
        Survey.parse(text.replace(wrong, rule))
    except Exception as error:
        print(error)
    else:
        raise SystemExit("a wrong key was taken")
workload = Workload.of_survey(survey)
print("designed:", "nearness" in [found.mechanism for found in compare(workload) if not found.refusal])
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core with the page's module and registration, its survey file and its contract case."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "core", folder / "core", ignore=shutil.ignore_patterns("__pycache__"))
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    module, line, survey, case = (block for _, block in BLOCK.findall(page))
    mechanisms = folder / "core" / "hubbub" / "mechanisms"
    (mechanisms / "nearness.py").write_text(module, encoding="utf-8")
    registry = (mechanisms / "registry.py").read_text(encoding="utf-8")
    before = '    Registration("boosted"'
    assert registry.count(before) == 1
    (mechanisms / "registry.py").write_text(registry.replace(before, line + before), encoding="utf-8")
    (folder / "survey-nearness.toml").write_text(survey, encoding="utf-8")
    (folder / "test_nearness.py").write_text(case, encoding="utf-8")
    return folder


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(copy / 'core')!r})\n"
    return subprocess.run(
        [sys.executable, "-c", code + arguments[0], *arguments[1:]],
        capture_output=True,
        text=True,
        cwd=copy,
        check=False,
    )


def test_the_page_makes_a_mechanism_that_survey_files_and_the_designer_know(copy: Path) -> None:
    done = run(copy, FOLLOWED, str(copy / "survey-nearness.toml"))
    assert done.returncode == 0, done.stderr
    too_far, unknown, designed = done.stdout.splitlines()
    assert "mechanism.reach: must be a finite number from 0.001 to 1" in too_far
    assert "mechanism.window: must be a known key: name, participation, reach" in unknown
    assert designed == "designed: True"


def test_the_page_s_mechanism_keeps_the_contract_of_all(copy: Path) -> None:
    digest = run(
        copy,
        "import hashlib, msgpack\n"
        "from hubbub.mechanisms.nearness import nearness\n"
        "print(hashlib.sha256(msgpack.packb(nearness(7, epsilon=2.0, reach=0.5).to_spec())).hexdigest())",
    ).stdout.strip()
    case = (copy / "test_nearness.py").read_text(encoding="utf-8")
    assert digest in case
    pytest_run = (
        f"sys.path.insert(1, {str(ROOT / 'tests' / 'harness')!r})\n"
        "import pytest\n"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-m', 'not statistical',"
        f" '-o', 'markers=statistical', '--rootdir', {str(copy)!r}, '-c', '/dev/null', 'test_nearness.py']))"
    )
    done = run(copy, pytest_run)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 18


def test_the_table_of_surveys_lists_every_mechanism_and_key() -> None:
    from hubbub.mechanisms.registry import mechanisms

    page = (ROOT / "docs" / "surveys.md").read_text(encoding="utf-8")
    table = page.split("## Mechanisms", 1)[1].split("\n## ", 1)[0]
    for name, entry in mechanisms().items():
        rows = [
            line for line in table.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1]
        ]
        assert rows, f"docs/surveys.md must have a row for {name}"
        for key in entry.keys:
            said = any(re.search(rf"\b{key.name}\b", row) for row in rows)
            assert said, f"docs/surveys.md must explain {key.name} of {name}"
