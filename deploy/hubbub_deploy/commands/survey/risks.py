"""The risks of a survey in numbers and words: what forged reports move, and how often a guess is right."""

from __future__ import annotations

import math
from typing import Any

from hubbub.design import FORGED, Accuracy


def rounded_up(number: float, digits: int = 2) -> str:
    """Return a positive number with so many digits, rounded up."""
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(number)))
    # A whole number of the last digit, but for rounding, stays one.
    return f"{math.ceil(number * scale * (1.0 - 1e-12)) / scale:g}"


def moved(known: Accuracy) -> str:
    """Return how many percentage points 1 % of forged reports can move a share, rounded up."""
    return rounded_up(100.0 * FORGED * known.gain, 3)


def guessed(known: Accuracy) -> str:
    """Return how often the best guess from a report is right, in per cent, rounded up; "-" if not known."""
    return "-" if known.guess is None else f"{rounded_up(100.0 * known.guess.average)} %"


def facts(known: Accuracy) -> dict[str, Any]:
    """Return both as JSON types."""
    guess = known.guess
    return {
        "forged": {"share": FORGED, "moves": FORGED * known.gain, "gain": known.gain},
        "guess": None
        if guess is None
        else {"average": guess.average, "worst": guess.worst, "blind": guess.blind},
    }


def sentence(known: Accuracy, cell: str) -> str:
    """Return both in two sentences, all values (or categories) equally likely beforehand.

    Args:
        known: The survey's own mechanism.
        cell: Its inputs in one word: "value" or "category".
    """
    said = (
        f"If {100 * FORGED:g} % of the reports are forged, they move a {cell}'s share by at most "
        f"{moved(known)} points."
    )
    guess = known.guess
    if guess is None:
        return said
    most = ""
    if guess.worst > guess.average * 1.01:
        most = f" ({rounded_up(100.0 * guess.worst)} % on the report that tells most)"
    return (
        f"{said} Whoever sees a report guesses its {cell} right in {guessed(known)} of cases at best{most}, "
        f"without it in {100.0 * guess.blind:.2g} %."
    )
