"""A table of people: what is read, what is refused, and what is said of values that are none."""

from __future__ import annotations

import gzip
import io
import itertools
from pathlib import Path

import pytest

from hubbub.survey import Attribute
from hubbub_lab.errors import LabError
from hubbub_lab.evaluation import Spelling, quality, read_people, values_of

VISITS = Attribute.integer("visits", 0, 77, kind="evolving")
HOURS = Attribute.number("hours", 0.0, 24.0, kind="evolving")
CUP = Attribute.labels("cup", ["tea", "NA", "coffee"], kind="evolving")
TEXT = "visits,hours,cup\n3,1.5,tea\n99,24.5,NA\n,x,beer\n3.0,nan,beer\n-4,inf,?\n"


def read(tmp_path: Path, text: str, names: list[str], **options):
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    spelling = Spelling(
        **{name: options.pop(name) for name in ("delimiter", "encoding", "decimal") if name in options}
    )
    return read_people(path, names, spelling=spelling, **options)


def rows_of(table, names: list[str]) -> list[tuple[str, ...]]:
    columns = ([table[name].fields[code] for code in table[name].codes] for name in names)
    return list(zip(*columns, strict=True))


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
        "column 'cup': 1 of 5 are missing (?), 2 are outside the domain (such as 'beer') and count as missing"
    )
    clean = values_of(VISITS, read(tmp_path, "visits\n3\n4\n", ["visits"])["visits"])
    assert quality("visits", clean) == ""


def test_clip_moves_numbers_to_the_nearer_end_and_says_how_many(tmp_path: Path) -> None:
    table = read(tmp_path, TEXT, ["visits", "hours"])
    visits, hours = values_of(VISITS, table["visits"], clip=True), values_of(HOURS, table["hours"], clip=True)
    assert list(visits.held) == [3, 77, None, 3, 0]
    assert (visits.clipped, visits.outside, visits.missing) == (2, 0, 1)
    assert [hours.held[i] for i in (0, 1, 4)] == [1.5, 24.0, None]  # inf is no number that was measured
    assert (hours.clipped, hours.outside, set(hours.examples)) == (1, 2, {"x", "inf"})
    assert "2 were moved to the nearer end of the domain" in quality("visits", visits)


@pytest.mark.parametrize(
    "text",
    ["0_7", "1_0", "inf", "-Infinity", "1e999", "\u0663", "\uff13", "0x3", "3,0", "3 0", "+-3", "."],
)
@pytest.mark.parametrize("attribute", [VISITS, HOURS])
def test_what_is_no_number_in_any_table_is_none_here(tmp_path: Path, attribute: Attribute, text: str) -> None:
    table = read(tmp_path, f"n;x\n{text};\n+3;\n3.e0;\n.3e1;\n03;\n", ["n"], delimiter=";")
    for clip in (False, True):
        values = values_of(attribute, table["n"], clip=clip)
        assert values.held.tolist() == [None, 3, 3, 3, 3]
        assert (values.outside, values.examples, values.clipped) == (1, (text,), 0)


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
        options = {"spelling": Spelling(delimiter=";")}
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
        ("a;b\n1;2\n", {}, "columns must include 'a', got a;b (is --delimiter ';' missing?)"),
        ("a\tb\n1\t2\n", {}, "(is --delimiter '\\t' missing?)"),
        ("b;c\n1;2\n", {"delimiter": ";"}, "got b, c (--column ATTRIBUTE=COLUMN takes another)"),
        ("", {}, "columns must include 'a', got none"),
        ("a\n1\n", {"delimiter": "tab"}, "--delimiter must be one character"),
        ("a\n1\n", {"delimiter": '"'}, "--delimiter must be one character, and no quote"),
        ("a\n" + "x" * (2**21 + 1), {}, "line 2 must have at most 2,097,152 characters, got more"),
        ('a\n"x" y\n', {}, "line 2 must be a row of CSV: ',' expected after '\"'"),
        ('a,"b\nc"\n1,2\n', {}, "line 1 must close its quote before line 2"),
    ],
)
def test_a_table_that_would_be_read_wrongly_is_refused(tmp_path: Path, text: str, options, said: str) -> None:
    with pytest.raises(LabError) as refused:
        read(tmp_path, text, ["a"], **options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "data"), [("a.gz", b"no gzip"), ("a.parquet", b"no parquet"), ("a.csv", b"a\n\xff")]
)
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(LabError) as refused:
        read_people(tmp_path / name, ["a"])
    assert name in str(refused.value) and "\n" not in str(refused.value)


def test_a_long_table_says_how_far_it_is(tmp_path: Path) -> None:
    told: list[int] = []
    table = read(tmp_path, "a\n" + "7\n" * 250_000, ["a"], progress=told.append)
    assert told == [100_000, 200_000]
    assert (table["a"].fields, len(table["a"].codes), table["a"].codes.max()) == (("7",), 250_000, 0)


