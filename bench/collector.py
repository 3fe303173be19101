"""Uploads at the collector, beside an empty handler on the same server; then from POST to the page.

    python bench/collector.py              uploads and latency
    python bench/collector.py uploads      only the first
    python bench/collector.py latency      only the second: half a minute of 400 reports a second
    python bench/collector.py forms        uploads of numbers, of sets, of 100 reports, and with tokens
    python bench/collector.py processes    one collector and two on one port, no process on a core of its own
    python bench/collector.py tls          what TLS takes of a process that ends it: handshake and upload

Uploads hold two reports and go over keep-alive connections into a real broker. The server runs on one core,
everything else on the other where there are two. Figures are uploads per second of the clock and of the
server's own processor time, the best of several rounds in turn. Uploads on their way to the page are sent
when they are due, whatever has become of those before them.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import urllib3
from closed_loop import Took, ask
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from servers import CORES, broker, folder, pin, redis_server
from starlette.applications import Starlette

import hubbub
from hubbub.channels import SetChannel
from hubbub.numeric import SYSTEM
from hubbub.tokens import public_of
from hubbub.wire.report import Report, encode_report, encode_upload
from hubbub_collector import Issuer, Permits, gateway
from hubbub_collector.server import create_server, look_for_cycles_rarely
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

sys.path.insert(0, str(Path(__file__).parent))
from harness import line
from run import SURVEY

CONNECTIONS, UPLOADS, ROUNDS = 512, 20_000, 5
HEAD = b"POST /v1/reports HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n"
ISSUER = "tokens.example"
HUBBUB = [sys.executable, "-m", "hubbub_deploy.cli"]
RATE, REPORTS, PROBE_S, COHORT, SENDERS = 40, 10, 30.0, 20, 64


def survey_text(mechanism: str = "grr") -> str:
    """Return a survey whose first day is today."""
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    found = SURVEY.replace("2026-01-01T00:00:00Z", today).replace("rounds = 1", "rounds = 2")
    return found.replace('"grr"', f'"{mechanism}"').replace('"bench"', f'"bench-{mechanism}"')


def surveys() -> dict[str, hubbub.Survey]:
    """Return the surveys of a server by mechanism."""
    return {name: hubbub.Survey.parse(survey_text(name)) for name in ("grr", "subset")}


def body(survey: hubbub.Survey, rng: np.random.Generator, reports: int) -> bytes:
    """Return an upload of fresh reports for the round that is open."""
    number = survey.round_at(time.time())
    assert number is not None
    channel = survey.channel
    symbols: Sequence[int | bytes]
    if isinstance(channel, SetChannel):
        drawn = channel.draw_many(rng.integers(0, channel.inputs, reports), SYSTEM)
        symbols = [one.tobytes() for one in drawn]
    else:
        symbols = rng.integers(0, channel.outputs, reports).tolist()
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


def serve(kind: str, bootstrap: str, topic: str, port: str) -> None:
    """Run a server on a port, and say which once it serves; several of kind `shared` may have one port."""
    if kind != "shared":
        pin(0)
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=1024, reuse_port=kind == "shared")
    look_for_cycles_rarely()  # as `hubbub collector` does
    if kind == "empty":
        _run(_empty, listener)  # type: ignore[arg-type]  # an application like any
        return
    permits = Permits()
    if kind == "tokens":
        key = serialization.load_pem_private_key(Path(topic + ".pem").read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        permits = Permits(issuers=(Issuer(ISSUER, public_of(key)),))
        topic = Path(topic).name
    with KafkaLog(bootstrap, topic) as log:
        _run(gateway.create_app(log, surveys().values(), permits=permits), listener)


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
def server(kind: str, bootstrap: str, topic: str, port: int = 0) -> Iterator[tuple[int, int]]:
    """Return a server in a process of its own: its port and its process."""
    command = [sys.executable, __file__, "--serve", kind, bootstrap, topic, str(port)]
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
    survey, rng = surveys()["grr"], np.random.default_rng(3)
    found: dict[str, list[Took]] = {"empty": [], "gateway": []}
    with server("empty", bootstrap, topic) as empty, server("gateway", bootstrap, topic) as ours:
        for _ in range(ROUNDS):
            bodies = [body(survey, rng, 2) for _ in range(UPLOADS)]
            requests = [HEAD % len(one) + one for one in bodies]
            for name, (port, pid) in (("empty", empty), ("gateway", ours)):
                found[name].append(ask(port, pid, requests, CONNECTIONS))
    print(f"uploads of two reports, {CONNECTIONS} keep-alive connections, best of {ROUNDS} x {UPLOADS:,}:")
    print_beside("collector", UPLOADS, found["empty"], found["gateway"])


def print_beside(name: str, count: int, empty: Sequence[Took], ours: Sequence[Took]) -> None:
    """Print the best of two servers by processor time and by the clock, and how busy their cores were."""
    for how, take in (("its processor time", 1), ("the clock", 0)):
        peer, own = (min(took[take] for took in rounds) for rounds in (empty, ours))
        line(f"empty handler, by {how}", f"{count / peer / 1e3:.1f} k/s")
        line(f"{name}, by {how}", f"{count / own / 1e3:.1f} k/s", f"{peer / own:.2f} of empty", "target 0.75")
    for what, rounds in (("empty handler", empty), (name, ours)):
        best = min(rounds)
        shares = f"{best.server / best.wall:.2f} of its core, the load {best.load / best.wall:.2f} of another"
        line(f"{what} was busy for", shares)


@contextlib.contextmanager
def cluster(bootstrap: str, redis_url: str, data: Path) -> Iterator[tuple[str, str]]:
    """Return a collector, an aggregator and a dashboard on a folder's survey: addresses of first and last."""
    name, settings = f"bench-{time.time_ns()}", str(data / "cluster.toml")
    Path(settings).write_text(
        f"kafka = '{bootstrap}'\nredis = '{redis_url}'\ntopic = '{name}'\ngroup = '{name}'\n"
    )
    make = [*HUBBUB, "topic", settings, "--partitions", "4"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    with contextlib.ExitStack() as stack:

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
        yield collector, url("dashboard", "--data", str(data / "archive"))


def latency(bootstrap: str, redis_url: str) -> None:
    """Print the time from when a POST is due to the first document of the page that has its reports.

    An estimate moves in steps of a cohort and waits for one more: two cohorts' time is the survey's choice,
    and the cohort here is small against the rate. What is counted, the page says at once.
    """
    with folder() as data, contextlib.ExitStack() as stack:
        text = survey_text().replace("minimum_cohort = 100", f"minimum_cohort = {COHORT}")
        (data / "survey.toml").write_text(text)
        survey, rng = hubbub.Survey.load(data / "survey.toml"), np.random.default_rng(4)
        collector, page = stack.enter_context(cluster(bootstrap, redis_url, data))
        http = stack.enter_context(urllib3.PoolManager(maxsize=SENDERS))
        seen: list[tuple[float, int, int]] = []  # when, reports counted, devices behind the estimate

        def post(one: bytes) -> float:
            answer = http.request("POST", f"{collector}/v1/reports", body=one)
            assert answer.status == 200
            return time.monotonic()

        def look() -> None:
            live = json.loads(http.request("GET", f"{page}/api/live").data)
            behind = sum(known["as_of"] for found in live["surveys"] for known in found["rounds"])
            seen.append((time.monotonic(), live["accounting"]["accepted"], behind))

        def look_until(reports: int) -> None:
            while time.monotonic() < began + 2 * PROBE_S and seen[-1][1] < reports:
                time.sleep(0.02)
                look()

        # The aggregator's start is not what a running cluster shows.
        before = 0
        while not seen or seen[-1][2] < REPORTS * before - 4 * COHORT:
            for _ in range(COHORT // REPORTS):
                post(body(survey, rng, REPORTS))
                before += 1
            time.sleep(0.5)
            look()
        bodies = [body(survey, rng, REPORTS) for _ in range(int(RATE * PROBE_S))]
        began, answers, sent = time.monotonic(), [], []
        # No upload waits for the answer to the one before it; where all senders are busy, that counts too.
        with ThreadPoolExecutor(1) as looker, ThreadPoolExecutor(SENDERS) as senders:
            looking = looker.submit(look_until, REPORTS * (before + len(bodies)))
            for place, one in enumerate(bodies):
                sent.append(began + place / RATE)
                time.sleep(max(0.0, sent[-1] - time.monotonic()))
                answers.append(senders.submit(post, one))
            looking.result()
    print(f"uploads of {REPORTS} reports, {RATE} a second, load average {os.getloadavg()[0]:.1f}:")
    _print_waits("POST to its answer", [a.result() - at for a, at in zip(answers, sent, strict=True)])
    for what, place in (("POST to the page's count", 1), (f"to its estimate, steps of {COHORT}", 2)):
        waits = []
        for number, at in enumerate(sent, start=before + 1):
            # The last seconds' reports wait for a cohort after them, which does not come any more.
            if at <= began + PROBE_S * 0.8:
                visible = next((look[0] for look in seen if look[place] >= REPORTS * number), float("inf"))
                waits.append(visible - at)
        _print_waits(what, waits)


def _print_waits(what: str, waits: list[float]) -> None:
    """Return the median and the 99th percentile."""
    p50, p99 = np.percentile(waits, [50, 99], method="higher")
    line(what, f"p50 {p50:.2f} s, p99 {p99:.2f} s", "", "target 1 s, 3 s")


def main() -> int:
    """Run what the command line names, or uploads and latency."""
    import uploads_by_kind  # noqa: PLC0415 - it imports this module

    match sys.argv[1:]:
        case ["--serve", kind, bootstrap, topic, port]:
            serve(kind, bootstrap, topic, port)
            return 0
        case []:
            chosen = ["uploads", "latency"]
        case ["tls"]:
            uploads_by_kind.tls()
            return 0
        case ["uploads" | "latency" | "forms" | "processes" as one]:
            chosen = [one]
        case _:
            print("collector.py [uploads|latency|forms|processes|tls]", file=sys.stderr)
            return 2
    print(f"{len(CORES)} cores, Python {sys.version.split()[0]}")
    with broker() as bootstrap, redis_server() as redis_url:
        if "uploads" in chosen:
            uploads(bootstrap)
        if "forms" in chosen:
            uploads_by_kind.forms(bootstrap)
        if "processes" in chosen:
            uploads_by_kind.processes(bootstrap)
        if "latency" in chosen:
            latency(bootstrap, redis_url)
    return 0


if __name__ == "__main__":
    sys.exit(main())
