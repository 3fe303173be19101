"""The id table against a Python set, its keys against their formula, its memory against its bound."""

from __future__ import annotations

import mmap
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from hubbub_aggregator.counting import dedup
from hubbub_aggregator.counting.dedup import IdTable, keys_of


def ids_of(keys: list[tuple[int, int]]) -> bytes:
    return b"".join(a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in keys)


def add(table: IdTable, ids: bytes) -> list[bool]:
    fresh = table.fresh([ids])
    n = len(ids) // 16
    table.add(fresh)
    return [True] * n if fresh.mask is None else fresh.mask.tolist()


def test_key_is_the_documented_mix_of_both_halves() -> None:
    halves = [(1, 2), (2**64 - 1, 2**64 - 1), (0, 0), (12345678901234567, 98765432109876543)]
    expected = [(a * 0x9E3779B97F4A7C15 + b) % 2**64 or 1 for a, b in halves]
    assert keys_of(ids_of(halves)).tolist() == expected


def test_key_depends_on_either_half_alone() -> None:
    keys = keys_of(ids_of([(5, 9), (6, 9), (5, 10)]))
    assert len(set(keys.tolist())) == 3


def test_ids_of_one_partition_still_have_different_keys() -> None:
    # All ids of a partition agree in the second half modulo P: here in all of it.
    rng = np.random.default_rng(1)
    ids = ids_of([(int(a), 7) for a in rng.integers(0, 2**63, 5000)])
    assert len(np.unique(keys_of(ids))) == 5000


def test_first_of_equal_ids_in_a_group_is_the_fresh_one() -> None:
    table = IdTable()
    ids = ids_of([(1, 1), (2, 2), (1, 1), (3, 3), (2, 2), (1, 1)])
    assert add(table, ids) == [True, True, False, True, False, False]
    assert len(table) == 3
    assert add(table, ids) == [False] * 6


def test_first_of_equal_ids_is_fresh_among_twenty_thousand() -> None:
    rng = np.random.default_rng(2)
    ids = rng.bytes(16 * 1000) * 20
    table = IdTable()
    assert add(table, ids) == [True] * 1000 + [False] * 19_000


@pytest.mark.parametrize("held", [0, 5, 1000, 200_000])
def test_known_are_those_that_were_added_whatever_repeats_in_the_question(held: int) -> None:
    rng = np.random.default_rng(held)
    table, ids = IdTable(), rng.bytes(16 * held)
    table.add(table.fresh([ids]))
    some = [ids[16 * i : 16 * i + 16] for i in rng.integers(0, max(held, 1), 40)] if held else []
    asked = [*some, *(rng.bytes(16) for _ in range(40)), *some, b"n" * 16, b"n" * 16]
    dice = rng.permutation(len(asked))
    asked = [asked[i] for i in dice]
    assert table.known(b"".join(asked)).tolist() == [one in some for one in asked]
    assert table.known(b"").tolist() == []
    assert len(table) == held


def test_fresh_changes_nothing() -> None:
    table = IdTable()
    ids = np.random.default_rng(3).bytes(16 * 500)
    assert table.fresh([ids]).mask is None
    assert table.fresh([ids]).mask is None
    assert len(table) == 0


def test_columns_are_read_one_after_another() -> None:
    table = IdTable()
    one, two = ids_of([(1, 1), (2, 2)]), ids_of([(2, 2), (3, 3)])
    mask = table.fresh([one, two]).mask
    assert mask is not None
    assert mask.tolist() == [True, True, False, True]


def test_nothing_is_a_group_too() -> None:
    table = IdTable()
    table.add(table.fresh([b""]))
    assert len(table) == 0


