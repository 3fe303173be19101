"""The way between devices and collectors: bytes that come late, twice, in part, or never.

Every request is a connection of the product's own protocol, on a transport that ends in the world.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from asgi_reader import Answer
from uvicorn.server import ServerState
from virtual_time import Host, VirtualLoop

from hubbub_collector import GatewaySettings
from hubbub_collector.http.connection import Connection
from hubbub_collector.http.connections import Connections

if TYPE_CHECKING:
    from world import World

TRAVELS_S = (0.0, 0.05, 0.1, 2.0, 45.0)
COMES_AGAIN_S = (1.0, 30.0, 400.0, 4_000.0)
"""A request that a network delivers twice: the second time so long after the first."""
WAITS_S = (30.0, 200.0)
MOST_CONNECTIONS = 6
_HEAD = b"POST /v1/reports HTTP/1.1\r\nhost: collector\r\ncontent-length: %d\r\n\r\n"


class _Wire(asyncio.Transport):
    """A connection's other end: keeps what is written until an answer is whole."""

    def __init__(self, loop: VirtualLoop, host: Host) -> None:
        super().__init__()
        self.protocol: asyncio.Protocol
        self.ended: asyncio.Future[Answer | None] = loop.create_future()
        self._loop, self._host, self._data, self._closing = loop, host, b"", False

    def write(self, data: Any) -> None:
        if not self._host.alive or self._closing:
            return
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if end and lengths and len(body) >= int(lengths[0].split(b":")[1]) and not self.ended.done():
            self.ended.set_result(Answer(int(head.split()[1]), {}, body))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._lose)

    def _lose(self) -> None:
        if self._host.alive:
            self.protocol.connection_lost(None)
        if not self.ended.done():
            self.ended.set_result(None)

    abort = write_eof = close

    def is_closing(self) -> bool:
        return self._closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def pause_reading(self) -> None:
        """Do nothing: bytes wait in the protocol."""

    resume_reading = pause_reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Every reader is quick here."""


class Door:
    """A collector's front: what comes in becomes connections of its process."""

    def __init__(self, app: Any, settings: GatewaySettings, host: Host, loop: VirtualLoop) -> None:
        self.host, self._loop, self._settings = host, loop, settings
        self._all = Connections(MOST_CONNECTIONS, settings.max_pending_bytes, clock=loop.time)
        self._config = uvicorn.Config(
            app, lifespan="off", ws="none", log_config=None, access_log=False, date_header=False
        )
        self._config.load()
        self._state = ServerState()

    def opened(self) -> _Wire:
        """Return a new connection's other end."""
        wire = _Wire(self._loop, self.host)
        wire.protocol = Connection(
            self._settings,
            self._all,
            config=self._config,
            server_state=self._state,
            app_state={},
            _loop=cast(Any, self._loop),
        )
        self._loop.as_host(self.host, wire.protocol.connection_made, wire)
        return wire

    def give(self, wire: _Wire, data: bytes) -> None:
        """Deliver some bytes, if there is anybody to take them."""
        if self.host.alive and not wire.is_closing():
            self._loop.as_host(self.host, wire.protocol.data_received, data)


async def sent(world: World, body: bytes, *, again: bool = False) -> Answer | None:
    """Return what a device hears of an upload; None where it hears nothing in the time that it waits."""
    await asyncio.sleep(TRAVELS_S[world.tape.pick(len(TRAVELS_S))])
    door = world.doors.get(("a", "b")[world.tape.pick(2)])
    if door is None or not door.host.alive:
        return None
    data = _HEAD % len(body) + body
    wire = door.opened()
    if not again and world.fault(30):
        world.later(_again(world, body))
    if world.fault(40):
        part = world.tape.pick(len(data))
        world.say(f"{part} bytes of an upload come, and no more")
        door.give(wire, data[:part])
    elif world.fault(10):
        door.give(wire, data[: len(data) // 2])
        await asyncio.sleep((0.01, 4.0, 12.0)[world.tape.pick(3)])
        door.give(wire, data[len(data) // 2 :])
    else:
        door.give(wire, data)
    if world.fault(40):
        await asyncio.sleep((0.0, 0.01, 1.0)[world.tape.pick(3)])
        wire.close()
        return None
    await asyncio.wait([wire.ended], timeout=WAITS_S[world.tape.pick(2)])
    answer = wire.ended.result() if wire.ended.done() else None
    wire.close()
    return None if world.fault(25) else answer


async def _again(world: World, body: bytes) -> None:
    await asyncio.sleep(COMES_AGAIN_S[world.tape.pick(len(COMES_AGAIN_S))])
    world.say("an upload comes a second time")
    await sent(world, body, again=True)
