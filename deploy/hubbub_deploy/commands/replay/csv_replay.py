"""The replay of a data set offline, by the code of devices and server, with the truth beside the release.

What a device would send goes into records of the log's own bytes, one log per partition in memory; the
aggregator's `apply` counts them and its `release` publishes. Only HTTP, disks and clocks are left out.
"""

from __future__ import annotations

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
from hubbub.testing import seeded
from hubbub.wire import ReportsRecord, SealRecord, Segment, SurveyRecord, encode_counts, encode_record
from hubbub_aggregator.counting import PartitionState, apply_many
from hubbub_aggregator.release import Release, canonical_bytes, release
from hubbub_client.surveys import most_answers
from hubbub_deploy.commands.arguments import take_dictionaries
from hubbub_deploy.errors import DeployError
from hubbub_deploy.extras import missing
from hubbub_deploy.files import load_survey, one_round_each, refuse_unwritable, writing
from hubbub_lab import texts
from hubbub_lab.evaluation import (
    PLAIN,
    Evaluation,
    Rows,
    Spelling,
    columns_of,
    print_json,
    quality,
    read_people,
    show,
    truth_of,
    values_of,
)
from hubbub_lab.simulation import Column, DeviceSimulator

PARTITIONS: Final = 4
# The reports that a busy gateway writes into one partition in one linger.
BATCH_REPORTS: Final = 1_000

