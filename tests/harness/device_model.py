"""A model of one device, said again without ledger, filter or SQLite: its budget, its outbox, its surveys.

Only for randomised response, where an answer by itself costs its epsilon whatever it is, and answers
about one pinned value add where they agree.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, Self

from hubbub.survey.signed_list import MAX_LIFE_S
from hubbub.survey.survey import Survey
from hubbub.wire.report import Outcome, Report

MEMO = -1
"""The one slot of a survey on a static attribute."""

Reply = Literal["accepted", "late", "early", "mixed", "down", "busy", "refused", "short", "noise"]
REPLIES: tuple[Reply, ...] = (
    "accepted", "late", "early", "mixed", "down", "busy", "refused", "short", "noise",
)  # fmt: skip


def outcomes(reply: Reply, reports: int) -> list[Outcome] | None:
    """The outcomes that settle an upload, None where nothing is settled by it."""
    if reply == "mixed":
        return ["early", *["accepted"] * (reports - 1)]
    return [reply] * reports if reply in ("accepted", "late", "early") else None


@dataclass
class Joined:
    survey: Survey
    floor: int
    high: int
    state: str = "active"
    answered: set[int] = field(default_factory=set)
    seed: bytes | None = None
    """The secret of its slots, which a device keeps for good; None where it answers every round."""

    def turn(self, number: int) -> bool:
        """True of the one round of a cycle that this device answers."""
        if self.seed is None:
            return True
        rotation = self.survey.rotation
        word, i = 2**64, 0
        while word >= 2**64 - 2**64 % rotation:
            data = bytes(3) + bytes([number // rotation]) + bytes(3) + bytes([i])
            word = int(hashlib.blake2b(data, key=self.seed, digest_size=8).hexdigest(), 16)
            i += 1
        return word % rotation == number % rotation


@dataclass
class Listed:
    """A signed list: what the device must remember of it, and what it does."""

    sequence: int
    issued_s: int
    expires_s: int
    data: bytes
    surveys: tuple[Survey, ...]
    cancelled: frozenset[bytes]


@dataclass
class DeviceModel:
    budget: float
    closed_loss: float = 0.0
    closed_committed: float = 0.0
    joined: dict[bytes, Joined] = field(default_factory=dict)
    slots: dict[tuple[bytes, int], int | None] = field(default_factory=dict)
    """(digest, slot) -> the symbol that was drawn, None while it is only reserved."""
    outbox: list[tuple[bytes, bytes]] = field(default_factory=list)
    """(id, digest), oldest first."""
    answered: frozenset[bytes] = frozenset()
    """Ids of all reports that were ever made."""
    cancelled: frozenset[bytes] = frozenset()
    newest: tuple[int, bytes, float] | None = None
    """Number and bytes of the newest list seen, and when it was judged."""
    failures: int = 0
    not_before_s: float = 0.0
    single: bool = False

    def copy(self) -> Self:
        return copy.deepcopy(self)

    # What everything cost

    def loss(self) -> float:
        return self.closed_loss + self._cost(worst=False)

    def committed(self) -> float:
        return self.closed_committed + self._cost(worst=True)

    def _cost(self, *, worst: bool) -> float:
        total, memos, inputs = 0.0, list[tuple[float, int | None]](), 0
        for (digest, slot), symbol in self.slots.items():
            channel = self.joined[digest].survey.channel
            if slot == MEMO:
                memos.append((channel.epsilon, symbol))
                inputs = channel.inputs
            elif worst or symbol is not None:
                total += channel.epsilon
        choices = [
            ([symbol] if symbol is not None else range(inputs) if worst else [None]) for _, symbol in memos
        ]
        return total + max(
            (spread(inputs, [(e, y) for (e, _), y in zip(memos, drawn, strict=True)]))
            for drawn in product(*choices)
        )

    # Taking part

    def enrol(self, survey: Survey, now_s: float | None) -> tuple[str, str | None]:
        known = self.joined.get(survey.digest)
        if known is not None and known.state == "active":
            return "already_enrolled", None
        if survey.digest in self.cancelled:
            return "refused", "cancelled"
        if now_s is None:
            return "refused", "clock_not_trusted"
        if now_s >= survey.start_s + survey.rounds * survey.round_s:
            return "refused", "expired"
        over = -1 if now_s < survey.start_s else int((now_s - survey.start_s) // survey.round_s) - 1
        floor = max(over, -1 if known is None else known.floor)
        rest = range(floor + 1, survey.rounds)
        static = survey.attributes[0].kind == "static"
        wanted = [(survey.digest, slot) for slot in ([MEMO] if static and rest else rest)]
        tried = self.copy()
        joined = Joined(survey, floor, max(floor, -1 if known is None else known.high))
        joined.seed = None if known is None else known.seed
        joined.answered = set() if known is None else known.answered
        tried.joined[survey.digest] = joined
        worst = 0.0
        if survey.rotation > 1:
            # Which rounds they are is not known before: one of every cycle must fit, wherever it lies.
            if not any(digest == survey.digest for digest, _ in self.slots):
                worst = len({number // survey.rotation for number in rest}) * survey.channel.epsilon
            wanted = []
        for slot in wanted:
            tried.slots.setdefault(slot, None)
        asks = worst > 0 or len(tried.slots) > len(self.slots)
        if asks and tried.committed() + worst > self.budget:
            return "refused", "over_budget"
        self.joined, self.slots = tried.joined, tried.slots
        return "enrolled", None

    def drawn(self, digest: bytes, seed: bytes) -> None:
        """Take the secret that the device drew, at its first enrolment, and reserve its rounds."""
        each = self.joined[digest]
        assert each.seed in (None, seed), "a seed is drawn once"
        each.seed = seed
        for number in range(each.floor + 1, each.survey.rounds):
            if each.turn(number):
                self.slots.setdefault((digest, number), None)

    def leave(self, digest: bytes) -> None:
        if digest in self.joined and self.joined[digest].state == "active":
            self.joined[digest].state = "left"
        self._withdraw(digest)

    def _withdraw(self, digest: bytes) -> None:
        self.outbox = [entry for entry in self.outbox if entry[1] != digest]

    def forget(self) -> None:
        self.closed_loss, self.closed_committed = self.loss(), self.committed()
        self.slots.clear()
        self.outbox.clear()
        for each in self.joined.values():
            each.floor = each.high
            each.answered = set()
            each.state = "left" if each.state == "active" else each.state

    # Answering

    def due(self, now_s: float | None) -> list[tuple[bytes, int]]:
        """(digest, round) of every answer that must be given now, in the order of enrolment."""
        found = []
        for digest, each in self.joined.items():
            survey = each.survey
            if now_s is None or each.state != "active" or now_s < survey.start_s:
                continue
            number = int((now_s - survey.start_s) // survey.round_s)
            if each.floor < number < survey.rounds and number not in each.answered and each.turn(number):
                found.append((digest, number))
        return found

    def answer(self, report: Report) -> None:
        each = self.joined[report.digest]
        slot = (report.digest, MEMO if each.survey.attributes[0].kind == "static" else report.round)
        known = self.slots[slot]
        assert known is None or known == report.symbol, "one answer had two noises"
        assert isinstance(report.symbol, int)
        self.slots[slot] = report.symbol
        each.answered.add(report.round)
        each.high = max(each.high, report.round)
        self.outbox.append((report.id, report.digest))
        self.answered |= {report.id}

    # Sending

    def upload(self, now_s: float | None, reply: Reply) -> Iterator[list[bytes]]:
        """Yield the bodies that are posted; after each, this device has stored its answer."""
        while now_s is not None and self.outbox:
            if 0 < self.not_before_s - now_s <= 86_400 + 3_600:
                return
            ids = [i for i, _ in self.outbox[: 1 if self.single else 8]]
            told = outcomes(reply, len(ids))
            if told is not None:
                # What came too early goes to the end.
                early = {i for i, outcome in zip(ids, told, strict=True) if outcome == "early"}
                again = [entry for entry in self.outbox if entry[0] in early]
                self.outbox = [entry for entry in self.outbox if entry[0] not in ids] + again
            if told is None or set(told) == {"early"}:
                self.failures += 1
                wait_s = 60.0 if reply == "busy" else 0.0
                self.not_before_s = now_s + wait_s + 0.5 * min(3600.0, 2.0**self.failures)
                self.single |= reply == "refused"
            else:
                self.failures, self.not_before_s, self.single = 0, now_s, False
            yield ids

    # Lists

    def take(self, found: Listed, now_s: float | None) -> str | None:
        """The reason why a list is refused, None if it is taken."""
        if now_s is None:
            return "clock_not_trusted"
        judged_s = now_s
        if self.newest is not None:
            sequence, data, before_s = self.newest
            if found.sequence < sequence or (found.sequence == sequence and found.data != data):
                return "rolled_back"
            if found.data == data:
                judged_s = max(now_s, before_s)
                now_s = max(judged_s, self._seen_s())
        if found.expires_s - now_s > MAX_LIFE_S + 86_400:
            return "clock_not_trusted"
        self.newest = found.sequence, found.data, judged_s
        if now_s >= found.expires_s:
            return "expired"
        for digest in found.cancelled - self.cancelled:
            self._withdraw(digest)
            self.slots = {
                slot: symbol for slot, symbol in self.slots.items() if slot[0] != digest or symbol is not None
            }
            if digest in self.joined:
                self.joined[digest].state = "cancelled"
        self.cancelled |= found.cancelled
        return None

    def _seen_s(self) -> float:
        begins = (each.survey.start_s + each.high * each.survey.round_s for each in self.joined.values())
        return max(begins, default=0)


def spread(inputs: int, memos: list[tuple[float, int | None]]) -> float:
    """The largest difference of log-likelihoods of one pinned value, by randomised response alone."""
    logs = [sum(epsilon for epsilon, symbol in memos if symbol == value) for value in range(inputs)]
    return max(logs, default=0.0) - min(logs, default=0.0)
