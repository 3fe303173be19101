"""The plan for 10^9 devices a day, computed from costs that the same run measures.

    python bench/scale.py               10^9 devices, one report a day each
    python bench/scale.py 50000000      another number

Real broker, Redis, collector and worker; costs are seconds of processor time of each process, fitted to a
part for each record (or save, or upload) and a part for each report by records of two sizes, the least of
REPEATS. What broker and Redis take with nothing to do is measured first and taken off.

The plan is for a busiest second of five times the mean; a day of it is gone through by the minute, with one
aggregator away for an hour of the peak. Not measured: copies between brokers, networks, TLS.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import collector
import numpy as np
import redis
from closed_loop import cpu_s, post_all
from servers import CORES, broker, redis_server

import kafka
from hubbub_topic.kafka.topic import create_topic

REPEATS, UPLOADS, CONNECTIONS = 3, 10_000, 512
IDLE_S = 10.0
WORKERS, WORKER_REPORTS = (1, 2, 4), 5_000_000
SMALL, LARGE = 20, 1_000
REPORTS = {SMALL: 100_000, LARGE: 400_000}
PEAK, DAY_S, GROUPS_A_SECOND = 5.0, 86_400, 20
COPIES, DAYS_KEPT = 3, 14


class Cost(NamedTuple):
    """A processor's seconds for each record (or save) and for each report in it."""

    each: float
    report: float

    def cores(self, each: float, reports: float) -> float:
        """Return the cores that so many records and reports a second take."""
        return each * self.each + reports * self.report


def fitted(small: tuple[float, float, float], large: tuple[float, float, float]) -> Cost:
    """Return the cost by two measurements of (seconds, records, reports); no part is below zero."""
    each, report = np.linalg.solve([small[1:], large[1:]], [small[0], large[0]])
    return Cost(max(0.0, float(each)), max(0.0, float(report)))


def idle() -> dict[str, float]:
    """Return the seconds of Redis and of the broker in a second of the clock with nothing to do."""
    begun = below()
    time.sleep(IDLE_S)  # nothing is waited for: the pause is what is measured
    ended = below()
    return {name: (ended[name] - begun[name]) / IDLE_S for name in begun}


