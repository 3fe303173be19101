"""The risks of a survey in numbers and words: forged reports, guesses, what a release tells of one person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hubbub import Channel
from hubbub.errors import ParameterError
from hubbub.shuffling import epsilon_after_shuffling
from hubbub_authoring.design import FORGED, Accuracy


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
        "forged": {
            "share": FORGED,
            "moves": FORGED * known.gain,
            "gain": known.gain,
            "moves_mean": _finite(known.mean_moved(FORGED)),
        },
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
        f"{moved(known)} points{_and_mean(known)}."
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


def _and_mean(known: Accuracy) -> str:
    """Return how far the same reports move the mean, as a continuation; nothing where there is no mean."""
    found = known.mean_moved(FORGED)
    if found is None:
        return ""
    return (
        f" and the mean by at most {rounded_up(found, 3)}"
        if math.isfinite(found)
        else " and the mean at will"
    )


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


@dataclass(frozen=True)
class Shuffling:
    """One round whose readers see how often each report came, and nothing else.

    Attributes:
        reports: Honest reports of the round, at least 2.
        delta: In (0, 1).
    """

    reports: int
    delta: float

    def epsilon(self, channel: Channel) -> float | None:
        """Return the epsilon after shuffling, None for a channel that is too large to look at."""
        try:
            return epsilon_after_shuffling(channel, self.reports, self.delta)
        except ParameterError:
            if self.reports < 2 or not 0.0 < self.delta < 1.0:
                raise
            return None

    def cell(self, channel: Channel) -> str:
        """Return it as a cell of a table, rounded up."""
        found = self.epsilon(channel)
        return "-" if found is None else rounded_up(found, 3) if found > 0.0 else "0"

    def facts(self, channel: Channel) -> dict[str, Any]:
        """Return it as JSON types, its assumption beside it."""
        return {
            "reports": self.reports,
            "delta": self.delta,
            "epsilon": self.epsilon(channel),
            "assumption": self.assumption,
        }

    @property
    def assumption(self) -> str:
        """The words that must stand beside every such epsilon."""
        return (
            f"for readers who see how often each report came among {self.reports:,} honest ones of one "
            "sealed round of fresh answers; not for the collector, which sees single reports, and answers "
            "that are repeated in later rounds gain nothing there"
        )

    def sentence(self, channel: Channel) -> str:
        """Return it in a sentence with its assumption."""
        return f"After shuffling: epsilon {self.cell(channel)} with delta {self.delta:g}, {self.assumption}."
