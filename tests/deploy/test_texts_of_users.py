"""A text of a user is read as it is at every door, whatever it means in the language of a tool behind it.

Doors are rows, languages are columns: each text goes through each door, and must come out letter by letter.
"""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest

from hubbub import Survey
from hubbub_aggregator.export import COLUMNS, csv_pieces, write_parquet
from hubbub_deploy.cli import main
from hubbub_lab.evaluation import read_people
from hubbub_results import Comparison, Table

LANGUAGES = {
    "a pattern": "p[1]",
    "a star": "p*",
    "one letter": "p?",
    "braces": "{a,p}",
    "a partition": "way=bike",
    "a home": "~root",
    "a variable": "$HOME",
    "markup": "o[bold]x",
    "closing markup": "o[]x[/]",
    "a colour": "[red]",
    "emoji by name": ":car:",
    "SQL": 'x\' OR "y"--;',
    "a column in quotes": '"way"',
    "a formula": "$x$",
    "a broken formula": r"$\x$ $",
    "hidden in a legend": "_x",
    "HTML": "<b>&amp;'\"</b>",
    "printf": "%s %(x)d %%",
    "a format": "{0} {x!r}",
    "a URL": "s3://x?y=%41#z",
    "a port": "x:[80",
    "a spreadsheet": "=1+1",
    "a number": "0_7",
    "an escape": r"a\nb\u0041",
    "TOML": "'''\" # x",
    "JSON": '{"a": null}',
    "a comment": "# x",
    "an option": "-x",
    "words": "null true",
    "a regular expression": r"(a|b)+\d$",
    "other letters": "ü ﬀ 語",
}
SURVEY = """\
id = "way"
version = 1
title = {title}
epsilon = 4.0
planned_devices = 100
minimum_cohort = 30

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 1
lateness = "1h"
skew = "5m"

[attribute]
id = "way"
kind = "evolving"
type = "label"
labels = [{label}, "other"]

[mechanism]
name = "grr"

[[category]]
name = {category}
values = [{label}]

[[category]]
name = "the rest"
values = ["other"]
"""
PEOPLE = "way\n" + "car\n" * 40 + "other\n" * 20


def survey(*, title: str = "way", label: str = "car", category: str = "cars", path: str = "way.toml") -> str:
    made = Path(path)
    made.parent.mkdir(parents=True, exist_ok=True)
    texts = {"title": title, "label": label, "category": category}
    made.write_text(
        SURVEY.format(**{name: json.dumps(text) for name, text in texts.items()}), encoding="utf-8"
    )
    return str(Path.cwd() / path)


def people(path: str, text: str = PEOPLE) -> str:
    made = Path(path)
    made.parent.mkdir(parents=True, exist_ok=True)
    if made.name.endswith(".gz"):
        made.write_bytes(gzip.compress(text.encode()))
    else:
        made.write_text(text, encoding="utf-8")
    return str(Path.cwd() / path)


def parquet(path: str, column: str = "way", rows: int = 60) -> str:
    duckdb = pytest.importorskip("duckdb")
    quoted = '"' + column.replace('"', '""') + '"'
    made = Path(path)
    made.parent.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"COPY (SELECT 'car' AS {quoted} FROM range({rows})) TO 'made' (FORMAT parquet)")  # noqa: S608 - quoted
    Path("made").rename(made)
    return str(Path.cwd() / path)


Said = Callable[..., tuple[str, str]]


def replayed(said: Said, *argv: str) -> dict[str, object]:
    return json.loads(said("replay", *argv, "--seed", "1", "--json")[0])[0]


def csv_path(text: str, said: Said) -> None:
    people("p1.csv", "way\ncar\n")
    assert replayed(said, people(f"{text}.csv"), "--survey", survey())["release"]["devices"] == 60


def gz_path(text: str, said: Said) -> None:
    people("p1/p.csv.gz", "way\ncar\n")
    assert replayed(said, people(f"{text}/p.csv.gz"), "--survey", survey())["release"]["devices"] == 60


def parquet_path(text: str, said: Said) -> None:
    parquet("p1.parquet", rows=1), parquet("p.parquet", rows=1)
    path = parquet(f"{text}.parquet")
    assert replayed(said, path, "--survey", survey())["release"]["devices"] == 60
    assert len(read_people(Path(f"{text}.parquet"), ["way"])["way"].codes) == 60


def survey_path(text: str, said: Said) -> None:
    path = survey(path=f"{text}.toml")
    assert replayed(said, people("way.csv"), "--survey", path)["release"]["devices"] == 60


def missing_path(text: str, said: Said) -> None:
    path = str(Path.cwd() / f"{text}.csv")
    _, err = said("replay", path, "--survey", survey(), code=1)
    assert err == f"hubbub: {path}: cannot be read: No such file or directory\n"


def out_folder(text: str, said: Said) -> None:
    folder = Path.cwd() / "made" / text
    _, err = said("replay", people("way.csv"), "--survey", survey(), "--out", str(folder), "--seed", "1")
    assert f"wrote {folder / 'way-v1'}.json and .png" in err.splitlines()
    assert {each.name for each in folder.iterdir()} == {
        "summary.json",
        *(f"way-v1{ending}" for ending in (".json", ".png", ".counts", ".survey")),
    }


