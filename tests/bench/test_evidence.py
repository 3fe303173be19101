"""`make evidence`: a run is kept with the ones before it; one that fails leaves the file as it was."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EARLIER = {
    "date": "2026-01-01 00:00 UTC",
    "commit": "0123456789",
    "machine": "2 cores, Python 3.11.7, Linux",
    "seconds": 3,
    "command": "python toy.py",
    "markdown": False,
    "output": ["old words"],
}


@pytest.fixture(scope="module")
def evidence():
    spec = importlib.util.spec_from_file_location("evidence", ROOT / "bench" / "evidence.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evidence"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["evidence"]


@pytest.fixture
def folder(tmp_path):
    """A folder that holds one earlier run of `toy`."""
    made = tmp_path / "evidence"
    made.mkdir()
    (made / "toy.json").write_text(json.dumps([EARLIER]))
    return made


@pytest.fixture
def toy(evidence, monkeypatch, tmp_path):
    """A function that makes `toy` a script of these lines."""

    def make(source: str, **words) -> Path:
        script = tmp_path / "toy.py"
        script.write_text(source)
        monkeypatch.setitem(evidence.RUNS, "toy", evidence.Run(str(script), "a toy", **words))
        return script

    return make


def kept(folder) -> list[dict[str, object]]:
    return json.loads((folder / "toy.json").read_text(encoding="utf-8"))


def test_a_run_is_kept_after_the_ones_before_it(evidence, toy, folder):
    toy("import sys\nprint('seen', sys.argv[1:])\nprint('twice')")
    evidence.write("toy", ["--cases", "5"], folder=folder)
    first, second = kept(folder)
    assert first == EARLIER
    assert second["output"] == ["seen ['--cases', '5']", "twice"]
    assert second["command"] == "python toy.py --cases 5"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", second["date"])
    assert re.fullmatch(r"[0-9a-f]{10}( with changes)?|unknown", second["commit"])
    assert re.fullmatch(r"\d+ cores, Python 3\.\d+\.\S+, \w+", second["machine"])
    assert second["seconds"] >= 0


def test_the_last_five_are_kept(evidence, toy, folder):
    for number in range(7):
        toy(f"print({number})")
        evidence.write("toy", [], folder=folder)
    assert [each["output"] for each in kept(folder)] == [["2"], ["3"], ["4"], ["5"], ["6"]]


def test_a_first_run_makes_its_file(evidence, toy, tmp_path):
    toy("print(1)")
    evidence.write("toy", [], folder=tmp_path / "new")
    assert [each["output"] for each in kept(tmp_path / "new")] == [["1"]]


def test_shown_are_the_newest_run_and_when_the_others_were(evidence, toy, folder):
    toy("print('| a |')", markdown=True)
    evidence.write("toy", [], folder=folder)
    shown = evidence.markdown("toy", evidence.runs_of("toy", folder=folder))
    assert "\n\n| a |\n\n| earlier runs |" in shown  # Markdown is not fenced
    assert f"| {EARLIER['date']} | {EARLIER['commit']} | {EARLIER['machine']} | 3 |" in shown
    toy("print(2)")
    evidence.write("toy", [], folder=folder)
    assert "```text\n2\n```" in evidence.markdown("toy", evidence.runs_of("toy", folder=folder))


def test_no_path_of_the_machine_is_kept(evidence, toy, folder, tmp_path):
    data = tmp_path / "adult.csv"
    toy(f"import sys\nprint('read', sys.argv[1], {str(evidence.ROOT / 'docs' / 'tour.md')!r}, __file__)")
    evidence.write("toy", [str(data)], folder=folder)
    assert kept(folder)[-1]["output"] == ["read adult.csv docs/tour.md toy.py"]
    assert str(tmp_path) not in (folder / "toy.json").read_text()


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("print('half a table'); raise SystemExit(3)", 3),
        ("print('half a table'); raise SystemExit(77)", 77),  # it skipped itself
        ("print('half a table'); import os; os.kill(os.getpid(), 9)", 1),
        ("pass", 1),  # nothing to keep
    ],
)
def test_a_run_that_fails_keeps_nothing(evidence, toy, folder, source, status):
    toy(source)
    assert evidence.main(["toy"], folder=folder) == status
    assert kept(folder) == [EARLIER]
    assert [path.name for path in folder.iterdir()] == ["toy.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"date": "today"}]'])
def test_a_broken_file_is_refused_before_the_run(evidence, toy, folder, text):
    (folder / "toy.json").write_text(text)
    script = toy("from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nprint(1)")
    with pytest.raises(evidence.EvidenceError, match=r"toy\.json must be a list of runs with all their keys"):
        evidence.write("toy", [], folder=folder)
    assert (folder / "toy.json").read_text() == text
    assert not script.with_suffix(".ran").exists()


def test_an_unknown_name_is_refused(evidence, folder):
    with pytest.raises(evidence.EvidenceError, match=r"NAME must be one of alerts, .*, got 'nosuch'"):
        evidence.write("nosuch", [], folder=folder)
    assert kept(folder) == [EARLIER]


def test_every_name_is_listed_and_its_command_is_there(evidence):
    said = subprocess.run(
        [sys.executable, "bench/evidence.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name, run in evidence.RUNS.items():
        assert re.search(rf"^  {name} +{re.escape(run.sentence)}", said, re.MULTILINE)
        assert (ROOT / run.command.split()[0]).is_file()


def test_every_kept_file_is_of_a_name_and_can_be_shown(evidence):
    files = sorted((ROOT / "evidence").iterdir())
    assert files
    for path in files:
        runs = evidence.runs_of(path.stem)
        assert path.suffix == ".json" and path.stem in evidence.RUNS and 1 <= len(runs) <= evidence.KEPT
        assert evidence.markdown(path.stem, runs).startswith(f"### {path.stem}: ")
        assert path.stat().st_size < 50_000, "a run prints a summary: a row for many cases, not for each"


WRITTEN = ("docs/*.md", "docs/decisions/*.md")  # and nothing that `make docs` generates
PAGES = [ROOT / "README.md", *sorted(page for each in WRITTEN for page in ROOT.glob(each))]
QUOTED = re.compile(r"\[([^\]\[]+)\]\((?:\.\./)*evidence/([a-z-]+)\.json\)")
NUMBER = re.compile(r"\d(?:[\d,.e+-]*\d)?")


def absent(label: str, output: str) -> list[str]:
    """The numbers of a label that do not stand in an output as they are."""
    return [
        number
        for number in NUMBER.findall(label)
        if not re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)", output)
    ]


def test_a_quoted_figure_is_told_from_a_part_of_one():
    assert absent("12 of 3", "| 12 | 3 |") == absent("12 of 3", "12, 3.") == []
    for output in ("112 3", "12.5 3", "1,212 3", "12 0.3"):
        assert absent("12 of 3", output) != []


def test_every_quoted_figure_is_in_the_newest_run_of_its_file(evidence):
    quoted = [(page, *found) for page in PAGES for found in QUOTED.findall(page.read_text(encoding="utf-8"))]
    assert len(quoted) > 50
    for page, label, name in quoted:
        output = "\n".join(evidence.runs_of(name)[-1]["output"])
        assert absent(label, output) == [], f"{page.name}: {label} of {name}"


UNIT = r"%|times\b|s\b|ms\b|us\b|MiB\b|MB\b|GB\b|bytes\b|points\b"
FIGURE = re.compile(rf"(?<![\w.,^/-])(\d+\.\d\d+|\d+\.\d+(?= ?(?:{UNIT})))(?!\w|\.\d)")
NOT_MEASURED = {
    "README.md": {"3.11": "a version of Python", "0.95": "the level that is promised"},
    "choosing-epsilon.md": {
        **dict.fromkeys(("1.65", "2.72", "7.39", "99.8"), "e^epsilon, and e^epsilon / (1 + e^epsilon)"),
        "0.030": "an exact bound, by the command beside it",
    },
    "dashboard.md": {"88.1": "e^2 / (1 + e^2), rounded up"},
    "evaluate.md": {"97.5": "half of what a 95 % interval misses"},
    "figures.md": {"4.867": "a setting of a panel", "0.05": "a distance that is asked for"},
    "filter-in-use.md": {"2.33": "the 99 % point of the normal law, rounded up"},
    "poisoning.md": {"0.001": "the default of two options"},
    "scale.md": {"0.1": "a cost that is supposed"},
    "wire.md": {"17.4": "bytes of the layout", "0.001": "what a check lowers epsilon by"},
}
"""Numbers that look like measured figures and are none, by page, with what they are."""


def figures_of(text: str) -> set[str]:
    """Return what looks like a measured figure in prose: outside of code, of links and of names of files."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4}|>>>).*$|`[^`\n]*`|\[[^\]]*\]\([^)]*\)", "", text, flags=re.MULTILINE)
    return set(FIGURE.findall(text))


def test_a_figure_in_prose_is_found_and_one_in_a_link_is_not():
    assert figures_of("it takes 3.21 us, or 12.5 % of [7.65](../evidence/peers.json)") == {"3.21", "12.5"}
    assert figures_of("Theorem 3.2, epsilon 0.5, `1.25`, Kafka 3.9.2, 2.5 MiB") == {"2.5"}


def test_every_measured_figure_is_a_link_into_its_run():
    for page in PAGES:
        found, told = figures_of(page.read_text(encoding="utf-8")), NOT_MEASURED.get(page.name, {}).keys()
        assert found <= told, f"{page.name}: {sorted(found - told)} must be links into evidence/"
        assert told <= found, f"{page.name} has no {sorted(told - found)} any more"
