"""The tables of an evaluation: the release beside the truth, for people or as JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hubbub import Survey
from hubbub.estimation import Smoothed
from hubbub.survey import LabelDomain, index_of_round, round_words
from hubbub_lab.evaluation.evaluation import EvaluationRow, Truth, rows_of

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
        smoothed: The biased, smoothed view of the values beside the unbiased one; None where there is none.
        counts: The bytes of the release's public counts, where they are at hand.
        everyone: The true frequencies of all people, where `truth` is only of those who were counted.
    """

    survey: Survey
    release: dict[str, Any]
    truth: Truth
    smoothed: Smoothed | None = None
    counts: bytes | None = None
    everyone: Truth | None = None

    @property
    def truths_of_everyone(self) -> list[float | None]:
        """The truth of all people beside every row; None where all were counted, or nobody has a number."""
        if self.everyone is None:
            return [None] * len(self.rows)
        by_kind: dict[str, Iterator[float]] = {}
        for kind in ("category", "value", "mean", "quantile"):  # labels may repeat, places do not
            truths = [row.truth for row in rows_of(self.release, self.everyone) if row.kind == kind]
            by_kind[kind] = iter(truths)
        return [next(by_kind[row.kind], None) for row in self.rows]

    @property
    def rows(self) -> list[EvaluationRow]:
        """Every released quantity with its truth: categories, values, mean; none if suppressed."""
        return [] if self.release["suppressed"] else rows_of(self.release, self.truth)

    def summary(self) -> dict[str, Any]:
        """Return hits, interval count and root-mean-square errors, per kind of quantity."""
        found: dict[str, Any] = {}
        for kind in ("category", "value", "mean"):
            rows = [row for row in self.rows if row.kind == kind]
            if rows:
                squares = [(row.estimate - row.truth) ** 2 for row in rows]
                found[kind] = {
                    "intervals": len(rows),
                    "hits": sum(row.covers_truth for row in rows),
                    "rms_error": math.sqrt(sum(squares) / len(rows)),
                    "rms_standard_error": math.sqrt(sum((row.error or 0.0) ** 2 for row in rows) / len(rows)),
                }
        quantiles = [row for row in self.rows if row.kind == "quantile"]
        if quantiles:
            hits = sum(row.covers_truth for row in quantiles)
            found["quantile"] = {"intervals": len(quantiles), "hits": hits}
        if self.smoothed is not None:
            found["wasserstein"] = {
                "unbiased": self._distance(
                    np.array([row["estimate"] for row in self.release["values"]], dtype=np.float64)
                ),
                "smoothed": self._distance(self.smoothed.values),
            }
        return found

    def _distance(self, values: NDArray[np.float64]) -> float | None:
        """Return the Wasserstein distance of the distribution of those who have a number, in its units."""
        points = self.survey.points
        if points is None or np.isnan(values).any():
            return None
        order = np.argsort(points, kind="stable")[: np.count_nonzero(~np.isnan(points))]
        answered, true = values[order].sum(), self.truth.values[order].sum()
        if not (answered > 0.0 and true > 0.0):
            return None
        off = np.cumsum(values[order] / answered - self.truth.values[order] / true)[:-1]
        return float(np.abs(off) @ np.diff(points[order]))

    def as_json(self) -> dict[str, Any]:
        """Return survey, release, rows with truth, and the summary, as JSON types."""
        return {
            "survey": self.survey.id,
            "release": self.release,
            "truth_of": "counted" if self.everyone is not None else "all",
            "rows": [
                asdict(row) | {"hit": row.covers_truth} | ({} if all_ is None else {"truth_of_all": all_})
                for row, all_ in zip(self.rows, self.truths_of_everyone, strict=True)
            ],
            "summary": self.summary(),
            "smoothed": None
            if self.smoothed is None
            else {
                "values": self.smoothed.values.tolist(),
                "steps": self.smoothed.steps,
                "settled": self.smoothed.settled,
            },
        }


