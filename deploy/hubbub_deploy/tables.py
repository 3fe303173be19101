"""What an evaluation prints: the release beside the truth, as tables for people or JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from hubbub import Survey
from hubbub_deploy.scoreboard import Row, Truth, rows_of

Rows = Literal["most frequent", "all"]
# As many value rows as fit a screen beside the categories.
FREQUENT = 12


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One release and what the evaluation knows about it.

    Attributes:
        survey: The survey.
        release: The release's JSON document.
        truth: The true frequencies.
    """

    survey: Survey
    release: dict[str, Any]
    truth: Truth

    @property
    def rows(self) -> list[Row]:
        """Every released quantity with its truth: categories, values, mean; none if suppressed."""
        return [] if self.release["suppressed"] else rows_of(self.release, self.truth)

    def summary(self) -> dict[str, Any]:
        """Hits, interval count and root-mean-square errors, per kind of quantity."""
        found: dict[str, Any] = {}
        for kind in ("category", "value", "mean"):
            rows = [row for row in self.rows if row.kind == kind]
            if rows:
                squares = [(row.estimate - row.truth) ** 2 for row in rows]
                found[kind] = {
                    "intervals": len(rows),
                    "hits": sum(row.hit for row in rows),
                    "rms_error": math.sqrt(sum(squares) / len(rows)),
                    "rms_standard_error": math.sqrt(sum(row.error**2 for row in rows) / len(rows)),
                }
        return found

    def as_json(self) -> dict[str, Any]:
        """Survey, release, rows with truth, and the summary, as JSON types."""
        return {
            "survey": self.survey.id,
            "release": self.release,
            "rows": [asdict(row) | {"hit": row.hit} for row in self.rows],
            "summary": self.summary(),
        }


def show(evaluations: Sequence[Evaluation], *, rows: Rows, console: Console) -> None:
    """Prints one table per release, then how many intervals hold the truth."""
    for evaluation in evaluations:
        console.print(_table(evaluation, rows))
    hits = sum(row.hit for evaluation in evaluations for row in evaluation.rows)
    total = sum(len(evaluation.rows) for evaluation in evaluations)
    if total:
        console.print(
            f"{hits} of {total} intervals hold the truth ({hits / total:.1%}; 95 % are meant to).",
            highlight=False,
        )


def print_json(document: object) -> None:
    """Prints one JSON document on stdout."""
    print(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _table(evaluation: Evaluation, rows: Rows) -> Table:
    release, survey = evaluation.release, evaluation.survey
    table = Table(
        title=f"{survey.title}   [dim]epsilon {survey.epsilon:g}, {release['devices']:,} devices[/dim]",
        title_justify="left",
    )
    table.add_column("")
    for heading in ("truth", "estimate", "95 % interval"):
        table.add_column(heading, justify="right")
    table.add_column("")
    values = [row for row in evaluation.rows if row.kind == "value"]
    if rows == "most frequent":
        kept = set(sorted(range(len(values)), key=lambda i: -values[i].truth)[:FREQUENT])
        shown = [row for i, row in enumerate(values) if i in kept]
    else:
        shown = values
    for kind, chosen in (
        ("category", [row for row in evaluation.rows if row.kind == "category"]),
        ("value", shown),
        ("mean", [row for row in evaluation.rows if row.kind == "mean"]),
    ):
        if not chosen:
            continue
        table.add_section()
        for row in chosen:
            table.add_row(row.label, *_figures(row), "hit" if row.hit else "[bold red]miss[/bold red]")
        if kind == "value" and len(shown) < len(values):
            table.add_row(f"[dim]and {len(values) - len(shown)} rarer values (--all)[/dim]")
    if release["suppressed"]:
        table.add_row(f"fewer than the minimum cohort of {survey.minimum_cohort}: nothing is released")
    return table


def _figures(row: Row) -> tuple[str, str, str]:
    if row.kind == "mean":
        return f"{row.truth:.3f}", f"{row.estimate:.3f}", f"{row.low:.3f} to {row.high:.3f}"
    return (
        f"{100 * row.truth:.2f} %",
        f"{100 * row.estimate:.2f} %",
        f"{100 * row.low:.2f} to {100 * row.high:.2f}",
    )
