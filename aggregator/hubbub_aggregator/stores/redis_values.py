"""The encoding of rounds, tallies, gates and saves in Redis; `redis_store` says which key holds which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.wire import pack, unpack
from hubbub_aggregator.counting.issuers import IssuerTally
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundChange, RoundKey, RoundState
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate

TALLIES: Final = len(NOTHING)
_HEADER: Final = 2 * TALLIES
# An issuer's tallies, which precede its counts.
_ISSUER: Final = 3
_COUNT: Final = np.dtype(">i8")  # the byte order of BITFIELD
# Arguments that a script hands to one command lie on Lua's stack, which ends at 8,000.
_INCREMENTS: Final = 1000


def field_of(key: RoundKey) -> bytes:
    """Return a round's name within a hash: 16 bytes of digest, 8 of round, which may be NO_ROUND."""
    return key[0] + key[1].to_bytes(8, "big", signed=True)


def round_of(field: bytes) -> RoundKey:
    """Return the round of such a name."""
    return field[:16], int.from_bytes(field[16:], "big", signed=True)


def increments(new: RoundChange) -> Iterable[list[Any]]:
    """Return the arguments of BITFIELD that add a round's tallies and counts; none for numbers that stay."""
    blocks = [_issuer_block(new, name) for name in new.issuer_names]
    numbers = np.concatenate(([*new.verdicts, *new.after_seal], new.counts, *blocks)).astype(np.int64)
    places = np.flatnonzero(numbers)
    for start in range(0, len(places), _INCREMENTS):
        part = places[start : start + _INCREMENTS]
        yield [
            word
            for place, number in zip(part.tolist(), numbers[part].tolist(), strict=True)
            for word in ("INCRBY", "i64", f"#{place}", number)
        ]


def shape_of(new: RoundChange) -> str:
    """Return how a round's integers are to be read: how many counts, then its issuers, a line each."""
    return "\n".join([str(len(new.counts)), *new.issuer_names])


def _issuer_block(new: RoundChange, name: str) -> NDArray[np.int64]:
    """Return what is added to an issuer's tallies and counts, zeros where it is nothing."""
    tally = new.issuers.get(name)
    if tally is None:
        return np.zeros(_ISSUER + len(new.counts), dtype=np.int64)
    return np.concatenate((tally.numbers, tally.counts))


def round_state(data: bytes, shape: bytes) -> RoundState:
    """Return a round's tallies and counts.

    Args:
        data: Its integers.
        shape: What `shape_of` gave when the last of them were added.

    Raises:
        ValueError: If there are more counts than symbols.
    """
    length, *issuers = shape.decode("ascii").split("\n")
    outputs = int(length)
    block = _ISSUER + outputs
    found = np.frombuffer(data, dtype=_COUNT)
    size = _HEADER + outputs + len(issuers) * block
    if len(found) > size:
        raise ValueError(f"a round of {outputs} symbols must have as many counts, got {len(found) - _HEADER}")
    numbers = np.zeros(size, dtype=np.int64)  # Redis keeps no zeros at the end
    numbers[: len(found)] = found
    tallies = numbers[:_HEADER].tolist()
    by_issuer = numbers[_HEADER + outputs :].reshape(-1, block)
    return RoundState(
        counts=numbers[_HEADER : _HEADER + outputs].copy(),
        verdicts=VerdictCounts(*tallies[:TALLIES]),
        after_seal=VerdictCounts(*tallies[TALLIES:]),
        issuers={
            name: IssuerTally(row[_ISSUER:].copy(), *row[:_ISSUER].tolist())
            for name, row in zip(issuers, by_issuer, strict=True)
        },
    )


def past_of(data: bytes | None) -> VerdictCounts:
    """Return the tallies of archived rounds."""
    numbers = np.zeros(TALLIES, dtype=np.int64)
    found = np.frombuffer(data or b"", dtype=_COUNT)
    numbers[: len(found)] = found
    return VerdictCounts(*numbers.tolist())


def totals_of(state: PartitionState) -> dict[str, int]:
    """Return what a head keeps beside the offset, from everything else that a partition keeps."""
    rounds = state.rounds.values()
    return {
        "accepted": state.past.accepted + sum(known.verdicts.accepted for known in rounds),
        "attempts": state.past.attempts
        + sum(known.verdicts.attempts + known.after_seal.attempts for known in rounds),
        "rounds": len(state.rounds),
        "seals": sum(known.sealed_at is not None for known in rounds),
        "surveys": len(state.surveys),
        "lost": len(state.lost),
    }


def saved_totals(head: Mapping[bytes, bytes]) -> dict[str, int] | None:
    """Return the totals in a head, or None where they are not of its offset: an older release saved last.

    Raises:
        KeyError: If one of them is missing.
        ValueError: If one is no number.
    """
    if b"totals" not in head or head[b"totals"] != head[b"offset"]:
        return None
    names = ("accepted", "attempts", "rounds", "seals", "surveys", "lost")
    return {name: int(head[name.encode()]) for name in names}


def pack_gate(gate: PublicationGate) -> bytes:
    """Return the bytes of a publication gate; `unpack_gate` reads them."""
    return pack([None if gate.published is None else _packed(gate.published), _packed(gate.pending)])


def unpack_gate(data: bytes) -> PublicationGate:
    """Return the gate that bytes hold, or raise ValueError, TypeError or an error of `unpack`."""
    published, pending = cast(Any, unpack(data, "steps"))  # Any stops here
    return PublicationGate(None if published is None else _tally(*published), _tally(*pending))


def _packed(tally: AcceptedCounts) -> list[Any]:
    return [tally.n, list(tally.cut.items()), tally.counts.astype(_COUNT).tobytes()]


def _tally(n: int, cut: list[tuple[int, int]], counts: bytes) -> AcceptedCounts:
    return AcceptedCounts(dict(cut), np.frombuffer(counts, dtype=_COUNT).astype(np.int64), n)


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
        field = field_of(key)
        add("ROUND", numbers, field, ids, "new" if key in change.new else "known")
        if len(added.counts):
            add("HSET", _ROUNDS, field, shape_of(added))
        for step in increments(added):
            add("BITFIELD", numbers, *step)
        if len(added.keys):
            column = added.keys.astype(KEY, copy=False)
            blocks = (column[at : at + _BLOCK_KEYS] for at in range(0, len(column), _BLOCK_KEYS))
            add("RPUSH", ids, *(block.tobytes() for block in blocks))
        if added.sealed_at is not None:
            add("HSETNX", _SEALS, field, added.sealed_at)
            add("UNLINK", ids)
    return keys, words
