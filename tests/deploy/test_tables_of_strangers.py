"""Tables as people have them: what is read, what it was taken for, and what was not read."""

from __future__ import annotations

import gzip
import json
import subprocess
import unicodedata
from pathlib import Path

import pytest
from command import COMMAND, environment, one_line

from hubbub_deploy.cli import main

NEW = "survey new --id {id} --epsilon 4 --start now --round 1m --out {id}.toml"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def survey(name: str, *asked: str) -> str:
    assert main([*NEW.format(id=name).split(), *asked]) == 0
    return f"{name}.toml"


def write(name: str, fields: list[str], head: str = "c", encoding: str = "utf-8") -> str:
    Path(name).write_bytes("".join(f"{line}\n" for line in [head, *fields]).encode(encoding))
    return name


def evaluated(capsys, *argv: str) -> tuple[dict[str, object], str]:
    capsys.readouterr()
    options = "--epsilon", "2", "--repeats", "1", "--seed", "1", "--json", "-"
    assert main(["evaluate", *argv, *options]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    return json.loads(out)["cases"][0], err


def replayed(capsys, *argv: str) -> tuple[dict[str, int], str]:
    """How many devices hold each value, and what was said."""
    capsys.readouterr()
    assert main(["replay", *argv, "--seed", "1", "--json"]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    one = json.loads(out)[0]
    n = one["release"]["devices"]
    return {row["label"]: round(row["truth"] * n) for row in one["rows"] if row["kind"] == "value"}, err


GUESSES = {
    "numbers": (["1"] * 60 + ["9"] * 40, "taken for the whole numbers from 1 to 9", "", 10),
    "a word": (
        ["1"] * 60 + ["2"] * 30 + ["NULL"] * 10,
        "taken for 3 labels, since 'NULL' is no number",
        "",
        4,
    ),
    "codes": (
        ["01"] * 60 + ["1"] * 30 + ["2"],
        "taken for 3 labels, since '01' begins with 0, as codes",
        "",
        4,
    ),
    "points": (["0.5"] * 60 + ["2"] * 30, "taken for numbers from 0.5 to 2", "", 34),
    "gone": (["DE"] * 60 + ["FR"] * 30 + ["NA"] * 40, "for 2 labels;", "40 of 130 are missing (NA)", 3),
    "words for none": (
        ["1"] * 60 + ["2", "?", "missing"],
        "numbers from 1 to 2",
        "2 of 63 are missing (?, miss",
        3,
    ),
    "underscores": (["1"] * 60 + ["0_7"] * 9, "taken for 2 labels, since '0_7' is no number", "", 3),
}


@pytest.mark.parametrize("case", GUESSES)
def test_evaluate_says_what_a_column_was_taken_for(case: str, capsys) -> None:
    fields, guess, quality, inputs = GUESSES[case]
    found, err = evaluated(capsys, "--data", write("t.csv", fields) + ":c")
    assert found["inputs"] == inputs and guess in err and quality in err
    assert "; a survey file would say it" in err and ("missing" in err) == bool(quality)


def test_evaluate_says_what_it_could_not_read(capsys) -> None:
    way = survey("way", "--labels", "car,bike")
    table = write("t.csv", ["car"] * 50 + ["Auto"] * 30 + [""] * 5, head="way")
    _, err = evaluated(capsys, way, "--data", table)
    assert "t.csv: column 'way': 5 of 85 are missing, 30 are outside the domain (such as 'Auto')" in err


def test_a_column_or_a_file_may_have_a_colon(capsys) -> None:
    write("a.csv", ["x"] * 30 + ["y"] * 30, head="a:b")
    write("a.csv:a", ["1", "2", "3"] * 20, head="b")
    assert evaluated(capsys, "--data", "a.csv:a:b")[0]["inputs"] == 4  # the longest path that is there
    Path("a.csv:a").unlink()
    found, err = evaluated(capsys, "--data", "a.csv:a:b")
    assert found["inputs"] == 3 and "a.csv:a:b: taken for 2 labels" in err
    assert main(["evaluate", "--data", "none.csv:c"]) == 1
    assert "none.csv: cannot be read: No such file" in capsys.readouterr().err


def test_endings_may_be_large_letters_and_a_folder_may_hold_parts(capsys) -> None:
    duckdb = pytest.importorskip("duckdb")
    way = survey("way", "--labels", "car,bike")
    Path("a.CSV.GZ").write_bytes(gzip.compress(b"way\n" + b"car\n" * 60))
    Path("parts").mkdir()
    for name, value, rows in (("2.parquet", "bike", 20), ("1.PARQUET", "car", 60)):
        duckdb.execute(f"COPY (SELECT '{value}' AS way FROM range({rows})) TO 'made' (FORMAT parquet)")  # noqa: S608
        Path("made").rename(Path("parts", name))
    for note in ("_SUCCESS", ".hidden.parquet", "read.me"):
        Path("parts", note).touch()
    Path("one.Parquet").write_bytes(Path("parts", "1.PARQUET").read_bytes())
    assert replayed(capsys, "a.CSV.GZ", "--survey", way)[0]["car"] == 60
    assert replayed(capsys, "one.Parquet", "--survey", way)[0]["car"] == 60
    assert replayed(capsys, "parts", "--survey", way)[0] == {"car": 60, "bike": 20, "missing": 0}
    assert evaluated(capsys, "--data", "parts:way")[0]["inputs"] == 3
    Path("parts", "way=car").mkdir()
    assert main(["replay", "parts", "--survey", way]) == 1
    assert "parts: must hold the Parquet files themselves, got folders" in capsys.readouterr().err
    Path("empty").mkdir()
    assert main(["evaluate", "--data", "empty:way"]) == 1
    assert "empty: must hold Parquet files, got none" in capsys.readouterr().err


def test_another_spelling_of_a_table_is_read_if_it_is_said(capsys) -> None:
    hours = survey("hours", "--number", "0", "24")
    rows = ["1,5\tJürgen"] * 50 + ["2,5\tZoë"] * 20 + ["1.000\tx"] * 3
    write("t.csv", rows, head="hours\tname", encoding="cp1252")
    asked = "t.csv", "--survey", hours, "--delimiter", r"\t", "--decimal", ",", "--seed", "1", "--json"
    capsys.readouterr()
    assert main(["replay", *asked]) == 1
    taken, said = capsys.readouterr().err.splitlines(keepends=True)
    assert taken.startswith("hours.toml: auto takes ")
    assert one_line(said) and "must be a CSV file in utf-8" in said and "--encoding cp1252" in said
    assert main(["replay", *asked, "--encoding", "cp1252"]) == 0
    assert "3 of 73 are outside the domain (such as '1.000')" in capsys.readouterr().err
    write("u.csv", ["3", "4"] * 30, head="hours", encoding="utf-16")
    assert main(["replay", "u.csv", "--survey", hours, "--encoding", "utf-16"]) == 0
    for option, value, said in (
        (
            "--encoding",
            "klingon",
            "--encoding must be one of text, such as utf-8, cp1252 or utf-16, got 'klingon'",
        ),
        ("--encoding", "base64", "--encoding must be one of text"),
        ("--decimal", "x", "--decimal must be a point or a comma, got 'x'"),
        ("--delimiter", r"\n", "--delimiter must be one character"),
    ):
        capsys.readouterr()
        assert main(["replay", "t.csv", "--survey", hours, option, value]) == 1
        assert said in capsys.readouterr().err


def test_parquet_has_its_own_decimal_point(capsys) -> None:
    duckdb = pytest.importorskip("duckdb")
    hours = survey("hours", "--number", "0", "24")
    duckdb.execute("COPY (SELECT 1.5 AS hours FROM range(60)) TO 't.parquet' (FORMAT parquet)")
    assert main(["replay", "t.parquet", "--survey", hours, "--decimal", ","]) == 0
    assert "outside" not in capsys.readouterr().err


def test_one_attribute_has_one_column(capsys) -> None:
    way = survey("way", "--labels", "car,bike")
    write("t.csv", ["car,bike"] * 60, head="a,b")
    capsys.readouterr()
    twice = "--column", "way=a", "--column", "way=b"
    assert main(["replay", "t.csv", "--survey", way, *twice]) == 1
    assert "--column must name one column for way, got 'a' and 'b'" in capsys.readouterr().err
    assert main(["replay", "t.csv", "--survey", way, "--column", "way=a", "--column", "way=a"]) == 0


def test_a_table_of_another_system_is_read(capsys) -> None:
    """One system writes an e with an accent as two signs, another as one."""
    survey("way", "--labels", unicodedata.normalize("NFD", "vélo"), "car")
    write("t.csv", [unicodedata.normalize("NFD", "vélo")] * 40 + ["vélo"] * 30, head="way")
    found, err = replayed(capsys, "t.csv", "--survey", "way.toml")
    assert found == {"vélo": 70, "car": 0, "missing": 0} and "outside" not in err


def test_an_error_names_no_file_that_nobody_wrote(capsys) -> None:
    assert main([*NEW.format(id="lb").split(), "--labels", "missing", "b"]) == 1
    said = capsys.readouterr().err
    assert said.startswith('hubbub: what is asked: attribute.labels[0]: must not be "missing"')
    write("t.csv", ["a\u202eb"] * 30 + ["c"] * 30)
    assert main(["evaluate", "--data", "t.csv:c", "--repeats", "1"]) == 1
    assert ".toml" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "encoding",
    ["ascii", "utf-16", *(pytest.param(each, marks=pytest.mark.only_long) for each in ("cp1252", "cp437"))],
)
def test_no_encoding_of_the_output_ends_in_a_traceback(encoding: str) -> None:
    survey("way", "--labels", "語", "café", "--title", "日本語")
    write("t.csv", ["語"] * 40 + ["café"] * 30 + ["ß語"] * 5, head="way")
    for argv in (
        ["replay", "t.csv", "--survey", "way.toml", "--seed", "1"],
        ["replay", "語.csv", "--survey", "way.toml"],
        ["survey", "check", "way.toml"],
        ["evaluate", "--data", "t.csv:way", "--repeats", "1"],
        ["survey", "new", "--id", "x", "--epsilon", "1", "--labels", "語", "b", "--out", "-"],
    ):
        done = subprocess.run(
            [*COMMAND, *argv],
            capture_output=True,
            check=False,
            env=environment() | {"PYTHONIOENCODING": encoding},
        )
        assert b"Traceback" not in done.stderr and done.returncode == ("語.csv" in argv), done.stderr
