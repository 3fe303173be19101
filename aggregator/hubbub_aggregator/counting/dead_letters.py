"""Dead letters: bytes that cannot be counted, with their position and a reason, for an operator.

Bytes that mean nothing are dead letters: they are counted in `dead`, noted here, and counting goes on.
Records that are missing are a `GapError`, and end the process: what comes after them must not be counted as
if they had never been. Every other error is a bug, and ends the process too.

A letter's position - log, partition, offset - is its key. A worker writes a letter before it saves that it
read the record: after a crash the letter may come again, and replaces itself. The reason is one of a fixed
few, because a message might repeat a stranger's bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

Reason: TypeAlias = Literal[
    "no record", "no survey", "seal of no round", "seal of no survey", "forged seal", "segments", "skipped"
]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record of which something could not be counted.

    Attributes:
        offset: Where it lies in its partition.
        reason: "no record": its bytes are not one; "no survey": it announces what does not compile; "seal of
            no round": its survey has no such round; "seal of no survey": nobody has announced it, and too
            many such seals are kept already; "forged seal": it must be signed by the sealer, and is not;
            "segments": some of its segments do not decode, and the others were counted; "skipped": an
            operator said to pass over it.
        segments: How many of its segments do not decode; 0 where it is not about segments.
        skipped_s: When the operator gave the word, seconds since 1970; None for any other reason.
        record: Its bytes, which are kept only where the operator has said so.
    """

    offset: int
    reason: Reason
    segments: int = 0
    skipped_s: int | None = None
    record: bytes = field(default=b"", repr=False)


class DeadLetters(Protocol):
    """A place that keeps dead letters."""

    def put(self, partition: int, letters: Sequence[DeadLetter]) -> None:
        """Keep letters, durable on return; a letter of the same position replaces the one before.

        Raises:
            Exception: Of any kind, if they are not known to be kept: then what they are about must not count
                as read.
        """
        ...


class NullDeadLetters:
    """A place that keeps no letter, for replay, benchmarks and tests, where the log itself stays."""

    def put(self, partition: int, letters: Sequence[DeadLetter]) -> None:
        """Do nothing."""


class DeadTopic(Protocol):
    """A place that keeps, of each key, the last value."""

    def put(self, records: Sequence[tuple[bytes, bytes]], /) -> None:
        """Keep (key, value) pairs, durable on return."""
        ...


class KeyedDeadLetters:
    """A writer of letters to a topic whose keys are positions.

    Args:
        topic: Where to.
        log_identity: Which log the positions are in.
        payload: Whether the record's bytes come along: "none", or "whole" for an operator who has to find out
            who writes them. They may hold ids and symbols of reports.
    """

    def __init__(
        self, topic: DeadTopic, *, log_identity: str, payload: Literal["none", "whole"] = "none"
    ) -> None:
        self._topic, self._log, self._payload = topic, log_identity, payload

    def put(self, partition: int, letters: Sequence[DeadLetter]) -> None:
        """Keep letters, durable on return."""
        self._topic.put([self._encode(partition, letter) for letter in letters])

    def _encode(self, partition: int, letter: DeadLetter) -> tuple[bytes, bytes]:
        key = f"{self._log}/{partition}/{letter.offset}"
        value = {
            "log": self._log,
            "partition": partition,
            "offset": letter.offset,
            "reason": letter.reason,
            "segments": letter.segments,
        }
        if letter.skipped_s is not None:
            value["skipped_s"] = letter.skipped_s
        if self._payload == "whole":
            value["record"] = base64.b64encode(letter.record).decode()
        return key.encode(), json.dumps(value).encode()


def in_order(values: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the letters that were kept, as JSON types, by log, partition and offset."""
    letters: list[dict[str, Any]] = [json.loads(value) for value in values]
    return sorted(letters, key=lambda letter: (letter["log"], letter["partition"], letter["offset"]))
