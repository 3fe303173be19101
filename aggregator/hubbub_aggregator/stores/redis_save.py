"""The arguments of one save: what `redis_scripts.SAVE` has to compare and to add; no I/O.

`redis_store` says how keys are named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hubbub_aggregator.counting.partition import Change
from hubbub_aggregator.stores import redis_values

KEY: Final = np.dtype("<u8")
# Ids in one element of their list.
_BLOCK_KEYS: Final = 20_000
_HEAD, _ROUNDS, _SEALS, _SURVEYS, _LOST = range(1, 6)


def command(change: Change, name: Callable[..., str]) -> tuple[list[str], list[Any]]:
    """Return the keys and the arguments of a save, without the identity that comes first.

    Args:
        change: What to save.
        name: The name of a key of the partition, from its parts.
    """
    keys = [name(part) for part in ("head", "rounds", "seals", "surveys", "lost")]
    new = change.rounds.values()
    words: list[Any] = [
        change.previous,
        change.offset,
        sum(each.verdicts.accepted for each in new),
        sum(each.verdicts.attempts + each.after_seal.attempts for each in new),
    ]

    def add(verb: str, key: int, *rest: str | bytes | int) -> None:
        words.extend((len(rest) + 2, verb, key, *rest))

    for tally, number in (("unknown", change.unknown), ("dead", change.dead)):
        if number:
            add("HINCRBY", _HEAD, tally, number)
    for lost in change.lost:
        add("RPUSH", _LOST, f"{lost.first} {lost.end} {lost.skipped_s}")
    for digest, survey in change.surveys.items():
        add("HSET", _SURVEYS, digest, survey.canonical)
    for key, added in change.rounds.items():
        parts = key[0].hex(), str(key[1])
        keys += [name("round", *parts), name("ids", *parts)]
        numbers, ids = len(keys) - 1, len(keys)
        field = redis_values.field_of(key)
        add("ROUND", numbers, field, ids, "new" if key in change.new else "known")
        if len(added.counts):
            add("HSET", _ROUNDS, field, redis_values.shape_of(added))
        for increments in redis_values.increments(added):
            add("BITFIELD", numbers, *increments)
        if len(added.keys):
            column = added.keys.astype(KEY, copy=False)
            blocks = (column[at : at + _BLOCK_KEYS] for at in range(0, len(column), _BLOCK_KEYS))
            add("RPUSH", ids, *(block.tobytes() for block in blocks))
        if added.sealed_at is not None:
            add("HSETNX", _SEALS, field, added.sealed_at)
            add("UNLINK", ids)
    return keys, words
