"""The Merkle tree of RFC 6962: its root, proofs that an entry is in it, and that it only grew.

A tree is read by `read(level, place)`, the hash of the complete subtree over the leaves from place * 2^level
up to (place + 1) * 2^level. Those hashes never change once their leaves are there, so a log keeps nothing
else. The functions that check take anything from anybody and answer None or False, never by an exception.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

Read: TypeAlias = Callable[[int, int], bytes]

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = hashlib.sha256().digest()
"""The root of no entries."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry: SHA-256(00, entry)."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees: SHA-256(01, left, right)."""
    return hashlib.sha256(b"\1" + left + right).digest()


def grown(read: Read, size: int, leaf: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (level, place, hash) of every subtree that a new leaf completes, itself first.

    Args:
        read: The tree before it.
        size: Leaves before it.
        leaf: Its hash.
    """
    level, place = 0, size
    yield level, place, leaf
    while place & 1:
        leaf = node_hash(read(level, place - 1), leaf)
        level, place = level + 1, place >> 1
        yield level, place, leaf


def nodes_of(leaves: Iterable[bytes]) -> dict[tuple[int, int], bytes]:
    """Return the hash of every complete subtree over some leaves' hashes, by level and place."""
    nodes: dict[tuple[int, int], bytes] = {}
    for size, leaf in enumerate(leaves):
        nodes.update(
            ((level, place), found) for level, place, found in grown(lambda *where: nodes[where], size, leaf)
        )
    return nodes


def root_of(read: Read, size: int) -> bytes:
    """Return the root of the first `size` leaves."""
    return _hash_of(read, 0, size) if size else EMPTY_ROOT


def inclusion_path(read: Read, index: int, size: int) -> list[bytes]:
    """Return the hashes from a leaf to the root of the first `size`: PATH of RFC 6962, 2.1.1."""
    return [_hash_of(read, *beside) for beside, _ in _descent(index, index + 1, size)]


def consistency_path(read: Read, old: int, new: int) -> list[bytes]:
    """Return the hashes from the tree of `old` leaves to that of `new`: PROOF of RFC 6962, 2.1.2."""
    if not 0 < old < new:
        return []
    steps = _descent(old - 1, old, new, whole=True)
    path = [_hash_of(read, *beside) for beside, _ in steps]
    rest = max((beside[1] for beside, is_left in steps if is_left), default=0)
    return [_hash_of(read, rest, old), *path] if rest else path


def root_by(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a path leads to from a leaf, or None where no path of that form can."""
    if not 0 <= index < size or not _are_hashes(leaf, *path):
        return None
    steps = _descent(index, index + 1, size)
    if len(path) != len(steps):
        return None
    for (_, is_left), beside in zip(steps, path, strict=True):
        leaf = node_hash(beside, leaf) if is_left else node_hash(leaf, beside)
    return leaf


def only_grew(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Return whether a path shows that the tree of `old` leaves begins that of `new`."""
    if not 0 <= old <= new or not _are_hashes(old_root, new_root, *path):
        return False
    if old in (0, new):
        return not path and old_root == (new_root if old else EMPTY_ROOT)
    steps = _descent(old - 1, old, new, whole=True)
    rest = list(path)
    # Both begin with the old tree if it is one complete subtree of the new; else with its last part.
    found = rest.pop(0) if rest and any(is_left for _, is_left in steps) else old_root
    if len(rest) != len(steps):
        return False
    before = after = found
    for (_, is_left), beside in zip(steps, rest, strict=True):
        if is_left:
            before, after = node_hash(beside, before), node_hash(beside, after)
        else:
            after = node_hash(after, beside)
    return before == old_root and after == new_root


def _descent(first: int, end: int, size: int, *, whole: bool = False) -> list[tuple[tuple[int, int], bool]]:
    """Return what lies beside the way from the root to a leaf, lowest first, and if it is to the left.

    Args:
        first: The leaf.
        end: Where the way ends; with `whole`, at the first subtree that ends there.
        size: Leaves of the tree.
        whole: Stop at that subtree, whatever its size.
    """
    low, high, steps = 0, size, []
    while high != end if whole else high - low > 1:
        middle = low + (1 << (high - low - 1).bit_length() - 1)
        if first < middle:
            steps.append(((middle, high), False))
            high = middle
        else:
            steps.append(((low, middle), True))
            low = middle
    return steps[::-1]


def _hash_of(read: Read, low: int, high: int) -> bytes:
    """Return the hash over leaves low to high, a subtree as RFC 6962 cuts them."""
    parts = []
    while low < high:
        level = (high - low).bit_length() - 1
        parts.append(read(level, low >> level))
        low += 1 << level
    found = parts.pop()
    while parts:
        found = node_hash(parts.pop(), found)
    return found


def _are_hashes(*values: object) -> bool:
    return all(type(value) is bytes and len(value) == HASH_BYTES for value in values)
