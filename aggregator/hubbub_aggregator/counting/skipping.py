"""Passing over one record that cannot be applied: only on an operator's explicit word, and never in silence.

A record on which applying fails is a bug, and ends every process that comes to it. The operator may skip it:
its letter among the dead letters then has the reason "skipped" and the time of the word. A worker - live,
anew, or in a replay - reads these letters at the start, and notes the offset as a lost range, so that
releases which may miss reports of the record say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.dead_letters import DeadLetter, DeadLetters
from hubbub_aggregator.counting.partition import Change, PartitionState
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import AggregatorError, UnappliableError
from hubbub_topic import Log

MAX_ROUNDS: Final = 4096
"""Rounds that records may touch before they are saved: Redis answers nobody else during a save, and each
round of one takes some 65 us. Ordinary groups touch a handful; one record is bounded by its bytes alone."""

Skips: TypeAlias = Mapping[tuple[int, int], int]
"""(partition, offset) of each record to skip -> when the operator gave the word, seconds since 1970."""


def skips_of(letters: Iterable[bytes], log_identity: str) -> dict[tuple[int, int], int]:
    """Return what the letters of a log say is to be skipped.

    Args:
        letters: The values of all its dead letters; see `dead_letters`.
        log_identity: The log; letters of others are passed over.
    """
    found = {}
    for letter in map(json.loads, letters):
        if letter["reason"] == "skipped" and letter["log"] == log_identity:
            found[letter["partition"], letter["offset"]] = letter["skipped_s"]
    return found


def next_change(
    partition: int, state: PartitionState, records: Sequence[tuple[int, bytes]], skips: Skips
) -> Change:
    """Return the change of the first of some records: up to one to be skipped, or of that one alone.

    It may end before the last of them, behind the record with which it touches MAX_ROUNDS rounds.

    Args:
        partition: Whose records they are.
        state: The partition so far; it is left as it is.
        records: (offset, bytes), the first of them the next to apply; not empty.
        skips: What is to be skipped.

    Raises:
        GapError: If a record is missing among them.
        UnappliableError: If the first record cannot be applied.
    """
    at, record = records[0]
    word_s = skips.get((partition, at))
    if word_s is not None and at == state.offset:
        letter = DeadLetter(at, "skipped", skipped_s=word_s, record=record)
        return replace(skip_lost(state, at + 1, (), now_s=word_s), dead_letters=(letter,))
    end = next((i for i, (offset, _) in enumerate(records) if (partition, offset) in skips), len(records))
    return _applied(partition, state, records[: max(end, 1)])


def _applied(partition: int, state: PartitionState, records: Sequence[tuple[int, bytes]]) -> Change:
    try:
        return apply_many(state, records, most_rounds=MAX_ROUNDS)
    except AggregatorError:
        raise
    except Exception as error:
        if len(records) > 1:
            # Records before the one that fails are counted; then it is alone, and can be named.
            return _applied(partition, state, records[: len(records) // 2])
        at = records[0][0]
        raise UnappliableError(
            f"partition {partition}: the record at offset {at} cannot be applied ({type(error).__name__}); "
            f"--skip {partition}:{at} passes over it"
        ) from error


def skip_record(
    log: Log, stored: int, letters: DeadLetters, known: Skips, place: tuple[int, int], *, now_s: int
) -> bool:
    """Write down that a record is to be skipped, and return whether that is new.

    Args:
        log: The log.
        stored: The next offset to apply, as the store has it.
        letters: Where dead letters are kept.
        known: What they say is to be skipped.
        place: The record's partition and offset.
        now_s: The time of the operator's word, seconds since 1970.

    Raises:
        ValueError: If there is no such record, or it was counted already.
    """
    partition, offset = place
    if place in known:
        return False
    if not 0 <= partition < log.partitions:
        raise ValueError(f"partition to skip in must be below {log.partitions}, got {partition}")
    if offset < stored:
        raise ValueError(
            f"offset to skip in partition {partition} must be at least {stored}, which comes next, "
            f"got {offset}"
        )
    found = [record for at, record in log.read(partition, offset, 1) if at == offset]
    if not found:
        raise ValueError(f"record to skip must be in the log, got none at {partition}:{offset}")
    letters.put(partition, [DeadLetter(offset, "skipped", skipped_s=now_s, record=found[0])])
    return True
