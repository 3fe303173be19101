"""The compiled id table beside NumPy's and a Python set, its hash beside Python's, its memory and steps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from counting_logs import announcement, counted
from numpy.typing import NDArray
from store_contract import HISTORY, Opener, StoreContract, some
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.dedup import IdTable, keys_of
from hubbub_aggregator.counting.id_tables import id_table_of
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.stores.sqlite_store import SqliteStore

numba = pytest.importorskip("numba", reason="the extra speed is not installed: no compiled id table")
# One process compiles, and the others do not wait for its cache or compile the same again.
pytestmark = pytest.mark.xdist_group("compiled_table")

from hubbub_aggregator.counting.compiled import instructions  # noqa: E402 - needs numba
from hubbub_aggregator.counting.compiled import table as compiled_table  # noqa: E402 - as above
from hubbub_aggregator.counting.compiled.table import CompiledIdTable  # noqa: E402 - as above

Keys = NDArray[np.uint64]
OWN_HASHES = """
import sys
keys = sys.stdin.buffer.read()
assert sys.hash_info.algorithm == "siphash13"
print(*(hash(keys[i : i + 8]) % 2**64 for i in range(0, len(keys), 8)))
"""


def sip(keys: Keys, secret: Keys) -> Keys:
    """SipHash-1-3 in NumPy, after the paper."""

    def turned(word: Keys, by: int) -> Keys:
        return (word << np.uint64(by)) | (word >> np.uint64(64 - by))

    v0, v1, v2, v3 = (
        np.full(len(keys), int(secret[i % 2]) ^ word, dtype=np.uint64)
        for i, word in enumerate(
            (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
        )
    )

    def mix() -> None:
        nonlocal v0, v1, v2, v3
        v0, v2 = v0 + v1, v2 + v3
        v1, v3 = turned(v1, 13) ^ v0, turned(v3, 16) ^ v2
        v0 = turned(v0, 32)
        v2, v0 = v2 + v1, v0 + v3
        v1, v3 = turned(v1, 17) ^ v2, turned(v3, 21) ^ v0
        v2 = turned(v2, 32)

    for block in (keys, np.full(len(keys), 8 << 56, dtype=np.uint64)):
        v3 = v3 ^ block
        mix()
        v0 = v0 ^ block
    v2 = v2 ^ np.uint64(0xFF)
    for _ in range(3):
        mix()
    return v0 ^ v1 ^ v2 ^ v3


def detours(table: CompiledIdTable) -> NDArray[np.int64]:
    """Return how many buckets behind its home each key lies; every bucket between is full."""
    layout, found = table._layout, []
    for (address, buckets, used, most), memory in zip(layout.shards.tolist(), layout.memory, strict=True):
        begin = (address - memory.__array_interface__["data"][0]) // 8
        rows = memory[begin : begin + 8 * buckets].reshape(-1, 8)
        filled = np.count_nonzero(rows, axis=1)
        assert used == filled.sum() <= most + 1
        assert all(row[:n].all() for row, n in zip(rows[:2000], filled, strict=False))
        bucket, _ = np.nonzero(rows)
        words = sip(rows[rows != 0], table._secret)
        home = ((words & np.uint64(2**32 - 1)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)
        detour = (bucket - home) % buckets
        full_before = np.concatenate(([0], np.cumsum(np.tile(filled == 8, 2))))
        assert np.array_equal(full_before[home + detour] - full_before[home], detour)
        found.append(detour)
    return np.concatenate(found)


def fill(table: CompiledIdTable, keys: Keys, *, group: int = 20_000) -> None:
    for start in range(0, len(keys), group):
        table.add(table.fresh_keys(keys[start : start + group]))


def test_keys_are_placed_by_pythons_own_hash_of_eight_bytes() -> None:
    keys = np.random.default_rng(1).integers(0, 2**64, 50, dtype=np.uint64)
    env = {**os.environ, "PYTHONHASHSEED": "0"}  # the secret is 0 then
    run = subprocess.run(
        [sys.executable, "-c", OWN_HASHES], input=keys.tobytes(), env=env, capture_output=True, check=True
    )
    assert sip(keys, np.zeros(2, dtype=np.uint64)).tolist() == [int(word) for word in run.stdout.split()]
    table = CompiledIdTable()
    table._secret = np.array([3, 2**63 + 5], dtype=np.uint64)
    fill(table, keys)
    detours(table)  # holds for the secret of the table, and for no other:
    table._secret = np.array([3, 2**63 + 6], dtype=np.uint64)
    with pytest.raises(AssertionError):
        detours(table)


def test_secrets_are_drawn_for_every_table() -> None:
    assert len({CompiledIdTable()._secret.tobytes() for _ in range(20)}) == 20


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_numpy_table_whatever_comes(seed: int) -> None:
    """Groups of any size, repeats within and across them, questions not followed up, answers added late."""
    rng = np.random.default_rng(seed)
    plain, table, known = IdTable(), CompiledIdTable(), np.empty(0, dtype=np.uint64)
    for step in range(24):
        ids = rng.bytes(16 * int(rng.choice([0, 1, 9, 300, 20_000])))
        n = len(ids) // 16
        keys = keys_of(ids)
        if len(known) and n:
            again = rng.integers(0, n, n // 3)
            keys[again] = rng.choice(known, len(again))
            keys[rng.integers(0, n, n // 4)] = keys[rng.integers(0, n, n // 4)]
        expected, got = plain.fresh_keys(keys), table.fresh_keys(keys)
        assert (expected.mask is None) == (got.mask is None)
        if expected.mask is not None:
            assert np.array_equal(expected.mask, got.mask)
        assert np.array_equal(np.sort(expected.keys), np.sort(got.keys))
        if step % 4 == 1:  # a save failed: the same records come again
            continue
        if step % 4 == 2:
            asked = rng.bytes(160) + ids[:160]
            assert np.array_equal(plain.known(asked), table.known(asked))
            table.fresh_keys(rng.integers(1, 2**64, 3_000, dtype=np.uint64))
        plain.add(expected)
        table.add(got)
        known = np.concatenate((known, expected.keys))
        assert len(plain) == len(table) == len(known)
    detours(table)
    assert not table.fresh_keys(known).keys.size
    assert table.fresh_keys(rng.integers(1, 2**64, 100, dtype=np.uint64)).mask is None


def test_keys_that_were_not_added_leave_the_table_as_a_set_without_them() -> None:
    rng = np.random.default_rng(4)
    table, kept = CompiledIdTable(), rng.integers(1, 2**64, 30_000, dtype=np.uint64)
    fill(table, kept, group=3_000)
    for n in (1, 500, 40_000):
        assert table.fresh_keys(rng.integers(1, 2**64, n, dtype=np.uint64)).mask is None
        assert table.known(b"n" * 16).tolist() == [False]
        assert len(detours(table)) == len(table) == 30_000
    assert not table.fresh_keys(kept).keys.size


def test_an_answer_of_another_moment_is_refused() -> None:
    table = CompiledIdTable()
    old = table.fresh([b"a" * 16])
    table.add(table.fresh([b"b" * 16]))
    for answer in (old, CompiledIdTable().fresh([b"c" * 16]), IdTable().fresh([b"c" * 16])):
        with pytest.raises(ValueError, match="present contents"):
            table.add(answer)


HOSTILE = {
    "in order": lambda n: np.arange(1, n + 1, dtype=np.uint64),
    "backwards": lambda n: np.arange(2**64 - 1, 2**64 - 1 - n, -1, dtype=np.uint64),
    "equal low bits": lambda n: np.arange(1, n + 1, dtype=np.uint64) << np.uint64(44),
    "one of NumPy's shards under 1": lambda n: np.arange(7 << 58, (7 << 58) + n, dtype=np.uint64),
    "multiples of its mix": lambda n: np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15),
    "few bits set": lambda n: np.unique(
        [1 << a | 1 << b | 1 << c for a in range(64) for b in range(a) for c in range(b)]
    ).astype(np.uint64)[:n],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_keys_that_somebody_chose_lie_as_near_their_homes_as_random_ones(name: str) -> None:
    """Means of 40,000 detours: random ones stay below 0.5 buckets, and one crowded place gives thousands."""
    table, plain, keys = CompiledIdTable(), IdTable(), HOSTILE[name](40_000)
    fill(table, keys)
    fill(plain, keys)
    asked = np.concatenate((keys[::3], HOSTILE[name](41_000)))
    ours, theirs = table.fresh_keys(asked).mask, plain.fresh_keys(asked).mask
    assert ours is not None and theirs is not None
    assert np.array_equal(ours, theirs)
    assert not table.fresh_keys(keys).keys.size
    found = detours(table)
    assert len(found) == len(keys)
    assert found.mean() < 0.5
    assert found.max() < 40


def test_the_same_id_over_and_over_takes_no_room() -> None:
    table = CompiledIdTable()
    for _ in range(3):
        fresh = table.fresh([bytes(16 * 50_000)])
        table.add(fresh)
    assert len(table) == 1
    assert table.nbytes == 8 * 64


@pytest.mark.parametrize("bits", [1, 6])
def test_keys_of_somebody_who_knows_the_secret_are_remembered_all_the_same(
    monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    """All keys want the shard's last buckets, or one half of it, while it is laid anew and split."""
    monkeypatch.setattr(compiled_table, "_EXTENTS", (1 << 19, 3 << 18, 1 << 20))
    monkeypatch.setattr(compiled_table, "_MAX_BYTES", 1 << 20)
    monkeypatch.setattr(compiled_table, "_HALF_BYTES", 3 << 18)
    rng = np.random.default_rng(bits)
    table = CompiledIdTable()
    secrets = {table._secret.tobytes()}
    keys = rng.integers(1, 2**64, 400_000, dtype=np.uint64)
    words = sip(keys, table._secret)
    crowd = (
        keys[words >> np.uint64(63) == 1]
        if bits == 1
        else keys[words << np.uint64(32) >> np.uint64(58) == 63]
    )
    mixed = np.concatenate((rng.integers(1, 2**64, 45_000, dtype=np.uint64), crowd[:200_000]))
    for start in range(0, len(mixed), 15_000):
        table.add(table.fresh_keys(mixed[start : start + 15_000]))
        secrets.add(table._secret.tobytes())
    assert len(detours(table)) == len(table) == len(mixed)
    assert not table.fresh_keys(mixed).keys.size
    assert len(secrets) > 1 or bits == 6


