"""An open loop at several times a slowed node's capacity, then honest senders: what was lost.

    python bench/overload.py                     four times the capacity for five minutes
    python bench/overload.py --full              a node that is not slowed, as much as the generator reaches
    python bench/overload.py --seconds 4 --json  small, one line of JSON

The log takes APPEND_S longer for every append, and a batch has BATCH reports: BATCH / APPEND_S reports a
second are the capacity. Uploads are sent when they are due, on a new connection each, whatever has become of
those before them; a sender that gets no answer in GIVE_UP_S hangs up. When it is over, honest senders upload
a report each, again with the same bytes after the Retry-After they are told, until it is accepted.

It exits with 1 if a report that was acknowledged is not in the log, the page's count is another than the
log's, or an honest sender was not served within RECOVERY_S of the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import http.client
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from hostile_connections import counted
from hostile_node import MIB, Node, survey, upload

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, decode_record
from hubbub.wire.report import decode_response, decode_upload
from hubbub_collector.settings import GatewaySettings
from hubbub_deploy.node import NodeSettings
from hubbub_deploy.node import serve as serve_node
from hubbub_topic.sqlite import SqliteLog

BATCH, APPEND_S = 200, 0.5
"""Reports in a batch of the slowed node, and how much longer its log takes for each: 400 reports a second."""
TIMES = 4
REPORTS = 8
"""Reports in an upload, as many as a device sends at most."""
GIVE_UP_S = 10.0
HONEST = 20
RECOVERY_S = 5.0
LOOPS = 1000
"""Senders at once at full speed; each begins anew when it is answered."""


def serve(folder: str, append_s: str, max_wait_s: str) -> None:
    """Run the node, its log slowed by so many seconds an append."""
    bounds = GatewaySettings(max_wait_s=float(max_wait_s))
    if delay_s := float(append_s):
        append = SqliteLog.append

        @functools.wraps(append)
        def slowly(log: SqliteLog, *arguments: object) -> dict[int, int]:
            time.sleep(delay_s)
            return append(log, *arguments)  # type: ignore[arg-type]  # whatever it takes

        SqliteLog.append = slowly  # type: ignore[method-assign]  # this process measures nothing else
        bounds = GatewaySettings(max_wait_s=float(max_wait_s), max_batch_reports=BATCH)
    asked = Survey.from_canonical((Path(folder) / "survey").read_bytes())
    serve_node(NodeSettings(surveys=(asked,), data_dir=Path(folder) / "data", gateway=bounds))


class Load:
    """A sender of fresh reports, and what became of each.

    Attributes:
        fates: Uploads by status, or `gave up`, or `no connection`.
        acknowledged: The ids of all reports that were said to be accepted.
        at_once: The most uploads that waited at once.
    """

    def __init__(self, asked: Survey, port: int) -> None:
        self._asked, self._port = asked, port
        self.fates: Counter[str] = Counter()
        self.acknowledged: list[bytes] = []
        self.at_once = self._now = 0

    async def one(self) -> None:
        """Send one upload on a new connection, and hang up after GIVE_UP_S."""
        body = upload(self._asked, REPORTS)
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            async with asyncio.timeout(GIVE_UP_S):
                fate = await self._fate(body)
        except TimeoutError:
            fate = "gave up"
        except (OSError, asyncio.IncompleteReadError):
            fate = "no connection"
        finally:
            self._now -= 1
        self.fates[fate] += 1

    async def _fate(self, body: bytes) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            head = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(head + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            status = answer.split(b" ", 2)[1].decode()
            if status == "200":
                length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                outcomes = decode_response(await reader.readexactly(length))
                reports = decode_upload(body, max_reports=REPORTS)
                for report, outcome in zip(reports, outcomes, strict=True):
                    if outcome == "accepted":
                        self.acknowledged.append(report.id)  # type: ignore[union-attr]  # none is malformed
            return status
        finally:
            writer.transport.abort()

    async def open_loop(self, per_s: float, seconds: float) -> None:
        """Send so many uploads a second, each when it is due; return when the last is sent."""
        began, tasks = time.monotonic(), set[asyncio.Task[None]]()
        for number in range(int(per_s * seconds)):
            await asyncio.sleep(max(0.0, began + number / per_s - time.monotonic()))
            task = asyncio.create_task(self.one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        self._tail = tasks

    async def full_speed(self, seconds: float) -> None:
        """Send from LOOPS senders, each without a pause."""
        ends = time.monotonic() + seconds

        async def loop() -> None:
            while time.monotonic() < ends:
                await self.one()

        self._tail = {asyncio.create_task(loop()) for _ in range(LOOPS)}
        await asyncio.sleep(seconds)

    async def over(self) -> None:
        """Wait for those who still wait."""
        await asyncio.gather(*self._tail)


def honest(asked: Survey, port: int, waits: list[float], kept: list[bytes]) -> None:
    """Upload one report until it is accepted; note after how long."""
    body, began = upload(asked, 1), time.monotonic()
    while time.monotonic() < began + 12 * RECOVERY_S:
        pause_s = 0.1
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=12 * RECOVERY_S)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/v1/reports", body)
            answer = connection.getresponse()
            if answer.status == 200 and decode_response(answer.read()) == ["accepted"]:
                waits.append(time.monotonic() - began)
                kept.append(decode_upload(body, max_reports=1)[0].id)  # type: ignore[union-attr]  # as above
                return
            pause_s = float(answer.headers.get("Retry-After", pause_s))
        time.sleep(pause_s)


async def attack(
    load: Load, asked: Survey, port: int, seconds: float, *, full: bool
) -> tuple[list[float], float]:
    """Return how long each honest sender took after the end, and how long the load really lasted."""
    waits: list[float] = []
    began = time.monotonic()
    if full:
        await load.full_speed(seconds)
    else:
        await load.open_loop(TIMES * BATCH / APPEND_S / REPORTS, seconds)
    lasted = time.monotonic() - began
    words = (asked, port, waits, load.acknowledged)
    threads = [threading.Thread(target=honest, args=words) for _ in range(HONEST)]
    for thread in threads:
        thread.start()
    await asyncio.gather(load.over(), *(asyncio.to_thread(thread.join) for thread in threads))
    return waits, lasted


def stored(folder: Path) -> Counter[bytes]:
    """Return how often each id lies in the node's log."""
    found: Counter[bytes] = Counter()
    with SqliteLog(folder / "data" / "log.sqlite") as log:
        for partition in range(log.partitions):
            offset = 0
            while rows := log.read(partition, offset, 1000):
                offset = rows[-1][0] + 1
                for record in map(decode_record, (body for _, body in rows)):
                    for segment in record.segments if isinstance(record, ReportsRecord) else ():
                        found.update(segment.ids[at : at + 16] for at in range(0, len(segment.ids), 16))
    return found


