"""`hubbub survey check OLD NEW`: changes that would mix answers end with 1, and others say what they do."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from command import COMMAND, environment
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub_deploy.cli import main

DOCS = Path(__file__).parents[4] / "docs" / "surveys.md"
SECOND = LABELS.replace("version = 1", "version = 2")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.toml"
    path.write_text(LABELS)
    return path


def checked(old: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, list[str]]]:
    new = old.with_name("new.toml")
    new.write_text(text)
    code = main(["survey", "check", str(old), str(new), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ("epsilon = 1.0", "epsilon = 2.0", r"epsilon \(1.0 -> 2.0\), mechanism"),
        ('name = "grr"', 'name = "unary"', "mechanism"),
        ("minimum_cohort = 100", "minimum_cohort = 50", r"minimum_cohort \(100 -> 50\)"),
        ('lateness = "1h"', 'lateness = "2h"', r"lateness \(3600 -> 7200\)"),
        ('"poor"', '"bad"', "attributes"),
        ("Self-rated health", "Health", r"title \(Self-rated health -> Health\)"),
    ],
)
def test_a_change_without_a_new_version_is_refused(
    before: str, after: str, part: str, old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert before in LABELS
    code, found = checked(old, LABELS.replace(before, after), capsys)
    assert code == 1 and found["compatible"] is False
    assert re.search(
        rf"must have a new version when it changes: version 1 differs in .*{part}", found["reasons"][0]
    )


def test_a_new_version_is_an_edition_of_its_own(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(old, SECOND.replace("epsilon = 1.0", "epsilon = 2.0"), capsys)
    assert (code, found["compatible"], found["reasons"]) == (0, True, [])
    apart, compared, both = found["notes"]
    assert "is counted and released apart from version 1; it changes epsilon (1.0 -> 2.0)" in apart
    assert compared.endswith("can be compared with version 1 value by value")
    assert both.endswith("may answer both, and spends 1 and 2")
    code, found = checked(old, LABELS, capsys)
    assert (code, found["reasons"], found["notes"]) == (0, [], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SECOND.replace('"poor"', '"bad"'), "attribute 'health' must keep its values under its id"),
        (SECOND.replace("evolving", "static"), "attribute 'health' must keep its kind under its id"),
    ],
)
def test_an_attribute_that_changes_under_its_id_is_refused(
    text: str, reason: str, old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = checked(old, text, capsys)
    assert code == 1 and [line.startswith(reason) for line in found["reasons"]] == [True]


def test_a_version_never_goes_back(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old.write_text(SECOND)
    code, found = checked(old, LABELS.replace("epsilon = 1.0", "epsilon = 2.0"), capsys)
    assert code == 1 and "must have a version above 2, the latest before, got 1" in found["reasons"][0]
    new = old.with_name("visits.toml")
    new.write_text(VISITS)
    assert main(["survey", "check", str(old), str(new)]) == 1
    assert "must be an edition of survey 'self-rated-health', got " in capsys.readouterr().err


def test_folders_are_compared_survey_by_survey(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        (folder / "labels.toml").write_text(LABELS)
    (before / "gone.toml").write_text(VISITS)
    (after / "labels-2.bin").write_bytes(Survey.parse(SECOND).canonical)
    assert main(["survey", "check", str(before), str(after)]) == 0
    out = capsys.readouterr().out
    assert "version 2 is counted and released apart" in out and "is gone: what it counted stays" in out
    assert out.endswith("compatible\n")
    (after / "labels-3.toml").write_text(SECOND.replace("Self-rated health", "Health"))
    assert main(["survey", "check", str(before), str(after)]) == 1
    assert "must have a new version when it changes: another file" in capsys.readouterr().err
    assert main(["survey", "check", str(before), str(tmp_path / "none")]) == 1


def test_the_lines_for_ci_refuse_a_commit_that_mixes_answers(tmp_path: Path) -> None:
    """The shell lines of the docs, as they stand there, in a repository with one bad commit."""
    (script,) = re.findall(
        r"```sh\n(# surveys-check.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    (tmp_path / "surveys").mkdir()
    path = environment() | {"GIT_CONFIG_GLOBAL": "/dev/null"}
    path["PATH"] = f"{Path(COMMAND[0]).parent}:{path['PATH']}"

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", line], cwd=tmp_path, env=path, capture_output=True, text=True, check=False
        )

    commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm change"
    (tmp_path / "surveys" / "a.toml").write_text(LABELS)
    assert run(f"git init -q -b main && {commit}").returncode == 0
    (tmp_path / "surveys" / "b.toml").write_text(SECOND)
    assert run(f"{commit}\nBASE=HEAD~1\n{script}").returncode == 0
    (tmp_path / "surveys" / "a.toml").write_text(LABELS.replace("epsilon = 1.0", "epsilon = 2.0"))
    found = run(f"{commit}\nBASE=HEAD~1\n{script}")
    assert found.returncode == 1 and "must have a new version" in found.stdout
