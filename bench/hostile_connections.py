"""Honest senders beside thousands of hostile connections of six kinds, at a real node.

    python bench/hostile_connections.py                          10,000 of them for a minute
    python bench/hostile_connections.py --connections 300 --seconds 5 --most 200 --json

As many of each: silent; slow head and slow body, a byte a second (the body after 60 kB of it); endless
trailers; pipelined uploads whose answers are not read; a list of 2 MB asked for again and again and not read.
Whoever is cut off comes back a second later. Honest senders, in a process of their own, each upload a report
on a new connection, and again with the same bytes until it is answered: a device without its pauses.

It needs a hard limit of open files of connections + 256: at less it says so on stderr, measures nothing, and
exits with 77. It exits with 1 if an acknowledged report was not counted, or something was counted twice.
Attackers, node and senders share the machine: on few or busy cores it measures the scheduler. So it says what
the node got and needed: its processor time as a part of the time that passed, and how long the event loop was
away at most and in the median, by the clock and in the node's own processor time. A node that gets a fifth of
a core and is away for a second was not at fault; one that gets a whole core and is, was.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from hostile_node import MIB, Node, survey, upload

from hubbub.survey.survey import Survey
from hubbub.wire.report import decode_response
from hubbub_collector import server
from hubbub_collector.settings import GatewaySettings
from hubbub_deploy.node import NodeSettings
from hubbub_deploy.node import serve as serve_node

SKIPPED = 77
OTHER_FILES = 256
SENDERS = 8
"""Honest senders at once."""
GIVE_UP_S = 5.0
"""Seconds that an honest sender waits for one answer."""
PATIENCE_S = 60.0
"""The time that a busy machine gets for all to come."""
LOOK_S = 0.005
"""Seconds after which the node's event loop is asked whether it is there."""
POST = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\n"
EMPTY = POST + b"Content-Length: %d\r\n\r\n"
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


async def silent(reader: Reader, _: Writer) -> None:
    await reader.read(1)


async def _dribble(writer: Writer, begin: bytes) -> None:
    writer.write(begin)
    while not writer.is_closing():
        await writer.drain()
        await asyncio.sleep(1.0)
        writer.write(b"a")


async def slow_head(_: Reader, writer: Writer) -> None:
    await _dribble(writer, POST + b"X: ")


async def slow_body(_: Reader, writer: Writer) -> None:
    await _dribble(writer, EMPTY % 2**16 + bytes(60_000))


async def _pour(writer: Writer, begin: bytes, piece: bytes) -> None:
    writer.write(begin)
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.1)


async def trailers(_: Reader, writer: Writer) -> None:
    await _pour(writer, POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a:\r\n" * 1000)


async def pipelined(_: Reader, writer: Writer) -> None:
    body = b"\x92\x01\x90"  # an upload of nothing, so that all that is counted is honest
    await _pour(writer, b"", (EMPTY % len(body) + body) * 3)


async def unread(_: Reader, writer: Writer) -> None:
    await _pour(writer, b"", b"GET /v1/surveys HTTP/1.1\r\nHost: x\r\n\r\n")


KINDS: tuple[Callable[[Reader, Writer], Awaitable[None]], ...] = (
    silent,
    slow_head,
    slow_body,
    trailers,
    pipelined,
    unread,
)


async def _hostile(
    kind: Callable[[Reader, Writer], Awaitable[None]],
    port: int,
    cut: Counter[str],
    wait_s: float,
    came: asyncio.Event,
) -> None:
    await asyncio.sleep(wait_s)
    while True:
        try:
            sock = socket.socket()
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
        except OSError:
            sock.close()
        else:
            came.set()
            with contextlib.suppress(OSError):
                await kind(reader, writer)
            writer.transport.abort()
        cut[kind.__name__] += 1
        await asyncio.sleep(1.0)


async def attack(port: int, count: int, seconds: float, most: int) -> Counter[str]:
    """Return the number of times that each kind was cut off.

    On a busy machine it takes up to a minute more than the seconds: until all have come, and as many have
    been cut off as are too many.
    """
    cut: Counter[str] = Counter()
    came = [asyncio.Event() for _ in range(count)]
    # They come over a fifth of the time, not in one burst that a queue of new connections would turn away.
    come_s = seconds / 5
    tasks = [
        asyncio.create_task(_hostile(KINDS[i % len(KINDS)], port, cut, come_s * i / count, came[i]))
        for i in range(count)
    ]
    await asyncio.sleep(seconds)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            for each in came:
                await each.wait()
            while cut.total() < count - most:
                await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return cut


def honest(folder: str, port: str, seconds: str) -> None:
    """Run the honest senders, and print what they got as JSON."""
    asked = Survey.from_canonical((Path(folder) / "survey").read_bytes())
    ends = time.monotonic() + float(seconds)
    waits: list[float] = []
    tries: list[int] = []
    unanswered: list[bytes] = []

    def send() -> None:
        while time.monotonic() < ends:
            body, began, count = upload(asked, 1), time.monotonic(), 0
            # Uploads begun in time are seen through, so that every report has one fate.
            while time.monotonic() < ends + 6 * GIVE_UP_S:
                count += 1
                if _sent(int(port), body):
                    waits.append(time.monotonic() - began)
                    tries.append(count)
                    break
                time.sleep(0.05)
            else:
                unanswered.append(body)

    threads = [threading.Thread(target=send) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"waits": waits, "tries": tries, "unanswered": len(unanswered)}))


