"""Uploads at the collector, beside an empty handler on the same server.

    python bench/collector.py

Uploads hold two reports and go over keep-alive connections into a real broker. The server runs on one core,
everything else on the other where there are two. Figures are uploads per second of the clock and of the
server's own processor time, the best of several rounds in turn.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from closed_loop import Took, ask
from servers import CORES, broker, pin
from starlette.applications import Starlette

import hubbub
from hubbub.wire.report import Report, encode_report, encode_upload
from hubbub_collector import Permits, gateway
from hubbub_collector.server import create_server, look_for_cycles_rarely
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

sys.path.insert(0, str(Path(__file__).parent))
from harness import line
from run import SURVEY

CONNECTIONS, UPLOADS, ROUNDS = 512, 20_000, 5
HEAD = b"POST /v1/reports HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n"


def survey_of_today() -> hubbub.Survey:
    """Return a survey whose first day is today."""
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    return hubbub.Survey.parse(
        SURVEY.replace("2026-01-01T00:00:00Z", today).replace("rounds = 1", "rounds = 2")
    )


def body(survey: hubbub.Survey, rng: np.random.Generator, reports: int) -> bytes:
    """Return an upload of fresh reports for the round that is open."""
    number = survey.round_at(time.time())
    assert number is not None
    symbols = rng.integers(0, survey.channel.outputs, reports).tolist()
    return encode_upload(
        [encode_report(Report(survey.digest, number, rng.bytes(16), symbol)) for symbol in symbols]
    )


async def _empty(scope: Any, receive: Any, send: Any) -> None:
    """Do what any ASGI application must: read the body, answer."""
    if scope["type"] != "http":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def serve(kind: str, bootstrap: str, topic: str) -> None:
    """Run a server on a free port, and say which once it serves."""
    pin(0)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    look_for_cycles_rarely()  # as `hubbub collector` does
    if kind == "empty":
        _run(_empty, listener)  # type: ignore[arg-type]  # an application like any
        return
    with KafkaLog(bootstrap, topic) as log:
        _run(gateway.create_app(log, [survey_of_today()], permits=Permits()), listener)


def _run(app: Starlette, listener: socket.socket) -> None:
    """Serve until a signal; say the port once connections to it are accepted."""
    server = create_server(app)

    def announce() -> None:
        while not server.started:
            time.sleep(0.005)
        print(listener.getsockname()[1], flush=True)

    threading.Thread(target=announce, daemon=True).start()
    server.run(sockets=[listener])


@contextlib.contextmanager
def server(kind: str, bootstrap: str, topic: str) -> Iterator[tuple[int, int]]:
    """Return a server in a process of its own: its port and its process."""
    command = [sys.executable, __file__, "--serve", kind, bootstrap, topic]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.terminate()
        process.wait()


def uploads(bootstrap: str) -> None:
    """Print uploads per second, beside the empty handler."""
    topic = f"bench-{time.time_ns()}"
    create_topic(bootstrap, topic, partitions=4)
    survey, rng = survey_of_today(), np.random.default_rng(3)
    found: dict[str, list[Took]] = {"empty": [], "gateway": []}
    with server("empty", bootstrap, topic) as empty, server("gateway", bootstrap, topic) as ours:
        for _ in range(ROUNDS):
            bodies = [body(survey, rng, 2) for _ in range(UPLOADS)]
            requests = [HEAD % len(one) + one for one in bodies]
            for name, (port, pid) in (("empty", empty), ("gateway", ours)):
                found[name].append(ask(port, pid, requests, CONNECTIONS))
    print(f"uploads of two reports, {CONNECTIONS} keep-alive connections, best of {ROUNDS} x {UPLOADS:,}:")
    for how, take in (("its processor time", 1), ("the clock", 0)):
        peer, own = (min(took[take] for took in rounds) for rounds in found.values())
        line(f"empty handler, by {how}", f"{UPLOADS / peer / 1e3:.1f} k/s")
        line(
            f"collector, by {how}",
            f"{UPLOADS / own / 1e3:.1f} k/s",
            f"{peer / own:.2f} of empty",
            "target 0.75",
        )
    for what, rounds in found.items():
        best = min(rounds)
        shares = f"{best.server / best.wall:.2f} of its core, the load {best.load / best.wall:.2f} of another"
        line(f"{what} was busy for", shares)


def main() -> int:
    """Run the bench, or one of its servers."""
    match sys.argv[1:]:
        case ["--serve", kind, bootstrap, topic]:
            serve(kind, bootstrap, topic)
            return 0
        case []:
            print(f"{len(CORES)} cores, Python {sys.version.split()[0]}")
            with broker() as bootstrap:
                uploads(bootstrap)
            return 0
        case _:
            print("collector.py", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
