"""Tiles of counted reports: crowds, roots, and what everything public says of the symbols."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from hubbub import transparency as tlog
from hubbub.transparency.tree import node_hash
from hubbub.wire import unpack

DIGEST = b"d" * 16


def leaves(n: int, seed: int, symbols: int = 4) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return tlog.leaves_of(DIGEST, 0, rng.bytes(16 * n), rng.integers(symbols, size=n).tolist())


def counted(n: int, over: int, seed: int, least: int = 256) -> tlog.CountedTiles:
    return tlog.CountedTiles.of(DIGEST, 1, leaves(n, seed), leaves(over, seed + 1), least)


@pytest.mark.parametrize("symbol", [0, 127, 128, 70_000, b"\x01\x02", b"x" * 300])
def test_a_leaf_is_the_hash_of_what_the_report_says(symbol: int | bytes) -> None:
    if isinstance(symbol, bytes):
        head = (
            b"\xc4" + bytes([len(symbol)]) if len(symbol) < 256 else b"\xc5" + len(symbol).to_bytes(2, "big")
        )
        word = head + symbol
    else:
        word = {0: b"\0", 127: b"\x7f", 128: b"\xcc\x80", 70_000: b"\xce\0\x01\x11\x70"}[symbol]
    due = hashlib.sha256(b"hubbub counted\0" + DIGEST + b"\0\0\x01\x02" + b"i" * 16 + word).digest()[:16]
    assert tlog.leaves_of(DIGEST, 258, b"i" * 16, [symbol]) == [due]


@pytest.mark.parametrize("least", [256, 1_000])
@pytest.mark.parametrize("n", [0, 1, 255, 511, 512, 513, 2_047, 4_096, 20_000])
def test_a_tile_is_of_a_crowd_or_the_only_one(n: int, least: int) -> None:
    """Rule 2: hashes spread unevenly, and no tile may be of fewer than the crowd for that."""
    for seed in range(5):
        made = counted(n, 40, 10 * seed, least)
        bits = made.entry.fields[3]
        assert len(made.tiles) == 1 << bits
        sizes = [len(unpack(tile, "tile")[1]) // 16 for tile in made.tiles]
        assert sum(sizes) == n == made.entry.fields[2]
        assert bits == 0 or min(sizes) >= least
        assert n < 20_000 or bits > 0


def test_roots_are_of_all_tiles_and_every_leaf_is_found_where_it_is() -> None:
    made = counted(5_000, 100, 3)
    fields = [unpack(tile, "tile") for tile in made.tiles]
    for place, root in ((1, made.entry.fields[4]), (3, made.entry.fields[5])):
        level = [tlog.leaf_hash(each[place]) for each in fields]
        while len(level) > 1:
            level = [node_hash(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
        assert level == [root]
    bits = made.entry.fields[3]
    for known, word in ((leaves(5_000, 3), "counted"), (leaves(100, 4), "over quota"), (leaves(50, 5), None)):
        for leaf in known:
            assert tlog.found_in(leaf, made.entry, made.tiles[tlog.tile_of(leaf, bits)]) == word
    with pytest.raises(tlog.NotLoggedError, match="under its root"):
        leaf = known[0]
        tlog.found_in(leaf, made.entry, made.tiles[tlog.tile_of(leaf, bits) ^ 1])


@pytest.mark.parametrize("least", [4, 60, 128])
def test_a_tile_of_fewer_than_a_crowd_is_refused_whatever_its_entry_claims(least: int) -> None:
    """A log that claims more reports than there are cuts smaller tiles: what it learned, it learns once."""
    made = counted(2_000, 10, 5, least)
    bits = made.entry.fields[3]
    claimed = tlog.Entry("counted", (DIGEST, 1, 10**9, *made.entry.fields[3:]))
    for leaf in leaves(2_000, 5):
        tile = made.tiles[tlog.tile_of(leaf, bits)]
        if len(unpack(tile, "tile")[1]) >= 256 * 16:
            assert tlog.found_in(leaf, claimed, tile) == "counted"
            continue
        with pytest.raises(tlog.NotLoggedError, match="of 256"):
            tlog.found_in(leaf, claimed, tile)


MADE = counted(2_000, 10, 7)


@given(st.binary(max_size=300), st.integers(0, 40), st.integers(0, 255))
def test_any_bytes_are_refused(data: bytes, at: int, byte: int) -> None:
    leaf = leaves(1, 9)[0]
    tile = MADE.tiles[tlog.tile_of(leaf, MADE.entry.fields[3])]
    for each in (data, tile[:at] + bytes([byte]) + tile[at + 1 :], tile + data):
        if each != tile:
            with pytest.raises(tlog.NotLoggedError):
                tlog.found_in(leaf, MADE.entry, each)
        with pytest.raises(tlog.NotLoggedError):
            tlog.logged_round(each, tlog.LogPolicy(tlog.NoteKey("x", tlog.LOG_KEY, bytes(32))), DIGEST, 1)


def test_tiles_do_not_tell_one_assignment_of_symbols_from_another() -> None:
    """600 rounds of either all zeros or all ones, told apart by the nearest mean of what is public.

    Trained on half and tried on half, right answers are binomial(300, 1/2) if nothing is told: above the
    quantile at 1e-6 in one run of a million. Where ids are known, the same is right always: the control.
    """
    rng = np.random.default_rng(11)
    facts, truths = [], []
    for number in range(600):
        truths.append(number % 2)
        made = tlog.leaves_of(DIGEST, 0, rng.bytes(16 * 300), [truths[-1]] * 300)
        tile = unpack(tlog.CountedTiles.of(DIGEST, 1, made, [], 256).tiles[0], "tile")[1]
        facts.append(np.unpackbits(np.frombuffer(tile, np.uint8)).reshape(300, 128).mean(axis=0))
    x, y = np.array(facts), np.array(truths)
    means = [x[:300][y[:300] == each].mean(axis=0) for each in (0, 1)]
    guessed = np.array([np.argmin([np.linalg.norm(row - mean) for mean in means]) for row in x[300:]])
    assert int((guessed == y[300:]).sum()) <= binom.isf(1e-6, 300, 0.5)
    ids = rng.bytes(16)
    assert tlog.leaves_of(DIGEST, 0, ids, [0]) != tlog.leaves_of(DIGEST, 0, ids, [1])
