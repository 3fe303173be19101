"""`hubbub export`: what it writes, what it refuses, and what it leaves as it was."""

from __future__ import annotations

import builtins
import contextlib
import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shown_view import round_of

from hubbub_aggregator.stores import SqliteArchive
from hubbub_deploy.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    with contextlib.closing(SqliteArchive(data / "archive.sqlite")) as archive:
        for name, digest in (("visits", b"\x01" * 16), ("smoking", b"\x02" * 16)):
            for number in range(3):
                document = round_of(number, sealed=True, mean=1.5, suppressed=number == 1)
                document["survey"] = {"id": name, "version": 1, "digest": digest.hex(), "title": name}
                document["consistent"] = {"values": [0.5, 0.3, 0.2], "categories": [0.5, 0.5]}
                archive.put((digest, number), json.dumps(document).encode())
    return data


def rows_of(data: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data, newline="")))


def test_every_release_is_in_one_table_and_what_has_no_estimates_is_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(folder), "--out", str(tmp_path / "all.csv")]) == 0
    assert "6 releases, 2 with too few devices" in capsys.readouterr().err
    found = rows_of((tmp_path / "all.csv").read_text(encoding="utf-8"))
    assert {(row["survey"], row["round"], row["view"]) for row in found} == {
        (survey, number, view)
        for survey in ("visits", "smoking")
        for number in "13"
        for view in ("raw", "consistent", "empirical_bayes")
    }
    assert main(["export", str(folder), "--out", str(tmp_path / "all.parquet")]) == 0
    with duckdb.connect() as database:
        query = f"SELECT survey, round, view, label, estimate FROM '{tmp_path}/all.parquet'"  # noqa: S608
        stored = database.execute(query).fetchall()
    names = ("survey", "round", "view", "label", "estimate")
    assert [tuple("" if cell is None else str(cell) for cell in row) for row in stored] == [
        tuple(row[name] for name in names) for row in found
    ]


def test_one_survey_and_one_view_go_to_stdout(folder: Path, capfdbinary: Any) -> None:
    done = main(["export", str(folder), "--out", "-", "--survey", "smoking", "--view", "raw"])
    found = rows_of(capfdbinary.readouterr().out.decode())
    assert done == 0
    assert {(row["survey"], row["view"]) for row in found} == {("smoking", "raw")}


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["nowhere", "--out", "x.csv"], "must be the folder of a node or a dashboard"),
        (["FOLDER", "--out", "TMP/x.csv", "--survey", "other"], "survey must be one that has a release"),
        (["FOLDER", "--out", "TMP/none/x.csv"], "must be a file to write"),
        (["FOLDER", "--out", "TMP/none/x.parquet"], "must be a file to write"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_and_leaves_nothing(
    folder: Path, tmp_path: Path, options: list[str], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [part.replace("FOLDER", str(folder)).replace("TMP", str(tmp_path)) for part in options]
    assert main(["export", *named]) == 1
    said = capsys.readouterr().err
    assert rule in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_other_forms_are_misuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["export", str(folder), "--out", "x.xlsx"])
    assert "must end in .csv or .parquet, got 'x.xlsx'" in capsys.readouterr().err


def test_a_missing_extra_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "duckdb":
            raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["export", str(folder), "--out", str(tmp_path / "x.parquet")]) == 1
    assert "pip install 'hubbub[export]'" in capsys.readouterr().err


def test_a_damaged_release_ends_the_export_and_leaves_the_older_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all.csv"
    out.write_text("older", encoding="utf-8")
    with contextlib.closing(SqliteArchive(folder / "archive.sqlite")) as archive:
        archive._db.execute("UPDATE release SET document = x'7b7d' WHERE round = 2")
    assert main(["export", str(folder), "--out", str(out)]) == 1
    assert "damaged or was edited" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.csv", "data"]
