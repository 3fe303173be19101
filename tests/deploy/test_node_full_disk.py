"""A node whose disk has no room: it waits, says so, and goes on where it stood."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.stores import SqliteArchive, SqliteDeadTopic, SqliteStore
from hubbub_deploy import node, supervise
from hubbub_deploy.node import NodeSettings

HEALTH = Survey.parse(LABELS)
DUE_S = HEALTH.round_end_s(0) + HEALTH.lateness_s + 6.0


@contextlib.contextmanager
def limited(db: sqlite3.Connection) -> Iterator[None]:
    """SQLite's own full disk: the file may not get a page more."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        db.execute("PRAGMA max_page_count = 1073741823")


class Told(threading.Event):
    """The node's stop: its waits do what the test says, and end it after the last."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        super().__init__()
        self.steps, self.waits = list(steps), 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        if self.steps:
            self.steps.pop(0)()
        else:
            self.set()
        return self.is_set()


@pytest.mark.parametrize("kind", [SqliteArchive, SqliteStore])
def test_a_node_without_room_waits_and_goes_on(
    tmp_path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """At 500 reports no row of a release or of counts fits the pages that are there."""
    monkeypatch.setattr(supervise, "_waits", lambda: iter(lambda: 0.0, None))
    opened: list[Any] = []
    plain = kind.__init__

    def kept(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        opened.append(self)

    monkeypatch.setattr(kind, "__init__", kept)
    now = [float(HEALTH.start_s + 60)]
    settings = NodeSettings(
        surveys=(HEALTH,), data_dir=tmp_path, partitions=2, clock=lambda: now[0], boot_clock=lambda: now[0]
    )
    with node._parts(settings) as (log, worker, view):
        log.publish_survey(HEALTH.digest, announcement(HEALTH))
        for i in range(500):
            log.append({i % 2: [batch(segment(HEALTH, 0, [(report_id(i), i % 5)]))]})
        db = opened[0]._db
        if kind is SqliteArchive:
            while worker.step():
                pass
            opened[0].put((bytes(16), 0), b"3 KiB in the one page that there is".ljust(3072))
        room = contextlib.ExitStack()
        room.enter_context(limited(db))
        now[0] = DUE_S
        seen: list[object] = []

        def look() -> None:
            seen.append(view.snapshot().get("stale"))

        def healed() -> None:
            look()
            room.close()

        stop = Told(*[look] * 6, healed, *[lambda: None] * 12)
        worker.run(stop)
        assert any(stale is not None for stale in seen)
        assert view.stands_still is None
        assert "stale" not in view.snapshot()
        (survey,) = view.snapshot()["surveys"]
        (document,) = survey["rounds"]
        assert document["sealed"]
        assert document["accounting"]["accepted"] == 500
        released = opened[0] if kind is SqliteArchive else SqliteArchive(tmp_path / node.ARCHIVE_FILE)
        assert released.get((HEALTH.digest, 0)) is not None
    said = capfd.readouterr().err
    assert said.count("full") == 1  # one line, however many attempts


def test_what_a_full_store_refused_is_written_later(tmp_path: Path) -> None:
    """A refused transaction leaves none open: the next one is written, or refused by name again."""
    topic = SqliteDeadTopic(tmp_path / "dead.sqlite")
    with limited(topic._db):
        for _ in range(2):
            with pytest.raises(StoreError, match="full"):
                topic.put([(b"key", os.urandom(100_000))])
    topic.put([(b"key", b"value")])
    assert topic.records() == {b"key": b"value"}
    topic.close()
