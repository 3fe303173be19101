"""Releases as tidy rows: one row per round, view and cell, the same columns in CSV, Parquet and notebooks.

The estimates of a release are its *raw* view: unbiased, so they may be negative, and only they have errors
and intervals, and ranks that follow from these. The *consistent* view is a distribution beside them, without
intervals; so is the *empirical Bayes* view of the values, nearer to the truth where most values are rare. A
round below its minimum cohort has no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from hubbub_aggregator.release import empirical_bayes_values, round_ranks

Document: TypeAlias = Mapping[str, Any]
Row: TypeAlias = dict[str, Any]
View: TypeAlias = Literal["raw", "consistent", "empirical_bayes"]

VIEWS: Final[tuple[View, ...]] = ("raw", "consistent", "empirical_bayes")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the tidy table.

    Attributes:
        name: Its name, everywhere.
        sql: Its type in a database.
        meaning: What it holds, a phrase.
    """

    name: str
    sql: str
    meaning: str


_EVERYBODY: Final = "of everybody who could have been asked"
_BAND: Final = tuple(f"the {end} end of its band with all of its kind" for end in ("lower", "upper"))
COLUMNS: Final = (
    TableColumn("survey", "VARCHAR", "the survey's id"),
    TableColumn("version", "INTEGER", "the survey's version"),
    TableColumn("digest", "VARCHAR", "the survey's digest, 32 hexadecimal digits"),
    TableColumn("round", "INTEGER", "the round's number, from 1"),
    TableColumn("start", "TIMESTAMPTZ", "when the round begins, UTC"),
    TableColumn("end", "TIMESTAMPTZ", "when the round ends, UTC"),
    TableColumn("sealed", "BOOLEAN", "true for a release, which is final"),
    TableColumn("devices", "BIGINT", "reports behind the estimates"),
    TableColumn("kind", "VARCHAR", "value, category, mean, cumulative or quantile"),
    TableColumn("label", "VARCHAR", "the value's or category's name; of a curve the point or the share"),
    TableColumn("category", "VARCHAR", "the category of a value; in a tree of labels, of a category"),
    TableColumn("view", "VARCHAR", "raw, consistent or empirical_bayes"),
    TableColumn("estimate", "DOUBLE", "a fraction of 1; a mean in the attribute's unit"),
    TableColumn("standard_error", "DOUBLE", "the standard error of a raw estimate"),
    TableColumn("low", "DOUBLE", "the lower end of a raw estimate's interval"),
    TableColumn("high", "DOUBLE", "the upper end of a raw estimate's interval"),
    TableColumn("level", "DOUBLE", "the confidence of the interval"),
    TableColumn("bias_bound", "DOUBLE", "the most that those who are absent can make of it"),
    TableColumn("poison_margin", "DOUBLE", "forged reports that would move it by its margin of error"),
    TableColumn("epsilon", "DOUBLE", "the certified epsilon of one report"),
    TableColumn("simultaneous_low", "DOUBLE", _BAND[0]),
    TableColumn("simultaneous_high", "DOUBLE", _BAND[1]),
    TableColumn("best_rank", "INTEGER", "the best rank that its band leaves it; 1 is the largest share"),
    TableColumn("worst_rank", "INTEGER", "the worst rank that its band leaves it"),
    TableColumn("crowd_error", "DOUBLE", f"its standard error, {_EVERYBODY}"),
    TableColumn("crowd_low", "DOUBLE", f"the lower end of its interval, {_EVERYBODY}"),
    TableColumn("crowd_high", "DOUBLE", f"the upper end of its interval, {_EVERYBODY}"),
    TableColumn("crowd_simultaneous_low", "DOUBLE", f"{_BAND[0]}, {_EVERYBODY}"),
    TableColumn("crowd_simultaneous_high", "DOUBLE", f"{_BAND[1]}, {_EVERYBODY}"),
    TableColumn("always_low", "DOUBLE", "while the round is open, a lower end that holds at every look"),
    TableColumn("always_high", "DOUBLE", "while the round is open, an upper end that holds at every look"),
    TableColumn("always_simultaneous_low", "DOUBLE", "the same, with all of its kind at once"),
    TableColumn("always_simultaneous_high", "DOUBLE", "the same, with all of its kind at once"),
    TableColumn("tree_level", "INTEGER", "the level of a tree of labels that it is of, 1 the coarsest"),
)


CROWD: Final = tuple(column.name for column in COLUMNS if column.name.startswith("crowd_"))
ALWAYS: Final = tuple(column.name for column in COLUMNS if column.name.startswith("always_"))
"""Columns that have the names of a cell's keys, and are empty where it has none."""