TOLD_REPORTS: Final = 100_000
"""Reports between two words on how far the simulation is, as many as rows in reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """The settings of a replay.

    Attributes:
        csv: One device per row, first row the header: CSV in UTF-8, .gz of it, or .parquet; "-" is stdin.
        surveys: Survey files.
        columns: Attribute id -> column, where the names differ.
        dictionaries: Files of those that the surveys name.
        spelling: How a CSV is written.
        clip: Move numbers outside a domain to its nearer end.
        seed: Makes the run repeatable; None draws from the operating system.
        out: Folder for plots and releases; None writes none.
        rows: Which value rows the table has.
        output: Table for people, JSON for programs.
    """

    csv: Path
    surveys: tuple[Path, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    dictionaries: tuple[Path, ...] = ()
    spelling: Spelling = PLAIN
    clip: bool = False
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
    if settings.out is not None:
        refuse_unwritable(settings.out, kind="folder")
    surveys = [load_survey(path) for path in settings.surveys]
    one_round_each(surveys)
    attributes = [attribute for survey in surveys for attribute in survey.attributes]
    take_dictionaries(settings.dictionaries, attributes, {each.id for each in attributes})
    columns = columns_of(attributes, settings.columns)
    talk, evaluations = texts.talk(), []
    table = read_people(
        settings.csv,
        sorted(set(columns.values())),
        spelling=settings.spelling,
        say=talk.print,
        progress=lambda rows: talk.print(f"{rows:,} rows read"),
    )
    source = SYSTEM if settings.seed is None else seeded(settings.seed)
    for survey in surveys:
        each = []
        for attribute in survey.attributes:
            column = columns[attribute.id]
            read = values_of(attribute, table[column], clip=settings.clip)
            if said := quality(column, read):
                talk.print(said)
            each.append(read.held)
        values = each[0].tolist() if len(each) == 1 else list(zip(*each, strict=True))
        began = time.perf_counter()
        evaluations.append(replay(survey, values, source=source, progress=_progress(survey, talk)))
        seconds = time.perf_counter() - began
        talk.print(f"{survey.title}: {len(values):,} devices in {seconds:.2f} s")
    if settings.out is not None:
        _write(evaluations, settings.out, talk)
    if settings.output == "json":
        print_json([evaluation.as_json() for evaluation in evaluations])
    else:
        show(evaluations, rows=settings.rows, console=texts.results())
    return 0


def _progress(survey: Survey, talk: Console) -> Callable[[int, int], None]:
    """Return a listener that says every 100,000 devices how far a simulation is."""
    told = 0

    def tell(done: int, devices: int) -> None:
        nonlocal told
        if done // TOLD_REPORTS > told // TOLD_REPORTS:
            talk.print(f"{survey.title}: {done:,} of {devices:,} reports counted")
            told = done

    return tell


def replay(
    survey: Survey,
    values: Sequence[object],
    *,
    source: Source = SYSTEM,
    progress: Callable[[int, int], None] = lambda done, devices: None,
) -> Evaluation:
    """Return a survey's sealed release and the truth, one device per value answering its first round.

    Of a rotating survey those answer whose turn it is, and the truth is theirs.

    Args:
        survey: The survey.
        values: One per device, or a tuple of one per attribute; None is missing.
        source: Where the fleet's randomness comes from.
        progress: Is told how many reports of how many are counted, once their devices have answered.

    Raises:
        DeployError: If there is no value, or it is nobody's turn.
    """
    if not len(values):
        raise DeployError("a replay needs at least one device, got none")
    now_s = float(survey.start_s)
    fleet = DeviceSimulator(len(values), budget=survey.epsilon * most_answers(survey, -1), source=source)
    columns = (
        [values] if len(survey.attributes) == 1 else zip(*cast(Sequence[tuple[object]], values), strict=True)
    )
    for attribute, held in zip(survey.attributes, columns, strict=True):
        fleet.register(attribute)
        fleet.set(attribute.id, held)
    fleet.enrol(survey, now_s=now_s)
    answered = fleet.answer(now_s=now_s)
    if not answered:
        raise DeployError(
            f"survey {survey.id!r} must have a device whose turn the first of {survey.rotation} rounds is, "
            f"got none of {len(values)}"
        )
    (column,) = answered
    states, counted = {}, 0

    def count(reports: int) -> None:
        nonlocal counted
        counted += reports
        progress(counted, len(column.devices))

    for partition in range(PARTITIONS):
        state = states[partition] = PartitionState(share=(partition, PARTITIONS))
        state.commit(apply_many(state, enumerate(_log(column, partition, count))))
    finished = release(survey, column.round, states)
    if finished is None:
        raise DeployError(
            f"survey {survey.id!r}: every partition holds a seal, but the round did not release"
        )
    truth = truth_of(survey, [values[device] for device in column.devices.tolist()])
    public = finished.public_counts()
    counts = None if public is None else encode_counts(public)
    return Evaluation(survey, finished.document(), truth, _smoothed(finished), counts)


def _smoothed(finished: Release) -> Smoothed | None:
    """Return the smoothed view of a release of numbers; None where there is none or nothing is released."""
    if finished.is_suppressed or finished.survey.points is None:
        return None
    try:
        return finished.survey.estimator()(finished.tally.counts, finished.tally.n).smoothed()
    except ParameterError:
        return None


def _log(column: Column, partition: int, count: Callable[[int], None]) -> Iterator[bytes]:
    """Return the records of one partition: the survey, the reports routed here, the seal.

    `count` is told the reports of each record once it was taken.
    """
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
        count(len(chosen))
    yield encode_record(SealRecord(survey.digest, column.round))


def _write(evaluations: Sequence[Evaluation], folder: Path, talk: Console) -> None:
    draw = _drawing(talk)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for evaluation in evaluations:
            name = f"{evaluation.survey.id}-v{evaluation.survey.version}"
            (folder / f"{name}.json").write_bytes(canonical_bytes(evaluation.release))
            (folder / f"{name}.survey").write_bytes(evaluation.survey.canonical)
            if evaluation.counts is not None:
                (folder / f"{name}.counts").write_bytes(evaluation.counts)
            if draw is not None:
                draw(evaluation, folder / f"{name}.png")
            talk.print(f"wrote {folder / name}.json" + (" and .png" if draw is not None else ""))
        summary = {evaluation.survey.id: evaluation.summary() for evaluation in evaluations}
        (folder / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")


def _drawing(talk: Console) -> Callable[[Evaluation, Path], None] | None:
    """Return the function that draws; None, and a line about it, where no drawing library is installed."""
    try:
        from hubbub_lab.evaluation import plot  # noqa: PLC0415 - a node has no drawing library
    except ModuleNotFoundError as error:
        talk.print(f"no pictures are drawn: {missing(error.name or '')}")
        return None
    return plot
