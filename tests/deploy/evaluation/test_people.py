"""A table of people: what is read, what is refused, and what is said of values that are none."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from hubbub.survey import Attribute
from hubbub_deploy.errors import DeployError
from hubbub_deploy.evaluation import quality, read_people, values_of

VISITS = Attribute.integer("visits", 0, 77)
HOURS = Attribute.number("hours", 0.0, 24.0)
CUP = Attribute.labels("cup", ["tea", "NA", "coffee"])
TEXT = "visits,hours,cup\n3,1.5,tea\n99,24.5,NA\n,x,beer\n3.0,nan,beer\n-4,inf,?\n"


def read(tmp_path: Path, text: str, names: list[str], **options):
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    return read_people(path, names, **options)


def test_every_field_is_a_value_missing_or_outside_and_each_is_counted(tmp_path: Path) -> None:
    table = read(tmp_path, TEXT, ["visits", "hours", "cup"])
    visits, hours, cup = (
        values_of(each, table[name]) for each, name in ((VISITS, "visits"), (HOURS, "hours"), (CUP, "cup"))
    )
    assert [VISITS.index_of(value) for value in visits.held] == [3, 78, 78, 3, 78]
    assert (visits.missing, visits.outside, visits.examples) == (1, 2, ("99", "-4"))
    assert (hours.missing, hours.outside, set(hours.examples)) == (1, 3, {"24.5", "x", "inf"})
    assert [CUP.index_of(value) for value in cup.held] == [0, 1, 3, 3, 3]  # the label NA is no gap
    assert (cup.missing, cup.outside, cup.examples) == (1, 2, ("beer",))
    assert quality("cup", cup) == (
        "column 'cup': 1 of 5 are missing, 2 are outside the domain (such as 'beer') and count as missing"
    )
    clean = values_of(VISITS, read(tmp_path, "visits\n3\n4\n", ["visits"])["visits"])
    assert quality("visits", clean) == ""


def test_clip_moves_numbers_to_the_nearer_end_and_says_how_many(tmp_path: Path) -> None:
    table = read(tmp_path, TEXT, ["visits", "hours"])
    visits, hours = values_of(VISITS, table["visits"], clip=True), values_of(HOURS, table["hours"], clip=True)
    assert list(visits.held) == [3, 77, None, 3, 0]
    assert (visits.clipped, visits.outside, visits.missing) == (2, 0, 1)
    assert [hours.held[i] for i in (0, 1, 4)] == [1.5, 24.0, 24.0]
    assert "2 were moved to the nearer end of the domain" in quality("visits", visits)


@pytest.mark.parametrize("form", ["csv.gz", "parquet", "semicolons", "-"])
def test_another_form_of_the_same_table_reads_the_same(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, plain = ["cup", "visits"], read(tmp_path, TEXT, ["cup", "visits"])
    path, options = tmp_path / f"other.{form}", {}
    if form == "csv.gz":
        path.write_bytes(gzip.compress(TEXT.encode()))
    elif form == "parquet":
        duckdb = pytest.importorskip("duckdb")
        source = str(tmp_path / "people.csv").replace("'", "''")
        duckdb.execute(f"COPY (FROM read_csv('{source}', all_varchar = true)) TO '{path}' (FORMAT parquet)")
    elif form == "semicolons":
        path.write_text("\ufeff" + TEXT.replace(",", ";"), encoding="utf-8")
        options = {"delimiter": ";"}
    else:
        path = Path("-")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    found = read_people(path, names, **options)
    for name in names:
        fields = [[column.fields[code] for code in column.codes] for column in (plain[name], found[name])]
        assert fields[0] == fields[1]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a,b,a\n1,2,3\n", {}, "column 'a' must be there once, got 2 of it"),
        ("a,b\n1,2\n3\n", {}, "line 3 must have 2 fields, got 1"),
        ("a,b\n1,2,3\n", {}, "line 2 must have 2 fields, got 3"),
        ("a;b\n1;2\n", {}, "columns must include 'a', got a;b"),
        ("", {}, "columns must include 'a', got none"),
        ("a\n1\n", {"delimiter": "tab"}, "--delimiter must be one character"),
        ("a\n1\n", {"delimiter": '"'}, "--delimiter must be one character, and no quote"),
        ("a\n" + "x" * 200_000, {}, "must be a CSV file in UTF-8: field larger than field limit"),
    ],
)
def test_a_table_that_would_be_read_wrongly_is_refused(tmp_path: Path, text: str, options, said: str) -> None:
    with pytest.raises(DeployError) as refused:
        read(tmp_path, text, ["a"], **options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "data"), [("a.gz", b"no gzip"), ("a.parquet", b"no parquet"), ("a.csv", b"a\n\xff")]
)
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DeployError) as refused:
        read_people(tmp_path / name, ["a"])
    assert name in str(refused.value) and "\n" not in str(refused.value)


def test_a_long_table_says_how_far_it_is(tmp_path: Path) -> None:
    told: list[int] = []
    table = read(tmp_path, "a\n" + "7\n" * 250_000, ["a"], progress=told.append)
    assert told == [100_000, 200_000]
    assert (table["a"].fields, len(table["a"].codes), table["a"].codes.max()) == (("7",), 250_000, 0)