def show(evaluations: Sequence[Evaluation], *, rows: Rows, console: Console) -> None:
    """Print one table per release, then how many intervals hold the truth."""
    for evaluation in evaluations:
        console.print(_table(evaluation, rows))
    if any(row.kind in ("category", "value") for evaluation in evaluations for row in evaluation.rows):
        console.print("Intervals of shares are cut at 0 and 100 %, estimates are not.", highlight=False)
    hits = sum(row.covers_truth for evaluation in evaluations for row in evaluation.rows)
    total = sum(len(evaluation.rows) for evaluation in evaluations)
    if total:
        console.print(
            f"{hits} of {total} intervals hold the truth ({hits / total:.1%}; 95 % are meant to).",
            highlight=False,
        )
    if any(evaluation.everyone is not None for evaluation in evaluations):
        console.print(
            "Compared is the truth of the devices that were counted, which is all that a release tells of. "
            "All people are every row of the table: lost, refused and not taking part as well."
        )
    if any(evaluation.smoothed is not None for evaluation in evaluations):
        console.print("Smoothed shares (expectation maximisation) are biased, and have no intervals.")


def print_json(document: object) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _table(evaluation: Evaluation, rows: Rows) -> Table:
    release, survey = evaluation.release, evaluation.survey
    which = f", {round_words(survey, index_of_round(release['round']))}" if survey.rounds > 1 else ""
    facts = f"epsilon {survey.epsilon:g}, {release['devices']:,} devices"
    table = Table(
        title=Text.assemble(f"{survey.title}{which}   ", (facts, "dim")),
        title_justify="left",
    )
    table.add_column("")
    together = list(zip(evaluation.rows, evaluation.truths_of_everyone, strict=True))
    among_all = {id(row): truth for row, truth in together}
    if evaluation.everyone is not None:
        table.add_column("all people", justify="right", style="dim")
    for heading in ("truth" if evaluation.everyone is None else "counted", "estimate", "95 % interval"):
        table.add_column(heading, justify="right")
    table.add_column("")
    if evaluation.smoothed is not None:
        table.add_column("smoothed", justify="right")
    views = smoothed_by_label(evaluation)
    listed = [row for row, _ in together]
    values = [row for row in listed if row.kind == "value"]
    if rows == "most frequent":
        # The last value is missing, which is shown however rare it is.
        kept = {len(values) - 1, *sorted(range(len(values)), key=lambda i: -values[i].truth)[:FREQUENT]}
        shown = [row for i, row in enumerate(values) if i in kept]
    else:
        shown = values
    if any(isinstance(each.domain, LabelDomain) for each in survey.attributes):  # they have no order
        shown = [*sorted(shown[:-1], key=lambda row: -row.truth), *shown[-1:]]
    for kind, chosen in (
        ("category", [row for row in listed if row.kind == "category"]),
        ("value", shown),
        ("mean", [row for row in listed if row.kind == "mean"]),
        ("quantile", [row for row in listed if row.kind == "quantile"]),
    ):
        if not chosen:
            continue
        table.add_section()
        for row in chosen:
            view = [f"{100 * views[row.label]:.2f} %"] if kind == "value" and row.label in views else []
            mark = Text("hit") if row.covers_truth else Text("miss", "bold red")
            of_all = among_all[id(row)]
            all_ = [] if evaluation.everyone is None else ["" if of_all is None else _share(row, of_all)]
            table.add_row(Text(row.label), *all_, *_figures(row), mark, *view)
        if kind == "value" and len(shown) < len(values):
            table.add_row(Text(f"and {len(values) - len(shown)} rarer values (--all)", "dim"))
    if release["suppressed"]:
        table.add_row(f"fewer than the minimum cohort of {survey.minimum_cohort}: nothing is released")
    return table


def smoothed_by_label(evaluation: Evaluation) -> dict[str, float]:
    """Return the smoothed shares under the labels of their values; empty without such a view."""
    if evaluation.smoothed is None:
        return {}
    return dict(zip(evaluation.survey.input_labels, evaluation.smoothed.values.tolist(), strict=True))


def _figures(row: EvaluationRow) -> tuple[str, str, str]:
    ends = f"{row.low:.3f} to {row.high:6.3f}"
    if row.kind not in ("mean", "quantile"):
        ends = f"{100 * row.low:.2f} to {100 * row.high:6.2f}"
    return _share(row, row.truth), _share(row, row.estimate), ends


def _share(row: EvaluationRow, figure: float) -> str:
    return f"{figure:.3f}  " if row.kind in ("mean", "quantile") else f"{100 * figure:.2f} %"
