"""The change between two rounds of a survey, with the intervals that the server gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub_results.tables import Row, Table

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
            MissingExtra: If pandas is not installed.
        """
        return Table(self.rows).frame()

    def plot(self, axes: Axes | None = None) -> Axes:
        """Return axes with every change and its interval.

        Args:
            axes: Axes of matplotlib to draw on; new ones if absent.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        from hubbub_results import plots  # noqa: PLC0415 - a plot costs a second to load

        return plots.plot_comparison(self, axes)


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
