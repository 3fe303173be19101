"""Blinded leaves of the reports that a round counts, in tiles under the roots of a log's entry.

A leaf is SHA-256("hubbub counted" 00, digest, round, id, symbol as in the report), cut to 16 bytes. Who does
not know the report's random id learns nothing of it, and who knows it knows the symbol. Leaves are sorted:
nothing is left of when they came. Two trees have one number of tiles, by the first bits of a leaf: one of
reports that count, and one of those that a quota refused after they were acknowledged.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from hubbub.errors import WireError
from hubbub.transparency.entry import Entry
from hubbub.transparency.note import LogPolicy, NotLoggedError, Witnessed
from hubbub.transparency.tiles import LOG_PATH
from hubbub.transparency.tree import HASH_BYTES, inclusion_path, leaf_hash, nodes_of, root_by, root_of
from hubbub.wire import encode_symbol, pack, unpack

Found: TypeAlias = Literal["counted", "over quota"]

LEAF_BYTES: Final = 16
CROWD: Final = 256
"""The fewest reports that a tile is of, where a round has as many: whoever asks for it sent one of them."""

_DOMAIN: Final = b"hubbub counted\0"
_ROUND_BYTES: Final = 4
_MOST_BITS: Final = 32
_SUBJECT: Final = "tile of counted reports"


def leaves_of(digest: bytes, number: int, ids: bytes, symbols: Sequence[int | bytes]) -> list[bytes]:
    """Return the leaves of reports of one round, in their order.

    Args:
        digest: The survey's.
        number: The round, from 0 as in a report.
        ids: The reports' ids, 16 bytes each, side by side.
        symbols: Their symbols.
    """
    head = _DOMAIN + digest + number.to_bytes(_ROUND_BYTES, "big")
    known = {symbol: encode_symbol(symbol) for symbol in set(symbols)}
    sha256 = hashlib.sha256
    return [
        sha256(head + ids[at : at + LEAF_BYTES] + known[symbol]).digest()[:LEAF_BYTES]
        for at, symbol in zip(range(0, len(ids), LEAF_BYTES), symbols, strict=True)
    ]


def counted_path(digest: bytes, number: int, tile: int | None = None) -> str:
    """Return the path of a round's entry with its proof, or of one of its tiles; rounds count from 1."""
    return f"{LOG_PATH}/counted/{digest.hex()}/{number}" + ("" if tile is None else f"/{tile}")


def tile_of(leaf: bytes, bits: int) -> int:
    """Return the number of the tile in which a leaf lies."""
    return int.from_bytes(leaf, "big") >> (8 * LEAF_BYTES - bits)


