"""Uploads at the collector, beside an empty handler on the same server; then from POST to the page. Prints.

    python bench/collector.py              both
    python bench/collector.py uploads      only the first
    python bench/collector.py latency      only the second: half a minute of 400 reports a second

Uploads hold two reports and go over keep-alive connections into a real broker. The server runs on one core,
everything else on the other where there are two. Figures are uploads per second of the clock and of the
server's own processor time, the best of several rounds in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import urllib3
from servers import CORES, broker, folder, pin, redis_server

import hubbub
from hubbub.wire import Report, encode_report, encode_upload
from hubbub_collector import gateway
from hubbub_collector.kafka_log import KafkaLog
from hubbub_collector.kafka_topic import create_topic
from hubbub_collector.server import create_server

sys.path.insert(0, str(Path(__file__).parent))
from run import SURVEY, line

CONNECTIONS, UPLOADS, ROUNDS = 512, 20_000, 5
HUBBUB = [sys.executable, "-m", "hubbub_deploy.cli"]
RATE, REPORTS, PROBE_S, COHORT = 40, 10, 30.0, 100


def survey_text() -> str:
    """A survey whose first day is today."""
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    return SURVEY.replace("2026-01-01T00:00:00Z", today).replace("rounds = 1", "rounds = 2")


def body(survey: hubbub.Survey, rng: np.random.Generator, reports: int) -> bytes:
    """An upload of fresh reports for the round that is open."""
    number = survey.round_at(time.time())
    assert number is not None
    symbols = rng.integers(0, survey.channel.outputs, reports).tolist()
    return encode_upload(
        [encode_report(Report(survey.digest, number, rng.bytes(16), symbol)) for symbol in symbols]
    )


async def _empty(scope: Any, receive: Any, send: Any) -> None:
    """What any ASGI application must do: read the body, answer."""
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
    """A server on a free port; it says which."""
    pin(0)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    if kind == "empty":
        create_server(_empty).run(sockets=[listener])  # type: ignore[arg-type]  # an application like any
        return
    survey = hubbub.Survey.parse(survey_text())
    with KafkaLog(bootstrap, topic) as log:
        create_server(gateway.create_app(log, [survey])).run(sockets=[listener])


@contextlib.contextmanager
def server(kind: str, bootstrap: str, topic: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and its process."""
    command = [sys.executable, __file__, "--serve", kind, bootstrap, topic]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.terminate()
        process.wait()


