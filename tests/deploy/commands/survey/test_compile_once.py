"""`auto` is resolved once where a file is compiled or designed, and said in a line by whoever loads it."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from surveys import LABELS

from hubbub import Survey
from hubbub_authoring.design import Study, comparison
from hubbub_authoring.files import survey_of
from hubbub_authoring.mechanisms.registry import mechanisms_for
from hubbub_deploy import files
from hubbub_deploy.cli import main
from hubbub_lab.evaluate.surveys import SurveyMaker

AUTO = LABELS.replace('name = "grr"', 'name = "auto"')
NEW = ["new", "--epsilon", "2", "--labels", "tea,coffee"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "auto.toml").write_text(AUTO, encoding="utf-8")
    (tmp_path / "grr.toml").write_text(LABELS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every trial of a mechanism that was compiled and measured."""
    found: list[str] = []
    whole = comparison._tried

    def noted(workload, mechanism, trial):
        found.append(f"{mechanism} {dict(trial.parameters)}")
        return whole(workload, mechanism, trial)

    monkeypatch.setattr(comparison, "_tried", noted)
    yield found


@pytest.mark.parametrize(
    "command",
    [
        ["compile", "auto.toml", "--out", "auto.bin"],
        ["design", "auto.toml"],
        ["design", "auto.toml", "--json"],
        ["design", "auto.toml", "--write", "settled.toml"],
        ["check", "auto.toml"],
        [*NEW, "--id", "drink", "--out", "drink.toml"],
        [*NEW, "--id", "drink", "--out", "-"],
    ],
    ids=" ".join,
)
def test_mechanisms_are_compared_once(command: list[str], folder: Path, tried: list[str]) -> None:
    assert main(["survey", *command]) == 0
    assert len(tried) == len(set(tried)) > 5


def test_an_evaluation_reads_its_file_once(folder: Path, tried: list[str]) -> None:
    SurveyMaker.of_file(folder / "auto.toml", devices=None)
    assert len(tried) == len(set(tried)) > 5


def test_another_question_is_compared_anew(folder: Path, tried: list[str]) -> None:
    """With some devices without a value the errors are others."""
    assert main(["survey", "design", "auto.toml", "--missing", "0.2"]) == 0
    assert len(tried) == 2 * len(set(tried)) > 10


def test_who_loads_auto_says_in_a_line_what_it_took_and_keeps_nothing(
    folder: Path, tried: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    choice = Survey.load(folder / "auto.toml").choice
    assert choice is not None
    before = sorted(path.name for path in folder.iterdir())
    said = f"auto.toml: auto takes {choice.compared[0].label}, of {len(choice.compared)} compared\n"
    for command in (["check", "auto.toml"], ["consent", "auto.toml"], ["design", "auto.toml"]):
        tried.clear()
        assert main(["survey", *command]) == 0
        assert capsys.readouterr().err == said
        assert tried  # nothing is remembered from one command to the next
    assert main(["survey", "check", "grr.toml"]) == 0
    assert capsys.readouterr().err == ""
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("name", ["auto", "grr"])
def test_a_slow_compile_is_told_with_the_command_that_does_it_once(
    name: str,
    folder: Path,
    tried: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "SLOW_S", 0.0)
    digest = Survey.load(folder / f"{name}.toml").digest.hex()
    assert main(["survey", "check", f"{name}.toml"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    (advised,) = re.findall(r"took \d+\.\d s to compile: `hubbub (.*)` does it once$", line)
    assert main(shlex.split(advised)) == 0
    told = capsys.readouterr()
    assert digest in told.out and "does it once" not in told.err
    tried.clear()
    assert main(["survey", "check", f"{name}.bin"]) == 0
    told = capsys.readouterr()
    assert digest in told.out and told.err == "" and tried == []


def test_a_study_tells_which_mechanism_it_is_at(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    known = list(mechanisms_for("labels"))
    survey = survey_of(AUTO, "auto.toml", compare=Study(lambda *at: told.append(at)))
    assert survey == Survey.parse(AUTO)
    assert told == [(name, place, len(known)) for place, name in enumerate(known, start=1)]


def test_a_terminal_sees_which_mechanism_is_compared_and_keeps_no_line_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_terminal in (True, False):
        shown = io.StringIO()
        monkeypatch.setattr(shown, "isatty", lambda at_terminal=at_terminal: at_terminal)
        monkeypatch.setattr("sys.stderr", shown)
        with files.comparing() as study:
            survey_of(AUTO, "auto.toml", compare=study)
        assert ("auto: comparing orbits, " in shown.getvalue()) == at_terminal
        assert shown.getvalue().rpartition("\x1b[2K")[2] == ""


def test_every_command_loads_its_surveys_by_the_one_that_says_so() -> None:
    """But for the node's demo, whose surveys are its own, and names no mechanism "auto"."""
    root = Path(files.__file__).parent
    own = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"Survey\.(load|parse)\(", line)
    ]
    assert sorted(line.split(":")[0] for line in own) == ["commands/demo/demonstration.py", "files.py"]
    demo = "".join(path.read_text(encoding="utf-8") for path in (root / "surveys").glob("*.toml"))
    assert 'name = "' in demo and '"auto"' not in demo
