"""What is written to a connection in one turn of the event loop is sent at once, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from hubbub_collector.server import WholeWrites


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


def on_a_connection(scene: Callable[[WholeWrites, Connection], Awaitable[None]]) -> list[object]:
    connection = Connection()

    async def run() -> None:
        await scene(WholeWrites(cast(Any, connection)), connection)

    asyncio.run(run())
    return connection.done


def test_head_and_body_are_sent_together() -> None:
    async def scene(writes: WholeWrites, connection: Connection) -> None:
        writes.write(b"head ")
        writes.write(b"body")
        assert connection.done == []
        await asyncio.sleep(0)
        assert connection.done == [b"head body"]
        writes.write(b"next")
        await asyncio.sleep(0)

    assert on_a_connection(scene) == [b"head body", b"next"]


def test_what_was_written_is_sent_before_the_end() -> None:
    async def scene(writes: WholeWrites, _: Connection) -> None:
        writes.write(b"last")
        writes.close()
        assert writes.is_closing()
        await asyncio.sleep(0)

    assert on_a_connection(scene) == [b"last", "closed"]


def test_all_else_is_the_connections() -> None:
    async def scene(writes: WholeWrites, _: Connection) -> None:
        assert not writes.is_closing()
        assert writes.get_extra_info("peer") == "the peer"

    assert on_a_connection(scene) == []
