"""Statistics of a release of tables, from the release and from what is public of its survey.

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
from itertools import combinations, permutations
from typing import Any, Final, TypeAlias, cast

import numpy as np

from hubbub.errors import ParameterError
from hubbub.estimation import (
    Noise,
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
    paired_regression,
    reweighted_shares,
)
from hubbub.mechanisms import PairedTables, PooledNoise, Pooling, SampledParts, channel_from_spec
from hubbub.survey import Bundle, IntegerDomain, Survey

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
        simultaneous_low: The lower end where all intervals of this kind, of all pairs of attributes that the
            survey has in a table, hold at once (Bonferroni).
        simultaneous_high: Its upper end.
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
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None
    p_value: float | None = None
    note: str = ""


COLUMNS_OF_STATISTICS: Final = tuple(field.name for field in fields(StatisticRow))


@lru_cache(maxsize=64)
def table_facts(survey: Survey) -> Facts | None:
    """Return what statistics need of a survey's tables, as JSON types; None of a survey without any.

    They are readings, the attributes of each table by their place, and the noise: the numbers of a cross
    table, or the channel of a bundle.
    """
    margins, form = survey.category_of, survey.form
    names = list(survey.category_names)
    if form.samples_parts:
        sizes: list[int] = list(cast(SampledParts, survey.channel).readings)
        tables = [list(table) for table in cast(Bundle, form).tables]
        known: Facts = {"channel": survey.channel.to_spec()}
    # A score and sets have no margins; the levels of a tree are none.
    elif margins.ndim != 2 or not margins.size or not form.tells_values or form.cell_levels is not None:
        return None
    else:
        sizes, tables = [int(np.ptp(row)) + 1 for row in margins], [list(range(len(margins)))]
        known = {"noise": asdict(TableNoise.of(survey.channel))}
    attributes = []
    for attribute, size in zip(survey.attributes, sizes, strict=True):
        own, names = names[: size - 1], names[size:]
        readings = [name.removeprefix(f"{attribute.id}: ") for name in own]
        by_value = isinstance(attribute.domain, IntegerDomain) and len(readings) == attribute.size
        by_value &= not attribute.tells_absent
        numbers = [float(reading) for reading in readings] if by_value else None
        attributes.append({"id": attribute.id, "readings": readings, "numbers": numbers})
    return {"attributes": attributes, "tables": tables, **known}


class TableStatistics:
    """The statistics of one release of tables.

    Args:
        found: The release, with estimates.
        table: What `table_facts` gave of its survey.
        level: Coverage of the intervals.

    Raises:
        ParameterError: If the release has no estimates, or the level breaks its rule.
    """

    def __init__(self, found: Mapping[str, Any], table: Facts, *, level: float = 0.95) -> None:
        self._attributes = {each["id"]: each for each in table["attributes"]}
        sizes = [len(each["readings"]) + 1 for each in table["attributes"]]
        if not 0.0 < level < 1.0:
            raise ParameterError(f"level must be within (0, 1), got {level:g}")
        values = [cell["estimate"] for cell in found.get("values") or ()]
        shapes = [tuple(sizes[member] for member in members) for members in table["tables"]]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        if len(values) != ends[-1]:
            raise ParameterError("a round must have estimates for statistics, got one without")
        shares = np.split(np.array(values, dtype=np.float64), ends[:-1])
        self._level, self._pooling = level, _pooling(found, table)
        noise = _noises(table, self._pooling)
        self._tables = {
            tuple(members): TableShares(own.reshape(shape), 1, int(found["devices"]), noise(tuple(members)))
            for members, own, shape in zip(table["tables"], shares, shapes, strict=True)
        }

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
        """Yield Cramer's V of every pair of attributes in a table, with the test of it among all pairs."""
        tests: dict[tuple[str, str], tuple[float, str]] = {}
        for pair in self._pairs:
            try:
                tests[pair] = independence(self._pair(*pair)).p_value, ""
            except ParameterError as error:
                tests[pair] = 1.0, str(error)
        p_values = holm([p_value for p_value, _ in tests.values()])
        for (pair, (_, refused)), p_value in zip(tests.items(), p_values, strict=True):
            try:
                found = association(self._pair(*pair), level=self._level)
            except ParameterError as error:
                known = None if refused else p_value
                yield StatisticRow("independence", *pair, p_value=known, note=refused or str(error))
                continue
            span = RatioSpan(found.estimate, found.low, found.high, found.whole)
            rare = ", ".join(f"{pair[axis]} {self._readings(pair[axis])[at]}" for axis, at in found.rare)
            note = f"within 3 errors of nobody, to be joined with others: {rare}" if rare else ""
            yield _filled(StatisticRow("independence", *pair, p_value=p_value, note=note), span)

    def regression(self, of: str, on: Sequence[str]) -> Iterator[StatisticRow]:
        """Yield the coefficients of least squares of a number, or of one of two readings, on attributes.

        A number is a regressor; of labels every reading but the first is one, of 0 and 1.
        """
        if not on or of in on:
            raise ParameterError(f"on must be attributes other than {of}, got {', '.join(on) or 'none'}")
        axes = [*on, of]
        pairs = self._paired(axes)
        table = None if pairs is not None else self._of(axes)
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
            if pairs is not None:
                found = paired_regression(pairs, columns, level=self._level)
            elif table is not None:
                found = linear_regression(table, columns, level=self._level)
        except RefusedStatisticError as error:
            yield StatisticRow("regression", of, ", ".join(on), note=str(error))
            return
        for name, each in zip(names, found, strict=False):
            yield StatisticRow(
                "regression", of, ", ".join(on), None, name, each.estimate, each.low, each.high
            )

    def _paired(self, names: Sequence[str]) -> PairedTables | None:
        """Return the tables of every two attributes of a bundle, None where one table has all of them."""
        axes = [list(self._attributes).index(name) for name in names if self._known(name)]
        if self._pooling is None or any(set(axes) <= set(members) for members in self._tables):
            return None
        both = [tuple(sorted(pair)) for pair in combinations(axes, 2)]
        ids = list(self._attributes)
        shares = {(one, two): self._pair(ids[one], ids[two]).shares for one, two in both}
        return PairedTables(self._pooling, axes, shares)

    def _pair(self, rows: str, columns: str) -> TableShares:
        return self._of([rows, columns])

    def rows(self, kind: str, asked: Mapping[str, str]) -> list[StatisticRow]:
        """Return the rows of a kind of statistic.

        Args:
            kind: One of STATISTICS.
            asked: Its arguments: `of`, `given`, `on` with commas between, `census`; "" where there is none.
        """
        if kind == "independence":
            return list(self.independence())
        of, given = asked["of"], asked["given"]
        if kind == "regression":
            return list(self.regression(of, [name for name in asked["on"].split(",") if name]))
        if kind == "reweighted":
            return list(self.reweighted(of, given, asked["census"]))
        return list(PAIRED[kind](self, of, given))

    def count(self, kind: str) -> int:
        """Return how many rows a kind of statistic has over all pairs of attributes; 0 where none."""
        if kind == "independence":
            return len(self._pairs)
        both = [(len(self._readings(given)), of) for pair in self._pairs for given, of in permutations(pair)]
        return sum(
            {
                "conditional": groups * len(self._readings(of)),
                "odds_ratio": groups * len(self._readings(of)),
                "difference": math.comb(groups, 2) * len(self._readings(of)),
                "mean": groups * (self._known(of)["numbers"] is not None),
            }.get(kind, 0)
            for groups, of in both
        )

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        """Every two attributes that are in a table together."""
        found = [(one, two) for members in self._tables for one, two in combinations(sorted(members), 2)]
        names = list(self._attributes)
        return [(names[one], names[two]) for one, two in sorted(set(found))]

    def _of(self, names: Sequence[str]) -> TableShares:
        order = list(self._attributes)
        cells = math.prod(len(self._known(name)["readings"]) + 1 for name in names)
        if cells > MOST_CELLS:
            raise ParameterError(f"statistics must be of at most {MOST_CELLS:,} combinations, got {cells:,}")
        axes = [order.index(name) for name in names]
        held = next((members for members in self._tables if set(axes) <= set(members)), None)
        if held is None:
            raise ParameterError(f"attributes must be of one table of the survey, got {', '.join(names)}")
        table = self._tables[held]
        if np.isnan(table.shares).any():
            raise ParameterError("a table must have estimates for statistics, got one that no report told")
        return table.of([held.index(axis) for axis in axes])

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