def cpu_s(pid: int) -> float:
    """Seconds of processor time of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def post_all(port: int, requests: list[bytes]) -> None:
    """Sends all requests over CONNECTIONS connections, each waiting for its answer before the next."""
    waiting = iter(requests)

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            if length:
                await reader.readexactly(length)
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))


def uploads(bootstrap: str) -> None:
    """Uploads per second, beside the empty handler."""
    import uvloop  # noqa: PLC0415 - of the load's own, for speed

    topic = f"bench-{time.time_ns()}"
    create_topic(bootstrap, topic, partitions=4)
    survey, rng = hubbub.Survey.parse(survey_text()), np.random.default_rng(3)
    head = b"POST /v1/reports HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n"
    best: dict[str, list[float]] = {}
    with server("empty", bootstrap, topic) as empty, server("gateway", bootstrap, topic) as ours:
        for _ in range(ROUNDS):
            bodies = [body(survey, rng, 2) for _ in range(UPLOADS)]
            requests = [head % len(one) + one for one in bodies]
            for name, (port, pid) in (("empty", empty), ("gateway", ours)):
                cpu, wall = cpu_s(pid), time.perf_counter()
                uvloop.run(post_all(port, requests))
                took = [cpu_s(pid) - cpu, time.perf_counter() - wall]
                best[name] = [min(pair) for pair in zip(took, best.get(name, took), strict=True)]
    print(f"uploads of two reports, {CONNECTIONS} keep-alive connections, best of {ROUNDS} x {UPLOADS:,}:")
    for place, how in ((0, "by its processor time"), (1, "by the clock")):
        peer, own = best["empty"][place], best["gateway"][place]
        line(f"empty handler, {how}", f"{UPLOADS / peer / 1e3:.1f} k/s")
        line(
            f"collector, {how}", f"{UPLOADS / own / 1e3:.1f} k/s", f"{peer / own:.2f} of empty", "target 0.6"
        )


def latency(bootstrap: str, redis_url: str) -> None:
    """From the first byte of a POST to the first document of the page that its reports are in."""
    with folder() as data, contextlib.ExitStack() as stack:
        text = survey_text().replace("minimum_cohort = 100", f"minimum_cohort = {COHORT}")
        (data / "survey.toml").write_text(text)
        name = f"bench-{time.time_ns()}"
        (data / "cluster.toml").write_text(
            f"kafka = '{bootstrap}'\nredis = '{redis_url}'\ntopic = '{name}'\ngroup = '{name}'\n"
        )
        settings = str(data / "cluster.toml")
        subprocess.run(
            [*HUBBUB, "topic", settings, "--partitions", "4"], check=True, stdout=subprocess.DEVNULL
        )

        def start(command: str, *arguments: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [*HUBBUB, command, settings, *arguments], stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        def url(command: str, *arguments: str) -> str:
            process = start(command, *arguments, "--port", "0")
            assert process.stdout is not None
            return process.stdout.readline().split(": ", 1)[1].strip()

        collector = url("collector", str(data / "survey.toml"))
        start("aggregator")
        page = url("dashboard", "--data", str(data / "archive"))
        survey, rng = hubbub.Survey.load(data / "survey.toml"), np.random.default_rng(4)
        sent: list[float] = []  # when, per upload
        seen: list[tuple[float, int]] = []  # when, how many devices the estimate has
        with urllib3.PoolManager() as http:

            def post() -> None:
                answer = http.request("POST", f"{collector}/v1/reports", body=body(survey, rng, REPORTS))
                assert answer.status == 200

            def shown() -> int:
                live = json.loads(http.request("GET", f"{page}/api/live").data)
                return sum(known["as_of"] for found in live["surveys"] for known in found["rounds"])

            # The aggregator's start is not what a running cluster shows.
            before = 0
            while not before or shown() < REPORTS * before - 4 * COHORT:
                for _ in range(COHORT // REPORTS):
                    post()
                before += COHORT // REPORTS
                time.sleep(0.5)
            began, place, looked = time.monotonic(), 0, 0.0
            while time.monotonic() - began < PROBE_S:
                now = time.monotonic()
                if now >= began + place / RATE:
                    sent.append(now)
                    post()
                    place += 1
                elif now - looked > 0.02:
                    looked = now
                    seen.append((time.monotonic(), shown()))
    _print_waits(sent, seen, before)


def _print_waits(sent: list[float], seen: list[tuple[float, int]], before: int) -> None:
    """How long the uploads sent after the first `before` were on their way."""
    waits = []
    for number, at in enumerate(sent, start=before + 1):
        # The last seconds' reports wait for others after them, which do not come any more.
        if at <= sent[0] + PROBE_S * 0.8:
            visible = next((when for when, devices in seen if devices >= REPORTS * number), float("inf"))
            waits.append(visible - at)
    p50, p99 = np.percentile(waits, [50, 99], method="higher")
    load = f"{len(waits)} uploads at {RATE * REPORTS} reports/s, steps of {COHORT}"
    print(f"from POST to the page's estimate, {load}:")
    line("p50", f"{p50:.2f} s", "", "target 1 s")
    line("p99", f"{p99:.2f} s", "", "target 3 s")


def main() -> int:
    """Runs what the command line names, or both."""
    match sys.argv[1:]:
        case ["--serve", kind, bootstrap, topic]:
            serve(kind, bootstrap, topic)
            return 0
        case []:
            chosen = ["uploads", "latency"]
        case ["uploads" | "latency" as one]:
            chosen = [one]
        case _:
            print("collector.py [uploads|latency]", file=sys.stderr)
            return 2
    print(f"{len(CORES)} cores, Python {sys.version.split()[0]}")
    with broker() as bootstrap, redis_server() as redis_url:
        if "uploads" in chosen:
            uploads(bootstrap)
        if "latency" in chosen:
            latency(bootstrap, redis_url)
    return 0


if __name__ == "__main__":
    sys.exit(main())
