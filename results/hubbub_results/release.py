"""One round of a survey: its estimates as a tidy table, and what the server says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hubbub.html_table import html_table
from hubbub_results.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_SHOWN: Final = 40
"""Rows of a round that a notebook shows."""


@dataclass(frozen=True, slots=True)
class RoundResults:
    """A round as it was read: sealed, which is final, or still open.

    Attributes:
        document: All that the server says of it; see docs/api.md.
        table: Its estimates, a row per view and cell.
    """

    document: Mapping[str, Any]
    table: Table

    @property
    def round(self) -> int:
        """The round's number, from 1."""
        return int(self.document["round"])

    @property
    def title(self) -> str:
        """The survey's title."""
        return str(self.document["survey"]["title"])

    @property
    def digest(self) -> str:
        """The survey's digest."""
        return str(self.document["survey"]["digest"])

    @property
    def devices(self) -> int:
        """Reports behind the estimates."""
        return int(self.document["devices"])

    @property
    def is_sealed(self) -> bool:
        """True if it is final."""
        return bool(self.document["sealed"])

    @property
    def is_suppressed(self) -> bool:
        """True if it has too few devices for estimates: the table is empty."""
        return bool(self.document["suppressed"])

    @property
    def mean(self) -> Mapping[str, Any] | None:
        """The mean with its interval; None where the survey has none."""
        found: Mapping[str, Any] | None = self.document["mean"]
        return found

    @property
    def effective_sample_size(self) -> Mapping[str, float | None]:
        """The devices that would know values, categories, cumulative as well without noise; None: unknown."""
        found: Mapping[str, float | None] = self.document.get("effective_sample_size", {})
        return found

    @property
    def after_shuffling(self) -> Mapping[str, Any] | None:
        """The epsilon for readers of this release alone, with its assumption; None where nothing is stated.

        A statement and no promise: the members are delta, reports and epsilon, watched_reports and
        watched_epsilon (for readers who watched the round while it was open), and assumption.
        """
        found: Mapping[str, Any] | None = self.document.get("after_shuffling")
        return found

    @property
    def absent(self) -> float | None:
        """The share of the devices asked that is not in the round; None where nobody stated it."""
        found: float | None = (self.document.get("enrolment") or {}).get("absent")
        return found

    def frame(self) -> DataFrame:
        """Return the table as a frame of pandas; see `Table.frame`."""
        return self.table.frame()

    def plot(self, axes: Axes | None = None) -> Axes:
        """Return axes with the estimates of values and their intervals; see `Table.plot`."""
        kinds = {row["kind"] for row in self.table}
        return (self.table.where(kind="value") if "value" in kinds else self.table).plot(axes)

    def __repr__(self) -> str:
        stage = "sealed" if self.is_sealed else "open"
        return f"<Release of {self.title!r}, round={self.round}, {stage}, {self.devices} devices>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the first estimates with their intervals."""
        raw = [row for row in self.table if row["view"] == "raw"]
        rows = [
            [
                str(row["kind"]),
                str(row["label"]),
                *(_digits(row[name]) for name in ("estimate", "low", "high")),
            ]
            for row in raw[:_SHOWN]
        ]
        more = [(f"{len(raw) - _SHOWN} more", "", "", "", "")] if len(raw) > _SHOWN else []
        return html_table(
            (self.title, f"{self.devices:,} devices", "estimate", "low", "high"), [*rows, *more]
        )


def _digits(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"
