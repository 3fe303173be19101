"""Wrong input at a command's door: one line with subject, rule and value, and nothing was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub_deploy.cli import main

GOLDEN = Path(__file__).parents[1] / "golden"
VISITS = GOLDEN / "survey-visits.toml"

Refuse = Callable[..., str]


@pytest.fixture
def refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Gives what a command said when it failed: its last line; it exits as expected and prints no result."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("visits\n3\n")
    Path("folder").mkdir()
    Path("cluster.toml").write_text('kafka = "nowhere:9"\nredis = "redis://nowhere:1/0"\ntopic = "t"\n')
    Path("broken.toml").write_text("not toml [")

    def run(line: str, code: int) -> str:
        try:
            found = main(line.replace("VISITS", str(VISITS)).split())
        except SystemExit as ended:
            found = ended.code
        out, err = capsys.readouterr()
        assert (found, out) == (code, "")
        lines = err.strip().splitlines()
        assert code == 2 or len(lines) == 1
        return lines[-1]

    return run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "topic cluster.toml --partitions 0 --if-absent",
            "--partitions: must be an integer of at least 1, got '0'",
        ),
        (
            "topic cluster.toml --partitions 4 --replication 0",
            "--replication: must be an integer of at least 1",
        ),
        (
            "add-partitions cluster.toml --partitions -4",
            "--partitions: must be an integer of at least 1, got '-4'",
        ),
        (
            "skip-lost cluster.toml --partition -1 --from 5",
            "--partition: must be an integer of at least 0, got '-1'",
        ),
        (
            "skip-lost cluster.toml --partition 0 --from -5",
            "--from: must be an integer of at least 0, got '-5'",
        ),
        (
            "dashboard cluster.toml --data d --port 70000",
            "--port: must be an integer of at least 0 and at most",
        ),
        ("agent page --ledger x --port 70000", "--port: must be an integer of at least 0 and at most 65535"),
    ],
)
def test_numbers_out_of_range_are_misuse_before_anybody_is_asked(refuse, line, said):
    assert said in refuse(line, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dead-letters none.toml", "none.toml: must be a readable file, got 'No such file or directory'"),
        ("dashboard broken.toml --data d", "broken.toml: must be TOML, got "),
        (
            "dashboard cluster.toml --data file --port 0",
            "file: must be a folder to write in, got 'File exists'",
        ),
        ("node VISITS --data file --port 0", "file: must be a folder to write in, got 'File exists'"),
        ("node VISITS --data d --asked other=5", "--asked must name one of outpatient-visits, got other"),
        (
            f"replay file --survey {VISITS} --column other=visits",
            "--column must name one of visits, got other",
        ),
        ("replay folder --survey VISITS", "folder: log "),
        ("replay none.csv --survey VISITS", "none.csv: cannot be read: No such file or directory"),
        ("replay kafka://nowhere", "must be given as kafka://host:port/topic, got 'kafka://nowhere'"),
        ("replay kafka://me:secret@k:1/t", "as kafka://host:port/topic, got one with a user"),
        ("survey keygen --out folder", "folder is there already, and is not overwritten"),
        ("survey sign VISITS --key file --out l", "file must be an Ed25519 private key in PEM without"),
        ("agent leave --ledger folder x", "ledger folder must be a file, and is none"),
        ("agent join --ledger file x", "ledger file is damaged, or is not a ledger"),
    ],
)
def test_what_is_missing_or_something_else_is_said_in_one_line(refuse, line, said):
    assert said in refuse(line, 1)


def test_an_empty_csv_has_no_column(refuse):
    Path("file").write_text("")
    assert refuse("replay file --survey VISITS", 1) == "hubbub: file: columns must include 'visits', got none"


def test_an_empty_line_of_one_column_is_a_device_without_a_value(refuse, capsys):
    Path("file").write_text("visits\n3\n\n\n4\n")
    assert main(["replay", "file", "--survey", str(VISITS), "--seed", "1"]) == 0
    out, err = capsys.readouterr()
    assert "4 devices" in out
    assert "file: empty lines are a device each, its value missing: 2" in err


def test_an_empty_line_between_rows_of_several_columns_is_said_to_be_none(refuse, capsys):
    Path("file").write_text("visits,age\n3,40\n\n4,50\n")
    assert main(["replay", "file", "--survey", str(VISITS), "--seed", "1"]) == 0
    out, err = capsys.readouterr()
    assert "2 devices" in out
    assert "file: empty lines are not counted as devices: 1" in err
