"""The transcript: the filter's steps as rows, chained so that a lost or changed row is noticed.

The filter is deterministic: the same reservations and records in the same order give the same tickets, the
same loss and the same decisions. So the ledger stores what was decided, not numbers derived from it; `replay`
in `agent/filter_state.py` rebuilds them. Only the bounds of scores come from a search in floats: they were
proved once, and each row has those of its numbers, so that no later search has to find them again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from hubbub import wire
from hubbub.channels import Symbol

GENESIS: Final = b"hubbub ledger v1"
"""The chain's value before the first row."""

Kind: TypeAlias = Literal["reserve", "record", "cancel", "resolve"]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One step of the filter.

    Attributes:
        kind: "reserve" sets budget aside at its worst case, "record" replaces that by what was realised,
            "cancel" gives it back: before it was answered, a signed list cancelled the survey for good.
            "resolve" records an answer about a part of a bundle that was joined with what is known of the
            values it read; one that was kept apart from them is recorded.
        ticket: The filter's number of the reservation.
        digest: Survey.
        slot: Which of its answers.
        pin_version: Pin version of the attribute when it was reserved.
        symbol: What was answered; None where nothing was. For a static attribute this is the memoised
            answer too.
        bound: What was proved of the numbers that a score reads, (loss, worst) in units, with this step and
            all others of its transaction; None for other surveys.
        part_versions: Pin versions of the attributes of the part; None unless it is a "resolve".
    """

    kind: Kind
    ticket: int
    digest: bytes
    slot: int
    pin_version: int
    symbol: Symbol | None = None
    bound: tuple[int, int] | None = None
    part_versions: int | None = None


def entry_checksum(previous: bytes, entry: TranscriptEntry) -> bytes:
    """Return the chain's value after `entry`: 16 bytes of SHA-256 over the previous value and the row.

    It has no key: it finds rot and lost rows, it does not stop an owner from editing what is theirs.
    """
    step = [entry.kind, entry.ticket, entry.digest, entry.slot, entry.pin_version, entry.symbol]
    fields = [*step, *(entry.bound or ())]
    if entry.part_versions is not None:
        fields.append(entry.part_versions)
    return hashlib.sha256(previous + wire.pack(fields)).digest()[:16]


def closing_checksum(previous: bytes, loss: int, committed: int) -> bytes:
    """Return the chain's value after everything so far was closed: earlier rows go, and it binds their sum.

    Args:
        previous: The chain's value before.
        loss: Realised loss of all that is closed, units.
        committed: Committed loss of all that is closed, units: with what is forfeited at its worst.
    """
    return hashlib.sha256(previous + wire.pack(["close", loss, committed])).digest()[:16]