def statistic_rows(
    found: Mapping[str, Any], table: Facts, kind: str, asked: Mapping[str, str], *, level: float
) -> list[StatisticRow]:
    """Return the rows of a kind of statistic, with intervals of each alone and of all at once.

    Args:
        found: The release, with estimates.
        table: What `table_facts` gave of its survey.
        kind: One of STATISTICS.
        asked: Its arguments; see `TableStatistics.rows`.
        level: Coverage of the intervals.

    Raises:
        ParameterError: If the release has no estimates, or an argument breaks its rule.
    """
    statistics = TableStatistics(found, table, level=level)
    rows = statistics.rows(kind, asked)
    many = max(statistics.count(kind), len(rows), 1)
    wide = TableStatistics(found, table, level=1.0 - (1.0 - level) / many).rows(kind, asked)
    return [
        replace(row, simultaneous_low=each.low, simultaneous_high=each.high)
        for row, each in zip(rows, wide, strict=True)
    ]


def _pooling(found: Mapping[str, Any], table: Facts) -> Pooling | None:
    """Return the weights of a bundle's parts by the reports about each; None of a cross table."""
    if "noise" in table:
        return None
    channel = channel_from_spec(table["channel"])
    return Pooling(cast(SampledParts, channel), [line["reports"] for line in found["parts"]])


def _noises(table: Facts, pooling: Pooling | None) -> Callable[[tuple[int, ...]], Noise]:
    """Return what gives the noise of a table by its attributes."""
    if "noise" in table:
        alone = TableNoise(**table["noise"])
        return lambda _: alone
    return lambda members: PooledNoise(cast(Pooling, pooling), members)


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
