"""What is written to a connection in one turn of the event loop is sent at once, and nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from starlette.applications import Starlette

from hubbub_collector.http.connections import Connections
from hubbub_collector.http.flow import CoalescingTransport
from hubbub_collector.server import create_server, log_network_faults_shortly, look_for_cycles_rarely


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


def test_large_parts_are_sent_in_their_order_and_not_copied() -> None:
    large = bytes(2**16)

    async def scene(writes: CoalescingTransport, connection: Connection) -> None:
        writes.write(b"head ")
        writes.write(large)
        writes.write(b"tail")
        await asyncio.sleep(0)
        assert connection.done[1] is large

    assert on_a_connection(scene) == [b"head ", large, b"tail"]


def test_a_write_to_a_closing_connection_returns() -> None:
    async def scene(writes: CoalescingTransport, connection: Connection) -> None:
        writes.write(b"never sent")
        connection.done.append("closed")
        writes.write(b"after the end")
        writes.write(bytes(2**17))
        await asyncio.sleep(0)

    assert on_a_connection(scene) == ["closed"]


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


class Stranger:
    """A connection that says whether it had to give way."""

    def __init__(self) -> None:
        self.gone = False

    def give_way(self) -> None:
        self.gone = True


def strangers(connections: Connections, count: int) -> list[Stranger]:
    come = [Stranger() for _ in range(count)]
    for one in come:
        connections.join(one)
    return come


def test_who_became_idle_first_gives_way_first_and_who_is_busy_does_not() -> None:
    connections = Connections(3, 100)
    first, second, third = strangers(connections, 3)
    connections.became_busy(first)
    connections.became_idle(second)  # which it was: it gains nothing
    (fourth,) = strangers(connections, 1)
    assert [one.gone for one in (first, second, third, fourth)] == [False, True, False, False]
    connections.became_idle(first)
    connections.became_busy(third)
    connections.became_busy(fourth)
    strangers(connections, 1)
    assert [one.gone for one in (first, third, fourth)] == [True, False, False]
    # Where all are busy, it is the new one.
    connections = Connections(2, 100)
    for one in strangers(connections, 2):
        connections.became_busy(one)
    assert strangers(connections, 1)[0].gone
    assert len(connections) == 2


def test_the_request_that_began_first_gives_way_when_too_much_is_held() -> None:
    connections = Connections(10, 100)
    first, second, third = strangers(connections, 3)
    for one, size in ((first, 10), (second, 40), (first, 50), (third, 10)):
        connections.hold(one, size)
    assert connections.held_bytes == 100
    connections.hold(third, 11)
    assert (first.gone, second.gone, third.gone, connections.held_bytes) == (True, False, False, 51)
    connections.hold(first, 60)  # gone, so nothing of it counts
    connections.hold(second, 0)
    connections.leave(third)
    connections.leave(third)
    assert (connections.held_bytes, len(connections)) == (0, 1)


def test_a_request_of_little_gives_way_only_when_none_of_much_is_left() -> None:
    """A request of a few bytes makes no room; cut off with the rest, it came back at once, and cost more."""
    connections = Connections(10, 5000)
    small, grown, large, late = strangers(connections, 4)
    for one, size in ((small, 1024), (grown, 1000), (large, 1500), (grown, 1025)):
        connections.hold(one, size)
    connections.hold(late, 2000)
    assert [one.gone for one in (small, grown, large, late)] == [False, False, True, False]
    connections.hold(late, 0)
    connections.hold(late, 3900)
    assert [one.gone for one in (small, grown, late)] == [False, True, False]
    connections.hold(late, 5000)
    assert [one.gone for one in (small, late)] == [False, True]
    many = strangers(connections, 5)
    for one in many:
        connections.hold(one, 900)
    assert [one.gone for one in (small, *many)] == [True, *[False] * 5]
    assert connections.held_bytes == 4500


def test_network_faults_are_a_line_and_all_else_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        fault = TimeoutError(110, "Connection timed out", "192.0.2.77")
        for error in (fault, ZeroDivisionError("a bug")):
            log_network_faults_shortly(loop, {"message": "Fatal read error", "exception": error})

    asyncio.run(run())
    lines = [(record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert lines == [("a connection failed: Connection timed out", False), ("Fatal read error", True)]
    assert "192.0.2.77" not in caplog.text


def test_a_server_looks_for_cycles_rarely_and_not_among_what_was_there() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # another test may have had it look rarely already
    try:
        look_for_cycles_rarely()
        assert gc.get_threshold()[0] >= 7000
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