def run(seconds: float, *, full: bool, max_wait_s: float) -> dict[str, object]:
    """Return what an overload did to the node, its reports and those who came after it."""
    asked = survey(large=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slowed = "0" if full else str(APPEND_S)
        words = [sys.executable, __file__, "serve", name, slowed, str(max_wait_s)]
        node = Node(asked, folder, words=words)
        load = Load(asked, node.port)
        try:
            waits, lasted = asyncio.run(attack(load, asked, node.port, seconds, full=full))
            accepted = counted(node, len(load.acknowledged))
        finally:
            log = node.end().splitlines()
        found = stored(folder)
    sent = sum(load.fates.values())
    capacity = "as it is" if full else f"{BATCH / APPEND_S:g} reports a second"
    return {
        "capacity": capacity,
        "offered_per_s": round(REPORTS * sent / lasted),
        "seconds": round(lasted, 1),
        "uploads": dict(load.fates),
        "waited_at_once": load.at_once,
        "acknowledged": len(load.acknowledged),
        "lost": sum(found[one] == 0 for one in load.acknowledged),
        "stored_twice": sum(count > 1 for count in found.values()),
        "stored": len(found),
        "counted": accepted,
        "honest": len(waits),
        "served_after_s": round(max(waits, default=float("inf")), 2),
        "before_mib": node.before // MIB,
        "most_mib": node.most // MIB,
        "log": log[:10],
    }


def main(words: list[str]) -> int:
    if words[:1] == ["serve"]:
        serve(*words[1:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="default: %(default)s")
    parser.add_argument("--full", action="store_true", help="do not slow the log; send as fast as can be")
    parser.add_argument(
        "--max-wait", type=float, default=GatewaySettings().max_wait_s, help="the node's setting"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args(words)
    found = run(options.seconds, full=options.full, max_wait_s=options.max_wait)
    lines = (f"{name:16}{value}" for name, value in found.items())
    print(json.dumps(found) if options.json else "\n".join(lines))
    served = found["honest"] == HONEST and float(str(found["served_after_s"])) <= RECOVERY_S
    return int(bool(found["lost"]) or found["counted"] != found["stored"] or not served)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
