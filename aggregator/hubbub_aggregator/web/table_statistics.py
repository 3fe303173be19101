"""Statistics of a release of a cross table, from the release and from what is public of its survey.

Nothing here is part of a release. Statistics are of everybody who could have been asked, if those who
answered are like a random part of them. What so many reports cannot give is refused by the plan, and said so.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np

from hubbub.errors import ParameterError
from hubbub.estimation import (
    RatioSpan,
    RefusedStatisticError,
    TableNoise,
    TableShares,
    association,
    conditional_shares,
    group_difference,
    group_means,
    holm,
    independence,
    linear_regression,
    odds_ratio,
    reweighted_shares,
)
from hubbub.survey import IntegerDomain, Survey

Facts: TypeAlias = dict[str, Any]

MOST_CELLS: Final = 1024
"""Combinations of the attributes of one statistic: a covariance of 8 MB."""

UNBOUNDED: Final = "the data exclude little: the interval is all that is possible, or its hull"


@dataclass(frozen=True)
class StatisticRow:
    """One statistic.

    Attributes:
        statistic: Its kind.
        of: The attribute that it is about.
        given: The attribute of the groups, or None; of a test the other one.
        group: The group's reading, or two of a difference; None where there is none.
        reading: The reading, or the regressor; None where there is none.
        estimate: None where it is refused.
        low: The lower end of its interval.
        high: The upper end.
        p_value: Of a test alone, as one of all pairs (Holm).
        note: What is to be known beside, or why it is refused; "" mostly.
    """

    statistic: str
    of: str
    given: str | None = None
    group: str | None = None
    reading: str | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    note: str = ""


COLUMNS_OF_STATISTICS: Final = tuple(field.name for field in fields(StatisticRow))


@lru_cache(maxsize=64)
def table_facts(survey: Survey) -> Facts | None:
    """Return what statistics need of a cross table, as JSON types: readings and noise; None of others."""
    margins, form = survey.category_of, survey.form
    # A score and sets have no margins; the levels of a tree are none.
    if margins.ndim != 2 or not margins.size or not form.tells_values or form.cell_levels is not None:
        return None
    names, sizes = list(survey.category_names), [int(np.ptp(row)) + 1 for row in survey.category_of]
    attributes = []
    for attribute, size in zip(survey.attributes, sizes, strict=True):
        own, names = names[: size - 1], names[size:]
        readings = [name.removeprefix(f"{attribute.id}: ") for name in own]
        by_value = isinstance(attribute.domain, IntegerDomain) and len(readings) == attribute.size
        numbers = [float(reading) for reading in readings] if by_value else None
        attributes.append({"id": attribute.id, "readings": readings, "numbers": numbers})
    return {"attributes": attributes, "noise": asdict(TableNoise.of(survey.channel))}


class TableStatistics:
    """The statistics of one release of a cross table.

    Args:
        found: The release, with estimates.
        table: What `table_facts` gave of its survey.
        level: Coverage of the intervals.

    Raises:
        ParameterError: If the release has no estimates, or the level breaks its rule.
    """

    def __init__(self, found: Mapping[str, Any], table: Facts, *, level: float = 0.95) -> None:
        self._attributes = {each["id"]: each for each in table["attributes"]}
        shape = [len(each["readings"]) + 1 for each in table["attributes"]]
        values = [cell["estimate"] for cell in found.get("values") or ()]
        if len(values) != math.prod(shape) or None in values:
            raise ParameterError("a round must have estimates for statistics, got one without")
        if not 0.0 < level < 1.0:
            raise ParameterError(f"level must be within (0, 1), got {level:g}")
        shares = np.array(values, dtype=np.float64).reshape(shape)
        self._table = TableShares(shares, 1, int(found["devices"]), TableNoise(**table["noise"]))
        self._level = level

    def conditional(self, of: str, given: str) -> Iterator[StatisticRow]:
        """Yield the shares of an attribute's readings within every group of another."""
        rows = conditional_shares(self._pair(given, of), level=self._level)
        for group, spans in zip(self._readings(given), rows, strict=True):
            for reading, span in zip(self._readings(of), spans, strict=True):
                yield _filled(StatisticRow("conditional", of, given, group, reading), span)

    def mean(self, of: str, given: str) -> Iterator[StatisticRow]:
        """Yield the mean of a number within every group of another attribute."""
        numbers = self._known(of)["numbers"]
        if numbers is None:
            raise ParameterError(f"a mean must be of an integer read by value, got {of}")
        spans = group_means(self._pair(given, of), numbers, level=self._level)
        for group, span in zip(self._readings(given), spans, strict=True):
            yield _filled(StatisticRow("mean", of, given, group), span)

    def difference(self, of: str, given: str) -> Iterator[StatisticRow]:
        """Yield the differences of an attribute's shares between every two groups of another."""
        table, groups = self._pair(given, of), self._readings(given)
        for first, second in combinations(range(len(groups)), 2):
            for v, reading in enumerate(self._readings(of)):
                span = group_difference(table, first, second, v, level=self._level)
                group = f"{groups[first]} - {groups[second]}"
                yield _filled(StatisticRow("difference", of, given, group, reading), span)

    def odds_ratio(self, of: str, given: str) -> Iterator[StatisticRow]:
        """Yield the odds of every reading in every group over those of all other groups together."""
        table = self._pair(given, of)
        for u, group in enumerate(self._readings(given)):
            for v, reading in enumerate(self._readings(of)):
                span = odds_ratio(table, u, v, level=self._level)
                yield _filled(StatisticRow("odds_ratio", of, given, group, reading), span)

    def reweighted(self, of: str, given: str, census: str) -> Iterator[StatisticRow]:
        """Yield the shares of an attribute where another one has the shares of a census.

        Args:
            of: The attribute.
            given: The one whose shares the census has.
            census: CSV with a line for every reading: the reading, its share.
        """
        sizes = _census(census, self._readings(given), given)
        try:
            spans = reweighted_shares(self._pair(given, of), sizes, level=self._level)
        except RefusedStatisticError as error:
            yield StatisticRow("reweighted", of, given, note=str(error))
            return
        for reading, span in zip(self._readings(of), spans, strict=True):
            yield _filled(StatisticRow("reweighted", of, given, reading=reading), span)

    def independence(self) -> Iterator[StatisticRow]:
        """Yield Cramer's V of every pair of attributes, with the test of independence among all pairs."""
        pairs = list(combinations(self._attributes, 2))
        tests = [independence(self._pair(*pair)) for pair in pairs]
        for pair, p_value in zip(pairs, holm([test.p_value for test in tests]), strict=True):
            try:
                found = association(self._pair(*pair), level=self._level)
            except RefusedStatisticError as error:
                yield StatisticRow("independence", *pair, p_value=p_value, note=str(error))
                continue
            span = RatioSpan(found.estimate, found.low, found.high, found.whole)
            note = "a margin is within 3 errors of 0: join its readings" if found.whole else ""
            yield _filled(StatisticRow("independence", *pair, p_value=p_value, note=note), span)

    def regression(self, of: str, on: Sequence[str]) -> Iterator[StatisticRow]:
        """Yield the coefficients of least squares of a number, or of one of two readings, on attributes.

        A number is a regressor; of labels every reading but the first is one, of 0 and 1.
        """
        axes = [*on, of]
        table = self._of(axes)
        names, columns = ["intercept"], []
        for name in axes:
            known = self._known(name)
            own = [known["numbers"]] if known["numbers"] else np.eye(len(known["readings"]))[1:].tolist()
            columns.append(own)
            labels = [name] if known["numbers"] else [f"{name}: {each}" for each in known["readings"][1:]]
            names += labels
        if len(columns[-1]) != 1:
            raise ParameterError(f"a regression must be of a number or of two readings, got {of}")
        try:
            found = linear_regression(table, columns, level=self._level)
        except RefusedStatisticError as error:
            yield StatisticRow("regression", of, ", ".join(on), note=str(error))
            return
        for name, each in zip(names, found, strict=False):
            yield StatisticRow(
                "regression", of, ", ".join(on), None, name, each.estimate, each.low, each.high
            )

    def _pair(self, rows: str, columns: str) -> TableShares:
        return self._of([rows, columns])

    def _of(self, names: Sequence[str]) -> TableShares:
        order = list(self._attributes)
        cells = math.prod(len(self._known(name)["readings"]) + 1 for name in names)
        if cells > MOST_CELLS:
            raise ParameterError(f"statistics must be of at most {MOST_CELLS:,} combinations, got {cells:,}")
        return self._table.of([order.index(name) for name in names])

    def _known(self, name: str) -> Facts:
        if name not in self._attributes:
            raise ParameterError(f"attributes must be of {', '.join(self._attributes)}, got {name}")
        known: Facts = self._attributes[name]
        return known

    def _readings(self, name: str) -> list[str]:
        readings: list[str] = self._known(name)["readings"]
        return readings