@pytest.mark.parametrize("group", [1, 7, 300, 20_000])
def test_table_agrees_with_a_set_while_it_grows_and_splits(group: int) -> None:
    rng = np.random.default_rng(group)
    total = min(group * 400, 120_000)
    # A third of the ids come again, within groups and across them.
    pool = rng.integers(1, 2**63, (2 * total // 3, 2), dtype=np.uint64)
    chosen = pool[rng.integers(0, len(pool), total)]
    table, known = IdTable(), set()
    for start in range(0, total, group):
        part = chosen[start : start + group]
        expected = []
        for pair in map(tuple, part.tolist()):
            expected.append(pair not in known)
            known.add(pair)
        assert add(table, part.astype("<u8").tobytes()) == expected
    assert len(table) == len(known)


def test_keys_that_crowd_one_place_are_laid_anew_under_another_multiplier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With the multiplier 1 anyone can choose neighbours; the second draw parts them.
    draws = [(1).to_bytes(8, "little"), bytes.fromhex("157c4a7fb979379e")]
    monkeypatch.setattr(dedup.os, "urandom", lambda n: draws.pop(0)[:n])
    table = IdTable()
    for start in range(0, 600, 50):
        keys = np.arange(2**64 - 1 - start, 2**64 - 51 - start, -1, dtype=np.uint64)
        fresh = table.fresh_keys(keys)
        assert fresh.mask is None
        table.add(fresh)
        again = table.fresh_keys(keys).mask
        assert again is not None
        assert not again.any()
    assert len(table) == 600
    assert table.nbytes < 100_000
    assert not draws


@pytest.mark.parametrize("place", [0, 20, 63])
def test_a_shard_without_room_while_the_table_grows_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    rng = np.random.default_rng(7)
    table, groups = IdTable(), [rng.integers(1, 2**64, 20_000, dtype=np.uint64) for _ in range(5)]
    for keys in groups[:4]:
        table.add(table.fresh_keys(keys))
    lay, before, calls = dedup._rebuild_shard, table.nbytes, 0

    def lay_or_fail(cells: dedup.Keys, ascending: dedup.Keys, bits: int) -> bool:
        nonlocal calls
        calls += 1
        return calls != place + 1 and lay(cells, ascending, bits)

    monkeypatch.setattr(dedup, "_rebuild_shard", lay_or_fail)
    while table.nbytes == before:
        groups.append(rng.integers(1, 2**64, 20_000, dtype=np.uint64))
        table.add(table.fresh_keys(groups[-1]))
        calls = calls if table.nbytes != before else 0
    assert calls > 64
    held = np.concatenate([*groups[:4], *groups[5:]])
    assert len(table) == len(held) == np.count_nonzero(table._slots)
    again = table.fresh_keys(held).mask
    assert again is not None
    assert not again.any()
    assert table.fresh_keys(groups[4]).mask is None


def test_memory_that_cannot_be_stretched_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(mmap.mmap):
        refused = 0

        def resize(self, newsize: int) -> None:
            Fixed.refused += 1
            raise SystemError("mmap: resizing not available")

    monkeypatch.setattr(dedup.mmap, "mmap", Fixed)
    rng = np.random.default_rng(9)
    table, keys = IdTable(), rng.integers(1, 2**64, 200_000, dtype=np.uint64)
    for start in range(0, len(keys), 25_000):
        fresh = table.fresh_keys(keys[start : start + 25_000])
        assert fresh.mask is None
        table.add(fresh)
    assert Fixed.refused > 1
    assert not table.fresh_keys(keys).keys.size


@pytest.mark.parametrize("seed", range(4))
def test_table_agrees_with_a_set_whatever_comes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Groups of any size, ids again within and across them, and keys of somebody who knows the multiplier."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(dedup.os, "urandom", rng.bytes)
    table, known = IdTable(), np.empty(0, dtype=np.uint64)
    multipliers, crowd = set(), rng.integers(0, 64, dtype=np.uint64) << np.uint64(58)
    for step in range(16):
        # Every third group wants to lie in one shard where there are shards, or nearly in one line.
        crowds = step % 3 == 1
        n = 4_000 if crowds else int(rng.choice([1, 9, 300, 20_000]))
        keys = rng.integers(1, 2**64, n, dtype=np.uint64)
        if crowds:
            placed = crowd | keys >> np.uint64(rng.integers(6, 40))
            keys = np.maximum(placed * np.uint64(pow(int(table._salt), -1, 2**64)), np.uint64(1))
        if step % 2 and len(known):
            again = rng.integers(0, n, n // 3)
            keys[again] = rng.choice(known, len(again))
            keys[rng.integers(0, n, n // 4)] = keys[rng.integers(0, n, n // 4)]
        first = np.zeros(n, dtype=np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        expected = first & ~np.isin(keys, known)
        fresh = table.fresh_keys(keys)
        mask = np.ones(n, dtype=np.bool_) if fresh.mask is None else fresh.mask
        assert np.array_equal(mask, expected)
        assert np.array_equal(np.sort(fresh.keys), np.sort(keys[expected]))
        table.add(fresh)
        known = np.concatenate((known, keys[expected]))
        multipliers.add(int(table._salt))
        assert len(table) == len(known) == np.count_nonzero(table._slots)
    assert not table.fresh_keys(known).keys.size
    assert len(multipliers) > 2
    assert table._bits  # it has shards by now


def test_an_answer_of_another_moment_is_refused() -> None:
    table = IdTable()
    old = table.fresh([ids_of([(1, 1)])])
    add(table, ids_of([(2, 2)]))
    with pytest.raises(ValueError, match="present contents"):
        table.add(old)
    with pytest.raises(ValueError, match="present contents"):
        table.add(IdTable().fresh([ids_of([(3, 3)])]))


def test_large_table_takes_at_most_sixteen_bytes_per_id_growing_included() -> None:
    # Cells of a large table are not traced; what adding and growing take beside them is. Groups are small:
    # what they need themselves is not the table's.
    rng = np.random.default_rng(5)
    table, group, worst = IdTable(), 1_000, 0.0
    tracemalloc.start()
    try:
        while len(table) < 400_000:
            fresh = table.fresh_keys(rng.integers(1, 2**64, group, dtype=np.uint64))
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            table.add(fresh)
            if len(table) > 300_000:
                peak = tracemalloc.get_traced_memory()[1] - before
                worst = max(worst, (table.nbytes + peak) / len(table))
    finally:
        tracemalloc.stop()
    assert 14.0 < worst <= 16.0


MEASURE = """
import sys
import numpy as np
from hubbub_aggregator.counting.dedup import IdTable

def resident(what):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(what))

def fill(table, n):
    rng = np.random.default_rng(6)
    for _ in range(n // 20_000):
        table.add(table.fresh_keys(rng.integers(1, 2**64, 20_000, dtype=np.uint64)))
    return table

fill(IdTable(), 60_000)
before = resident("VmRSS")
table = fill(IdTable(), int(sys.argv[1]))
peak = resident("VmHWM")
held = len(table)
del table
print(held, peak - before, resident("VmRSS") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc says what is resident")
def test_process_grows_by_sixteen_bytes_per_id_at_its_peak_and_gets_them_back() -> None:
    # What a group of 20,000 needs is in the warm-up; two megabytes are what a large page may round up to.
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, "2000000"], capture_output=True, text=True, check=True
    )
    held, peak, left = map(int, run.stdout.split())
    assert held == 2_000_000
    assert 8 * held < peak <= 16 * held + 2**21
    assert left < 2**22
