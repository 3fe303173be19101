"""Plots of estimates with their intervals, by matplotlib; for people, so rounds count from 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from hubbub_results.extras import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub_results.comparison import Comparison
    from hubbub_results.tables import Table

_Drawn = TypeVar("_Drawn")


def _as_typed(draw: Callable[[_Drawn, Axes | None], Axes]) -> Callable[[_Drawn, Axes | None], Axes]:
    """Return a drawing whose texts are as they are: to matplotlib a dollar begins a formula."""

    @wraps(draw)
    def drawn(subject: _Drawn, axes: Axes | None) -> Axes:
        with needed("matplotlib").rc_context({"text.parse_math": False}):
            return draw(subject, axes)

    return drawn


@_as_typed
def plot_table(table: Table, axes: Axes | None) -> Axes:
    """Return axes with raw estimates: points with error bars for one round, lines with bands for several."""
    axes = _axes(axes)
    rows = [row for row in table if row["view"] == "raw" and row["estimate"] is not None]
    frequencies = [row for row in rows if row["kind"] != "mean"]
    # A mean has a unit of its own: it is drawn where there is nothing else.
    shown = frequencies or rows
    if len({row["round"] for row in shown}) > 1:
        _bands(axes, shown)
    else:
        _points(axes, shown, [str(row["label"]) for row in shown])
    axes.set_ylabel("share" if frequencies else "mean")
    axes.set_title(table.title)
    return axes


@_as_typed
def plot_comparison(comparison: Comparison, axes: Axes | None) -> Axes:
    """Return axes with every change and its interval, and a line at no change."""
    axes = _axes(axes)
    rows = [row for row in comparison.rows if row["kind"] != "mean"] or comparison.rows
    shown = [{**row, "estimate": row["change"]} for row in rows]
    _points(axes, shown, [str(row["label"] or "mean") for row in rows])
    axes.axhline(0.0, color="0.5", linewidth=0.8)
    axes.set_ylabel("change")
    axes.set_title(comparison.title)
    return axes


def _points(axes: Axes, rows: list[dict[str, Any]], labels: list[str]) -> None:
    places = range(len(rows))
    for place, row in zip(places, rows, strict=True):
        if row["low"] is not None and row["high"] is not None:
            axes.vlines(place, row["low"], row["high"], color="C0", linewidth=2)
    axes.plot(places, [row["estimate"] for row in rows], "o", color="C0")
    axes.set_xticks(list(places), labels, rotation=45 if len(rows) > 6 else 0)


def _bands(axes: Axes, rows: list[dict[str, Any]]) -> None:
    labels = dict.fromkeys((row["kind"], row["label"]) for row in rows)
    for number, (kind, label) in enumerate(labels):
        line = sorted(
            (row for row in rows if (row["kind"], row["label"]) == (kind, label)),
            key=lambda row: int(row["round"]),
        )
        rounds = [row["round"] + 1 for row in line]
        colour = f"C{number % 10}"
        axes.plot(rounds, [row["estimate"] for row in line], "o-", color=colour, label=label or "mean")
        low, high = ([math.nan if row[end] is None else row[end] for row in line] for end in ("low", "high"))
        axes.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlabel("round")
    if len(labels) > 1:
        axes.legend()


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    pyplot = needed("matplotlib.pyplot")
    made: Axes = pyplot.subplots()[1]
    return made
