"""Bands that hold at every look, beside open rounds and beside all rounds of fresh answers so far.

A reader of an open round looks at it as often as they like, and a reader of a survey after every round; an
interval of a sealed round is for one look. These bands are no part of a release. Of an open round they are of
the devices counted so far; over rounds, of everybody who could have been asked, each round weighing as many
reports as it has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation import (
    Looks,
    RoundShares,
    ScoreNoise,
    SurveyNoise,
    always_valid,
    always_valid_so_far,
)
from hubbub.survey import Survey, number_of_round
from hubbub_aggregator.release.disclosure import cohort_of
from hubbub_aggregator.release.judgement import is_fresh, shares_of

Document: TypeAlias = Mapping[str, Any]
Floats: TypeAlias = NDArray[np.float64]

KEPT: Final = 100
"""Rounds of one survey for which the band over all rounds so far is told, the newest."""

_CELLS: Final = 2**16
"""The most cells of them, a second's work when a process starts."""

NOTHING_SO_FAR: Final[dict[str, Any]] = {
    **{"rounds": [], "devices": [], "values": [], "categories": []},
    "mean": None,
}
"""The band of a survey that has none."""

_LINE: Final = ("estimate", "low", "high")
_SINGLE: Final = ("always_low", "always_high")
_TOGETHER: Final = ("always_simultaneous_low", "always_simultaneous_high")


def with_bands(document: dict[str, Any], survey: Survey, noise: SurveyNoise) -> dict[str, Any]:
    """Return an open round whose cells have bands that hold at every look.

    They are `always_low`, `always_high`, and `always_simultaneous_low` and `_high` of all of a kind at once,
    of the devices counted so far; of a score the mean has the first two. A round has none where nothing is
    shown or the mechanism has no bound, nor a later round of a static survey: its answers were seen before.

    Args:
        document: As `Release.document` gives it.
        survey: The survey.
        noise: Its estimates' noise.
    """
    if document["suppressed"] or not (is_fresh(survey) or document["round"] == number_of_round(0)):
        return document
    shares, n = shares_of(survey, document), np.array([document["devices"]])
    looks = Looks(cohort_of(survey), survey.planned_per_round)
    alpha = 1.0 - float(document["level"])
    found = dict(document)
    for family, part, estimates in _families(noise, [shares]):
        columns: dict[str, list[float | None]] = {}
        for names, each in ((_SINGLE, alpha), (_TOGETHER, alpha / estimates.shape[1])):
            # A score's devices stand between its ends, which the crowd's form bounds.
            of: Literal["crowd", "devices"] = "crowd" if family == "mean" else "devices"
            ends = always_valid(estimates, part, n, alpha=each, looks=looks, of=of)
            columns |= {name: _numbers(end[0]) for name, end in zip(names, ends, strict=True)}
        if family == "mean":
            if document["mean"] is not None:
                found["mean"] = document["mean"] | {
                    name: _in_units(survey, columns[name])[0] for name in _SINGLE
                }
        else:
            found[family] = [
                cell | {name: column[i] for name, column in columns.items()}
                for i, cell in enumerate(document[family])
            ]
    return found


class SoFar:
    """All rounds of a survey of fresh answers so far, after each of the newest ones.

    Args:
        survey: The survey.
        noise: Its estimates' noise.
    """

    def __init__(self, survey: Survey, noise: SurveyNoise) -> None:
        self._survey, self._noise = survey, noise
        self._kept = max(2, min(KEPT, _CELLS // survey.channel.inputs))
        self._known: dict[int, RoundShares] = {}
        # Estimates, lower and upper ends of the newest rounds, shape (3, rounds, c), by kind of cells.
        self._columns: dict[str, Floats] = {}
        self._document = NOTHING_SO_FAR

    def update(self, releases: Mapping[int, Document]) -> None:
        """Take every release of the survey, by round."""
        shown = [number for number in sorted(releases) if not releases[number]["suppressed"]]
        if not shown or not is_fresh(self._survey) or not self._noise.is_bounded:
            return
        known = list(self._known)
        self._known = {
            number: self._known.get(number) or shares_of(self._survey, releases[number]) for number in shown
        }
        # Of rounds that came after all known ones the band is reckoned alone.
        follows = shown[: len(known)] == known
        fresh = len(shown) - len(known) if follows else len(shown)
        if not fresh:
            return
        newest, last = min(fresh, self._kept), releases[shown[-1]]
        n = np.array([each.n for each in self._known.values()])
        looks = Looks(cohort_of(self._survey), self._survey.planned_per_round * self._survey.rounds)
        alpha = 1.0 - float(last["level"])
        for family, part, estimates in _families(self._noise, list(self._known.values())):
            found = always_valid_so_far(estimates, part, n, alpha=alpha, looks=looks, newest=newest)
            columns = np.stack(found)
            if follows and newest == fresh and family in self._columns:
                columns = np.concatenate([self._columns[family], columns], axis=1)[:, -self._kept :]
            self._columns[family] = columns
        self._document = NOTHING_SO_FAR | {
            "rounds": [number_of_round(index) for index in shown[-self._kept :]],
            "devices": np.cumsum(n)[-self._kept :].tolist(),
            **{family: self._lines(family, last) for family in self._columns},
        }

    def _lines(self, family: str, last: Document) -> list[dict[str, Any]] | dict[str, Any]:
        """Return the lines of a kind of cells, or that of the mean."""
        columns = self._columns[family]
        lines: list[dict[str, Any]] = [
            dict(zip(_LINE, map(_numbers, columns[:, :, i]), strict=True)) for i in range(columns.shape[2])
        ]
        if family == "mean":
            return {name: _in_units(self._survey, column) for name, column in lines[0].items()}
        return [{"label": cell["label"]} | line for cell, line in zip(last[family], lines, strict=True)]

    def document(self) -> dict[str, Any]:
        """Return rounds, devices so far, and per cell lists over the rounds, as JSON types."""
        return self._document


def _families(noise: SurveyNoise, rounds: Sequence[RoundShares]) -> Iterator[tuple[str, ScoreNoise, Floats]]:
    """Yield the kinds of cells that have bounds, with their estimates, shape (rounds, c)."""
    for family, part in (("values", noise.values), ("categories", noise.categories)):
        if part is not None and len(getattr(rounds[0], family)):
            yield family, part, np.stack([getattr(each, family) for each in rounds])
    if noise.place is not None:
        places = [math.nan if each.place is None else each.place for each in rounds]
        yield "mean", noise.place, np.array(places)[:, None]


def _in_units(survey: Survey, places: Sequence[float | None]) -> list[float | None]:
    """Return places between a score's ends as its numbers."""
    points = survey.points
    if points is None:
        return [None] * len(places)
    low, high = float(points[0]), float(points[-1])
    return [None if place is None else low + place * (high - low) for place in places]


def _numbers(column: Floats) -> list[float | None]:
    return [each if math.isfinite(each) else None for each in column.tolist()]
