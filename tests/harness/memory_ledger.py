"""A ledger in memory for games of many moves: what a device writes to it, another device reads from it."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from hubbub_client.ledger.stored import SpentBudget, StoredAnswer, StoredAttribute, StoredEnrolment
from hubbub_client.ledger.transcript import TranscriptEntry


class MemoryLedger:
    """The part of `Ledger` that registering, enrolling and answering use; nothing lasts."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._attributes: dict[str, StoredAttribute] = {}
        self._enrolments: dict[bytes, StoredEnrolment] = {}
        self._answers: list[StoredAnswer] = []
        self._rows: list[TranscriptEntry] = []

    def copy(self) -> MemoryLedger:
        made = copy(self)
        made._attributes, made._enrolments = dict(self._attributes), dict(self._enrolments)
        made._answers, made._rows = list(self._answers), list(self._rows)
        return made

    def attributes(self) -> list[StoredAttribute]:
        return list(self._attributes.values())

    def enrolments(self) -> list[StoredEnrolment]:
        return list(self._enrolments.values())

    def answers(self) -> list[StoredAnswer]:
        return self._answers

    def has_unseen(self) -> bool:
        """Whether an answer was given that its owner has not seen: nothing here is ever sent."""
        return bool(self._answers)

    def transcript(self) -> list[TranscriptEntry]:
        return self._rows

    def kept_values(self) -> list[object]:
        return []

    def consents(self) -> dict[str, bool]:
        return {}

    def refusals(self) -> list[object]:
        return []

    def lists(self) -> list[object]:
        return []

    def cancelled(self) -> frozenset[bytes]:
        return frozenset()

    def keep_refusal(self, refusal: object) -> None:
        pass

    def paused(self) -> bool:
        return False

    def closed(self) -> SpentBudget:
        return SpentBudget()

    def close(self) -> None:
        pass

    def add_attribute(self, attribute_id: str, spec: bytes) -> None:
        self._attributes[attribute_id] = StoredAttribute(attribute_id, spec, 0, None)

    def add_enrolment(self, enrolment: StoredEnrolment, reservations: Iterable[TranscriptEntry]) -> None:
        self._enrolments[enrolment.digest] = enrolment
        self._rows += reservations

    def add_answer(
        self,
        *,
        digest: bytes,
        round_number: int,
        record: TranscriptEntry | None,
        pin_version: int,
        **rest: Any,
    ) -> None:
        self._answers.append(StoredAnswer(digest, round_number, pin_version, rest["report_id"], None))
        for attribute_id, value in rest["pins"]:
            stored = self._attributes[attribute_id]
            self._attributes[attribute_id] = StoredAttribute(attribute_id, stored.spec, 0, value)
        if record is not None:
            self._rows.append(record)