PAIRED: Final[Mapping[str, Callable[[TableStatistics, str, str], Iterator[StatisticRow]]]] = {
    "conditional": TableStatistics.conditional,
    "mean": TableStatistics.mean,
    "difference": TableStatistics.difference,
    "odds_ratio": TableStatistics.odds_ratio,
}
"""The statistics of one attribute given another."""

STATISTICS: Final = ("independence", *PAIRED, "reweighted", "regression")
"""Every kind of statistic, by name."""


def _filled(row: StatisticRow, span: RatioSpan) -> StatisticRow:
    """Return a row with an estimate and its interval; what is not a number, or without end, is None."""
    estimate, low, high = (
        float(number) if math.isfinite(number) else None for number in (span.estimate, span.low, span.high)
    )
    note = row.note or (UNBOUNDED if span.whole else "")
    return replace(row, estimate=estimate, low=low, high=high, note=note)


def _census(text: str, readings: Sequence[str], name: str) -> list[float]:
    """Return the shares of a census in the order of the readings.

    Raises:
        ParameterError: If it is no CSV with a share for each of them.
    """
    found: dict[str, float] = {}
    for line in csv.reader(io.StringIO(text)):
        if len(line) == 2 and line[0] in readings:
            try:
                found[line[0]] = float(line[1])
            except ValueError:
                raise ParameterError(f"a share of {name} must be a number, got {line[1]:.20}") from None
    missing = [reading for reading in readings if reading not in found]
    if missing:
        raise ParameterError(f"a census must have a line 'reading,share' for {name} {missing[0]}, got none")
    return [found[reading] for reading in readings]
