"""Five hundred pages open on one dashboard: the time from a new number to each of them.

    make evidence NAME=watchers
    python bench/watchers.py --watchers 500 --streams 256 --changes 60

A server in a process of its own shows a view that changes every half a second and says when in the document.
Watchers in another process ask as the page does: first for a stream; a page that is refused one polls, with
an entity tag and by gzip. A delay is from a change to the first document of a page that holds it or a later
one; of a page that polls it holds the pause between two requests.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing as mp
import os
import random
import socket
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import numpy as np
import uvicorn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))

from shown_view import ShownView, round_of, snapshot_of, survey_of

from hubbub_aggregator.web import create_app

PERIOD_S = 0.5
POLL_S = 1.2
"""The page's own distance between two polls (`web/page/connection.js`)."""


def snapshot(at_s: float, devices: int) -> dict[str, object]:
    """Return three surveys of 80, 12 and 5 values, whose first says when it was published."""
    rounds = [
        round_of(shares=[(str(k), f"c{k // 8}", 1 / size) for k in range(size)], devices=devices, mean=3.0)
        for size in (80, 12, 5)
    ]
    surveys = [survey_of(f"s{i}", each, digest=f"{i}" * 32) for i, each in enumerate(rounds)]
    return snapshot_of(*surveys) | {"log": repr(at_s)}


def serve(pipe: Connection, streams: int, changes: int) -> None:
    """Serve a changing view until the pipe says stop."""
    view = ShownView(snapshot(time.monotonic(), 1000))
    app = create_app(view, max_streams=streams, max_client_streams=streams)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    pipe.send(listener.getsockname()[1])
    pipe.recv()
    spent = time.process_time()
    for change in range(changes):
        view.publish(snapshot(time.monotonic(), 1001 + change))
        time.sleep(PERIOD_S)
    pipe.send(time.process_time() - spent)
    pipe.recv()
    server.should_exit = True
    thread.join()


class Watchers:
    """A crowd of pages in one event loop, and what they saw."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.streams = self.pollers = 0
        self.sights: list[list[tuple[float, float]]] = []
        self.streamed: list[bool] = []
        self.requests: list[float] = []
        self.counting = False
        self.largest = 0
        self.spent = 0.0

    def note(self, text: bytes, sights: list[tuple[float, float]]) -> None:
        """Note when a document came, and when its number was made."""
        self.largest = max(self.largest, len(text))
        if self.counting:
            begin = text.index(b'"log":"') + 7
            sights.append((time.monotonic(), float(text[begin : text.index(b'"', begin)])))

    def delays(self, *, streams: bool) -> list[float]:
        """Return the delay of every change to every page: the first sight of it or of a later one."""
        made = sorted({number for sights in self.sights for _, number in sights})
        found = []
        for sights, streamed in zip(self.sights, self.streamed, strict=True):
            if streamed is not streams or not sights:
                continue
            last = max(number for _, number in sights)
            # Changes before the first document, or cut off by the end, have no known delay.
            for number in (n for n in made if sights[0][1] <= n <= last):
                found.append(min(at for at, held in sights if held >= number) - number)
        return found

    async def watch(self, client: aiohttp.ClientSession, chance: random.Random) -> None:
        """Look as a page does: a stream, else polls."""
        sights: list[tuple[float, float]] = []
        at = len(self.sights)
        self.sights.append(sights)
        self.streamed.append(False)
        async with client.get(f"{self.url}api/events") as reply:
            if reply.status == 200:
                self.streams += 1
                self.streamed[at] = True
                async for line in reply.content:
                    if line.startswith(b"data: {") and b'"log"' in line:
                        self.note(line[6:], sights)
                return
        self.pollers += 1
        tag = ""
        while True:
            await asyncio.sleep(POLL_S * (0.75 + chance.random() / 2))
            began = time.monotonic()
            async with client.get(f"{self.url}api/live", headers={"if-none-match": tag}) as reply:
                text = await reply.read()
            if self.counting:
                self.requests.append(time.monotonic() - began)
            if reply.status == 200:
                tag = reply.headers["etag"]
                self.note(text, sights)


async def look(url: str, watchers: int, pipe: Connection) -> tuple[Watchers, float]:
    """Return the watchers after all changes, and the server's CPU seconds."""
    found = Watchers(url)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=60)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=2**20) as client:
        tasks = [asyncio.create_task(found.watch(client, random.Random(i))) for i in range(watchers)]  # noqa: S311 - jitter
        while found.streams + found.pollers < watchers:
            await asyncio.sleep(0.05)
            for task in tasks:
                if task.done():
                    task.result()
        found.counting = True
        began = time.process_time()
        pipe.send("go")
        spent = await asyncio.to_thread(pipe.recv)
        found.counting, found.spent = False, time.process_time() - began
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
    return found, float(spent)


def row(name: str, numbers: list[float]) -> str:
    """Return a line of the table: how many, median, p99, largest, in milliseconds."""
    if not numbers:
        return f"| {name} | 0 | - | - | - |"
    cut = [1000 * float(np.quantile(numbers, q)) for q in (0.5, 0.99, 1.0)]
    return f"| {name} | {len(numbers):,} | " + " | ".join(f"{value:,.0f}" for value in cut) + " |"


def main() -> int:
    """Run it, print the table, and return 1 where a p99 of the delays is 2 s or more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--changes", type=int, default=60)
    options = parser.parse_args()
    ours, theirs = mp.Pipe()
    server = mp.get_context("spawn").Process(target=serve, args=(theirs, options.streams, options.changes))
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        found, spent = asyncio.run(look(url, options.watchers, ours))
        ours.send("stop")
    finally:
        server.join(20)
        if server.is_alive():
            server.terminate()
    seconds = options.changes * PERIOD_S
    print(
        f"{options.watchers} pages on one server: {found.streams} streams (cap {options.streams}), "
        f"{found.pollers} pollers; {options.changes} changes in {seconds:.0f} s of a document of "
        f"{found.largest / 1000:.0f} kB; the server used {100 * spent / seconds:.0f} % of a core, "
        f"the watchers {100 * found.spent / seconds:.0f} %. "
        f"{os.getloadavg()[0]:.1f} processes wanted {os.cpu_count()} cores.\n"
    )
    print("| what | times | median, ms | p99, ms | most, ms |\n|---|---|---|---|---|")
    events, polls = found.delays(streams=True), found.delays(streams=False)
    print(row("a change, until a page with a stream has it", events))
    print(row("a change, until a page that polls has it", polls))
    print(row("a poll's request alone", found.requests))
    late = [np.quantile(each, 0.99) >= 2.0 for each in (events, polls) if each]
    return 1 if any(late) or not events else 0


if __name__ == "__main__":
    sys.exit(main())
