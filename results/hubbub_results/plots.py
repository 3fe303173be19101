"""Plots of estimates with their intervals, by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hubbub_results.errors import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub_results.tables import Comparison, Table

_Drawn = TypeVar("_Drawn")
ACROSS: Final = 60
"""Letters of labels that fit side by side; more of them stand below each other."""
LINE_IN: Final = 0.17
"""The height of a name, in inches."""


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
    rows = [row for row in table if row["view"] == "raw" and row["estimate"] is not None]
    frequencies = [row for row in rows if row["kind"] != "mean"]
    # A mean has a unit of its own: it is drawn where there is nothing else.
    shown = frequencies or rows
    name = "share" if frequencies else "mean"
    axes = _axes(axes, len({(row["kind"], row["label"]) for row in shown}))
    if len({row["round"] for row in shown}) > 1:
        _bands(axes, shown)
        axes.set_ylabel(name)
    else:
        _points(axes, shown, [str(row["label"]) for row in shown], name)
    axes.set_title(table.title)
    return axes


@_as_typed
def plot_comparison(comparison: Comparison, axes: Axes | None) -> Axes:
    """Return axes with every change and its interval, and a line at no change."""
    rows = [row for row in comparison.rows if row["kind"] != "mean"] or comparison.rows
    shown = [{**row, "estimate": row["change"]} for row in rows]
    axes = _axes(axes, len(rows))
    _points(axes, shown, [str(row["label"] or "mean") for row in rows], "change", zero=0.0)
    axes.set_title(comparison.title)
    return axes


def _points(
    axes: Axes, rows: list[dict[str, Any]], labels: list[str], name: str, *, zero: float | None = None
) -> None:
    """Draw a point with its interval per row, upright where the labels fit side by side.

    Args:
        axes: Where.
        rows: With estimate, low and high.
        labels: One a row.
        name: Of what is drawn.
        zero: Where a line stands for nothing; None without one.
    """
    upright = sum(map(len, labels)) + len(labels) <= ACROSS
    places = range(len(rows))
    for place, row in zip(places, rows, strict=True):
        if row["low"] is not None and row["high"] is not None:
            line = axes.vlines if upright else axes.hlines
            line(place, row["low"], row["high"], color="C0", linewidth=2)
    estimates = [row["estimate"] for row in rows]
    axes.plot(*((places, estimates) if upright else (estimates, places)), "o", color="C0")
    if upright:
        axes.set_xticks(list(places), labels)
        axes.set_ylabel(name)
    else:
        axes.set_yticks(list(places), labels)
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first one on top
        axes.set_xlabel(name)
    if zero is not None:
        (axes.axhline if upright else axes.axvline)(zero, color="0.5", linewidth=0.8)


def _bands(axes: Axes, rows: list[dict[str, Any]]) -> None:
    labels = dict.fromkeys((row["kind"], row["label"]) for row in rows)
    ends: list[tuple[float, int, str, str]] = []
    for number, (kind, label) in enumerate(labels):
        line = sorted(
            (row for row in rows if (row["kind"], row["label"]) == (kind, label)),
            key=lambda row: int(row["round"]),
        )
        rounds = [row["round"] for row in line]
        colour = f"C{number % 10}"
        axes.plot(rounds, [row["estimate"] for row in line], "o-", color=colour)
        low, high = ([math.nan if row[end] is None else row[end] for row in line] for end in ("low", "high"))
        axes.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
        ends.append((line[-1]["estimate"], rounds[-1], str(label or "mean"), colour))
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(needed("matplotlib.ticker").MaxNLocator(integer=True, min_n_ticks=1))
    if len(labels) > 1:
        _names(axes, sorted(ends))


def _names(axes: Axes, ends: list[tuple[float, int, str, str]]) -> None:
    """Write every line's name right of its end, each in a place of its own; ends are from low to high."""
    low, high = axes.get_ylim()
    gap = LINE_IN * axes.figure.dpi / axes.bbox.height
    places: list[float] = []
    for estimate, *_ in ends:
        at = (estimate - low) / (high - low)
        places.append(max(at, places[-1] + gap) if places else at)
    top = 1.0
    for i in reversed(range(len(places))):
        places[i] = top = min(places[i], top)
        top -= gap
    for place, (estimate, last, name, colour) in zip(places, ends, strict=True):
        axes.annotate(
            name,
            (last, estimate),
            xytext=(1.04, place),
            textcoords="axes fraction",
            color=colour,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "relpos": (0.0, 0.5)},
        )


def _axes(axes: Axes | None, lines: int) -> Axes:
    """Return the axes, or new ones that are as high as so many names are below each other."""
    if axes is not None:
        return axes
    pyplot = needed("matplotlib.pyplot")
    size = (6.4, max(4.8, 1.4 * LINE_IN * lines))
    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made
