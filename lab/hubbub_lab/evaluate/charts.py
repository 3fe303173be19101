"""Dot plots as inline SVG that keep the size of their letters at any width.

A row has its label above its line, and marks at shares of the width; so a plot is as readable on a phone.
Colours are the page's variables, so that it turns dark with the page, and every kind of mark has a form of
its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

Mark = Literal["measured", "exact", "uniform", "floor"]

_ROW: Final = 40
_AXIS: Final = 30
_TEXT: Final = 15
_LINE: Final = 27
_EDGE: Final = 2.0
"""Percent of the width that stay free on each side."""

_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class DotRow:
    """One line of a plot.

    Attributes:
        label: Above it, on the left.
        note: Above it, on the right.
        marks: Kind and place of every mark.
        span: An interval that is drawn as a bar; None for none.
    """

    label: str
    note: str
    marks: tuple[tuple[Mark, float], ...]
    span: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class DotAxis:
    """The axis of a plot.

    Attributes:
        low: At its left end.
        high: At its right end.
        ticks: Where it has a number.
        text: A number as people read it.
        is_log: True if equal steps are equal factors.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    is_log: bool = True

    @classmethod
    def log(cls, numbers: Sequence[float], text: Callable[[float], str]) -> DotAxis:
        """Return an axis of factors that holds some positive numbers."""
        low, high = min(numbers) / 1.15, max(numbers) * 1.15
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        fine = (1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
        steps: tuple[tuple[float, ...], ...] = (fine, (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
        found: list[float] = []
        for factors in steps:
            found = [k * 10.0**power for power in powers for k in factors if low <= k * 10.0**power <= high]
            if len(found) <= _MOST_TICKS:
                break
        else:
            found = found[:: -(-len(found) // _MOST_TICKS)]
        return cls(low, high, tuple(found), text)

    def place(self, number: float) -> float:
        """Return where a number is, in percent of the width; at an end where it lies beyond."""
        low, high, here = self.low, self.high, min(max(number, self.low), self.high)
        if self.is_log:
            low, high, here = math.log(low), math.log(high), math.log(here)
        return _EDGE + (100.0 - 2.0 * _EDGE) * (here - low) / (high - low)


def dot_plot(
    name: str,
    title: str,
    rows: Sequence[DotRow],
    axis: DotAxis,
    *,
    description: str,
    reference: float | None = None,
) -> str:
    """Return a plot as an SVG element.

    Args:
        name: An id that no other plot of the page has.
        title: What it shows, for those who hear it.
        rows: From top to bottom.
        axis: The axis.
        description: A sentence more, for those who hear it.
        reference: A number with a line through all rows; None for none.
    """
    height = _ROW * len(rows) + _AXIS
    parts = [
        f'<svg class="plot" width="100%" height="{height}" role="img" aria-labelledby="{name}-t {name}-d">',
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>',
    ]
    bottom = _ROW * len(rows) + 4
    for tick in axis.ticks:
        x = axis.place(tick)
        anchor = "start" if x < 8 else "end" if x > 92 else "middle"
        parts.append(f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_TEXT + 4}" y2="{bottom}"/>')
        parts.append(
            f'<text class="tick" x="{x:.2f}%" y="{bottom + 16}" text-anchor="{anchor}">'
            f"{escape(axis.text(tick))}</text>"
        )
    if reference is not None:
        x = axis.place(reference)
        parts.append(f'<line class="reference" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_TEXT + 4}" y2="{bottom}"/>')
    for number, row in enumerate(rows):
        parts += _row(row, axis, number * _ROW)
    return "".join([*parts, "</svg>"])


def legend(marks: Sequence[tuple[Mark, str]]) -> str:
    """Return a legend: every mark beside its words."""
    drawn = (
        f'<span><svg class="plot" width="18" height="14" aria-hidden="true">{_mark(kind, "50%", 7)}</svg>'
        f"{escape(words)}</span>"
        for kind, words in marks
    )
    return f"<p class=legend>{''.join(drawn)}</p>"


def _row(row: DotRow, axis: DotAxis, top: int) -> list[str]:
    y = top + _LINE
    parts = [
        f'<text class="label" x="0" y="{top + _TEXT}">{escape(row.label)}</text>',
        f'<text class="note" x="100%" y="{top + _TEXT}" text-anchor="end">{escape(row.note)}</text>',
        f'<line class="track" x1="{_EDGE}%" x2="{100 - _EDGE}%" y1="{y}" y2="{y}"/>',
    ]
    if row.span is not None:
        low, high = map(axis.place, row.span)
        parts.append(f'<line class="span" x1="{low:.2f}%" x2="{high:.2f}%" y1="{y}" y2="{y}"/>')
    return parts + [_mark(kind, f"{axis.place(number):.2f}%", y) for kind, number in row.marks]


def _mark(kind: Mark, x: str, y: int) -> str:
    if kind == "floor":
        return f'<line class="floor" x1="{x}" x2="{x}" y1="{y - 6}" y2="{y + 6}"/>'
    if kind == "uniform":
        square = f'class="uniform" x="{x}" y="{y - 5}" width="10" height="10"'
        return f'<rect {square} transform="translate(-5 0)"/>'
    radius = 3 if kind == "measured" else 6
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}"/>'
