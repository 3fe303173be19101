"""The change between two rounds of a survey, with an interval that holds however their errors depend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from hubbub_results.errors import NotComparable
from hubbub_results.tables import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from hubbub_results.release import RoundResults


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one round to another, cell by cell.

    A device that answers with the same noise in both rounds makes their errors depend on each other, and a
    reader cannot see by how much. The standard error of a change is never above the sum of the two standard
    errors, whatever that is: this bound is used, so an interval here is wide rather than wrong.

    Attributes:
        rows: A row per cell: kind, label, category, before, after, change, standard_error (the bound), low,
            high, level.
        title: What they are about, for a plot.
    """

    rows: Sequence[Row]
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


def compared(before: RoundResults, after: RoundResults) -> Comparison:
    """Return the change from one release to another.

    Raises:
        NotComparable: If they are of different surveys, or one has too few devices for estimates.
    """
    if before.digest != after.digest:
        raise NotComparable(f"rounds must be of one survey, got {before.digest} and {after.digest}")
    for release in (before, after):
        if release.is_suppressed:
            raise NotComparable(
                f"round {release.round} must have estimates, got {release.devices} devices, too few for any"
            )
    earlier = {_cell(row): row for row in before.table.where(view="raw")}
    rows = [
        _change(earlier[_cell(row)], row) for row in after.table.where(view="raw") if _cell(row) in earlier
    ]
    return Comparison(rows, f"{after.title}: round {before.round + 1} to {after.round + 1}")


def _cell(row: Row) -> tuple[Any, ...]:
    return row["kind"], row["label"], row["category"]


def _change(before: Row, after: Row) -> Row:
    found: Row = {name: after[name] for name in ("kind", "label", "category")}
    found |= {"before": before["estimate"], "after": after["estimate"], "level": after["level"]}
    found |= dict.fromkeys(("change", "standard_error", "low", "high"))
    if None in (before["estimate"], after["estimate"]):
        return found
    found["change"] = after["estimate"] - before["estimate"]
    if None in (before["standard_error"], after["standard_error"]):
        return found
    found["standard_error"] = before["standard_error"] + after["standard_error"]
    half = NormalDist().inv_cdf((1.0 + after["level"]) / 2.0) * found["standard_error"]
    return found | {"low": found["change"] - half, "high": found["change"] + half}