def _sent(port: int, body: bytes) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GIVE_UP_S)
    with contextlib.closing(connection):
        try:
            connection.request("POST", "/v1/reports", body)
            answer = connection.getresponse()
            return answer.status == 200 and decode_response(answer.read()) == ["accepted"]
        except (OSError, http.client.HTTPException):
            return False


def serve(folder: str, most: str) -> None:
    """Run the node, which writes down how long each turn of its event loop takes."""
    start = server._Server.startup

    async def startup(self: server._Server, sockets: list[socket.socket] | None = None) -> None:
        await start(self, sockets)
        loop = asyncio.get_running_loop()
        began = before = (time.monotonic(), time.process_time())
        turns: list[tuple[float, float]] = []
        wrote = began[0]

        def turn() -> None:
            nonlocal before, wrote
            now = (time.monotonic(), time.process_time())
            turns.append((now[0] - before[0] - LOOK_S, now[1] - before[1]))
            before = now
            if now[0] - wrote > 1.0:
                wrote = now[0]
                clock, own = (sorted(times) for times in zip(*turns, strict=True))
                figures = {
                    "node_cores": (now[1] - began[1]) / (now[0] - began[0]),
                    "longest_turn_s": clock[-1],
                    "longest_turn_cpu_s": own[-1],
                    # Half of the time passed in turns that took longer.
                    "usual_turn_s": _weighted_median(clock),
                    "usual_turn_cpu_s": _weighted_median(own),
                }
                rounded = {name: round(value, 3) for name, value in figures.items()}
                (Path(folder) / "turns").write_text(json.dumps(rounded))
            loop.call_later(LOOK_S, turn)

        turn()

    server._Server.startup = startup  # type: ignore[method-assign]  # no turn is seen from outside
    asked = Survey.from_canonical((Path(folder) / "survey").read_bytes())
    bounds = GatewaySettings(max_connections=int(most))
    serve_node(NodeSettings(surveys=(asked,), data_dir=Path(folder) / "data", gateway=bounds))


def _weighted_median(times: list[float]) -> float:
    left = sum(times) / 2
    for value in times:
        left -= value
        if left <= 0:
            return value
    return 0.0


def counted(node: Node, at_least: int) -> int:
    """Return the reports that the page counts as accepted, once those acknowledged are, or after a minute.

    A page of 16,000 cells takes more than a second of processor time, and the node may get a tenth of a core.
    """
    ends = time.monotonic() + PATIENCE_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=GIVE_UP_S)
        with contextlib.closing(connection):
            connection.request("GET", "/api/live")
            found = int(json.loads(connection.getresponse().read())["accounting"]["accepted"])
        if found >= at_least or time.monotonic() > ends:
            return found
        time.sleep(0.1)


def run(connections: int, seconds: float, most: int) -> dict[str, object]:
    """Run one attack, and print what honest senders got, the node's memory and its counts."""
    asked = survey(large=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        node = Node(asked, place, words=[sys.executable, __file__, "serve", folder, str(most)])
        try:
            words = [sys.executable, __file__, "honest", folder, str(node.port), str(seconds)]
            senders = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            cut = asyncio.run(attack(node.port, connections, seconds, most))
            got = json.loads(senders.communicate()[0])
            acknowledged = len(got["waits"])
            turns = json.loads((place / "turns").read_text())
            found = counted(node, acknowledged)
        finally:
            log = node.end().splitlines()
    waits = sorted(got["waits"]) or [float("inf")]
    return {
        "connections": connections,
        "seconds": seconds,
        "most": most,
        "cut_off": dict(cut),
        "acknowledged": acknowledged,
        "at_first": sum(count == 1 for count in got["tries"]),
        "unanswered": got["unanswered"],
        "counted": found,
        "median_s": round(statistics.median(waits), 4),
        "slowest_s": round(waits[-1], 3),
        "before_mib": node.before // MIB,
        "most_mib": node.most // MIB,
        **turns,
        "log": log[:10],
    }


def main(words: list[str]) -> int:
    if words[:1] == ["honest"]:
        honest(*words[1:])
        return 0
    if words[:1] == ["serve"]:
        serve(*words[1:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--connections", type=int, default=10_000, help="hostile ones (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="default: %(default)s")
    parser.add_argument(
        "--most",
        type=int,
        default=GatewaySettings().max_connections,
        help="bound of the node (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args(words)
    needed, hard = options.connections + OTHER_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < needed:
        print(
            f"SKIPPED: {options.connections} connections need a limit of {needed} open files, got {hard} "
            "(ulimit -Hn); nothing was measured",
            file=sys.stderr,
        )
        return SKIPPED
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    print(f"{options.connections} connections, {needed} open files of at most {hard}", file=sys.stderr)
    found = run(options.connections, options.seconds, options.most)
    print(
        json.dumps(found) if options.json else "\n".join(f"{name:14}{value}" for name, value in found.items())
    )
    acknowledged, counts = int(str(found["acknowledged"])), int(str(found["counted"]))
    # A report whose answer was lost may be counted, too.
    return int(not acknowledged <= counts <= acknowledged + int(str(found["unanswered"])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
