"""Windows of rounds: the last ones pooled, beside all before them.

A change that a round's noise hides is seen when rounds are pooled, and a pooled window is a round of more
reports: whatever bounds a round bounds it. So a round of a survey with fresh answers is compared for windows
of its last 1, 2, 4, ... rounds, up to half of those since the reference began, and its rate is shared among
them evenly.

After an alert the reference begins anew with the next round, which depends on no report of that round or any
later one: whatever was found before, the tests of a round are those of rounds that nobody has chosen by what
they say, so the rate holds. An eighth of it goes to the round and the one before it, always: of a reference
that has just begun nothing else would see that a jump went back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FOR_NEIGHBOURS: Final = 1.0 / 8.0
"""The part of a rate that goes to a round and the one before it."""


@dataclass(frozen=True, eq=False)
class RoundShares:
    """The raw estimates of one round, or of several pooled.

    Attributes:
        n: Reports behind them, >= 1.
        values: Shape (K,), nan where hidden; empty for a score.
        categories: Shape (m,).
        place: Of a score: the mean as its place between the ends, else None.
        rounds: How many rounds they are of, >= 1.
        fewest: Reports of the smallest of them where they are several, else 0.
    """

    n: int
    values: Floats
    categories: Floats
    place: float | None = None
    rounds: int = 1
    fewest: int = 0


class Window(NamedTuple):
    """Two spans of rounds that are compared."""

    before: RoundShares
    after: RoundShares


class SharedWindows(NamedTuple):
    """A group of windows of the same rounds.

    Attributes:
        windows: One or more.
        whole: All their rounds pooled.
        part: The part of a round's rate that the windows share.
    """

    windows: Sequence[Window]
    whole: RoundShares
    part: float


def pooled(rounds: Sequence[RoundShares]) -> RoundShares:
    """Return the estimates of all reports of some rounds: scores are means over reports, and so is this.

    Args:
        rounds: One or more, none of them pooled itself.
    """
    if len(rounds) == 1:
        return rounds[0]
    sizes = np.array([each.n for each in rounds])
    weights = sizes / sizes.sum()
    place = None
    if rounds[0].place is not None:
        place = float(weights @ np.array([each.place for each in rounds], np.float64))
    values, categories = (
        weights @ np.stack([getattr(each, family) for each in rounds]) for family in ("values", "categories")
    )
    return RoundShares(int(sizes.sum()), values, categories, place, len(rounds), int(sizes.min()))


def comparisons(rounds: Sequence[RoundShares], *, since: int) -> list[SharedWindows]:
    """Return what the last of some rounds is compared in; nothing where it is the only one.

    Args:
        rounds: In order of time.
        since: The first round of the reference, 0 to len(rounds); rounds before it are looked at only as
            neighbours.
    """
    known = rounds[since:]
    lengths = [2**power for power in range(len(known).bit_length()) if 2 * 2**power <= len(known)]
    windows = [Window(pooled(known[:-length]), pooled(known[-length:])) for length in lengths]
    found = [SharedWindows(windows, pooled(known), 1.0 - FOR_NEIGHBOURS)] if windows else []
    if len(rounds) > 1 and len(known) != 2:  # of two rounds there is no other window
        found.append(SharedWindows([Window(*rounds[-2:])], pooled(rounds[-2:]), FOR_NEIGHBOURS))
    return found
