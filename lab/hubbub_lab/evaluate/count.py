"""One simulated round: devices answer, faults happen, and the aggregator counts what arrives.

Symbols come from the channel's own integers, ids and symbols go into records of the log's bytes, and the
aggregator's `apply_many` and `release` do the rest. Devices come a chunk at a time, so that memory holds the
set of ids and one chunk, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub import Survey
from hubbub.numeric import Source
from hubbub.wire import ID_BYTES, ReportsRecord, SealRecord, Segment, SurveyRecord, encode_record
from hubbub_aggregator.counting import NOTHING, PartitionState, apply_many
from hubbub_aggregator.release import Release, release
from hubbub_client.agent import channel_inputs, encode_many
from hubbub_client.surveys import most_answers
from hubbub_lab.errors import LabError
from hubbub_lab.evaluate.data import DataSet
from hubbub_lab.evaluate.faults import FaultMix
from hubbub_lab.evaluation.evaluation import Truth, truth_of
from hubbub_lab.simulation.device_simulator import DeviceSimulator

_CHUNK: Final = 1 << 16
"""Devices that answer at a time."""

_CHUNK_BYTES: Final = 1 << 24
"""Bytes of symbols at a time: sets may be wide."""

_RECORD: Final = 1 << 13
"""Reports of a record, as a busy gateway writes them."""

LEDGERS: Final = 1_000
"""Devices whose ledgers are kept to see what an answer costs."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledPopulation:
    """A number of devices with values of a data set.

    Attributes:
        data: Where the values come from.
        counts: Devices with each value, shape (d,), int64.
    """

    data: DataSet
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, data: DataSet, devices: int, chance: np.random.Generator) -> SampledPopulation:
        """Return so many devices."""
        return cls(data, data.draw(devices, chance))

    @property
    def devices(self) -> int:
        """The number of devices."""
        return int(self.counts.sum())

    def truth(self, survey: Survey) -> Truth:
        """Return the true frequencies under a survey."""
        return truth_of(survey, self.data.values, weights=self.counts)

    def drifted(self, share: float, chance: np.random.Generator) -> SampledPopulation:
        """Return the population when a share of those with a value have moved to the next one."""
        present = self.data.present
        moved = chance.binomial(self.counts[: present - 1], share) if present > 1 else np.zeros(0, np.int64)
        after = self.counts.copy()
        after[: len(moved)] -= moved
        after[1 : len(moved) + 1] += moved
        return replace(self, counts=after)

    def chunks(self, most: int) -> Iterator[NDArray[np.int64]]:
        """Yield the place of every device's value among the data set's, at most so many at a time."""
        ends = np.cumsum(self.counts)
        for start in range(0, self.devices, most):
            devices = np.arange(start, min(start + most, self.devices))
            yield np.searchsorted(ends, devices, side="right")

    def columns(self, survey: Survey) -> list[NDArray[Any]]:
        """Return the encoded value of every value of the data set, a column per attribute."""
        values = self.data.values
        held = [values] if len(survey.attributes) == 1 else list(zip(*values, strict=True))
        return [encode_many(attribute, each) for attribute, each in zip(survey.attributes, held, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class CountedRound:
    """A round as it was released, and what it took.

    Attributes:
        release: The sealed release.
        verdicts: What became of every report, those with another round's number included.
        log_bytes: Bytes of the records.
    """

    release: Release
    verdicts: dict[str, int]
    log_bytes: int


class _Log:
    """A partition in memory: what is appended is counted at once, and forgotten."""

    def __init__(self, survey: Survey) -> None:
        self.survey, self.bytes = survey, 0
        self.state = PartitionState(share=(0, 1))
        self._minute = survey.round_start_s(0) // 60
        self.append([encode_record(SurveyRecord(survey.canonical))])

    def append(self, records: list[bytes]) -> None:
        self.state.commit(apply_many(self.state, enumerate(records, start=self.state.offset)))

    def write(self, number: int, ids: NDArray[np.uint8], symbols: NDArray[np.unsignedinteger[Any]]) -> None:
        records = []
        for start in range(0, len(symbols), _RECORD):
            some, those = symbols[start : start + _RECORD], ids[start : start + _RECORD]
            segment = Segment(self.survey.digest, number, those.tobytes(), some, len(some))
            records.append(encode_record(ReportsRecord(self._minute, (segment,))))
        self.bytes += sum(map(len, records))
        self.append(records)


def count_round(
    survey: Survey,
    population: SampledPopulation,
    faults: FaultMix,
    *,
    source: Source,
    chance: np.random.Generator,
) -> CountedRound:
    """Return the sealed first round of a survey that a population answered.

    Args:
        survey: The survey, of two rounds or more where clocks may be ahead.
        population: Who answers.
        faults: What goes wrong; `drift` is the truth's matter.
        source: Where symbols and ids come from.
        chance: Decides whom faults befall.
    """
    log, columns = _Log(survey), population.columns(survey)
    width = np.dtype(np.uint64).itemsize
    widest = survey.channel.widest_symbol
    most = max(1, min(_CHUNK, _CHUNK_BYTES // (len(widest) if isinstance(widest, bytes) else width)))
    for places in population.chunks(most):
        inputs = channel_inputs(survey, [column[places] for column in columns], source=source)
        _send(log, inputs, faults, source=source, chance=chance)
    forged, honest = round(faults.fakes * population.devices), replace(faults, loss=0.0, skew=0.0)
    for start in range(0, forged, most):
        claimed = np.zeros(min(most, forged - start), dtype=np.intp)
        _send(log, claimed, replace(honest, duplicates=0.0), source=source, chance=chance)
    log.append([encode_record(SealRecord(survey.digest, 0))])
    found = release(survey, 0, {0: log.state})
    if found is None:
        raise LabError(f"survey {survey.id!r}: its partition holds a seal, but the round did not release")
    verdicts = sum((each.verdicts for each in log.state.rounds.values()), start=NOTHING)
    return CountedRound(found, verdicts.as_dict(), log.bytes)


def _send(
    log: _Log,
    inputs: NDArray[np.intp],
    faults: FaultMix,
    *,
    source: Source,
    chance: np.random.Generator,
) -> None:
    if faults.loss:
        inputs = inputs[chance.random(len(inputs)) >= faults.loss]
    symbols = log.survey.channel.perturb(inputs, source=source)
    ids = np.frombuffer(source.token_bytes(ID_BYTES * len(inputs)), dtype=np.uint8).reshape(-1, ID_BYTES)
    if faults.skew:
        ahead = chance.random(len(inputs)) < faults.skew
        log.write(1, ids[ahead], symbols[ahead])
        ids, symbols = ids[~ahead], symbols[~ahead]
    log.write(0, ids, symbols)
    if faults.duplicates:
        twice = chance.random(len(ids)) < faults.duplicates
        log.write(0, ids[twice], symbols[twice])


@dataclass(frozen=True, slots=True)
class LedgerSpending:
    """The loss of one answer in the ledgers of some devices, nats.

    Attributes:
        devices: How many ledgers.
        mean: Their mean loss.
        most: The largest.
    """

    devices: int
    mean: float
    most: float


def spending(survey: Survey, population: SampledPopulation, *, source: Source) -> LedgerSpending | None:
    """Return what the privacy filter takes off a budget for one answer; None where no device takes part.

    Args:
        survey: The survey.
        population: Whose values are drawn from.
        source: Where symbols come from.
    """
    devices, now_s = min(LEDGERS, population.devices), float(survey.start_s)
    values = population.data.values
    spaced = np.arange(devices) * population.devices // devices
    places = np.searchsorted(np.cumsum(population.counts), spaced, side="right")
    fleet = DeviceSimulator(len(places), budget=survey.epsilon * most_answers(survey, -1), source=source)
    for number, attribute in enumerate(survey.attributes):
        fleet.register(attribute)
        held = [values[place] for place in places.tolist()]
        several = len(survey.attributes) > 1
        fleet.set(attribute.id, [each[number] for each in held] if several else held)
    if not fleet.enrol(survey, now_s=now_s).accepted.all():
        return None
    fleet.answer(now_s=now_s)
    return LedgerSpending(len(places), float(fleet.loss.mean()), float(fleet.loss.max()))
