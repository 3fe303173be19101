"""What is written to a connection in one turn of the event loop is sent at once, and nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from starlette.applications import Starlette

from hubbub_collector.server import create_server, look_for_cycles_rarely
from hubbub_collector.transport import CoalescingTransport


class Connection:
    """Remembers what was done to it."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done

    def get_extra_info(self, name: str) -> str:
        return f"the {name}"


def on_a_connection(scene: Callable[[CoalescingTransport, Connection], Awaitable[None]]) -> list[object]:
    connection = Connection()

    async def run() -> None:
        await scene(CoalescingTransport(cast(Any, connection)), connection)

    asyncio.run(run())
    return connection.done


def test_head_and_body_are_sent_together() -> None:
    async def scene(writes: CoalescingTransport, connection: Connection) -> None:
        writes.write(b"head ")
        writes.write(b"body")
        assert connection.done == []
        await asyncio.sleep(0)
        assert connection.done == [b"head body"]
        writes.write(b"next")
        await asyncio.sleep(0)

    assert on_a_connection(scene) == [b"head body", b"next"]


def test_what_was_written_is_sent_before_the_end() -> None:
    async def scene(writes: CoalescingTransport, _: Connection) -> None:
        writes.write(b"last")
        writes.close()
        assert writes.is_closing()
        await asyncio.sleep(0)

    assert on_a_connection(scene) == [b"last", "closed"]


def test_all_else_is_the_connections() -> None:
    async def scene(writes: CoalescingTransport, _: Connection) -> None:
        assert not writes.is_closing()
        assert writes.get_extra_info("peer") == "the peer"

    assert on_a_connection(scene) == []


def test_a_server_looks_for_cycles_rarely_and_not_among_what_was_there() -> None:
    before = gc.get_threshold()
    try:
        look_for_cycles_rarely()
        assert gc.get_threshold()[0] >= 10 * before[0]  # 700 before Python 3.12, 2,000 since
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_a_warning_that_anybody_can_cause_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("uvicorn.error")
    for _ in range(2):
        create_server(Starlette())

    def log(text: str, level: int, created: float) -> None:
        record = logger.makeRecord(logger.name, level, __file__, 1, text, (), None)
        record.created = created
        logger.handle(record)

    for created in (0.0, 1.0, 59.0, 61.0, 62.0, 122.0):
        log("one", logging.WARNING, created)
        log("other", logging.ERROR, created)
    log("third", logging.WARNING, 62.0)
    assert [record.created for record in caplog.records if record.msg == "one"] == [0.0, 61.0, 122.0]
    assert [record.msg for record in caplog.records].count("other") == 6
    assert [record.msg for record in caplog.records].count("third") == 1