def test_a_group_of_new_ids_has_the_table_laid_anew_a_few_times_and_repeats_take_little_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown: list[int] = []
    grow = CompiledIdTable._grow
    monkeypatch.setattr(CompiledIdTable, "_grow", lambda *given: (grown.append(given[1]), grow(*given)))
    table, rng = CompiledIdTable(), np.random.default_rng(3)
    for n, most in ((77_000, 8), (300_000, 3)):
        grown.clear()
        fill(table, rng.integers(1, 2**64, n, dtype=np.uint64), group=n)
        assert 0 < len(grown) <= most
        assert 8 / 0.8 <= table.nbytes / len(table) <= 16
    few = CompiledIdTable()
    fill(few, np.tile(rng.integers(1, 2**64, 1_000, dtype=np.uint64), 90), group=90_000)
    assert few.nbytes <= 4 * 16 * 1_000
    assert len(detours(few)) == 1_000


class TestSqliteStoreWithCompiledTables(StoreContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Opener]:
        with ExitStack() as opened:

            def reopen() -> SqliteStore:
                compiled = id_table_of("compiled")
                store = SqliteStore(tmp_path / "store", log_identity="log", partitions=2, id_table=compiled)
                return opened.enter_context(closing(store))

            yield reopen


@pytest.mark.parametrize("first", [0, 1])
def test_tables_of_both_kinds_take_turns_in_one_store(tmp_path: Path, first: int) -> None:
    kinds, offset, plain = [id_table_of("numpy"), id_table_of("compiled")], 0, PartitionState()
    for turn, records in enumerate([*HISTORY, *HISTORY[:3], *HISTORY[1:3]]):
        kind = kinds[(first + turn) % 2]
        store = SqliteStore(tmp_path / "store", log_identity="log", partitions=2, id_table=kind)
        state = store.load(0)
        assert {type(known.seen) for known in state.rounds.values()} <= {kind, type(None)}
        change = apply_many(state, enumerate(records, start=offset))
        expected = apply_many(plain, enumerate(records, start=offset))
        for key, new in expected.rounds.items():
            assert np.array_equal(np.sort(change.rounds[key].keys), np.sort(new.keys))
        store.save(0, change)
        plain.commit(expected)
        state.commit(change)
        store.close()
        assert counted(state) == counted(plain)
        offset += len(records)
    assert any(known.verdicts.duplicate for known in plain.rounds.values())


