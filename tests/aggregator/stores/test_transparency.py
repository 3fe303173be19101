"""The log's file: one entry of a key, through any kill, and refused where it was edited."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub import transparency as tlog
from hubbub.transparency.tree import node_hash
from hubbub_aggregator.errors import ArchiveError, DivergedError
from hubbub_aggregator.stores.transparency import TRANSPARENCY_FILE, TransparencyLog, enter_erased

PRIVATE = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
KEY = tlog.NoteKey("log.example", tlog.LOG_KEY, PRIVATE.public_key().public_bytes_raw())
POLICY = tlog.LogPolicy(KEY)


def entry(place: int) -> tlog.Entry:
    return tlog.Entry("release", (place.to_bytes(16, "big"), 1, bytes(32)))


def sign(log: TransparencyLog) -> None:
    text = log.checkpoint(KEY.name).text
    log.publish(f"{text}\n{KEY.sign(text, PRIVATE)}")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[TransparencyLog]:
    log = TransparencyLog(tmp_path / "log.sqlite")
    yield log
    log.close()


def test_an_entry_is_there_once_and_another_of_its_key_is_refused(log: TransparencyLog) -> None:
    assert log.append([entry(1), entry(2), entry(1)]) == 2
    assert log.append([entry(2), entry(3)]) == 1
    other = tlog.Entry("release", (*entry(3).fields[:2], b"\1" * 32))
    with pytest.raises(DivergedError, match="another release"):
        log.append([entry(4), other])
    assert log.size == 3  # all or none


def test_a_proof_is_given_once_the_entry_is_published(log: TransparencyLog) -> None:
    log.append(map(entry, range(5)))
    assert log.proof(entry(0)) is None
    sign(log)
    log.append([entry(9)])
    assert log.proof(entry(9)) is None
    for place in range(5):
        proof = log.proof(entry(place))
        assert proof is not None and POLICY.proves(entry(place).data, proof.encode())
        assert not POLICY.proves(entry(9).data, proof.encode())


def test_tiles_and_bundles_hold_what_was_appended(log: TransparencyLog) -> None:
    log.append(map(entry, range(600)))
    leaves = [tlog.leaf_hash(entry(place).data) for place in range(600)]
    assert log.tile(0, 1, 256) == b"".join(leaves[256:512])
    assert log.tile(0, 2, 88) == b"".join(leaves[512:])
    assert (log.tile(0, 2, 89), log.tile(0, 3, 1), log.tile(2, 0, 1)) == (None, None, None)
    roots = []
    for start in (0, 256):
        level = leaves[start : start + 256]
        while len(level) > 1:
            level = [node_hash(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
        roots += level
    assert log.tile(1, 0, 2) == b"".join(roots)
    bundle = log.entries(2, 88)
    assert bundle is not None and tlog.entries_of(bundle) == [entry(place).data for place in range(512, 600)]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entry SET data = x'00' WHERE place = 1",
        "DELETE FROM entry WHERE place = 2",
        "DELETE FROM entry WHERE place = 1",
        "UPDATE node SET hash = zeroblob(32) WHERE level = 1",
        "UPDATE published SET note = 'nothing'",
        "PRAGMA user_version = 2",
    ],
)
def test_a_file_that_was_edited_is_refused(log: TransparencyLog, tmp_path: Path, edit: str) -> None:
    log.append(map(entry, range(3)))
    sign(log)
    edited(tmp_path / "log.sqlite", edit)
    with pytest.raises(ArchiveError):
        TransparencyLog(tmp_path / "log.sqlite")


def edited(path: Path, statement: str, *given: object) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, given)


def test_a_log_that_is_shorter_than_what_was_published_says_what_to_restore(tmp_path: Path) -> None:
    for folder, many in ((tmp_path / "old", 2), (tmp_path / "new", 3)):
        folder.mkdir()
        log = TransparencyLog(folder / "log.sqlite")
        log.append(map(entry, range(many)))
        sign(log)
        note = log.published()
        log.close()
    edited(tmp_path / "old" / "log.sqlite", "UPDATE published SET note = ?", note)
    with pytest.raises(ArchiveError, match="restore the newest copy"):
        TransparencyLog(tmp_path / "old" / "log.sqlite")


def killed_at(statement: int, work: Callable[[Callable[[str], None]], None]) -> bool:
    """Do work in a process that kills itself before its nth statement; return whether it came to that."""
    child = os.fork()
    if not child:
        count = 0

        def traced(_: str) -> None:
            nonlocal count
            count += 1
            if count == statement:
                os.kill(os.getpid(), signal.SIGKILL)

        work(traced)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


LISTED = tlog.CountedTiles.of(b"d" * 16, 1, [bytes([each]) * 16 for each in range(9)], [b"o" * 16], 2)
"""Four tiles of what counts and of what a quota refused."""


def append(log: TransparencyLog) -> None:
    log.append([entry(3), entry(4)])


def append_counted(log: TransparencyLog) -> None:
    log.append_counted(LISTED)


def tiles(log: TransparencyLog) -> list[bytes | None]:
    return [log.counted_tile(b"d" * 16, 1, place) for place in range(len(LISTED.tiles) + 1)]


@pytest.mark.skipif(sys.platform != "linux", reason="a life must end with the process that forked it")
@pytest.mark.parametrize(("appended", "new"), [(append, 2), (append_counted, 1)])
def test_a_kill_at_any_statement_of_append_and_sign_heals(
    tmp_path: Path, appended: Callable[[TransparencyLog], None], new: int
) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    log = TransparencyLog(begun / "log.sqlite")
    log.append(map(entry, range(3)))
    sign(log)
    log.close()

    def work(path: Path) -> Callable[[Callable[[str], None]], None]:
        def run(traced: Callable[[str], None]) -> None:
            log = TransparencyLog(path)
            log._db.set_trace_callback(traced)
            appended(log)
            sign(log)

        return run

    sizes, statement = [], 0
    while True:
        statement += 1
        folder = tmp_path / str(statement)
        shutil.copytree(begun, folder)
        was_killed = killed_at(statement, work(folder / "log.sqlite"))
        log = TransparencyLog(folder / "log.sqlite")  # checks its hashes, and what was published
        sizes.append(log.size)
        is_listed = any(each.kind == "counted" for each in log.since(0))
        assert tiles(log) == ([*LISTED.tiles, None] if is_listed else [None] * (len(LISTED.tiles) + 1))
        appended(log)
        sign(log)
        assert log.size == 3 + new
        assert appended is append or tiles(log) == [*LISTED.tiles, None]
        for each in log.since(0):
            assert POLICY.proves(each.data, str(log.proof(each)).encode())
        log.close()
        if not was_killed:
            break
    assert set(sizes) == {3, 3 + new} and len(sizes) > 15


def test_ten_thousand_releases_are_logged_in_a_minute(log: TransparencyLog) -> None:
    """As a dashboard does that begins with a full archive; it takes a second or two."""
    began = time.perf_counter()
    log.append(map(entry, range(10_000)))
    sign(log)
    proof = log.proof(entry(7_777))
    assert time.perf_counter() - began < 60
    assert proof is not None and POLICY.proves(entry(7_777).data, proof.encode())


def test_tiles_of_an_erased_survey_go_and_its_entries_stay(tmp_path: Path) -> None:
    with closing(TransparencyLog(tmp_path / TRANSPARENCY_FILE)) as log:
        digests = [bytes([place]) * 16 for place in range(3)]
        for digest in digests:
            log.append([tlog.Entry("release", (digest, 1, bytes(32)))])
            log.append_counted(tlog.CountedTiles.of(digest, 1, [digest], [], 256))
        log.append([tlog.Entry("erased", (digests[0],))])
        assert [log.counted_tile(each, 1, 0) is None for each in digests] == [True, False, False]
    enter_erased(tmp_path)
    with closing(TransparencyLog(tmp_path / TRANSPARENCY_FILE)) as log:
        assert [log.counted_tile(each, 1, 0) for each in digests] == [None] * 3
        kinds = [each.kind for each in log.since(0)]
        assert (kinds.count("erased"), kinds.count("counted")) == (3, 3)
    enter_erased(tmp_path / "none")  # a folder without a log has nothing to say


def test_another_list_of_a_round_is_refused_and_the_first_keeps_its_tiles(log: TransparencyLog) -> None:
    digest = b"d" * 16
    first, other = (tlog.CountedTiles.of(digest, 1, [bytes([each]) * 16], [], 256) for each in (1, 2))
    log.append_counted(first)
    log.append_counted(first)
    with pytest.raises(DivergedError, match="another counted"):
        log.append_counted(other)
    assert log.counted_tile(digest, 1, 0) == first.tiles[0]
    sign(log)
    about = log.counted(digest, 1)
    assert about is not None and tlog.logged_round(about, POLICY, digest, 1)[0] == first.entry
