"""A data set through the same code, offline: fleet, wire bytes, counting, seal and release, then the truth.

What a device would send goes into records of the log's own bytes, one log per partition in memory; the
aggregator's `apply` counts them and its `release` publishes. Only HTTP, disks and clocks are left out.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import numpy as np
from rich.console import Console

from hubbub import Survey
from hubbub.errors import ParameterError
from hubbub.estimation import Smoothed
from hubbub.numeric import SYSTEM, Source
from hubbub.survey import Attribute, IntegerDomain, NumberDomain
from hubbub.testing import seeded
from hubbub.wire import ReportsRecord, SealRecord, Segment, SurveyRecord, encode_record
from hubbub_aggregator.counting import PartitionState, apply_many
from hubbub_aggregator.release import Release, canonical_bytes, release
from hubbub_deploy.errors import DeployError
from hubbub_deploy.evaluation.evaluation import truth_of
from hubbub_deploy.evaluation.report import Evaluation, Rows, print_json, show
from hubbub_deploy.extras import missing
from hubbub_deploy.simulation.device_simulator import Column, DeviceSimulator

PARTITIONS: Final = 4
# The reports that a busy gateway writes into one partition in one linger.
BATCH_REPORTS: Final = 1_000
_MISSING: Final = frozenset({"", "?", "NA", "nan", "NaN", "null"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """The settings of a replay.

    Attributes:
        csv: One device per row, first row the header, UTF-8.
        surveys: Survey files.
        columns: Attribute id -> column, where the names differ.
        seed: Makes the run repeatable; None draws from the operating system.
        out: Folder for plots and releases; None writes none.
        rows: Which value rows the table has.
        output: Table for people, JSON for programs.
    """

    csv: Path
    surveys: tuple[Path, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    out: Path | None = None
    rows: Rows = "most frequent"
    output: str = "table"


def run(settings: ReplaySettings) -> int:
    """Replay every survey, print the comparison, and return 0.

    Raises:
        SurveyError: If a survey cannot be compiled.
        DeployError: If the data cannot be read, or a column is missing.
    """
    surveys = [Survey.load(path) for path in settings.surveys]
    columns = {
        attribute.id: settings.columns.get(attribute.id, attribute.id)
        for survey in surveys
        for attribute in survey.attributes
    }
    if strange := sorted(settings.columns.keys() - columns.keys()):
        raise DeployError(f"--column must name one of {', '.join(sorted(columns))}, got {', '.join(strange)}")
    talk, evaluations = Console(stderr=True, highlight=False), []
    texts = read_columns(settings.csv, sorted(set(columns.values())), say=talk.print)
    source = SYSTEM if settings.seed is None else seeded(settings.seed)
    for survey in surveys:
        each = [
            [value_of(attribute, text) for text in texts[columns[attribute.id]]]
            for attribute in survey.attributes
        ]
        values: list[object] = each[0] if len(each) == 1 else list(zip(*each, strict=True))
        began = time.perf_counter()
        evaluations.append(replay(survey, values, source=source))
        seconds = time.perf_counter() - began
        talk.print(f"{survey.title}: {len(values):,} devices in {seconds:.2f} s")
    if settings.out is not None:
        _write(evaluations, settings.out, talk)
    if settings.output == "json":
        print_json([evaluation.as_json() for evaluation in evaluations])
    else:
        show(evaluations, rows=settings.rows, console=Console(highlight=False))
    return 0


def replay(survey: Survey, values: Sequence[object], *, source: Source = SYSTEM) -> Evaluation:
    """Return a survey's sealed release and the truth, one device per value answering its first round.

    Args:
        survey: The survey.
        values: One per device, or a tuple of one per attribute; None is missing.
        source: Where the fleet's randomness comes from.

    Raises:
        DeployError: If there is no value.
    """
    if not values:
        raise DeployError("a replay needs at least one device, got none")
    now_s = float(survey.start_s)
    fleet = DeviceSimulator(len(values), budget=survey.epsilon * survey.rounds, source=source)
    columns = (
        [values] if len(survey.attributes) == 1 else zip(*cast(Sequence[tuple[object]], values), strict=True)
    )
    for attribute, held in zip(survey.attributes, columns, strict=True):
        fleet.register(attribute)
        fleet.set(attribute.id, held)
    fleet.enrol(survey, now_s=now_s)
    (column,) = fleet.answer(now_s=now_s)
    states = {}
    for partition in range(PARTITIONS):
        state = states[partition] = PartitionState(share=(partition, PARTITIONS))
        state.commit(apply_many(state, enumerate(_log(column, partition))))
    finished = release(survey, column.round, states)
    if finished is None:
        raise DeployError(
            f"survey {survey.id!r}: every partition holds a seal, but the round did not release"
        )
    return Evaluation(survey, finished.document(), truth_of(survey, values), _smoothed(finished))


def _smoothed(finished: Release) -> Smoothed | None:
    """Return the smoothed view of a release of numbers; None where there is none or nothing is released."""
    if finished.is_suppressed or finished.survey.points is None:
        return None
    try:
        return finished.survey.estimator()(finished.tally.counts, finished.tally.n).smoothed()
    except ParameterError:
        return None


def _log(column: Column, partition: int) -> Iterator[bytes]:
    """Return the records of one partition: the survey, the reports routed here, the seal."""
    survey = column.survey
    yield encode_record(SurveyRecord(survey.canonical))
    # The route that a gateway takes: the id's last eight bytes, big-endian, modulo the partitions.
    route = np.ascontiguousarray(column.ids[:, 8:16]).view(">u8")[:, 0] % PARTITIONS
    rows = np.flatnonzero(route == partition)
    for start in range(0, len(rows), BATCH_REPORTS):
        chosen = rows[start : start + BATCH_REPORTS]
        segment = Segment(
            digest=survey.digest,
            round=column.round,
            ids=column.ids[chosen].tobytes(),
            symbols=column.symbols[chosen],
            attempts=len(chosen),
        )
        minute = survey.round_start_s(column.round) // 60
        yield encode_record(ReportsRecord(minute, (segment,)))
    yield encode_record(SealRecord(survey.digest, column.round))


def read_columns(
    path: Path, names: Sequence[str], *, say: Callable[[str], None] = lambda text: None
) -> dict[str, list[str]]:
    """Return the named columns of a CSV file, as text, one entry per row.

    In a file of one column an empty line is a row whose field is empty; in any other it is no row.

    Args:
        path: The file.
        names: Columns of its header.
        say: Is told of empty lines.

    Raises:
        DeployError: If the file cannot be read, a column is missing, or a row is too short.
    """
    columns: dict[str, list[str]] = {name: [] for name in names}
    empty = 0
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            for name in names:
                if name not in header:
                    raise DeployError(
                        f"{path}: columns must include {name!r}, got {', '.join(header) or None}"
                    )
            places = [(columns[name], header.index(name)) for name in names]
            for row in reader:
                if not row:
                    empty += 1
                    if len(header) > 1:
                        continue
                    row = [""]  # noqa: PLW2901 - what the line says
                if len(row) < len(header):
                    raise DeployError(
                        f"{path}: line {reader.line_num} must have {len(header)} fields, got {len(row)}"
                    )
                for column, place in places:
                    column.append(row[place].strip())
    except OSError as error:
        raise DeployError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DeployError(f"{path}: must be a CSV file in UTF-8: {error}") from None
    if empty:
        taken = "a device each, its value missing" if len(header) == 1 else "not counted as devices"
        say(f"{path}: empty lines are {taken}: {empty:,}")
    return columns


def value_of(attribute: Attribute, text: str) -> object:
    """Return the value that a host would hold for a field of a CSV file; None where it is no value."""
    if text in _MISSING:
        return None
    domain = attribute.domain
    try:
        if isinstance(domain, IntegerDomain):
            number = float(text)
            return int(number) if number.is_integer() else None
        if isinstance(domain, NumberDomain):
            return float(text)
    except (ValueError, OverflowError):
        return None
    return text


def _write(evaluations: Sequence[Evaluation], folder: Path, talk: Console) -> None:
    draw = _drawing(talk)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for evaluation in evaluations:
            name = f"{evaluation.survey.id}-v{evaluation.survey.version}"
            (folder / f"{name}.json").write_bytes(canonical_bytes(evaluation.release))
            if draw is not None:
                draw(evaluation, folder / f"{name}.png")
            talk.print(f"wrote {folder / name}.json" + (" and .png" if draw is not None else ""))
        summary = {evaluation.survey.id: evaluation.summary() for evaluation in evaluations}
        (folder / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    except OSError as error:
        raise DeployError(f"{folder}: cannot be written: {error.strerror}") from None


def _drawing(talk: Console) -> Callable[[Evaluation, Path], None] | None:
    """Return the function that draws; None, and a line about it, where no drawing library is installed."""
    try:
        from hubbub_deploy.evaluation.plots import plot  # noqa: PLC0415 - a node has no drawing library
    except ModuleNotFoundError as error:
        talk.print(f"no pictures are drawn: {missing(error.name or '')}", markup=False)
        return None
    return plot
