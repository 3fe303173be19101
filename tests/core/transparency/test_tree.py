"""Trees and proofs beside the recursive definitions of RFC 6962."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import transparency as log

CASES = 100_000


def mth(leaves: Sequence[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1, by its own recursion."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = cut(len(leaves))
    return hashlib.sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def cut(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = cut(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], b: bool) -> list[bytes]:
    if m == len(leaves):
        return [] if b else [mth(leaves)]
    k = cut(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], b), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


class Grown:
    """A tree that grew leaf by leaf."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.nodes: dict[tuple[int, int], bytes] = {}
        for size, leaf in enumerate(leaves):
            for level, place, found in log.grown(self.read, size, log.leaf_hash(leaf)):
                assert (level, place) not in self.nodes  # a hash never changes
                self.nodes[level, place] = found

    def read(self, level: int, place: int) -> bytes:
        return self.nodes[level, place]


LEAVES = [b"entry %d" % place for place in range(70)]
TREE = Grown(LEAVES)
ROOTS = [mth(LEAVES[:size]) for size in range(len(LEAVES) + 1)]


def test_every_root_path_and_proof_is_that_of_the_definitions() -> None:
    for size in range(len(LEAVES) + 1):
        assert log.root_of(TREE.read, size) == ROOTS[size]
        for index in range(size):
            found = log.inclusion_path(TREE.read, index, size)
            assert found == path(index, LEAVES[:size])
            assert log.root_by(log.leaf_hash(LEAVES[index]), index, size, found) == ROOTS[size]
        for old in range(1, size):
            found = log.consistency_path(TREE.read, old, size)
            assert found == subproof(old, LEAVES[:size], True)
            assert log.only_grew(old, size, ROOTS[old], ROOTS[size], found)


def test_a_proof_of_anything_else_is_refused() -> None:
    """10^5 proofs with one thing changed: none is taken.

    A path for another index or size may have the same directions, so the root decides.
    """
    rng, taken = np.random.default_rng(33), 0
    for _ in range(CASES):
        size = int(rng.integers(2, len(LEAVES) + 1))
        index, old = int(rng.integers(size)), int(rng.integers(1, size))
        leaf, way = log.leaf_hash(LEAVES[index]), log.inclusion_path(TREE.read, index, size)
        grew = log.consistency_path(TREE.read, old, size)
        kind = int(rng.integers(7))
        if kind == 0:
            taken += log.root_by(log.leaf_hash(b"another"), index, size, way) == ROOTS[size]
        elif kind == 1:
            taken += log.root_by(leaf, (index + 1) % size, size, way) == ROOTS[size]
        elif kind == 2:
            taken += log.root_by(leaf, index, size, [*way, leaf]) == ROOTS[size]
        elif kind == 3:
            taken += log.root_by(leaf, index, size, way[:-1]) == ROOTS[size]
        elif kind == 4:
            taken += log.only_grew(old, size, ROOTS[old - 1], ROOTS[size], grew)
        elif kind == 5:
            taken += log.only_grew(old, size, ROOTS[old], ROOTS[size - 1], grew)
        elif grew:
            place, broken = int(rng.integers(len(grew))), list(grew)
            broken[place] = bytes([broken[place][0] ^ 1]) + broken[place][1:]
            taken += log.only_grew(old, size, ROOTS[old], ROOTS[size], broken)
    assert taken == 0


def test_a_tree_that_was_rewritten_has_no_proof_that_it_grew() -> None:
    lie = Grown([*LEAVES[:20], b"another", *LEAVES[21:]])
    for size in range(22, len(LEAVES) + 1):
        for old in range(21, size):
            proof = log.consistency_path(lie.read, old, size)
            assert not log.only_grew(old, size, ROOTS[old], log.root_of(lie.read, size), proof)


HASHES = st.one_of(st.binary(max_size=40), st.sampled_from(ROOTS), st.none())
SIZES = st.one_of(st.integers(-3, 80), st.integers(-(2**70), 2**70))


@given(SIZES, SIZES, HASHES, HASHES, st.lists(HASHES, max_size=70))
def test_whatever_is_handed_in_is_judged_and_never_raises(a, b, one, other, proof) -> None:  # type: ignore[no-untyped-def]
    assert log.only_grew(a, b, one, other, proof) in (True, False)
    found = log.root_by(one, a, b, proof)
    assert found is None or len(found) == 32


@pytest.mark.parametrize(
    ("number", "width", "path_"),
    [
        (0, 256, "tile/0/000"),
        (1_234_067, 256, "tile/0/x001/x234/067"),
        (1_000, 7, "tile/0/x001/000.p/7"),
    ],
)
def test_paths_of_tiles_are_those_of_the_format(number: int, width: int, path_: str) -> None:
    assert log.tile_path(0, number, width) == path_
    assert log.tile_place(path_.removeprefix("tile/0/")) == (number, width)


LONG = "x000/" * 1500 + "000"


@pytest.mark.parametrize(
    "path_", ["00", "000.p/0", "000.p/256", "000.p/07", "x000/001", "x01/001", "٠٠٠", "", LONG]
)
def test_other_paths_of_tiles_are_none(path_: str) -> None:
    assert log.tile_place(path_) is None


@given(st.lists(st.binary(max_size=300), max_size=256))
def test_bundles_give_back_their_entries(entries: list[bytes]) -> None:
    assert log.entries_of(log.bundle(entries)) == entries
