"""The tables of releases: every cell of every view, typed, and no formula."""

from __future__ import annotations

import csv
import io
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shown_view import round_of, row

from hubbub_aggregator.export import COLUMNS, csv_pieces, tidy_rows, write_parquet
from hubbub_aggregator.export.csv_table import _cell

NAMES = [column.name for column in COLUMNS]


def released(number: int, **more: Any) -> dict[str, Any]:
    found = round_of(number, sealed=True, mean=1.5, seed=number)
    found["survey"] = {"id": "visits", "version": 2, "digest": "0f" * 16, "title": "Visits"}
    found["consistent"] = {"values": [0.5, 0.3, 0.2], "categories": [0.5, 0.5]}
    found["poison_margin"] = {"values": [7.0, None, 9.0], "categories": [1.0, 2.0]}
    found["enrolment"] = {"bias": {"values": [0.01, 0.02, 0.03], "categories": [0.04, 0.05]}}
    return found | more


def read_csv(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def test_every_cell_of_every_view_has_one_row_with_start_and_end() -> None:
    document = released(3)
    rows = list(tidy_rows([document]))
    assert all(list(found) == NAMES for found in rows)
    assert [(found["view"], found["kind"], found["label"]) for found in rows] == [
        ("raw", "value", "0"),
        ("raw", "value", "1"),
        ("raw", "value", "2"),
        ("raw", "category", "none"),
        ("raw", "category", "some"),
        ("raw", "mean", None),
        ("consistent", "value", "0"),
        ("consistent", "value", "1"),
        ("consistent", "value", "2"),
        ("consistent", "category", "none"),
        ("consistent", "category", "some"),
        ("empirical_bayes", "value", "0"),
        ("empirical_bayes", "value", "1"),
        ("empirical_bayes", "value", "2"),
    ]
    assert {(found["start"], found["end"]) for found in rows} == {
        ("2026-01-04T00:00:00Z", "2026-01-05T00:00:00Z")
    }
    assert {found["round"] for found in rows} == {4}
    assert [found["standard_error"] for found in rows[:3]] == [cell["error"] for cell in document["values"]]
    assert [found["estimate"] for found in rows[6:9]] == [0.5, 0.3, 0.2]
    # A view without intervals says none: they would be those of other numbers.
    assert {(found["standard_error"], found["low"], found["level"]) for found in rows[6:]} == {
        (None, None, None)
    }
    assert [found["poison_margin"] for found in rows[:5]] == [7.0, None, 9.0, 1.0, 2.0]
    assert [found["bias_bound"] for found in rows[:6]] == [0.01, 0.02, 0.03, 0.04, 0.05, None]


def test_simultaneous_intervals_and_the_curve_have_rows_of_their_own() -> None:
    document = released(0)
    document["values"][0] |= {"simultaneous_low": 0.1, "simultaneous_high": 0.9}
    document["cumulative"] = {
        "level": 0.95,
        "points": [0.0, 1.5],
        "shares": [0.4, 1.0],
        "errors": [0.1, 0.2],
        "low": [0.2, 0.9],
        "high": [0.6, 1.0],
        "crowd_errors": [0.3, 0.4],
        "crowd_low": [0.1, 0.8],
        "crowd_high": [0.7, 1.0],
    }
    quartile = {"low": 0.0, "high": 1.5, "crowd_low": -1.0, "crowd_high": 2.0}
    document["quantiles"] = [{"share": 0.5, "estimate": 1.5, **quartile}]
    rows = list(tidy_rows([document], views=["raw"]))
    wanted = ("simultaneous_low", "simultaneous_high")
    assert [rows[0][name] for name in wanted] == [0.1, 0.9]
    assert [rows[1][name] for name in wanted] == [document["values"][1][name] for name in wanted]
    names = ("kind", "label", "estimate", "standard_error", "low", "high", *wanted)
    assert [tuple(found[name] for name in names) for found in rows[6:]] == [
        ("cumulative", "0", 0.4, 0.1, None, None, 0.2, 0.6),
        ("cumulative", "1.5", 1.0, 0.2, None, None, 0.9, 1.0),
        ("quantile", "0.5", 1.5, None, None, None, 0.0, 1.5),
    ]
    names = ("crowd_error", "crowd_simultaneous_low", "crowd_simultaneous_high")
    due = [(0.3, 0.1, 0.7), (0.4, 0.8, 1.0), (None, -1.0, 2.0)]
    assert [tuple(found[name] for name in names) for found in rows[6:]] == due


def test_a_suppressed_round_has_no_rows_even_if_it_holds_estimates() -> None:
    assert list(tidy_rows([released(0, suppressed=True)])) == []


def test_views_are_given_as_asked() -> None:
    assert {found["view"] for found in tidy_rows([released(0)], views=["consistent"])} == {"consistent"}


def test_csv_and_parquet_hold_the_same_numbers_to_the_last_bit(tmp_path: Path) -> None:
    documents = [released(number) for number in range(4)]
    documents[0]["values"][0] |= {"label": "=1+1", "estimate": -0.1 - 0.2, "category": None}
    documents[1]["values"][1]["label"] = 'two\r\nlines, "quoted"'
    rows = list(tidy_rows(documents))
    assert write_parquet(rows, tmp_path / "out.parquet") == len(rows) == 56
    with duckdb.connect() as database:
        found = database.execute("FROM read_parquet(?)", [str(tmp_path / "out.parquet")])
        types = {name: str(kind) for name, kind, *_ in found.description}
        stored = [dict(zip(types, values, strict=True)) for values in found.fetchall()]
    assert types["estimate"] == "DOUBLE"
    assert types["round"] == "INTEGER"
    assert types["sealed"] == "BOOLEAN"
    assert types["start"].startswith("TIMESTAMP")
    for one, other in zip(rows, stored, strict=True):
        assert other["start"].astimezone(UTC) == datetime.fromisoformat(one["start"])
        for name in set(NAMES) - {"start", "end"}:
            assert other[name] == one[name], name
    for one, line in zip(rows, read_csv(b"".join(csv_pieces(rows))), strict=True):
        for name in ("estimate", "standard_error", "low", "high", "epsilon"):
            assert (float(line[name]) if line[name] else None) == one[name]
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_a_file_that_is_there_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_bytes(b"the old one")

    def breaks() -> Any:
        yield from tidy_rows([released(0)])
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        write_parquet(breaks(), path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [
        ("out.parquet", b"the old one")
    ]


@pytest.mark.parametrize(
    ("label", "cell"), [("=1+1", "'=1+1"), ("@x", "'@x"), ("-1", "-1"), ("-a", "'-a"), ("\tx", "'\tx")]
)
def test_labels_never_run_as_formulas_and_numbers_stay_numbers(label: str, cell: str) -> None:
    document = released(0, values=[row(label, -0.1, 0.01, category=None)], categories=[], mean=None)
    (line,) = read_csv(b"".join(csv_pieces(tidy_rows([document], views=["raw"]))))
    assert (line["label"], line["estimate"]) == (cell, "-0.1")


def test_no_sign_that_folds_to_one_of_a_formula_begins_a_cell() -> None:
    """Every character of Unicode, by the compatibility form that spreadsheets fold a typed sign to."""
    begins = {"=", "+", "-", "@", "\t", "\r", "\u2212"}
    for code in [*range(0xD800), *range(0xE000, 0x110000)]:
        folded = unicodedata.normalize("NFKC", chr(code)).lstrip()[:1]
        if folded in begins or chr(code) in begins:
            assert _cell(f"{chr(code)}1+cmd") == f"'{chr(code)}1+cmd", f"U+{code:04X}"
    assert [_cell(text) for text in ("a=1", "\u00e4", "1-2", "", "-1.5e3", "+2")] == [
        *("a=1", "\u00e4", "1-2", "", "-1.5e3", "+2")
    ]


def test_a_long_table_comes_in_pieces() -> None:
    rows = list(tidy_rows([released(number % 28) for number in range(300)]))
    pieces = list(csv_pieces(rows))
    assert len(pieces) > 5
    assert len(read_csv(b"".join(pieces))) == len(rows)