@dataclass(frozen=True, slots=True)
class CountedTiles:
    """The entry of a round, and its tiles.

    Attributes:
        entry: The entry.
        tiles: The bytes of each: the array [path, leaves, path, leaves], of what counts and of what a quota
            refused, hashes and leaves side by side.
    """

    entry: Entry
    tiles: list[bytes]

    @classmethod
    def of(
        cls, digest: bytes, number: int, accepted: list[bytes], over: list[bytes], least: int
    ) -> CountedTiles:
        """Return those of a round's leaves; the same leaves give the same bytes, in whatever order.

        Args:
            digest: The survey's.
            number: The round, from 1.
            accepted: The leaves of reports that count.
            over: Those of reports that a quota refused.
            least: The fewest reports of a tile, where there are several.
        """
        accepted = sorted(accepted)
        over = sorted(set(over).difference(accepted))
        # Hashes spread evenly, not exactly: tiles that would be of too few are joined in pairs.
        bits = min(_MOST_BITS, max(0, (len(accepted) // least).bit_length() - 1))
        while bits and min(map(len, _cut(accepted, bits))) < least * LEAF_BYTES:
            bits -= 1
        parts = [_cut(leaves, bits) for leaves in (accepted, over)]
        trees = [nodes_of(map(leaf_hash, tiles)) for tiles in parts]
        size = 1 << bits
        roots = [root_of(lambda *where, tree=tree: tree[where], size) for tree in trees]
        entry = Entry("counted", (digest, number, len(accepted), bits, *roots))
        made = []
        for place in range(size):
            fields = []
            for tiles, tree in zip(parts, trees, strict=True):
                path = inclusion_path(lambda *where, tree=tree: tree[where], place, size)
                fields += [b"".join(path), tiles[place]]
            made.append(pack(fields))
        return cls(entry, made)


def _cut(leaves: Sequence[bytes], bits: int) -> list[bytes]:
    """Return sorted leaves in 2^bits tiles."""
    ends = [
        bisect_left(leaves, (place << (8 * LEAF_BYTES - bits)).to_bytes(LEAF_BYTES, "big"))
        for place in range(1 << bits)
    ]
    return [b"".join(leaves[start:end]) for start, end in zip(ends, [*ends[1:], len(leaves)], strict=True)]


def logged_round(data: bytes, policy: LogPolicy, digest: bytes, number: int) -> tuple[Entry, Witnessed]:
    """Return a round's entry, and the checkpoint that shows it to be in the log.

    Args:
        data: The array [entry, proof], which may come from anybody.
        policy: The log and the witnesses that are believed.
        digest: The survey's.
        number: The round, from 1.

    Raises:
        NotLoggedError: If it is not in the log, or of another round.
    """
    try:
        found = unpack(data, "entry of counted reports")
        if not isinstance(found, list) or len(found) != 2 or not all(type(each) is bytes for each in found):
            raise WireError("an entry of counted reports must come as an array of it and its proof")
        entry = Entry.decode(found[0])
    except WireError as error:
        raise NotLoggedError("unlogged", str(error)) from None
    if entry.kind != "counted" or entry.fields[:2] != (digest, number):
        raise NotLoggedError("unlogged", f"an entry of counted reports must be of round {number}")
    n, bits = entry.fields[2:4]
    if not isinstance(n, int) or not isinstance(bits, int) or (bits and n >> bits < CROWD):
        # A device that asked for a smaller tile would say which report is its own.
        raise NotLoggedError("unlogged", f"a {_SUBJECT} must be of {CROWD}, got {n!r} by {bits!r} bits")
    return entry, policy.proven(found[0], found[1])


def found_in(leaf: bytes, entry: Entry, tile: bytes) -> Found | None:
    """Return in which of an entry's trees a leaf is, None in neither.

    Args:
        leaf: The leaf.
        entry: The round's entry, which is in the log.
        tile: The tile in which the leaf would be; it may come from anybody.

    Raises:
        NotLoggedError: If the tile is not the entry's, or one of several that is of fewer than CROWD reports:
            the entry claims more reports than there are.
    """
    bits = entry.fields[3]
    try:
        fields = unpack(tile, _SUBJECT)
    except WireError as error:
        raise NotLoggedError("unlogged", str(error)) from None
    if (
        not isinstance(bits, int)
        or bits > _MOST_BITS
        or not isinstance(fields, list)
        or len(fields) != 4
        or not all(type(each) is bytes for each in fields)
    ):
        raise NotLoggedError("unlogged", f"a {_SUBJECT} must be an array of four strings")
    if bits and len(fields[1]) < CROWD * LEAF_BYTES:
        held = len(fields[1]) // LEAF_BYTES
        raise NotLoggedError("unlogged", f"a {_SUBJECT} must be of {CROWD}, got {held}")
    found: Found | None = None
    words: tuple[Found, Found] = ("over quota", "counted")
    for word, root, path, leaves in zip(words, entry.fields[:3:-1], fields[2::-2], fields[::-2], strict=True):
        hashes = [path[at : at + HASH_BYTES] for at in range(0, len(path), HASH_BYTES)]
        if root_by(leaf_hash(leaves), tile_of(leaf, bits), 1 << bits, hashes) != root:
            raise NotLoggedError("unlogged", f"a {_SUBJECT} must lie under its root, got another tree")
        if any(leaves.startswith(leaf, at) for at in range(0, len(leaves), LEAF_BYTES)):
            found = word
    return found
