"""Many simulated devices at once, by the agent's decisions and with the law of its answers.

The agent's own functions decide what to reserve, when to answer, to which slot an answer belongs (`schedule`)
and how a value is encoded (`encoded_value`). The same channels draw the symbols, and the same filter keeps
the ledgers (`vectorised_filter`). Two things differ: nothing is written to disk, and a source of randomness
can be given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub import wire
from hubbub.errors import ParameterError
from hubbub.numeric import SYSTEM, Source
from hubbub.survey import Attribute, Survey
from hubbub_client import AttributeRefusedError
from hubbub_client.agent import (
    MAX_LEDGER_BYTES,
    MAX_LEDGER_MEMORY,
    MAX_LEDGER_SLOTS,
    MAX_LEDGER_WORK,
    MAX_SLOTS,
    EncodedValues,
    channel_inputs,
    encode_many,
    round_units,
    rounds_fit,
)
from hubbub_client.surveys import (
    MEMOISED,
    SEED_BYTES,
    Refusal,
    check_eligibility,
    due,
    last_closed_round,
    most_answers,
    scheduled_answer_of,
    scheduled_answers,
    scheduled_query,
    slot_in_cycle,
    survey_load,
)
from hubbub_client.upload import Limits, Pending, Upload
from hubbub_lab.simulation.upload import FLEET_LIMITS, Job, UploadCounts, send
from hubbub_lab.simulation.vectorised_filter import VectorisedFilter


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The reports of one survey in one round, as columns.

    Attributes:
        survey: Which survey.
        round: Which round.
        devices: Who sent each report, shape (k,), intp, rising; never on the wire.
        ids: Report ids, shape (k, 16), uint8.
        symbols: Answers, shape (k,), unsigned, or packed sets, shape (k, bytes of one), uint8.
        tokens: One-time tokens that go with them, k of them; None where none are asked for.
    """

    survey: Survey
    round: int
    devices: NDArray[np.intp]
    ids: NDArray[np.uint8]
    symbols: NDArray[np.unsignedinteger[Any]]
    tokens: tuple[bytes, ...] | None = None

    def report(self, row: int) -> Pending:
        """Return one report, id and bytes, as it would lie in an outbox."""
        identifier = self.ids[row].tobytes()
        answer = self.symbols[row]
        symbol = int(answer) if self.symbols.ndim == 1 else answer.tobytes()
        report = wire.Report(self.survey.digest, self.round, identifier, symbol)
        token = None if self.tokens is None else self.tokens[row]
        return Pending(identifier, wire.encode_report(report), token)

    def among(self, devices: NDArray[np.intp]) -> Column:
        """Return the reports of some of the devices."""
        kept = np.isin(self.devices, devices)
        return Column(self.survey, self.round, self.devices[kept], self.ids[kept], self.symbols[kept])


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedEnrolment:
    """The result of asking simulated devices to take part in a survey.

    Attributes:
        accepted: Which devices take part, shape (n,), bool.
        reason: Why the others do not, None if all do.
    """

    accepted: NDArray[np.bool_]
    reason: Refusal | None