_ENDS: Final = {f"{of}simultaneous_{end}": f"{of}{end}" for of in ("", "crowd_") for end in ("low", "high")}
"""The columns of a curve's bands, and their keys."""


def tidy_rows(documents: Iterable[Document], *, views: Sequence[str] = VIEWS) -> Iterator[Row]:
    """Yield the rows of rounds, each with every column of COLUMNS.

    Args:
        documents: Rounds in the shape of `hubbub_aggregator.web.view`.
        views: The views to give, in this order.
    """
    for document in documents:
        facts = _facts(document)
        for view in views:
            for cell in _VIEWS[view](document):
                yield facts | cell


def _facts(document: Document) -> Row:
    survey = document.get("survey", {})
    facts: Row = dict.fromkeys(column.name for column in COLUMNS)
    facts |= {
        "survey": survey.get("id"),
        "version": survey.get("version"),
        "digest": survey.get("digest"),
        "epsilon": (document.get("epsilon") or {}).get("certified"),
    }
    facts |= {key: document.get(key) for key in ("round", "start", "end", "devices")}
    facts["sealed"] = bool(document.get("sealed"))
    return facts


def _raw(document: Document) -> Iterator[Row]:
    if document.get("suppressed"):
        return
    bias = (document.get("enrolment") or {}).get("bias") or {}
    margin = document.get("poison_margin") or {}
    for kind, key in (("value", "values"), ("category", "categories")):
        bounds, margins = bias.get(key) or (), margin.get(key) or ()
        ranked = round_ranks(document, key)
        for place, cell in enumerate(document.get(key) or ()):
            yield {
                **_estimate(kind, cell, document),
                "label": cell.get("label"),
                "category": cell.get("category"),
                "bias_bound": bounds[place] if place < len(bounds) else None,
                "poison_margin": margins[place] if place < len(margins) else None,
                **dict(zip(("best_rank", "worst_rank"), ranked[place] or (), strict=False)),
            }
    if document.get("mean"):
        yield _estimate("mean", document["mean"], document)
    yield from _curve(document)


def _estimate(kind: str, cell: Document, document: Document) -> Row:
    return {
        "kind": kind,
        "view": "raw",
        "estimate": cell.get("estimate"),
        "standard_error": cell.get("error"),
        "low": cell.get("low"),
        "high": cell.get("high"),
        "simultaneous_low": cell.get("simultaneous_low"),
        "simultaneous_high": cell.get("simultaneous_high"),
        "level": document.get("level"),
        **{name: cell.get(name) for name in (*CROWD, *ALWAYS, "tree_level")},
    }


def _curve(document: Document) -> Iterator[Row]:
    """Yield the cumulative shares and quartiles of a release that has them, with simultaneous bands."""
    found = document.get("cumulative") or {}
    keys = {"estimate": "shares", "error": "errors", "crowd_error": "crowd_errors"} | _ENDS
    for i, point in enumerate(found.get("points") or ()):
        cell = {name: found[key][i] for name, key in keys.items()}
        yield _estimate("cumulative", cell, document) | {"label": f"{point:g}"}
    for quantile in document.get("quantiles") or ():
        cell = {"estimate": quantile["estimate"]} | {name: quantile[key] for name, key in _ENDS.items()}
        yield _estimate("quantile", cell, document) | {"label": f"{quantile['share']:g}"}


def _consistent(document: Document) -> Iterator[Row]:
    if document.get("suppressed"):
        return
    consistent = document.get("consistent") or {}
    for kind, key in (("value", "values"), ("category", "categories")):
        for cell, estimate in zip(document.get(key) or (), consistent.get(key) or (), strict=False):
            yield {
                "kind": kind,
                "view": "consistent",
                "label": cell.get("label"),
                "category": cell.get("category"),
                "tree_level": cell.get("tree_level"),
                "estimate": estimate,
            }


def _empirical_bayes(document: Document) -> Iterator[Row]:
    shares = empirical_bayes_values(document) or ()
    for cell, estimate in zip(document.get("values") or (), shares, strict=False):
        yield {
            "kind": "value",
            "view": "empirical_bayes",
            "label": cell.get("label"),
            "category": cell.get("category"),
            "tree_level": cell.get("tree_level"),
            "estimate": estimate,
        }


_VIEWS: Final[Mapping[str, Callable[[Document], Iterator[Row]]]] = {
    "raw": _raw,
    "consistent": _consistent,
    "empirical_bayes": _empirical_bayes,
}