@pytest.mark.parametrize("seed", range(3))
def test_counts_under_a_quota_are_those_with_the_numpy_table_also_after_failed_saves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    survey = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 900"))
    states = [PartitionState(id_set=id_table_of(kind)) for kind in ("numpy", "compiled")]
    for state in states:
        state.place(PartitionMap.of(2), 1)
        state.commit(apply_many(state, [(0, announcement(survey))]))
    while (offset := states[0].offset) < 60:
        records = [
            some(survey, int(rng.integers(0, 600)), int(rng.integers(1, 90)), number=int(rng.integers(0, 2)))
            for _ in range(rng.integers(1, 5))
        ]
        changes = [apply_many(state, enumerate(records, start=offset)) for state in states]
        for key, new in changes[0].rounds.items():
            assert np.array_equal(np.sort(new.keys), np.sort(changes[1].rounds[key].keys))
        if rng.random() < 0.25:
            continue
        for state, change in zip(states, changes, strict=True):
            state.commit(change)
        assert counted(states[0]) == counted(states[1])
    tally = states[1].rounds[survey.digest, 0].verdicts
    assert tally.accepted == 450 and tally.over_quota and tally.duplicate


def test_auto_is_compiled_where_numba_is_installed() -> None:
    assert id_table_of("auto") is id_table_of("compiled") is CompiledIdTable
    assert id_table_of("numpy") is IdTable


