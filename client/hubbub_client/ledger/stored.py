"""The values that the ledger stores, and the rows of those that are packed: kept values, and refusals.

Evolving values are kept for rounds to be answered, of now and of earlier rounds. A value of now stands in its
row as it is packed, so that it is no array. With values of earlier rounds a row has an array: the value of
now or nil, and for each of them the digest, the round that answers, and the value. Of refusals the newest
alone are kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from hubbub import wire
from hubbub.errors import WireError
from hubbub.wire import Outcome
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.surveys.schedule import Refusal

Fate: TypeAlias = Outcome | Literal["withdrawn"]
"""The outcome of a report: the collector's answer, or that the survey was left or cancelled before it."""


@dataclass(frozen=True, slots=True)
class StoredAttribute:
    """An attribute as it stands in the ledger.

    Attributes:
        id: Its id.
        spec: Kind and domain, encoded.
        pin_version: How many values were memoised before this one.
        memoised: The memoised value, encoded; None while there is none.
    """

    id: str
    spec: bytes
    pin_version: int
    memoised: bytes | None


class PastValue(NamedTuple):
    """A value of an earlier round: of which survey, the round that answers with it, and packed as others."""

    digest: bytes
    round: int
    value: bytes


@dataclass(frozen=True, slots=True)
class StoredValue:
    """An evolving value that was set for a round that is still to be answered.

    Attributes:
        attribute: Attribute id.
        value: The encoded value, packed as in `pack_encoded`; None where only `past` is kept.
        since_s: When it was set, epoch seconds.
        until_s: When the round ends, epoch seconds.
        past: What it was in earlier rounds, for transitions that are still to be answered.
    """

    attribute: str
    value: bytes | None
    since_s: float
    until_s: float
    past: tuple[PastValue, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredEnrolment:
    """A survey that the device takes or took part in.

    Attributes:
        digest: Its digest, 16 bytes.
        canonical: Its canonical bytes.
        last_closed: The highest round that was over when the device joined: never answered.
        high_water: The highest round answered, at least `last_closed`.
        state: As `EnrolmentStatus.state`.
        slot_seed: The secret that its slots or its parts are drawn from, 32 bytes; None unless the survey
            rotates or is a bundle.
    """

    digest: bytes
    canonical: bytes
    last_closed: int
    high_water: int
    state: Literal["active", "left", "cancelled"] = "active"
    slot_seed: bytes | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer that was made.

    Attributes:
        digest: Survey.
        round: Round.
        pin_version: Pin version of the attribute that it answered for.
        id: Report id, 16 bytes.
        outcome: What became of it; None while it waits in the outbox.
    """

    digest: bytes
    round: int
    pin_version: int
    id: bytes
    outcome: Fate | None


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check for an answer among those that were counted, still to be taken.

    Attributes:
        digest: Survey.
        round: Round.
        due_s: When it is taken, epoch seconds.
        leaf: What is looked for, 16 bytes.
        is_acknowledged: Whether the collector has accepted the report.
    """

    digest: bytes
    round: int
    due_s: float
    leaf: bytes
    is_acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class StoredRefusal:
    """A survey that asked and was refused: for its owner to see, and for nobody else.

    Attributes:
        digest: Its digest, 16 bytes.
        survey_id: Its id.
        version: Its version.
        title: What it is called.
        epsilon: What one answer to it would have cost at most, nats.
        reason: Why it was refused.
        headroom: What was left of the budget then, nats; None where an answer was given that the owner had
            not seen: what it cost can tell what it said.
        at_s: When it was refused, epoch seconds.
    """

    digest: bytes
    survey_id: str
    version: int
    title: str
    epsilon: float
    reason: Refusal
    headroom: float | None
    at_s: float


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """The cost of everything before the last `forget`, in units: it stays spent.

    Attributes:
        loss: Realised.
        committed: With what was reserved and is now forfeited, at its worst.
    """

    loss: int = 0
    committed: int = 0


SELECT_KEPT: Final = "SELECT attribute, value, since_s, until_s FROM reading"


def decode_kept_values(rows: Iterable[Sequence[object]]) -> list[StoredValue]:
    """Return the values that rows of `SELECT_KEPT` hold.

    Raises:
        LedgerCorruptError: If one cannot be read.
    """
    return [_decoded(StoredValue(*row)) for row in rows]  # type: ignore[arg-type]  # STRICT columns


def _decoded(stored: StoredValue) -> StoredValue:
    try:
        found = wire.unpack(stored.value or b"", "kept value")
        if not isinstance(found, list):
            return stored
        value, past = found
        if not (value is None or type(value) is bytes):
            raise ValueError
        return replace(stored, value=value, past=tuple(_past(*each) for each in past))
    except (WireError, TypeError, ValueError):
        raise LedgerCorruptError("a kept value in the ledger cannot be read") from None


def _past(digest: object, round_number: object, value: object) -> PastValue:
    if type(digest) is not bytes or type(round_number) is not int or type(value) is not bytes:
        raise ValueError
    return PastValue(digest, round_number, value)


def write_kept_value(db: sqlite3.Connection, kept: StoredValue) -> None:
    """Write what is kept of an attribute in place of what was; delete the row if nothing is."""
    if kept.value is None and not kept.past:
        db.execute("DELETE FROM reading WHERE attribute = ?", (kept.attribute,))
        return
    packed = wire.pack([kept.value, [list(each) for each in kept.past]]) if kept.past else kept.value
    db.execute(
        "INSERT OR REPLACE INTO reading (attribute, value, since_s, until_s) VALUES (?, ?, ?, ?)",
        (kept.attribute, packed, kept.since_s, kept.until_s),
    )


MAX_REFUSALS: Final = 64
"""Refusals kept, the newest: a collector that serves thousands of surveys must not fill the disk."""

SELECT_REFUSALS: Final = (
    "SELECT digest, survey_id, version, title, epsilon, reason, headroom, at_s FROM refusal "
    "ORDER BY at_s DESC, digest"
)

_UNTOLD: Final = -1.0
"""In the column of a refusal's headroom: not told, because it could have told an answer."""


def decode_refusals(rows: Iterable[Sequence[object]]) -> list[StoredRefusal]:
    """Return the refusals that rows of `SELECT_REFUSALS` hold."""
    kept = [StoredRefusal(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns
    return [replace(one, headroom=None) if one.headroom == _UNTOLD else one for one in kept]


def write_refusal(db: sqlite3.Connection, refusal: StoredRefusal) -> None:
    """Write a refusal in place of what was said of its survey before, and drop the oldest."""
    told = replace(refusal, headroom=_UNTOLD) if refusal.headroom is None else refusal
    db.execute("INSERT OR REPLACE INTO refusal VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(told))
    db.execute(
        "DELETE FROM refusal WHERE digest NOT IN "
        "(SELECT digest FROM refusal ORDER BY at_s DESC, digest LIMIT ?)",
        (MAX_REFUSALS,),
    )
