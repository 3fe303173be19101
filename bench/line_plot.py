"""Line plots as small SVG files, the same bytes for the same numbers: what commands draw for docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

WIDTH: Final = 440
HEIGHT: Final = 320
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 34, 74
TICKS: Final = 5


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    Attributes:
        label: Its words in the legend.
        colour: Of the stroke, as CSS writes it.
        points: (x, y), in the order of drawing.
        dashed: True for a bound, which nothing measured, and for a line that lies on another one.
    """

    label: str
    colour: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """A pair of axes with lines.

    Attributes:
        title: Above it.
        x: Words below the horizontal axis.
        y: Words beside the vertical axis.
        lines: In the order of the legend.
        top: Upper end of the vertical axis, which begins at 0.
        ticks: Numbers on the horizontal axis, which runs from the least to the largest x of its lines.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    top: float
    ticks: Sequence[float]

    def draw(self, left: float) -> list[str]:
        """Return its elements, shifted to the right by `left`."""
        inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        first = min(x for line in self.lines for x, _ in line.points)
        last = max(x for line in self.lines for x, _ in line.points)

        def across(x: float) -> float:
            return left + LEFT + inner_width * (x - first) / ((last - first) or 1.0)

        def down(y: float) -> float:
            return TOP + inner_height * (1.0 - y / self.top)

        out = [_text(left + WIDTH / 2, 20, self.title, size=13)]
        for i in range(TICKS + 1):
            y = self.top * i / TICKS
            out.append(
                f'<path d="M{left + LEFT} {down(y):.1f}h{inner_width}" stroke="#ddd" stroke-width="1"/>'
            )
            out.append(_text(left + LEFT - 6, down(y) + 4, f"{y:g}", anchor="end"))
        out += [_text(across(x), HEIGHT - BOTTOM + 16, f"{x:g}") for x in self.ticks]
        out.append(_text(left + LEFT + inner_width / 2, HEIGHT - BOTTOM + 34, self.x))
        middle = TOP + inner_height / 2
        turned = f' transform="rotate(-90 {left + 14} {middle})"'
        out.append(_text(left + 14, middle, self.y, more=turned))
        step = inner_width / len(self.lines)
        for i, line in enumerate(self.lines):
            path = "L".join(f"{across(x):.1f} {down(min(y, self.top)):.1f}" for x, y in line.points)
            dash = ' stroke-dasharray="6 4"' if line.dashed else ""
            stroke = f'stroke="{line.colour}" stroke-width="2"{dash} fill="none"'
            out.append(f'<path d="M{path}" {stroke}/>')
            at, row = left + LEFT + i * step, HEIGHT - 14
            out.append(f'<path d="M{at:.1f} {row - 4}h16" {stroke}/>')
            out.append(_text(at + 20, row, line.label, anchor="start", size=10))
        return out


def _text(x: float, y: float, words: str, *, anchor: str = "middle", size: int = 11, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f"<text {place}{more}>{escape(words)}</text>"


def write_plot(path: Path, panels: Sequence[Panel]) -> None:
    """Write panels side by side into one SVG file.

    Args:
        path: Where; the folder is there.
        panels: From left to right.
    """
    width = WIDTH * len(panels)
    body = [element for i, panel in enumerate(panels) for element in panel.draw(float(i * WIDTH))]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
        f'height="{HEIGHT}" font-family="sans-serif" fill="#222">'
    )
    lines = [head, f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>', *body, "</svg>", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