def planted(rows: list[list[str]], first: tuple[int, int], then: tuple[int, int] | None, way: str) -> str:
    """The rows as text, a quote before one field and, in a way, at another."""
    rows = [list(row) for row in rows]
    rows[first[0]][first[1]] = '"' + rows[first[0]][first[1]]
    if then is not None:
        rows[then[0]][then[1]] = way.replace("x", rows[then[0]][then[1]])
    return "".join(",".join(row) + "\n" for row in rows)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_quote_that_nobody_meant_is_refused_wherever_it_closes(tmp_path: Path, columns: int) -> None:
    """One quote in a table, and one, two or none behind it: no row is swallowed, and the line is named."""
    rows = [[f"c{place}" for place in range(columns)]]
    rows += [[f"v{row}" for _ in range(columns)] for row in range(5)]
    tried = 0
    for place in itertools.product(range(1, 5), range(columns)):
        ends = [each for each in itertools.product(range(2, 6), range(columns)) if each[0] > place[0]]
        for then, way in [(None, ""), *itertools.product(ends, ['"x', 'x"', '"', 'x""', '"x"', 'x" '])]:
            with pytest.raises(LabError, match=f"line {place[0] + 1} must"):
                read(tmp_path, planted(rows, place, then, way), ["c0"])
            tried += 1
    assert tried > 60 * columns**2


def test_a_text_of_some_lines_in_quotes_is_one_field(tmp_path: Path) -> None:
    text = 'id,note,way\n1,"tall\n\nand, yes,\nthin",car\n2,"says ""no""",bike\n3,5\' 10",car\n'
    with pytest.raises(LabError, match="line 2 must close its quote before line 4"):
        read(tmp_path, text, ["id", "way"])  # two commas, as in a row
    table = read(tmp_path, text.replace("and, yes,", "and yes,"), ["id", "note", "way"])
    assert rows_of(table, ["id", "note", "way"]) == [
        ("1", "tall\n\nand yes,\nthin", "car"), ("2", 'says "no"', "bike"), ("3", "5' 10\"", "car")
    ]  # fmt: skip


def test_a_row_may_be_as_long_as_the_bound_whatever_stood_before(tmp_path: Path) -> None:
    text = "a,b\n" + ("x" * (2**21 - 3) + ",1\n") * 3
    assert read(tmp_path, text, ["b"])["b"].codes.tolist() == [0, 0, 0]


def test_a_long_field_is_no_value_and_no_hindrance(tmp_path: Path) -> None:
    table = read(tmp_path, f"note,cup\n{'x' * 200_000},tea\ny,{'1' * 200_000}\n", ["note", "cup"])
    assert [len(text) for text in table["note"].fields] == [1_003, 1]
    cup = values_of(CUP, table["cup"])
    assert ([CUP.index_of(value) for value in cup.held], cup.outside) == ([0, 3], 1)
    assert f"(such as '{'1' * 37}...')" in quality("cup", cup)
    assert values_of(
        Attribute.integer("n", 0, 9, kind="evolving"), table["cup"], clip=True
    ).held.tolist() == [None, None]


def test_a_parquet_file_is_the_one_that_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are patterns, partitions, homes or addresses elsewhere, side by side in one folder."""
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    odd = "p[1] p1 p* p? px ~home a=b k=v/x=1 a'b a\"b p\\1 [ {a,b} a,b s3: [!a] \\* ** x\nq %20 file: $HOME"
    names = [*odd.split(" "), "v[1", "p[1]/u", "a b", " ", "-"]
    for number, name in enumerate(names):
        path = Path(f"{name}.parquet")
        path.parent.mkdir(exist_ok=True)
        duckdb.execute(f"COPY (SELECT {number} AS way, 'no' AS k) TO 'made' (FORMAT parquet)")
        Path("made").rename(path)
    for number, name in enumerate(names):
        table = read_people(Path(f"{name}.parquet"), ["way"])
        assert table["way"].fields == (str(number),), name
    with pytest.raises(LabError, match=r"q\[1\]\.parquet: cannot be read: No such file"):
        read_people(Path("q[1].parquet"), ["way"])


def test_the_columns_of_a_parquet_file_are_its_own(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "way=bike"
    folder.mkdir()
    query = 'SELECT NULL::INTEGER AS "a""b", [1, 2] AS list, {\'x\': 1} AS pair, 1.50 AS n'
    query += " UNION ALL SELECT 7, [], NULL, 2"
    duckdb.execute(f"COPY ({query}) TO '{folder}/p.parquet' (FORMAT parquet)")
    assert rows_of(read_people(folder / "p.parquet", ['a"b', "n"]), ['a"b', "n"]) == [
        ("", "1.50"),
        ("7", "2.00"),
    ]
    for name, said in [("way", "columns must include 'way', got a\"b, list, pair, n"),
                       ("list", "column 'list' must hold one value a row, got INTEGER[]"),
                       ("pair", "column 'pair' must hold one value a row, got STRUCT(")]:  # fmt: skip
        with pytest.raises(LabError) as refused:
            read_people(folder / "p.parquet", [name])
        assert said in str(refused.value) and "/dev/fd" not in str(refused.value)