def csv_column(text: str, said: Said) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["id", text], *([str(i), "car"] for i in range(60))])
    found = replayed(said, people("way.csv", out.getvalue()), "--survey", survey(), "--column", f"way={text}")
    assert found["release"]["devices"] == 60
    _, err = said("replay", people("x.csv", out.getvalue()), "--survey", survey(), code=1)
    assert f"columns must include 'way', got id, {text} (" in err


def parquet_column(text: str, said: Said) -> None:
    found = replayed(said, parquet("way.parquet", text), "--survey", survey(), "--column", f"way={text}")
    assert found["release"]["devices"] == 60


def label(text: str, said: Said) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["id", "way"], *([str(i), text] for i in range(60))])
    argv = people("way.csv", out.getvalue()), "--survey", survey(label=text, title=text)
    truth = {row["label"]: row["truth"] for row in replayed(said, *argv)["rows"] if row["kind"] == "value"}
    assert truth == {text: 1.0, "other": 0.0, "missing": 0.0}
    shown, _ = said("replay", *argv, "--seed", "1", "--out", "drawn")
    assert any(line.split("│")[1].strip() == text for line in shown.splitlines() if line.count("│") > 2)


def outside(text: str, said: Said) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["id", "way"], *([str(i), text] for i in range(60))])
    _, err = said("replay", people("way.csv", out.getvalue()), "--survey", survey(), "--seed", "1")
    assert f"column 'way': 60 of 60 are outside the domain (such as '{text}') and count as missing" in err


def title(text: str, said: Said) -> None:
    shown, err = said("replay", people("way.csv"), "--survey", survey(title=text), "--seed", "1")
    assert shown.startswith(f"{text}   epsilon 4, 60 devices") and f"{text}: 60 devices in " in err


def category(text: str, said: Said) -> None:
    found = replayed(said, people("way.csv"), "--survey", survey(category=text))["rows"]
    assert [row["label"] for row in found if row["kind"] == "category"] == [text, "the rest", "missing"]


def new_survey(text: str, said: Said) -> None:
    title = f"x{text}"  # what begins with a dash is an option
    said(
        "survey",
        "new",
        "--id",
        "a",
        "--title",
        title,
        "--epsilon",
        "1",
        "--labels",
        title,
        "b",
        "--out",
        "a.toml",
    )
    made = Survey.load("a.toml")
    assert (made.title, made.attribute.domain.labels) == (title, (title, "b"))


def evaluated(text: str, said: Said) -> None:
    name = text.replace("/", "-")
    path = people(f"{name}.csv", PEOPLE.replace("way", "x", 1))
    _, err = said(
        "evaluate", "--data", f"{path}:x", "--repeats", "1", "--json", "x.json", "--out", f"./{name}.html"
    )
    page = Path(f"{name}.html").read_text(encoding="utf-8")
    assert f"1 of 1: {name}.csv:x, 60 devices" in err and html.escape(f"{name}.csv:x, 60 devices") in page
    shown, _ = said("evaluate", "--data", f"{path}:x", "--repeats", "1", "--seed", "1")
    assert shown.startswith(f"{name}.csv:x, 60 devices")


def exported(text: str, said: Said) -> None:
    duckdb = pytest.importorskip("duckdb")
    row = {column.name: None for column in COLUMNS} | {"label": text, "round": 3}
    path = Path(text) / f"{text.replace('/', '-')}.parquet"
    path.parent.mkdir(parents=True)
    assert write_parquet([row], path) == 1
    path.rename("plain.parquet")
    assert duckdb.sql("SELECT label, round FROM 'plain.parquet'").fetchall() == [(text, 3)]
    (cell,) = csv.DictReader(io.StringIO(b"".join(csv_pieces([row])).decode()))
    assert cell["label"] == ("'" + text if text[0] in "=+-@" else text)


def picture(text: str, said: Said) -> None:
    rows = [
        {"view": "raw", "kind": "value", "label": label, "round": 0, "estimate": 0.5, "low": 0.4, "high": 0.6}
        for label in (text, "other")
    ]
    changes = [{**row, "change": 0.1} for row in rows]
    for axes in (Table(rows, text).plot(), Comparison(changes, {}, text).plot()):
        axes.figure.canvas.draw()
        assert axes.get_title() == text and axes.get_xticklabels()[0].get_text() == text
        mpl.pyplot.close(axes.figure)


# fmt: off
DOORS = (csv_path, gz_path, parquet_path, survey_path, missing_path, out_folder, csv_column,
         parquet_column, label, outside, title, category, new_survey, evaluated, exported, picture)
# fmt: on


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    ("language", "door"),
    [
        # A third of the pairs always run: each language at five doors, each door with ten languages.
        pytest.param(
            language,
            door,
            id=f"{language}-{door.__name__}",
            marks=[] if (i + j) % 3 == 0 else pytest.mark.only_long,
        )
        for i, language in enumerate(LANGUAGES)
        for j, door in enumerate(DOORS)
    ],
)
def test_a_text_is_what_it_says(
    door: Callable[[str, Said], None], language: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    mpl.use("Agg")

    def said(*argv: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(argv) == code, capsys.readouterr().err
        found = capsys.readouterr()
        return found.out, found.err

    door(LANGUAGES[language], said)