@dataclass(slots=True, eq=False)
class _Enrolled:
    """A survey that some devices take part in.

    Attributes:
        devices: Which ones, shape (k,), rising.
        last_closed: As the agent keeps it.
        answered: Rounds answered.
        memo: Their pinned answers, as in Column; None before there are any, and for evolving attributes.
        seeds: The secrets of their slots, SEED_BYTES each; none unless the survey rotates.
    """

    survey: Survey
    devices: NDArray[np.intp]
    last_closed: int
    answered: set[int] = field(default_factory=set)
    memo: NDArray[np.unsignedinteger[Any]] | None = None
    seeds: bytes = b""
    _slots: tuple[int, NDArray[np.intp]] | None = None

    def slots(self, cycle: int) -> NDArray[np.intp]:
        """Return each device's slot in a cycle, shape (k,)."""
        if self._slots is None or self._slots[0] != cycle:
            rotation = self.survey.rotation
            starts = range(0, len(self.seeds), SEED_BYTES)
            drawn = (slot_in_cycle(self.seeds[i : i + SEED_BYTES], cycle, rotation) for i in starts)
            self._slots = cycle, np.fromiter(drawn, dtype=np.intp, count=len(starts))
        return self._slots[1]

    def answering(self, round_number: int) -> NDArray[np.intp]:
        """Return the devices that answer in a round: all, or those whose slot it is, rising."""
        if not self.seeds:
            return self.devices
        cycle, slot = divmod(round_number, self.survey.rotation)
        due: NDArray[np.intp] = self.devices[self.slots(cycle) == slot]
        return due

    def drawn(self) -> NDArray[np.intp]:
        """Return how many rounds each device is ever asked for, shape (k,): one of every whole cycle."""
        survey, first = self.survey, self.last_closed + 1
        count = np.zeros(len(self.devices), dtype=np.intp)
        for cycle in range(first // survey.rotation, -(-survey.rounds // survey.rotation)):
            start = cycle * survey.rotation
            if first <= start and start + survey.rotation <= survey.rounds:
                count += 1
            else:
                rounds = start + self.slots(cycle)
                count += (first <= rounds) & (rounds < survey.rounds)
        return count


class DeviceSimulator:
    """A simulator of n devices with one budget each; never for a person's device.

    Args:
        devices: n.
        budget: Lifetime epsilon of every device.
        max_epsilon: Largest epsilon of one answer that they accept; None for no limit but the budget.
        source: Where symbols and ids come from; `hubbub.testing.seeded` makes a run repeatable.

    Raises:
        ParameterError: If there is no device, or the budget is not one.
    """

    def __init__(
        self, devices: int, *, budget: float, max_epsilon: float | None = None, source: Source = SYSTEM
    ) -> None:
        if devices < 1:
            raise ParameterError(f"a fleet must have at least one device, got {devices}")
        self.devices = devices
        self._source = source
        self._max_epsilon = budget if max_epsilon is None else max_epsilon
        self._accounts = VectorisedFilter(devices, budget=budget)
        self._attributes: dict[str, Attribute] = {}
        self._readings: dict[str, EncodedValues] = {}
        self._pinned: set[str] = set()
        self._enrolled: dict[bytes, _Enrolled] = {}
        self._past: dict[tuple[bytes, int], EncodedValues] = {}
        self._outbox: list[Column] = []
        # Of each device's surveys: answers that cost budget, canonical bytes, and their load.
        self._slots, self._bytes, self._work, self._held = np.zeros((4, devices), dtype=np.int64)

    @property
    def loss(self) -> NDArray[np.float64]:
        """Realised loss of every device, shape (n,), nats."""
        return self._accounts.loss.copy()

    @property
    def committed(self) -> NDArray[np.float64]:
        """Loss of every device with what is pending at its worst, shape (n,), nats, at most the budget."""
        return self._accounts.committed.copy()

    def register(self, attribute: Attribute) -> None:
        """Declare an attribute of every device; to declare it again changes nothing.

        Raises:
            AttributeRefusedError: If one of that id has another kind or domain.
        """
        if self._attributes.setdefault(attribute.id, attribute) != attribute:
            raise AttributeRefusedError(f"attribute {attribute.id!r} must be as first registered")
        if attribute.id not in self._readings:
            self._readings[attribute.id] = encode_many(attribute, [None] * self.devices)

    def set(self, attribute_id: str, values: Sequence[object] | NDArray[Any]) -> None:
        """Tell every device its value from now on; what is None, nan or outside the domain is missing.

        Args:
            attribute_id: A registered attribute.
            values: One per device, shape (n,).

        Raises:
            AttributeRefusedError: If the attribute is not registered, or is static and was answered with
                others.
            ParameterError: If there is not one value per device.
        """
        attribute = self._attributes.get(attribute_id)
        if attribute is None:
            raise AttributeRefusedError(f"attribute {attribute_id!r} must be registered first")
        if len(values) != self.devices:
            raise ParameterError(f"values must be one per device, {self.devices}, got {len(values)}")
        readings = encode_many(attribute, values)
        if attribute_id in self._pinned and not np.array_equal(
            readings, self._readings[attribute_id], equal_nan=True
        ):
            raise AttributeRefusedError(
                f"attribute {attribute_id!r} is static and was pinned by its first answer"
            )
        self._readings[attribute_id] = readings

    def enrol(self, survey: Survey, *, now_s: float) -> SimulatedEnrolment:
        """Ask every device once to take part; each decides by its own ledger, as an agent would.

        Args:
            survey: The survey.
            now_s: Clock time of all devices, epoch seconds.
        """
        accepted = np.zeros(self.devices, dtype=np.bool_)
        before = self._enrolled.get(survey.digest)
        if before is not None:
            accepted[before.devices] = True
            return SimulatedEnrolment(accepted, None if accepted.all() else "over_budget")
        refusal = check_eligibility(survey, self._attributes, max_epsilon=self._max_epsilon, now_s=now_s)
        if refusal is not None:
            return SimulatedEnrolment(accepted, refusal)
        last_closed = last_closed_round(survey, now_s)
        most = most_answers(survey, last_closed)
        asking = self._slots + most <= MAX_LEDGER_SLOTS
        asking &= self._bytes + len(survey.canonical) <= MAX_LEDGER_BYTES
        load = survey_load(survey, most)
        asking &= (self._work + load.work <= MAX_LEDGER_WORK) & (self._held + load.held <= MAX_LEDGER_MEMORY)
        if most > MAX_SLOTS or not asking.any():
            return SimulatedEnrolment(accepted, "too_large")
        enrolled = self._reserved(survey, last_closed, most, asking)
        if enrolled is None:
            return SimulatedEnrolment(accepted, "over_budget")
        accepted[enrolled.devices] = True
        self._slots[accepted] += most
        self._bytes[accepted] += len(survey.canonical)
        self._work[accepted] += load.work
        self._held[accepted] += load.held
        self._enrolled[survey.digest] = enrolled
        return SimulatedEnrolment(accepted, None if accepted.all() else "over_budget")

    def _reserved(
        self, survey: Survey, last_closed: int, most: int, asking: NDArray[np.bool_]
    ) -> _Enrolled | None:
        """Return a survey with the devices whose budget has room for it, reserved; None at once if none can.

        Args:
            survey: The survey.
            last_closed: The highest round that is over.
            most: How many answers it may come to.
            asking: Devices that ask, shape (n,).
        """
        if survey.rotation > 1:
            return self._reserved_in_turn(survey, last_closed, most, asking)
        asked = scheduled_answers(survey, last_closed)
        if asked[0] != MEMOISED:
            one = scheduled_query(survey, asked[0], pin_version=0)
            if not rounds_fit(one, len(asked), self._accounts.headroom):
                return None
        queries = [scheduled_query(survey, slot, pin_version=0) for slot in asked]
        members = np.flatnonzero(self._accounts.reserve_all(queries, asking))
        return _Enrolled(survey, members, last_closed)

    def _reserved_in_turn(
        self, survey: Survey, last_closed: int, most: int, asking: NDArray[np.bool_]
    ) -> _Enrolled:
        """Return a rotating survey with the devices that have room for the worst slots; reserve the drawn."""
        everybody = np.arange(self.devices)
        seeds = self._source.token_bytes(SEED_BYTES * self.devices)
        drawn = _Enrolled(survey, everybody, last_closed, seeds=seeds).drawn()
        one = scheduled_query(survey, last_closed + 1, pin_version=0)
        accepted = self._accounts.reserve_rounds(one, round_units(one), most, drawn, asking)
        own = np.frombuffer(seeds, dtype=np.uint8).reshape(-1, SEED_BYTES)[accepted]
        return _Enrolled(survey, np.flatnonzero(accepted), last_closed, seeds=own.tobytes())

    def answer(self, *, now_s: float) -> tuple[Column, ...]:
        """Answer every survey whose round is open and not answered yet; reports go to the outbox.

        Args:
            now_s: Clock time of all devices, epoch seconds.

        Returns:
            One column per survey answered, in the order of enrolment.
        """
        made: list[Column] = []
        for enrolled in self._enrolled.values():
            survey = enrolled.survey
            self._keep_past(survey, now_s)
            round_number = due(survey, enrolled.last_closed, enrolled.answered, now_s)
            if round_number is None or not (devices := enrolled.answering(round_number)).size:
                continue
            symbols = enrolled.memo
            if symbols is None:
                symbols = self._perturb(survey, round_number, devices)
                slot = scheduled_answer_of(survey, round_number)
                query = scheduled_query(survey, slot, pin_version=0)
                if enrolled.seeds:
                    self._accounts.record_round(query, devices, symbols)
                else:
                    self._accounts.record(query, devices, symbols, last=slot != MEMOISED)
                if slot == MEMOISED:
                    enrolled.memo = symbols
                self._pinned.update(each.id for each in survey.attributes if each.kind == "static")
            enrolled.answered.add(round_number)
            identifiers = np.frombuffer(
                self._source.token_bytes(wire.ID_BYTES * devices.size), dtype=np.uint8
            )
            made.append(
                Column(survey, round_number, devices, identifiers.reshape(-1, wire.ID_BYTES), symbols)
            )
        self._outbox += made
        return tuple(made)

    def _keep_past(self, survey: Survey, now_s: float) -> None:
        """Keep the values of a round that a transition will ask for, from the first call in it."""
        current = survey.round_at(now_s) if survey.form.lag else None
        if current is not None:
            self._past.setdefault((survey.digest, current), self._readings[survey.attribute.id])
            self._past.pop((survey.digest, current - survey.form.lag - 1), None)

    def _perturb(
        self, survey: Survey, round_number: int, devices: NDArray[np.intp]
    ) -> NDArray[np.unsignedinteger[Any]]:
        columns = [self._readings[attribute.id][devices] for attribute in survey.attributes]
        if survey.form.lag:
            then = self._past.get((survey.digest, round_number - survey.form.lag))
            unknown = encode_many(survey.attribute, [None] * devices.size)
            columns.insert(0, unknown if then is None else then[devices])
        inputs = channel_inputs(survey, columns, source=self._source)
        return survey.channel.perturb(inputs, source=self._source)

    def drain(self) -> tuple[Column, ...]:
        """Return what waits to be sent and empty the outbox, for replay, which sends nothing."""
        waiting, self._outbox = tuple(self._outbox), []
        return waiting

    def upload(
        self,
        url: str,
        *,
        concurrency: int = 64,
        progress: Callable[[int, int], None] | None = None,
        patience_s: float = 60.0,
        limits: Limits = FLEET_LIMITS,
    ) -> UploadCounts:
        """Send what waits over HTTP, one upload per device (more if it holds more than an upload may).

        Args:
            url: The collector's base URL.
            concurrency: Threads, each with a connection. A collector lingers some 20 ms before it
                answers, so it takes tens of them to reach a thousand uploads a second.
            progress: Told (uploads finished, uploads in all) on the calling thread.
            patience_s: How long one upload is tried; what was not answered by then waits for the next call.
            limits: Caps and back-off.

        Raises:
            TransportError: If the URL is not http or https.
        """
        columns = self._outbox
        waiting = np.zeros(self.devices, dtype=np.intp)
        for column in columns:
            waiting[column.devices] += 1
        total = int((-(-waiting // limits.max_reports)).sum())
        counts = send(
            jobs_of(columns, np.flatnonzero(waiting), limits),
            total,
            url,
            concurrency=concurrency,
            progress=progress,
            patience_s=patience_s,
            limits=limits,
        )
        left = np.array(counts.given_up, dtype=np.intp)
        self._outbox = [rest for column in columns if (rest := column.among(left)).devices.size]
        return counts


def jobs_of(columns: Sequence[Column], devices: NDArray[np.intp], limits: Limits) -> Iterator[Job]:
    """Return every device's uploads; reports are encoded when their turn comes.

    Args:
        columns: Reports.
        devices: Whose, in the order of sending.
        limits: How many reports an upload may hold.
    """
    rows = [np.searchsorted(column.devices, devices) for column in columns]
    holds = [np.isin(devices, column.devices) for column in columns]
    for place, device in enumerate(devices.tolist()):
        reports = [
            column.report(int(row[place]))
            for column, row, held in zip(columns, rows, holds, strict=True)
            if held[place]
        ]
        for start in range(0, len(reports), limits.max_reports):
            yield Job(device, Upload(tuple(reports[start : start + limits.max_reports])))
