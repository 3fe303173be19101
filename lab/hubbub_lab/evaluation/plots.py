"""A release and the truth as one picture."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from hubbub_lab.evaluation.evaluation import EvaluationRow
from hubbub_lab.evaluation.report import Evaluation, smoothed_by_label

_TRUTH: Final = "#b45309"
_ESTIMATE: Final = "#1d4ed8"
_SMOOTHED: Final = "#15803d"
# More labels than this would run into each other; the axis then shows every tenth or so.
_MOST_LABELS: Final = 40


@contextmanager
def as_typed() -> Iterator[None]:
    """Draw texts as they are: to matplotlib a dollar begins a formula, which may be none.

    A letter that its font does not have is an empty box, and no warning of a library.
    """
    with mpl.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def log_axes(axes: Axes, *which: Literal["x", "y"]) -> None:
    """Make axes logarithmic, with numbers as people write them at 1, 2 and 5 of every power of ten."""
    for name in which:
        axis = axes.xaxis if name == "x" else axes.yaxis
        (axes.set_xscale if name == "x" else axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())


@as_typed()
def plot(evaluation: Evaluation, path: Path) -> None:
    """Write a picture of categories and values with 95 % intervals, the truth beside them.

    Args:
        evaluation: The release and its truth.
        path: Where to write; the ending names the format (.png, .svg, .pdf).
    """
    mpl.use("Agg")
    panels = [
        (title, rows)
        for title, rows in (
            ("categories", [row for row in evaluation.rows if row.kind == "category"]),
            ("values", [row for row in evaluation.rows if row.kind == "value"]),
        )
        if rows
    ]
    figure = Figure(figsize=(11, 4 * max(len(panels), 1)), layout="constrained")
    survey, devices = evaluation.survey, evaluation.release["devices"]
    figure.suptitle(f"{survey.title}: epsilon {survey.epsilon:g}, {devices:,} devices, 95 % intervals")
    for place, (title, rows) in enumerate(panels, start=1):
        _panel(figure, len(panels), place, title, rows)
        if title == "values" and (views := smoothed_by_label(evaluation)):
            axes = figure.axes[-1]
            shares = [100 * views[row.label] for row in rows]
            axes.plot(np.arange(len(rows)), shares, color=_SMOOTHED, linewidth=1, label="smoothed (biased)")
            axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def _panel(figure: Figure, panels: int, place: int, title: str, rows: list[EvaluationRow]) -> None:
    axes = figure.add_subplot(panels, 1, place)
    x = np.arange(len(rows))
    estimates = np.array([100 * row.estimate for row in rows])
    lows = np.array([100 * row.low for row in rows])
    highs = np.array([100 * row.high for row in rows])
    axes.bar(x, [100 * row.truth for row in rows], color=_TRUTH, alpha=0.35, label="truth")
    # An estimate may lie outside its interval, which ends at 0 and 1.
    axes.vlines(x, lows, highs, color=_ESTIMATE, linewidth=1)
    axes.plot(x, estimates, "o", color=_ESTIMATE, markersize=3, label="estimate, 95 % interval")
    axes.axhline(0, color="black", linewidth=0.6)
    step = -(-len(rows) // _MOST_LABELS)
    axes.set_xticks(x[::step], [row.label for row in rows[::step]], rotation=0 if len(rows) < 12 else 60)
    axes.set_ylabel("share of devices, %")
    hits = sum(row.covers_truth for row in rows)
    axes.set_title(f"{title}: {hits} of {len(rows)} intervals hold the truth", fontsize=10)
    axes.legend(frameon=False)
