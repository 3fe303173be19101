"""A replay beside an archive of which one bit is another: never said to be well, wherever the bit lies."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.runners import Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web import LiveView
from hubbub_deploy.cli import main
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import LOG_FILE, STORE_FILE
from hubbub_topic.sqlite import SqliteLog

HEALTH = Survey.parse(LABELS)


def test_a_bit_of_a_key_in_an_archive_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A release whose key is damaged is no answer for its round: it was said to be absent, and all well."""
    with SqliteLog(tmp_path / LOG_FILE, 1) as log, contextlib.ExitStack() as stack:
        log.append({0: [announcement(HEALTH)]})
        for number in range(2):
            pairs = [(report_id(1000 * number + i), i % 5) for i in range(150)]
            minute = HEALTH.round_start_s(number) // 60 + 30
            records = [batch(segment(HEALTH, number, pairs), minute=minute)]
            log.append({0: [*records, encode_record(SealRecord(HEALTH.digest, number))]})
        store = SqliteStore(tmp_path / STORE_FILE, log_identity=log.identity, partitions=1)
        archive = SqliteArchive(tmp_path / ARCHIVE_FILE)
        stack.callback(store.close)
        stack.callback(archive.close)
        worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: 0.0)
        while worker.step():
            pass
        assert len(archive.rounds()) == 2
    with contextlib.closing(sqlite3.connect(tmp_path / ARCHIVE_FILE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = (tmp_path / ARCHIVE_FILE).read_bytes()
    assert main(["replay", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("the same bytes") == 2
    # Every key is in a table and in its index: of releases, of what was shown, of counts, which say it, too.
    places = [i for i in range(len(whole)) if whole.startswith(HEALTH.digest, i)]
    assert len(places) == 16
    for place in places:
        for byte in (0, 16):  # of the digest, and of what follows it
            damaged = bytearray(whole)
            damaged[place + byte] ^= 1
            for suffix in ("-wal", "-shm"):
                Path(f"{tmp_path / ARCHIVE_FILE}{suffix}").unlink(missing_ok=True)
            (tmp_path / ARCHIVE_FILE).write_bytes(damaged)
            assert main(["replay", str(tmp_path)]) == 1, (place, byte)
            assert capsys.readouterr().err.strip()


@pytest.mark.parametrize("method", [None, 5, 9, 11])
def test_a_release_of_another_method_is_refused_by_every_command_that_reads_it(
    method: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log of one round that is sealed; its archive has a release that says another method, or none."""
    with SqliteLog(tmp_path / LOG_FILE, 1) as log:
        pairs = [(report_id(i), i % 5) for i in range(150)]
        records = [
            announcement(HEALTH),
            batch(segment(HEALTH, 0, pairs)),
            encode_record(SealRecord(HEALTH.digest, 0)),
        ]
        log.append({0: records})
    out = tmp_path / "out"
    assert main(["replay", str(tmp_path), "--out", str(out)]) == 0
    (made,) = out.glob("*.json")
    other = json.loads(made.read_text()) | {"method": method}
    if method is None:
        del other["method"]
    with contextlib.closing(SqliteArchive(tmp_path / ARCHIVE_FILE)) as archive:
        archive.put((HEALTH.digest, 0), json.dumps(other).encode())
    capsys.readouterr()
    said = f"hubbub: survey {HEALTH.digest.hex()}, round 1: a release's method must be 10, got {method}\n"
    for command in (["replay", str(tmp_path)], ["export", str(tmp_path), "--out", str(tmp_path / "all.csv")]):
        assert main(command) == 1
        assert capsys.readouterr().err == said
    assert not (tmp_path / "all.csv").exists()
