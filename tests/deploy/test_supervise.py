"""A dashboard that outlives what it watches, and does not outlive a doubt."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from hubbub_aggregator.errors import (
    AheadError,
    ArchiveError,
    ArchiveFullError,
    CorruptStoreError,
    DivergedError,
    ForeignStoreError,
    LeaseLostError,
    PartitionMapGrownError,
    StoreConflictError,
    StoreError,
)
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy import supervise
from hubbub_deploy.errors import DeployError
from hubbub_deploy.supervise import passes, run_supervised
from hubbub_topic.errors import LogError


def wrapped(cause: Exception) -> DeployError:
    error = DeployError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *(
            (kind("x"), True)
            for kind in (StoreError, StoreConflictError, LeaseLostError, PartitionMapGrownError, LogError)
        ),
        (ArchiveFullError("x"), True),
        (ArchiveError("x"), False),
        *((kind("x"), False) for kind in (CorruptStoreError, ForeignStoreError, AheadError)),
        (wrapped(StoreError("x")), True),
        (wrapped(LogError("x")), True),
        (wrapped(ForeignStoreError("x")), False),
        (DeployError("x"), False),
    ],
)
def test_only_what_may_heal_by_itself_is_tried_again(error: Exception, expected: bool) -> None:
    assert passes(error) is expected


class World:
    """Attempts that go as `plan` says: an error each, or None for a watcher that runs until it is stopped."""

    def __init__(self, *plan: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan, self.now_s, self.view, self.stop = list(plan), 0.0, LiveView(), threading.Event()
        self.shown: list[object] = []
        monkeypatch.setattr(supervise, "_waits", lambda: iter(lambda: 0.0, None))

    @contextlib.contextmanager
    def attempt(self) -> Iterator[Any]:
        self.shown.append(self.view.snapshot().get("stale"))
        self.now_s += 100.0
        planned = self.plan.pop(0)
        if planned is not None:
            raise planned
        self.view.publish({"surveys": []})
        yield self

    def run(self, stop: threading.Event) -> None:
        self.shown.append(self.view.snapshot().get("stale"))
        if self.plan:
            raise StoreError("Redis went away")
        stop.set()

    def watch(self) -> None:
        run_supervised(cast(Any, self.attempt), self.view, self.stop, clock=lambda: self.now_s)


def test_page_says_since_when_it_stands_still_until_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(None, wrapped(LogError("away")), None, monkeypatch=monkeypatch)
    world.watch()
    counts = {"since": "1970-01-01T00:01:40Z", "why": "the counts are out of reach"}
    log = {"since": "1970-01-01T00:01:40Z", "why": "the log is out of reach"}
    assert world.shown == [None, None, counts, log, None]


def test_what_stays_away_too_long_ends_it_and_another_dashboard_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(*[LeaseLostError("x")] * 20, None, monkeypatch=monkeypatch)
    world.watch()
    assert world.shown[-2] == {"since": "1970-01-01T00:01:40Z", "why": "another dashboard is at work"}
    world = World(*[StoreError("away")] * 20, monkeypatch=monkeypatch)
    with pytest.raises(StoreError, match="away"):
        world.watch()
    assert len(world.plan) == 15  # 300 s of patience, 100 s an attempt, counted from the first


@pytest.mark.parametrize("doubt", [DivergedError, ArchiveError, CorruptStoreError])
def test_doubt_about_the_numbers_ends_it_at_once(
    doubt: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(doubt("x"), None, monkeypatch=monkeypatch)
    with pytest.raises(doubt):
        world.watch()
    assert world.plan == [None]


def test_who_stands_by_says_so_once_and_has_all_its_patience_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(
        *[LeaseLostError("held")] * 5,
        PartitionMapGrownError("more"),
        LogError("away"),
        None,
        monkeypatch=monkeypatch,
    )
    world.watch()
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "hubbub: LeaseLostError: held; trying again",
        "hubbub: PartitionMapGrownError: more; trying again",
        "hubbub: LogError: away; trying again",
    ]
    assert world.shown[-3] == {"since": "1970-01-01T00:01:40Z", "why": "the log has grown"}
