"""Tidy tables of estimates: rows as they come, a frame of pandas and a plot where asked for."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from hubbub_results.errors import NotFoundError, needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one round to another, cell by cell.

    Attributes:
        rows: A row per cell: kind, label, change, low, high, simultaneous_low, simultaneous_high, level, and
            differs, true where the change is more than noise.
        document: All that the server says of it; see docs/api.md.
        title: What they are about, for a plot.
    """

    rows: Sequence[Row]
    document: Mapping[str, Any]
    title: str = ""

    def frame(self) -> DataFrame:
        """Return a frame of pandas.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        return Table(self.rows).frame()

    def plot(self, axes: Axes | None = None) -> Axes:
        """Return axes with every change and its interval.

        Args:
            axes: Axes of matplotlib to draw on; new ones if absent.

        Raises:
            MissingExtraError: If matplotlib is not installed.
        """
        return plot_comparison(self, axes)


def comparison_of(document: Mapping[str, Any], title: str) -> Comparison:
    """Return the comparison that a change of the API describes."""
    cells = [
        *(("value", cell) for cell in document["values"]),
        *(("category", cell) for cell in document["categories"]),
        *([("mean", document["mean"])] if document["mean"] else []),
    ]
    rows = [
        {
            "kind": kind,
            "label": cell.get("label"),
            "change": cell["estimate"],
            **{name: cell.get(name) for name in ("low", "high", "simultaneous_low", "simultaneous_high")},
            "level": document["level"],
            "differs": cell["differs"],
        }
        for kind, cell in cells
    ]
    return Comparison(rows, document, title)


Kind: TypeAlias = Literal["value", "category", "mean", "cumulative", "quantile"]
View: TypeAlias = Literal["raw", "consistent", "empirical_bayes"]
Row: TypeAlias = dict[str, Any]


_NUMBERS: Final = (
    *("estimate", "standard_error", "low", "high", "level", "bias_bound", "poison_margin"),
    *("simultaneous_low", "simultaneous_high", "before", "after", "change", "epsilon"),
    *("best_rank", "worst_rank", "crowd_error", "crowd_low", "crowd_high"),
    *("crowd_simultaneous_low", "crowd_simultaneous_high", "always_low", "always_high"),
    *("always_simultaneous_low", "always_simultaneous_high", "tree_level"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of estimates, one row per round, view and cell.

    Attributes:
        rows: Dictionaries with the columns of docs/api.md; times are text, ISO 8601 in UTC.
        title: What they are about, for a plot.

    The table of one round of a cross table or a bundle has statistics, too. Their rows have `statistic`,
    `of`, `given`, `group`, `reading`, `estimate`, `low`, `high`, `simultaneous_low` and `simultaneous_high`
    (all of this kind at once), `p_value` and `note`; an estimate that so many reports cannot give is None,
    and `note` says why. They are of everybody who could have been asked.
    """

    rows: Sequence[Row]
    title: str = ""
    _ask: Callable[..., list[Row]] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def where(
        self,
        *,
        kind: Kind | None = None,
        view: View | None = None,
        label: str | None = None,
        round: int | None = None,  # noqa: A002 - the column's name
        tree_level: int | None = None,
    ) -> Table:
        """Return the rows of a kind, view, label, round and level of a tree, each where it is given.

        Raises:
            NotFoundError: If there is none.
        """
        given = {"kind": kind, "view": view, "label": label, "round": round, "tree_level": tree_level}
        wanted = {name: value for name, value in given.items() if value is not None}
        rows = [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]
        if not rows:
            said = ", ".join(f"{name} {value!r}" for name, value in wanted.items())
            raise NotFoundError(f"rows must be some of {self.title or 'this table'}, got none with {said}")
        return Table(rows, self.title, self._ask)

    def conditional(self, of: str, *, given: str, level: float = 0.95) -> Table:
        """Return the shares of an attribute's readings within every group of another.

        Args:
            of: The attribute that is asked about.
            given: The attribute of the groups.
            level: Coverage of the intervals, each alone.

        Raises:
            NotFoundError: If this is not the table of one round of a survey with tables.
            BadAnswerError: If an argument breaks its rule.
        """
        return self._statistics("conditional", of=of, given=given, level=level)

    def group_means(self, of: str, *, given: str, level: float = 0.95) -> Table:
        """Return the mean of a number within every group of another attribute; see `conditional`."""
        return self._statistics("mean", of=of, given=given, level=level)

    def differences(self, of: str, *, given: str, level: float = 0.95) -> Table:
        """Return the differences of shares between every two groups; see `conditional`."""
        return self._statistics("difference", of=of, given=given, level=level)

    def odds_ratios(self, of: str, *, given: str, level: float = 0.95) -> Table:
        """Return the odds of every reading in every group over those in all others; see `conditional`."""
        return self._statistics("odds_ratio", of=of, given=given, level=level)

    def independence(self, *, level: float = 0.95) -> Table:
        """Return Cramer's V of all pairs of attributes with their tests of independence.

        A p-value is one of all pairs together (Holm). Errors as `conditional`.

        Args:
            level: Coverage of the intervals of V.
        """
        return self._statistics("independence", level=level)

    def reweighted(
        self, of: str, *, by: str, census: Mapping[str, float] | Path, level: float = 0.95
    ) -> Table:
        """Return the shares of an attribute in a population where another one has the shares of a census.

        Args:
            of: The attribute that is asked about.
            by: The one that the census counts; both are of this table.
            census: A share for every reading of it; or a CSV file with a line `reading,share` for each.
            level: Coverage of the intervals, each alone.

        Raises:
            NotFoundError: If this is not the table of one round of a survey with tables.
            BadAnswerError: If an argument breaks its rule.
        """
        if isinstance(census, Path):
            text = census.read_text(encoding="utf-8")
        else:
            out = io.StringIO()
            csv.writer(out, lineterminator="\n").writerows(census.items())
            text = out.getvalue()
        return self._statistics("reweighted", of=of, given=by, census=text, level=level)

    def regression(self, of: str, *, on: Sequence[str], level: float = 0.95) -> Table:
        """Return the coefficients of least squares of an attribute on others; errors as `conditional`.

        Args:
            of: A number, or an attribute of two readings.
            on: The attributes that explain.
            level: Coverage of the intervals, each alone.
        """
        return self._statistics("regression", of=of, on=",".join(on), level=level)

    def _statistics(self, kind: str, **asked: str | float) -> Table:
        if self._ask is None:
            raise NotFoundError(
                f"statistics must be asked of the table of one round, got {self.title or 'rows'}"
            )
        return Table(self._ask(kind=kind, **asked), f"{self.title}: {kind}")

    def frame(self) -> DataFrame:
        """Return a frame of pandas: numbers as floats, start and end as times in UTC.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        pandas = needed("pandas")
        frame = pandas.DataFrame(list(self.rows))
        for name in ("start", "end"):
            if name in frame:
                frame[name] = pandas.to_datetime(frame[name], utc=True)
        for name in _NUMBERS:
            if name in frame:
                frame[name] = frame[name].astype("float64")
        result: DataFrame = frame
        return result

    def plot(self, axes: Axes | None = None) -> Axes:
        """Return axes with the raw estimates and their intervals: bars of one round, bands of several.

        Args:
            axes: Axes of matplotlib to draw on; new ones if absent.

        Raises:
            MissingExtraError: If matplotlib is not installed.
        """
        return plot_table(self, axes)


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
