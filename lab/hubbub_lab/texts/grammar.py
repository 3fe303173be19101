"""The languages that a user's text enters, and what it passes through on the way.

A path, a column or a label is text and nothing else. What reads it in a language of its own gets it through
here, or through what is said below:

- numbers: `number_of` and `whole_of`;
- lines of a terminal: `plain`, and the consoles `talk` and `results`, which know no markup;
- SQL: `sql_name` for a column; a path goes to no SQL and is no pattern, since DuckDB is given a descriptor;
- TOML and JSON: `json.dumps`; HTML: `html.escape`; a spreadsheet's CSV: `csv_pieces` of the aggregator;
- pictures: `as_typed` of `hubbub_lab.evaluation.plots`, where a dollar begins no formula.
"""

from __future__ import annotations

import math
import re
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def number_of(text: str, decimal: str = ".") -> float | None:
    """Return the finite number that a text is, None where it is none.

    Python's own `float` reads 0_7 and 1_000, digits of every script, inf and nan, too: in a column of people
    these are no numbers, but something that was typed wrongly.

    Examples:
        >>> [number_of(text) for text in ("1.5", "-.5e3", "0_7", "1e999", "inf", "")]
        [1.5, -500.0, None, None, None, None]
    """
    if decimal == ",":  # then a point is none, and stands between thousands
        text = text.replace(".", "x").replace(",", ".")
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def whole_of(text: str) -> int | None:
    """Return the whole number that a text is, None where it is none; 3.0 is none."""
    return int(text) if _WHOLE.fullmatch(text) else None


def plain(text: object) -> str:
    r"""Return a text in one line, with what a terminal would obey written as an escape.

    Examples:
        >>> plain("two\nlines")
        'two\\nlines'
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in str(text))


def sql_name(name: str) -> str:
    """Return the name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
