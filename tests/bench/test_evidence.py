"""`make evidence`: a run's block in the page is replaced; a run that fails leaves the page as it was."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = """# Evaluation

Words before.

<!-- evidence toy -->
old words
<!-- end of evidence toy -->

Words after.
"""


@pytest.fixture(scope="module")
def evidence():
    spec = importlib.util.spec_from_file_location("evidence", ROOT / "bench" / "evidence.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evidence"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["evidence"]


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "evaluation.md"
    path.write_text(PAGE)
    return path


@pytest.fixture
def toy(evidence, monkeypatch, tmp_path):
    """A function that makes `toy` a script of these lines."""

    def make(source: str, **words) -> Path:
        script = tmp_path / "toy.py"
        script.write_text(source)
        monkeypatch.setitem(evidence.RUNS, "toy", evidence.Run(str(script), "a toy", **words))
        return script

    return make


def test_the_block_of_an_earlier_run_is_replaced_and_nothing_else(evidence, toy, page):
    toy("import sys\nprint('seen', sys.argv[1:])\n")
    evidence.write("toy", ["--cases", "5"], page=page)
    text = page.read_text()
    assert text.startswith("# Evaluation\n\nWords before.\n\n<!-- evidence toy -->\n### toy: a toy\n")
    assert text.endswith("\n```\n<!-- end of evidence toy -->\n\nWords after.\n")
    assert "```text\nseen ['--cases', '5']\n```" in text
    assert "old words" not in text
    evidence.write("toy", ["--cases", "6"], page=page)
    again = page.read_text()
    assert "'6'" in again
    assert "'5'" not in again
    assert again.count("<!-- evidence toy -->") == again.count("<!-- end of evidence toy -->") == 1


def test_a_block_says_date_commit_machine_command_and_duration(evidence, toy, page):
    toy("print('| a |')", markdown=True)
    evidence.write("toy", ["--most", "7"], page=page)
    said = re.search(r"### toy: a toy\n\n(.*)\n\n(.*)\n<!-- end", page.read_text())
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, commit ([0-9a-f]{10}( with changes)?|unknown), "
        r"\d+ cores, Python 3\.\d+\.\S+, \w+, \d+ s: `python toy.py --most 7`",
        said[1],
    )
    assert said[2] == "| a |"  # Markdown is not fenced


def test_a_first_run_gets_a_block_at_the_end(evidence, toy, page):
    page.write_text("# Evaluation\n")
    toy("print(1)")
    evidence.write("toy", [], page=page)
    assert page.read_text().startswith("# Evaluation\n\n<!-- evidence toy -->\n")
    assert page.read_text().endswith("\n```text\n1\n```\n<!-- end of evidence toy -->\n")


def test_no_path_of_the_machine_is_written(evidence, toy, page, tmp_path):
    data = tmp_path / "adult.csv"
    toy(f"import sys\nprint('read', sys.argv[1], {str(evidence.ROOT / 'docs' / 'tour.md')!r}, __file__)")
    evidence.write("toy", [str(data)], page=page)
    assert "read adult.csv docs/tour.md toy.py" in page.read_text()
    assert str(tmp_path) not in page.read_text()


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("print('half a table'); raise SystemExit(3)", 3),
        ("print('half a table'); raise SystemExit(77)", 77),  # it skipped itself
        ("print('half a table'); import os; os.kill(os.getpid(), 9)", 1),
        ("pass", 1),  # nothing to write
        ("print('<!-- end of evidence toy -->')", 1),
    ],
)
def test_a_run_that_fails_writes_nothing(evidence, toy, page, source, status):
    toy(source)
    assert evidence.main(["toy"], page=page) == status
    assert page.read_text() == PAGE
    assert [path.name for path in page.parent.glob("evaluation*")] == ["evaluation.md"]


@pytest.mark.parametrize(
    "text",
    [
        "<!-- evidence toy -->\n",
        "<!-- end of evidence toy -->\n<!-- evidence toy -->\n",
        PAGE + PAGE,
    ],
)
def test_a_page_with_broken_markers_is_refused_before_the_run(evidence, toy, page, text):
    page.write_text(text)
    script = toy("from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nprint(1)")
    with pytest.raises(evidence.EvidenceError, match=r"markers of toy must be one pair in order, got \d"):
        evidence.write("toy", [], page=page)
    assert page.read_text() == text
    assert not script.with_suffix(".ran").exists()


def test_an_unknown_name_and_missing_words_are_refused(evidence, page):
    with pytest.raises(evidence.EvidenceError, match=r"NAME must be one of alerts, .*, got 'nosuch'"):
        evidence.write("nosuch", [], page=page)
    with pytest.raises(evidence.EvidenceError, match=r"coverage-file must be given ARGS=.*, got none"):
        evidence.write("coverage-file", [], page=page)
    assert page.read_text() == PAGE


def test_every_name_is_listed_and_its_command_is_there(evidence):
    said = subprocess.run(
        [sys.executable, "bench/evidence.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name, run in evidence.RUNS.items():
        assert re.search(rf"^  {name} +{re.escape(run.sentence)}", said, re.MULTILINE)
        assert (ROOT / run.command.split()[0]).is_file()


def test_every_block_of_the_page_stands_there_once(evidence):
    """Two blocks of one name would be an old table beside the new one."""
    names = re.findall(r"<!-- evidence ([a-z-]+) -->", (ROOT / "docs" / "evaluation.md").read_text())
    assert names
    assert sorted(set(names)) == sorted(names)
