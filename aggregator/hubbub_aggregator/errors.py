"""Every error the aggregator raises, as one tree.

AggregatorError
├── GapError                a record is missing between what was applied and what was read
├── UnappliableError        applying a record failed: a bug; only an operator may say to skip it
├── LostError               the log begins after what was applied: retention took what is in between
├── PartitionMapGrownError  the log has more partitions than this process knows; another one will know them
├── SupersededError         partitions were loaded for an assignment that a later one has replaced
├── ClockDoubtError         clocks differ by more than they should: nothing is sealed, all else goes on
├── StoreError              the store cannot be trusted with this state
│   ├── LeaseLostError      another process seals, releases and shows
│   ├── StoreConflictError  another writer moved the partition's offset first
│   ├── ForeignStoreError   the store belongs to another log, number of partitions or schema
│   ├── CorruptStoreError   what was loaded contradicts itself
│   └── AheadError          the store has applied records that the log does not hold
├── AccountingError         attempts differ from the sum of the verdicts
├── ArchiveError            the archive belongs to another schema, or is damaged
│   └── ArchiveFullError    its disk has no room, or does not answer; nothing was written
└── DivergedError           a second, different version of an archived release

None of them is handled inside the worker, but for ClockDoubtError, and for SupersededError, after which
the next assignment is loaded: an invariant violation ends the process, and the next one resumes from the
store. Bad input from outside is not an error here; it is counted and skipped.
"""

from __future__ import annotations

from hubbub.errors import AdvisedError
from hubbub_topic import LogError


class AggregatorError(AdvisedError):
    """An error after which the aggregator refuses to go on."""


class GapError(AggregatorError):
    """The next record's offset is past the one expected: something in between was not seen."""


class UnappliableError(AggregatorError):
    """A record could not be applied, for a reason nobody foresaw; only an operator may say to skip it."""


class LostError(AggregatorError):
    """The error of records that left the log uncounted; only an operator may say to go on."""


class PartitionMapGrownError(AggregatorError):
    """The log has grown since this process began; whoever starts it again lets it count all of it."""

    advice = "retry"


class SupersededError(AggregatorError):
    """A load finished after its partitions were revoked; the next assignment has a load of its own."""

    advice = "retry"


class ClockDoubtError(AggregatorError):
    """The time is in doubt: rounds stay open until clocks agree."""

    advice = "retry"


class StoreError(AggregatorError):
    """The store cannot be trusted with this state."""


class StoreConflictError(StoreError):
    """The stored offset is not the one this writer started from: another writer is at work."""

    advice = "retry"


class LeaseLostError(StoreError):
    """The error that another process holds the lease on sealing, releasing and showing."""

    advice = "retry"


class ForeignStoreError(StoreError):
    """The store was made for another log, another number of partitions or another schema."""


class CorruptStoreError(StoreError):
    """The error that loaded ids, accepted reports and counts do not agree."""


class AheadError(StoreError):
    """The store's last applied offset is at or past the log's end: the log lost records."""


class AccountingError(AggregatorError):
    """The error that attempts differ from accepted + duplicate + early + late + invalid + over quota."""


class ArchiveError(AggregatorError):
    """The archive file belongs to another schema, or is damaged."""


class ArchiveFullError(ArchiveError):
    """A release waits for room: the archive's disk is full, or failed; the next attempt writes it."""

    advice = "retry"


class DivergedError(AggregatorError):
    """A release was made twice with different bytes; the first one stays."""


def is_foreseen(error: BaseException) -> bool:
    """Return whether an error is for an operator; of any other, a bug, the traceback is needed."""
    return isinstance(error, AggregatorError | LogError) and not isinstance(error, UnappliableError)


def last_words(error: BaseException) -> str:
    """Return what an error is and says, in one line; the manual lists what it is."""
    return " ".join(f"{type(error).__name__}: {error}".split())
