"""Counting from a real broker into a real Redis, beside the parts that it is made of.

    python bench/kafka.py                     records of 1,000 and of 20,000 reports, two million each
    python bench/kafka.py 1000 5000000        records of 1,000, five million

One worker counts a topic of four partitions that is full when it starts: exact dedup, every group saved. Its
records come through Faust, or without it; with the extra `speed` a worker with the compiled
id table takes turns with one that has NumPy's.
Figures are reports per second of the worker's own processor time, all its threads, and of the clock, the best
of three runs in turn; the parts are measured alone, by processor time, in processes of their own. Broker and
Redis run on one core and the worker on another where there are two.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import redis
from counting_alone import count_only
from servers import CORES, broker, pin, redis_server

import hubbub
from hubbub.wire.record import ReportsRecord, Segment, SurveyRecord, decode_record, encode_record
from hubbub_aggregator.counting import counting
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.id_tables import IdTableKind, id_table_of
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.runners import aiokafka_runner, faust_runner
from hubbub_aggregator.runners import assignment as assignments
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

sys.path.insert(0, str(Path(__file__).parent))
from harness import line
from run import SURVEY

PARTITIONS = 4
REPEATS = 3
SEED = 5
# Faust on aiokafka, and aiokafka alone.
KINDS = ("faust", "plain")
TABLES: tuple[IdTableKind, ...] = ("numpy", "compiled") if find_spec("numba") else ("numpy",)


def records(reports: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, record) of `size` reports each, round and round."""
    survey, rng = hubbub.Survey.parse(SURVEY), np.random.default_rng(SEED)
    for place in range(reports // size):
        symbols = rng.integers(0, survey.channel.outputs, size).astype(np.uint8)
        segment = Segment(survey.digest, 0, rng.bytes(16 * size), symbols, size, {})
        yield place % PARTITIONS, encode_record(ReportsRecord(survey.start_s // 60 + 5, (segment,), 0))


def fill(bootstrap: str, topic: str, reports: int, size: int) -> None:
    """Make a topic and fill it."""
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    survey = hubbub.Survey.parse(SURVEY)
    with KafkaLog(bootstrap, topic) as log:
        log.publish_survey(survey.digest, encode_record(SurveyRecord(survey.canonical)))
        batches: dict[int, list[bytes]] = {}
        for place, (partition, record) in enumerate(records(reports, size)):
            batches.setdefault(partition, []).append(record)
            if place % 64 == 63:
                log.append(batches)
                batches = {}
        log.append(batches)


class _Measured(assignments.Assignment):
    """A clock of the process, from when it knew where to read on to the last record."""

    ends: Mapping[int, int] = {}
    empty = False
    groups = records = 0
    company: Callable[[], None]
    """Return when all workers of the run know where to read on."""

    def load(self, partitions: Any, generation: int | None = None) -> dict[int, int]:
        found = super().load(partitions, generation)
        self.at = dict(found)
        self.company()
        self.began = time.process_time(), time.perf_counter()
        return found

    def process(self, partition: int, records: Sequence[tuple[int, bytes]]) -> Any:
        seek = None if self.empty else super().process(partition, records)
        self.groups, self.records = self.groups + 1, self.records + len(records)
        self.at[partition] = records[-1][0] + 1
        if self.at == self.ends:
            cpu, wall = time.process_time() - self.began[0], time.perf_counter() - self.began[1]
            group, at = self.records / self.groups, time.perf_counter()
            print(json.dumps({"cpu": cpu, "wall": wall, "group": group, "at": at}), flush=True)
            # All that was counted is in Redis; nobody waits for a farewell.
            os._exit(0)
        return seek


def meet(redis_url: str, place: str, workers: int) -> None:
    """Wait until so many workers have come to a place."""
    with redis.Redis.from_url(redis_url) as asked:
        asked.incr(place)
        while int(cast(bytes, asked.get(place))) < workers:
            time.sleep(0.005)


def work(kind: str, bootstrap: str, topic: str, redis_url: str, *, core: int, workers: int) -> None:
    """Run a worker that ends by itself on a core: one of KINDS with a table, or without counting."""
    pin(core)
    kind, _, table = kind.partition("/")
    log = KafkaLog(bootstrap, topic)
    # Each run counts from the topic's begin into keys of its own.
    store = RedisStore.connect(
        redis_url,
        log_identity=log.identity,
        partitions=PARTITIONS,
        namespace=f"{topic}-{time.time_ns()}",
        id_table=id_table_of(cast(IdTableKind, table or "numpy")),
    )
    _Measured.ends = {partition: log.end(partition) for partition in range(PARTITIONS)}
    _Measured.company = staticmethod(partial(meet, redis_url, f"{topic}-{workers}", workers))  # type: ignore[method-assign]
    _Measured.empty = kind.startswith("empty")
    if kind != "plain" and not kind.endswith("-plain"):
        faust_runner.Assignment = _Measured  # type: ignore[misc]  # the measured one in its place
        app = faust_runner.create_app(
            log,
            store,
            bootstrap=bootstrap,
            group=f"{topic}-{time.time_ns()}",
        )
        faust_runner.run(app)
    else:
        assignment = _Measured(store, begin=log.begin, end=log.end, clock=time.monotonic)
        asyncio.run(
            aiokafka_runner.count(
                assignment, bootstrap=bootstrap, partition_map=log.partition_map, stop=asyncio.Event()
            )
        )


def worker(
    kind: str, bootstrap: str, topic: str, redis_url: str, *, core: int = 0, workers: int = 1
) -> dict[str, float]:
    """Run a worker in a process of its own, and return seconds of its processor and of the clock.

    Args:
        kind: One of KINDS with a table.
        bootstrap: The broker's address.
        topic: What is counted; it must be full.
        redis_url: Where the counts go, under a name of this run.
        core: Where it runs, if the machine has it.
        workers: How many begin to count this topic at once.
    """
    command = [sys.executable, __file__, "--work", kind, bootstrap, topic, redis_url, str(core), str(workers)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    # Faust tells the terminal things on the same stream.
    found: dict[str, float] = json.loads(run.stdout[run.stdout.index("{") :])
    return found


def parts(reports: int, size: int, step: int, redis_url: str) -> dict[str, float]:
    """Return seconds of the processor for each part alone, over the same records in groups of `step`."""
    survey = hubbub.Survey.parse(SURVEY)
    columns: dict[int, list[bytes]] = {}
    for partition, record in records(reports, size):
        columns.setdefault(partition, []).append(record)
    groups = [
        (partition, column[start : start + step])
        for partition, column in columns.items()
        for start in range(0, len(column), step)
    ]
    took: dict[str, float] = {}

    def timed(what: str, job: Callable[[], object]) -> object:
        start = time.process_time()
        result = job()
        took[what] = took.get(what, 0.0) + time.process_time() - start
        return result

    keys = {kind: {partition: id_table_of(kind)() for partition in columns} for kind in TABLES}
    store = RedisStore.connect(
        redis_url, log_identity="parts", partitions=PARTITIONS, namespace=f"parts-{time.time_ns()}"
    )
    states = {partition: PartitionState() for partition in columns}
    announced = encode_record(SurveyRecord(survey.canonical))
    for partition, state in states.items():
        change = apply_many(state, [(0, announced)])
        store.save(partition, change)
        state.commit(change)
    for partition, group in groups:
        decoded = timed("decode", lambda group=group: [decode_record(record) for record in group])
        segments = [record.segments[0] for record in decoded]  # type: ignore[attr-defined]
        ids = [segment.ids for segment in segments]
        for kind in TABLES:
            table = keys[kind][partition]
            timed(f"dedup, {kind}", lambda t=table, ids=ids: t.add(t.fresh(ids)))

        def count(segments: list[Segment] = segments) -> None:
            column = np.concatenate([segment.symbols for segment in segments])
            if survey.channel.valid_mask(column) is None:
                counting.count_symbols(column, survey.channel)

        timed("count", count)
        del decoded, segments, ids
        state = states[partition]
        change = apply_many(state, enumerate(group, start=state.offset))
        timed("save", lambda p=partition, c=change: store.save(p, c))
        state.commit(change)
    timed("decode and count", lambda: count_only(survey, [r for c in columns.values() for r in c]))
    store.close()
    return took


def throughput(bootstrap: str, redis_url: str, *, size: int, reports: int) -> None:
    """Print everything about records of one size."""
    topic = f"bench-{size}-{time.time_ns()}"
    fill(bootstrap, topic, reports, size)

    def rate(seconds: float) -> str:
        return f"{reports / seconds / 1e6:.2f} M/s"

    print(f"records of {size:,} reports, {reports:,} reports:")
    workers = [f"{kind}/{table}" for kind in KINDS for table in TABLES]
    kinds = (*workers, *(f"empty-{kind}" for kind in KINDS))
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    alone: list[dict[str, float]] = []
    for _ in range(REPEATS):
        for kind in kinds:
            runs[kind].append(worker(kind, bootstrap, topic, redis_url))
        # In groups as large as those that the worker has just counted.
        step = max(1, round(runs["faust/numpy"][-1]["group"]))
        command = [sys.executable, __file__, "--parts", str(reports), str(size), str(step), redis_url]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        alone.append(json.loads(run.stdout))

    def best(found: list[dict[str, float]]) -> dict[str, float]:
        return {name: min(run[name] for run in found) for name in found[0]}

    least = {kind: best(runs[kind]) for kind in kinds}
    found = best(alone)
    for name in workers:
        kind, _, table = name.partition("/")
        whole, events = least[name], least[f"empty-{kind}"]
        total = events["cpu"] + sum(found[what] for what in ("decode", f"dedup, {table}", "count", "save"))
        spread = max(run["cpu"] for run in runs[name]) / whole["cpu"]
        line(
            f"one worker, {name}",
            rate(whole["cpu"]),
            f"{total / whole['cpu']:.2f} of its parts",
            "target 3 M/s, 0.8" if name == "faust/numpy" else "target 0.8",
        )
        line("  by the clock; slowest run to the best", rate(whole["wall"]), f"{spread:.2f}")
        line("  records of a partition in a group", ", ".join(f"{run['group']:.0f}" for run in runs[name]))
    for name in (name for name in workers if name != "faust/numpy"):
        gain = least["faust/numpy"]["cpu"] / least[name]["cpu"]
        line(f"{name} to faust/numpy, by processor time", f"{gain:.2f}")
    line("decode and count, no ids", rate(found["decode and count"]))
    print("  parts alone, by processor time:")
    number = reports / size
    for what, seconds in (
        *((f"messages, nothing counted, {kind}", least[f"empty-{kind}"]["cpu"]) for kind in KINDS),
        *(
            (what, found[what])
            for what in ("decode", *(f"dedup, {table}" for table in TABLES), "count", "save")
        ),
    ):
        line(f"  {what}", rate(seconds), f"{1e6 * seconds / number:.0f} us a record")


def main() -> int:
    """Run the sizes named on the command line, or both."""
    match sys.argv[1:]:
        case ["--work", kind, bootstrap, topic, redis_url, core, workers]:
            work(kind, bootstrap, topic, redis_url, core=int(core), workers=int(workers))
            return 0
        case ["--parts", reports, size, step, redis_url]:
            pin(0)
            print(json.dumps(parts(int(reports), int(size), int(step), redis_url)))
            return 0
        case []:
            sizes, reports = (1_000, 20_000), 2_000_000
        case [size]:
            sizes, reports = (int(size),), 2_000_000
        case [size, number]:
            sizes, reports = (int(size),), int(number)
        case _:
            print("kafka.py [SIZE [REPORTS]]", file=sys.stderr)
            return 2
    print(f"{len(CORES)} cores, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    with broker() as bootstrap, redis_server() as redis_url:
        for size in sizes:
            throughput(bootstrap, redis_url, size=size, reports=reports)
    return 0


if __name__ == "__main__":
    sys.exit(main())
