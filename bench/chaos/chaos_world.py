"""A cluster of real processes that are killed: broker, Redis, workers, collectors, and a watching dashboard.

Workers are `hubbub aggregator` as an operator runs it. The dashboard is its own publishing loop in a thread,
with a clock that the run moves on, a view that keeps every snapshot, and a hook where counts are let go of.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import random
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import urllib3
from chaos_truth import PARTITIONS, ROUNDS, SURVEYS, Key, clock_in
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from numpy.typing import NDArray

from hubbub.wire.record import SurveyRecord, encode_record
from hubbub.wire.report import decode_response
from hubbub_aggregator.counting.counting import RoundKey
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.runners.publisher import Publisher
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy import supervise
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.growing_log import GrowingLog
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

TESTS: Final = Path(__file__).parents[2] / "tests" / "harness"
sys.path.insert(0, str(TESTS))
from kafka_harness import SCRIPT, Broker  # noqa: E402 - found by the line above
from redis_harness import RedisServer, free_port  # noqa: E402 - found by the line above

PATIENCE_S: Final = 600.0
TOPIC: Final = "reports"
_GROUP: Final = "hubbub-aggregator"


class SeenStore:
    """A store that notes what each partition held of a round when its counts are let go of."""

    def __init__(self, store: RedisStore, released: list[Any]) -> None:
        self._store, self._released = store, released
        self._seen: dict[int, PartitionState] = {}

    def load_counts(self, partition: int) -> PartitionState:
        """Give the counts as they are now."""
        state = self._seen[partition] = self._store.load_counts(partition)
        return state

    def forget(self, partition: int, key: RoundKey) -> None:
        """Note what the partition held, and let go of it."""
        known = self._seen[partition].rounds[key]
        self._released.append((key, partition, known.counts, known.verdicts, known.sealed_at))
        self._store.forget(partition, key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class SeenView(LiveView):
    """A view that keeps what every snapshot says of the counting, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.cuts: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.tallies: list[VerdictCounts] = []
        self.said: Counter[str] = Counter()

    def publish(self, snapshot: dict[str, Any]) -> None:
        """Publish a snapshot and keep its totals."""
        if snapshot["partitions"] and "stale" not in snapshot:
            offsets = tuple(part["offset"] for part in snapshot["partitions"])
            total = (*snapshot["accounting"].values(), snapshot["unknown"], snapshot["dead"])
            self.cuts.append((offsets, total))
            for survey in snapshot["surveys"]:
                self.tallies += [VerdictCounts(**shown["accounting"]) for shown in survey["rounds"]]
        if "stale" in snapshot:
            self.said[snapshot["stale"]["why"]] += 1
        super().publish(snapshot)


