"""Tables of a few rows for notebooks, which show what `_repr_html_` gives; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML.

    Args:
        header: The heading of every column.
        rows: The cells of every row, as text that anybody may have written.
    """
    head = _row(header, "th")
    return f"<table>{head}{''.join(_row(row, 'td') for row in rows)}</table>"


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