def below() -> dict[str, float]:
    """Return the seconds of Redis and of the broker, which this process started."""
    parents, found = {}, {"redis": 0.0, "broker": 0.0}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            parents[int(place.name)] = parent, (place / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
    for pid, (parent, command) in parents.items():
        above = parent
        while above in parents and above != os.getpid():
            above = parents[above][0]
        if above == os.getpid() and b"--work" not in command and b"--serve" not in command:
            found["redis" if b"redis-server" in command else "broker"] += cpu_s(pid)
    return found


def counted(
    bootstrap: str, url: str, size: int, table: str, resting: dict[str, float]
) -> dict[str, tuple[float, float, float]]:
    """Return (seconds, records or saves, reports) of all who have to do with records of one size."""
    reports, records = REPORTS[size], REPORTS[size] // size
    found: dict[str, list[tuple[float, float, float]]] = {}

    def spent() -> dict[str, float]:
        return {name: s - resting[name] * time.monotonic() for name, s in below().items()}

    for _ in range(REPEATS):
        topic, before = f"scale-{time.time_ns()}", spent()
        kafka.fill(bootstrap, topic, reports, size)
        begun = spent()
        found.setdefault("produce", []).append((begun["broker"] - before["broker"], records, reports))
        run = kafka.worker(f"faust/{table}", bootstrap, topic, url)
        ended = spent()
        found.setdefault("fetch", []).append((ended["broker"] - begun["broker"], records, reports))
        saves = records / run["group"]
        found.setdefault("save", []).append((ended["redis"] - begun["redis"], saves, reports))
        found.setdefault("count", []).append((run["cpu"], records, reports))
    return {name: min(each) for name, each in found.items()}


def scaled(bootstrap: str, url: str, table: str) -> None:
    """Print what one worker and more of them count at once, each a full topic, and what they took."""
    topic, reports = f"scale-{time.time_ns()}", WORKER_REPORTS
    kafka.fill(bootstrap, topic, reports, LARGE)
    print(
        f"Workers at once on {len(CORES)} cores, each counting {reports:,} reports in records of {LARGE:,}:\n"
    )
    print("| workers | M reports a second, all together | cores: workers | broker | Redis |")
    print("|---|---|---|---|---|")
    for workers in WORKERS:
        begun = below()
        with ThreadPoolExecutor(workers) as threads:
            started = [
                threads.submit(
                    kafka.worker,
                    f"faust/{table}",
                    bootstrap,
                    topic,
                    url,
                    core=place % len(CORES),
                    workers=workers,
                )
                for place in range(workers)
            ]
            runs = [each.result() for each in started]
        ended = below()
        seconds = max(run["at"] for run in runs) - min(run["at"] - run["wall"] for run in runs)
        cores = sum(run["cpu"] for run in runs), *(ended[name] - begun[name] for name in ("broker", "redis"))
        shown = " | ".join(f"{each / seconds:.2f}" for each in cores)
        print(f"| {workers} | {workers * reports / seconds / 1e6:.2f} | {shown} |")
    print()


def uploaded(bootstrap: str) -> float:
    """Return seconds of a collector for an upload of one report."""
    topic, least = f"scale-{time.time_ns()}", float("inf")
    create_topic(bootstrap, topic, partitions=8)
    survey, rng = collector.survey_of_today(), np.random.default_rng(3)
    head = b"POST /v1/reports HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n"
    with collector.server("gateway", bootstrap, topic) as (port, pid):
        for _ in range(REPEATS):
            bodies = [collector.body(survey, rng, 1) for _ in range(UPLOADS)]
            before = cpu_s(pid)
            post_all(port, [head % len(one) + one for one in bodies], CONNECTIONS)
            least = min(least, (cpu_s(pid) - before) / UPLOADS)
    return least


def rates(mean: float) -> np.ndarray:
    """Return reports a second in every minute of a day whose peak is PEAK times its mean, at 20 o'clock."""
    low, high = 0.0, 50.0
    while high - low > 1e-9:
        k = (low + high) / 2
        low, high = (k, high) if np.exp(k) / np.i0(k) < PEAK else (low, k)
    hours = np.arange(DAY_S // 60) / 60
    shape = np.exp(low * np.cos((hours - 20) * np.pi / 12))
    return mean * shape / shape.mean()


def worst_lag(arriving: np.ndarray, capacity: float, away: Callable[[int], bool], workers: int) -> float:
    """Return the most seconds by which the counting is behind, minute by minute."""
    lag, worst = 0.0, 0.0
    for minute, rate in enumerate(arriving):
        able = capacity * (workers - away(minute)) / workers
        lag = max(0.0, lag + 60 * (rate - able))
        worst = max(worst, lag / able if able else float("inf"))
    return worst


def main() -> int:
    """Measure, and print the plan."""
    if len(sys.argv) > 2 or not all(word.isdecimal() for word in sys.argv[1:]):
        print("scale.py [DEVICES]", file=sys.stderr)
        return 2
    devices = int(sys.argv[1]) if len(sys.argv) > 1 else 10**9
    table = kafka.TABLES[-1]
    with broker() as bootstrap, redis_server() as url:
        with redis.Redis.from_url(url) as asked:
            before, resting = asked.info("memory")["used_memory"], idle()
            small, large = (counted(bootstrap, url, size, table, resting) for size in (SMALL, LARGE))
            kept = (asked.info("memory")["used_memory"] - before) / (REPEATS * sum(REPORTS.values()))
        upload = uploaded(bootstrap)
        scaled(bootstrap, url, table)
    costs = {name: fitted(small[name], large[name]) for name in small}
    sizes = {size: len(next(kafka.records(size, size))[1]) / size for size in (SMALL, LARGE)}
    print(f"Measured, with the {table} id table:\n")
    print("| | for each | for each report |\n|---|---|---|")
    print(f"| collector, an upload of one report | {1e6 * upload:.0f} us | |")
    for name, each, what in (
        ("produce", "record", "broker, taking records"),
        ("fetch", "record", "broker, giving them to an aggregator"),
        ("count", "record", "aggregator, Faust"),
        ("save", "save", "Redis"),
    ):
        cost = costs[name]
        print(f"| {what} | {1e6 * cost.each:.0f} us a {each} | {1e6 * cost.report:.2f} us |")
    bytes_each = f"{sizes[SMALL]:.1f}, {sizes[LARGE]:.1f}"
    print(f"| bytes in the log, records of {SMALL} and {LARGE:,} | | {bytes_each} |")
    print(f"| bytes in Redis while a round is open | | {kept:.1f} |\n")
    plan(devices, costs, upload, kept, sizes[SMALL])
    return 0


def plan(devices: int, costs: dict[str, Cost], upload: float, kept: float, log_bytes: float) -> None:
    """Print what so many devices need.

    Args:
        devices: Devices that report once a day.
        costs: By part.
        upload: A collector's seconds for an upload.
        kept: Bytes of an id in Redis.
        log_bytes: Bytes of a report in the log.
    """
    arriving = rates(devices / DAY_S)
    peak = float(arriving.max())
    gateways = int(np.ceil(1.3 * peak * upload))
    print(
        f"{devices:,} devices a day: {devices / DAY_S:,.0f} reports a second, {peak:,.0f} at the peak; ",
        end="",
    )
    print(f"{gateways} collectors.\n")
    print(
        "| partitions | linger | records a second | reports in each | aggregators' cores | brokers' | Redis |"
    )
    print("|---|---|---|---|---|---|---|")
    chosen = 0.0
    for partitions in (8, 32, 128):
        for linger in (0.02, 0.1):
            records = min(peak, gateways * partitions / linger)
            saves = min(records, GROUPS_A_SECOND * partitions)
            work = costs["count"].cores(records, peak)
            moved = costs["produce"].cores(records, peak) + costs["fetch"].cores(records, peak)
            stored = costs["save"].cores(saves, peak)
            chosen = chosen or work
            words = (partitions, f"{linger:g} s", f"{records:,.0f}", f"{peak / records:,.1f}")
            print(f"| {' | '.join(map(str, words))} | {work:.2f} | {moved:.2f} | {stored:.2f} |")
    workers = max(2, int(np.ceil(1.3 * chosen)))
    behind = worst_lag(arriving, peak / chosen * workers, lambda minute: 1200 <= minute < 1260, workers)
    log = devices * log_bytes
    print(
        f"\nWith 8 partitions and {workers} aggregators, busy to {chosen / workers:.0%} at the peak, ", end=""
    )
    print(
        f"a day has no lag; with one of them away from 20 to 21 o'clock it is {behind:,.0f} s at the worst."
    )
    print(
        f"Ids of an open round of a day: at most {devices * 15.6 / 1e9:.3g} GB in all aggregators, ", end=""
    )
    print(f"{devices * kept / 1e9:.3g} GB in Redis.")
    print(
        f"Log: {log / 1e9:.3g} GB a day in records of {SMALL}, {COPIES * DAYS_KEPT * log / 1e12:.2g} TB ",
        end="",
    )
    print(f"for {DAYS_KEPT} days in {COPIES} copies.")


if __name__ == "__main__":
    sys.exit(main())