def test_loop_is_compiled_where_its_machine_code_cannot_be_kept() -> None:
    made: dict[str, object] = {}
    # numba finds no place beside a file that is not there.
    exec(compile("def more(number):\n    return number + 1", "/nowhere/more.py", "exec"), made)  # noqa: S102 - ours
    with pytest.raises(RuntimeError, match="no locator"):
        numba.njit("int64(int64)", cache=True)(made["more"])
    assert instructions.compiled("int64(int64)")(made["more"])(41) == 42


def test_a_damaged_cache_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def less(number: int) -> int:
        return number - 1

    for _ in range(2):
        assert instructions.compiled("int64(int64)")(less)(43) == 42
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert kept
        for path in kept:
            path.write_bytes(b"damaged")


MEASURE = """
import sys, time
import numpy as np
from hubbub_aggregator.counting.compiled.table import CompiledIdTable
from hubbub_aggregator.counting.counting import keep_freed_memory

def resident(what):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(what))

def fill(table, n):
    rng, longest = np.random.default_rng(6), 0
    for _ in range(n // 10_000):
        keys = rng.integers(1, 2**64, 10_000, dtype=np.uint64)
        begun = time.process_time()
        table.add(table.fresh_keys(keys))
        longest = max(longest, time.process_time() - begun)
    return table, longest

keep_freed_memory()
fill(CompiledIdTable(), 40_000)
before = resident("VmRSS")
table, longest = fill(CompiledIdTable(), int(sys.argv[1]))
peak = resident("VmHWM")
held = len(table)
del table
print(held, peak - before, resident("VmRSS") - before, longest)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc says what is resident")
def test_process_grows_by_sixteen_bytes_per_id_in_short_steps_and_gets_them_back() -> None:
    """The table becomes two shards on the way; two megabytes are what a large page may round up to."""
    found = []
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", MEASURE, "1500000"], capture_output=True, text=True, check=True
        )
        held, peak, left, longest = map(float, run.stdout.split())
        assert held == 1_500_000
        assert 8 * held < peak <= 16 * held + 2**21
        assert left < 2**22
        found.append(longest)
        if longest < 0.05:
            return
    raise AssertionError(f"a step must take less than 50 ms of the processor, got {found} s")