class Channel:
    """A set of threads that deliver the items of a stage in their order, as far as they are allowed to."""

    def __init__(self, deliver: Sequence[Callable[[Any], None]]) -> None:
        self.items: list[Any] = []
        self._limit = self._next = self._done = 0
        self._change = threading.Condition()
        self._stopped = False
        self.error: BaseException | None = None
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in deliver]
        for thread in self._threads:
            thread.start()

    def load(self, items: list[Any]) -> None:
        """Take the items of the next stage; none is allowed yet."""
        with self._change:
            self.items, self._limit, self._next, self._done = items, 0, 0, 0

    def allow(self, share: float) -> None:
        """Let this share of the stage be delivered."""
        with self._change:
            self._limit = max(self._limit, int(min(share, 1.0) * len(self.items)))
            self._change.notify_all()

    def has_done(self, share: float) -> bool:
        """Return whether this share of the stage is delivered."""
        if self.error is not None:
            raise self.error
        return self._done >= int(min(share, 1.0) * len(self.items))

    def stop(self) -> None:
        """End the threads."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join(30)

    def _run(self, deliver: Callable[[Any], None]) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._stopped or self._next < self._limit)
                if self._stopped:
                    return
                item = self.items[self._next]
                self._next += 1
            try:
                deliver(item)
            except BaseException as error:
                self.error = error
                return
            with self._change:
                self._done += 1


# The last line of a traceback: what was raised, by its full name.
_RAISED = re.compile(r"(hubbub|[a-z_]+\.)[\w.]*(:|$)")


class World:
    """The whole of one run; events are counted in `happened`.

    Args:
        folder: Where its files lie.
        nodes: How many brokers.
        options: More lines of cluster.toml.

    Attributes:
        released: What each partition held of a round, every time that its counts were let go of.
        versions: Distinct bytes that the archive was seen to hold for a round.
        failed: Records whose append raised, and was repeated.
    """

    def __init__(
        self, folder: Path, *, nodes: int = 1, options: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.folder, self.nodes, self._options = folder, nodes, options
        for name in ("broker", "redis"):
            (folder / name).mkdir()
        self.happened: Counter[str] = Counter()
        self.faults: list[str] = []
        self.failed = 0
        self.told: Counter[str] = Counter()
        self.view = SeenView()
        self.released: list[tuple[RoundKey, int, NDArray[np.int64], VerdictCounts, int | None]] = []
        self.versions: dict[RoundKey, set[bytes]] = {}
        self._workers: list[subprocess.Popen[bytes]] = []
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._collectors: list[tuple[int, subprocess.Popen[bytes]]] = []
        self._deaths: list[int] = []
        self._dumped = 0  # records that a dump of Redis holds
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self.clock_file = folder / "now"
        self.set_clock(clock_in(0))

    def __enter__(self) -> World:
        self.start_servers()
        create_topic(self.kafka, TOPIC, partitions=PARTITIONS, replication=self.nodes)
        self.log = KafkaLog(self.kafka, TOPIC)
        for survey in SURVEYS:
            self.log.publish_survey(survey.digest, encode_record(SurveyRecord(survey.canonical)))
            (self.folder / f"{survey.id}.survey").write_bytes(survey.canonical)
        self.settings = self.folder / "cluster.toml"
        lines = [f'{name} = "{value}"' for name, value in self._options.items()]
        lines += [f'kafka = "{self.kafka}"', f'redis = "{self.redis_url}"', "session_s = 2", ""]
        self.settings.write_text("\n".join(lines))
        self.archive = self.open_archive()
        self._reader = SqliteArchive(self.archive_path)
        self._store = self.connect()
        self._threads = [threading.Thread(target=job, daemon=True) for job in (self._watch, self._supervise)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        for process in [*self._workers, *self._leaving, *(process for _, process in self._collectors)]:
            process.kill()
            process.wait()
        for part in (self.log, self._store, self.archive, self._reader):
            part.close()
        self.stop_servers()
        for node in self._nodes:
            node.kill()
            node.wait()

    def start_servers(self) -> None:
        """Start broker and Redis, and say where all parts find them."""
        self.broker = Broker(self.folder / "broker", self.nodes)
        self.broker.start()
        self.kafka = self.broker.bootstrap
        self.redis = RedisServer(self.folder / "redis", "--maxmemory-policy", "noeviction")
        self.redis.start()
        self.redis_url = self.redis.url

    def stop_servers(self) -> None:
        """End them."""
        self.redis.kill()
        self.broker.stop()

    @property
    def archive_path(self) -> Path:
        """The file of the releases."""
        return self.folder / "archive.sqlite"

    def open_archive(self) -> SqliteArchive:
        """Return the dashboard's archive."""
        return SqliteArchive(self.archive_path)

    def connect(self) -> RedisStore:
        """Return another connection to the store."""
        return RedisStore.connect(
            self.redis_url,
            log_identity=self.log.identity,
            partitions=PARTITIONS,
            partition_map=self.log.partition_map,
        )

    def set_clock(self, now_s: float) -> None:
        """Move the time of dashboard and collectors."""
        fresh = self.folder / "now.new"
        fresh.write_text(repr(now_s))
        fresh.replace(self.clock_file)
        self.now_s = now_s

    # The dashboard

    def _watch(self) -> None:
        @contextlib.contextmanager
        def attempt() -> Iterator[Publisher]:
            with GrowingLog(self.kafka, TOPIC) as log, contextlib.closing(self.connect()) as store:
                self.happened["dashboard begins"] += 1
                yield Publisher(
                    log,
                    SeenStore(store, self.released),
                    archive=self.archive,
                    view=self.view,
                    clock=lambda: self.now_s,
                )

        try:
            supervise.run_supervised(attempt, self.view, self._stop)
        except Exception as error:
            traceback.print_exc()
            self.faults.append(f"the dashboard ended: {error}")

    def look(self) -> int:
        """Read the archive beside the dashboard, and return how many rounds have a release."""
        with self._lock:
            for key in self._reader.rounds():
                data = self._reader.get(key)
                if data is not None:
                    self.versions.setdefault(key, set()).add(data)
            return len(self.versions)

    def has_released(self, number: int) -> bool:
        """Return whether the archive has a round of every survey."""
        self.look()
        return all((survey.digest, number) in self.versions for survey in SURVEYS)

    # Processes

    def _spawn(self, *command: str, said: str) -> subprocess.Popen[bytes]:
        with (self.folder / said).open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def add_worker(self) -> None:
        """Start one more, as an operator does."""
        command = (sys.executable, "-m", "hubbub_deploy.cli", "aggregator", str(self.settings))
        with self._lock:
            self._workers.append(self._spawn(*command, said="workers.txt"))

    def kill_worker(self) -> None:
        """End the longest-lived one as a crash would; it counts if there was something left to count."""
        self.wait_counting()
        with self._lock:
            worker = self._workers.pop(0)
            busy = self.lag() > 0 and worker.poll() is None
            worker.kill()
            worker.wait()
            self.happened["worker kill -9" if busy else "worker kill -9, idle"] += 1
            self.add_worker()

    def wait_joined(self) -> None:
        """Wait until the group has as many members as there are workers."""
        client = AdminClient({"bootstrap.servers": self.kafka, "log_level": 0})

        def members() -> int:
            try:
                found = client.describe_consumer_groups([_GROUP], request_timeout=5)[_GROUP].result(6)
            except Exception:
                return 0
            return len(found.members)

        self.wait_for(lambda: members() >= len(self._workers), "members of the group")

    def dismiss_worker(self) -> None:
        """Ask the longest-lived one to leave."""
        with self._lock:
            worker = self._workers.pop(0)
            worker.send_signal(signal.SIGTERM)
            self._leaving.append(worker)
            self.happened["worker left"] += 1

    def add_collector(self) -> int:
        """Start one more, and return its port, which it keeps."""
        port = free_port()
        with self._lock:
            self._collectors.append((port, self._collector(port)))
        return port

    def listens(self, port: int) -> bool:
        """Return whether a collector answers there."""
        try:
            return urllib3.request("GET", f"http://127.0.0.1:{port}/healthz", retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def kill_collectors_after(self, appends: list[int]) -> None:
        """Let the next collectors that start die between accept and acknowledge, after so many appends."""
        self._deaths = appends

    def _collector(self, port: int) -> subprocess.Popen[bytes]:
        dies_after = self._deaths.pop(0) if self._deaths else 0
        surveys = [str(self.folder / f"{survey.id}.survey") for survey in SURVEYS]
        words = (self.kafka, TOPIC, str(port), str(dies_after), str(self.clock_file), *surveys)
        program = str(TESTS / "kafka_gateway_process.py")
        return self._spawn(sys.executable, program, *words, said="collectors.txt")

    def _supervise(self) -> None:
        """Start again what has ended, and look at the archive."""
        while not self._stop.wait(0.1):
            with self._lock:
                for worker in [one for one in self._workers if one.poll() is not None]:
                    self._workers.remove(worker)
                    self.happened[f"worker ended by itself ({worker.returncode}), {self._doubt()}"] += 1
                    self.add_worker()
                for worker in [one for one in self._leaving if one.poll() is not None]:
                    self._leaving.remove(worker)
                    if worker.returncode != 0:
                        self.happened[f"worker left with {worker.returncode}"] += 1
                for place, (port, process) in enumerate(self._collectors):
                    if process.poll() is not None:
                        killed = process.returncode == -signal.SIGKILL
                        self.happened["collector kill -9" if killed else "collector ended by itself"] += 1
                        self._collectors[place] = (port, self._collector(port))
            self.look()

    def _doubt(self) -> str:
        """Return what workers raised last."""
        said = (self.folder / "workers.txt").read_text().splitlines()
        raised = (line.rpartition(".errors.")[2] for line in reversed(said) if _RAISED.match(line))
        return next(raised, "nothing was said")[:160]

    def restart_broker(self) -> None:
        """Kill the only node and start it on the same files."""
        self.broker.kill_node()
        self.happened["broker kill -9"] += 1
        self.broker.stop()
        self.broker.start()

    def restart_node(self, number: int) -> None:
        """Kill one of three and start it again; return when all copies are in sync."""
        self.broker.kill_node(number)
        self.happened["node kill -9"] += 1
        time.sleep(5)  # its session at the controller is three seconds
        spec = importlib.util.spec_from_file_location("broker", SCRIPT)
        assert spec is not None and spec.loader is not None
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        data = self.folder / "broker"
        cluster = (data / "cluster").read_text()
        self._nodes.append(script.start(f"{script.jars()}/*", data / f"node-{number}", cluster))
        self.wait_for(self._in_sync, "all copies in sync")

    def _in_sync(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.kafka, "log_level": 0})
        try:
            found = client.describe_topics(TopicCollection([TOPIC]), request_timeout=5)[TOPIC].result(6)
        except Exception:
            return False
        return all(len(partition.isr) == self.nodes for partition in found.partitions)

    def dump_redis(self) -> None:
        """Have Redis write the dump that it will come back with; something is counted by then."""
        self.wait_for(lambda: self.applied() > 0, "a record that is counted")
        self._store._redis.save()
        self._dumped = self.applied()

    def age_redis(self) -> None:
        """Kill Redis; what comes back is the dump, or nothing where none was written."""
        before = self.applied()
        self.redis.kill()
        self.redis.start()
        after = self._dumped
        self.happened["Redis kill -9"] += 1
        self.happened["records that Redis forgot"] += before - after

    def said(self) -> list[str]:
        """Return what an operator saw: why the page stood still, and all that workers said."""
        page = [f"page: stands still, {why}" for why in self.view.said]
        lines = (self.folder / "workers.txt").read_text(errors="replace").splitlines()
        words = Counter(
            re.sub(r"\d+", "N", line.strip())[:140]
            for line in lines
            if re.search(r"\.errors\.\w+: |WARN|ERROR", line)
        )
        return page + [f"worker: {line}" for line, _ in words.most_common(3)]

    # Progress

    def applied(self) -> int:
        """Return how many records Redis has counted."""
        while True:
            try:
                return sum(self._store.offset(partition) for partition in range(PARTITIONS))
            except StoreError:
                time.sleep(0.1)

    def sent(self) -> int:
        """Return how many records the topic holds."""
        while True:
            try:
                return sum(self.log.end(partition) for partition in range(PARTITIONS))
            except LogError:
                time.sleep(0.1)

    def lag(self) -> int:
        """Return how many records nobody has counted yet."""
        return self.sent() - self.applied()

    def wait_counting(self) -> None:
        """Wait until somebody has moved an offset on, or everything is counted."""
        before = self.applied()
        self.wait_for(lambda: self.applied() != before or not self.lag(), "counting")

    def wait_for(self, true: Callable[[], bool], what: str) -> None:
        """Wait until it is true, or the dashboard has ended, or ten minutes have passed."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > deadline or self.faults:
                said = (self.folder / "workers.txt").read_text()[-3000:]
                raise TimeoutError(f"waited for {what}: {self.faults}\n{said}")
            time.sleep(0.01)

    # Ways into the log

    def appender(self) -> Callable[[list[tuple[int, bytes]]], None]:
        """Append as a collector with a producer of its own; repeat what is not known to be stored."""
        log = KafkaLog(self.kafka, TOPIC)

        def append(records: list[tuple[int, bytes]]) -> None:
            batches: dict[int, list[bytes]] = {}
            for partition, record in records:
                batches.setdefault(partition, []).append(record)
            while not self._stop.is_set():
                try:
                    log.append(batches)
                except LogError:
                    self.failed += len(records)
                    time.sleep(0.2)
                else:
                    return

        return append

    def uploader(self, ports: list[int], seed: int) -> Callable[[bytes], None]:
        """Send a body, as devices do, to any collector until it is answered."""
        dice = random.Random(seed)  # noqa: S311 - which collector, in a test of counting
        pool = urllib3.PoolManager(retries=False, timeout=30)

        def upload(body: bytes) -> None:
            while not self._stop.is_set():
                url = f"http://127.0.0.1:{dice.choice(ports)}/v1/reports"
                try:
                    answer = pool.request("POST", url, body=body)
                except urllib3.exceptions.HTTPError:
                    self.happened["uploads without an answer"] += 1
                    time.sleep(0.05)
                    continue
                if answer.status == 200:
                    with self._lock:
                        self.told.update(decode_response(answer.data))
                    return
                self.happened[f"uploads told {answer.status}"] += 1
                time.sleep(0.05)

        return upload


def version_name(data: bytes) -> str:
    """Return a release's bytes in eight digits."""
    return hashlib.sha256(data).hexdigest()[:8]


def number_of(digest: bytes) -> int:
    """Return the name of a survey."""
    return next(number for number, survey in enumerate(SURVEYS) if survey.digest == digest)


KEYS: Final[list[Key]] = [(survey, number) for survey in range(len(SURVEYS)) for number in range(ROUNDS)]
