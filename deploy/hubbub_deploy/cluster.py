"""The distributed setting: collectors, aggregators and a dashboard, each a process, on Kafka and Redis.

Any number of collectors and aggregators, one dashboard. They meet in the topic and in Redis only, so that any
of them may end at any time; whatever supervises them starts them again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import tomllib
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from hubbub import Survey
from hubbub.errors import HubbubError
from hubbub.layout import Layout
from hubbub.records import SurveyRecord, decode_record
from hubbub_aggregator import adoption, api, faust_app
from hubbub_aggregator.archive import SqliteArchive
from hubbub_aggregator.dead_letters import KeyedDeadLetters, in_order
from hubbub_aggregator.enrolment import Fleet
from hubbub_aggregator.errors import AggregatorError, LeaseLost
from hubbub_aggregator.redis_store import RedisStore
from hubbub_aggregator.sealing import DEFAULT_GRACE_S
from hubbub_aggregator.view import LiveView
from hubbub_aggregator.watcher import Watcher
from hubbub_collector import gateway
from hubbub_collector.errors import CollectorError
from hubbub_collector.growing_log import GrowingLog, least_start
from hubbub_collector.kafka_dead import KafkaDeadTopic
from hubbub_collector.kafka_log import DEFAULT_REBUILD_S, KafkaLog
from hubbub_collector.kafka_topic import (
    DEFAULT_RETENTION_S,
    Topic,
    check_topic,
    create_topic,
    describe_topic,
)
from hubbub_collector.server import create_server
from hubbub_deploy import watching
from hubbub_deploy.errors import DeployError
from hubbub_deploy.listening import base_url, listen, stopping_politely

ARCHIVE_FILE: Final = "archive.sqlite"

ADDRESSES: Final = {"kafka": "HUBBUB_KAFKA", "redis": "HUBBUB_REDIS"}
"""Settings that the environment may say instead of the file, by key."""


# Settings that take one of a few words, the default first.
_WORDS: Final = {"dead_letter_payload": ("none", "whole"), "event_loop": ("asyncio", "uvloop")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Where the processes of one cluster meet: one file for all of them.

    Attributes:
        kafka: Brokers, as host:port,host:port.
        topic: The topic of reports.
        redis: The Redis that keeps the counts, as redis://host:port/database.
        namespace: What its keys begin with: several clusters may share a Redis.
        group: Aggregators of one group share the partitions.
        rebuild_s: Seconds of records that the topic's retention must keep.
        session_s: Seconds after which a silent aggregator's partitions go to others.
        grace_s: Seconds between a round's last possible report and its seal. More than the ten seconds after
            which a collector gives a record up, and the largest difference of the servers' clocks.
        dead_letter_payload: Whether a dead letter holds the record's bytes: "none" or "whole".
        event_loop: What drives an aggregator: "asyncio" or "uvloop".
    """

    kafka: str
    topic: str = "reports"
    redis: str
    namespace: str = "hubbub"
    group: str = "hubbub-aggregator"
    rebuild_s: int = DEFAULT_REBUILD_S
    session_s: float = faust_app.DEFAULT_SESSION_S
    grace_s: float = DEFAULT_GRACE_S
    dead_letter_payload: str = "none"
    event_loop: str = "asyncio"

    @classmethod
    def load(cls, path: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings in a TOML file; HUBBUB_KAFKA and HUBBUB_REDIS say where the two are from elsewhere.

        Only addresses can differ between processes of one cluster, so only these two are read from the
        environment. An empty variable counts as one that is not set.

        Raises:
            DeployError: If the file cannot be read, or a key is missing, unknown or has the wrong type.
        """
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DeployError(f"{path}: {error}") from error
        addresses = {key: found for key, name in ADDRESSES.items() if (found := environment.get(name))}
        try:
            return cls.from_mapping(values | addresses)
        except DeployError as error:
            raise DeployError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """The settings of a parsed file.

        Raises:
            DeployError: If a key is missing, unknown or has the wrong type.
        """
        known = {field.name: str(field.type) for field in fields(cls)}
        if unknown := sorted(values.keys() - known.keys()):
            raise DeployError(f"settings must be among {', '.join(known)}, got {', '.join(unknown)}")
        if missing := sorted({"kafka", "redis"} - values.keys()):
            raise DeployError(f"{' and '.join(missing)} must be given")
        kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
        for key, value in values.items():
            empty = value == "" or (isinstance(value, int | float) and not 0 < value < 2**40)
            if type(value) not in kinds[known[key]] or empty:
                raise DeployError(f"{key} must be a {known[key]}, not empty and above 0, got {value!r}")
        for key, words in _WORDS.items():
            if values.get(key, words[0]) not in words:
                raise DeployError(f"{key} must be {' or '.join(words)}, got {values[key]!r}")
        return cls(**values)  # type: ignore[arg-type]  # every type was checked


def make_topic(
    settings: ClusterSettings,
    *,
    partitions: int,
    replication: int,
    retention_s: int = DEFAULT_RETENTION_S,
) -> Topic:
    """Makes the topics of a new cluster.

    Raises:
        DeployError: If the brokers refuse, or the topic is there.
    """
    try:
        return create_topic(
            settings.kafka,
            settings.topic,
            partitions=partitions,
            replication=replication,
            retention_s=max(retention_s, settings.rebuild_s),
        )
    except CollectorError as error:
        raise DeployError(str(error)) from error


def ensure_topic(
    settings: ClusterSettings, *, partitions: int, replication: int, retention_s: int = DEFAULT_RETENTION_S
) -> Topic:
    """Makes the topics of a cluster unless they are there already, as they must be.

    Raises:
        DeployError: If the brokers refuse, or the topic is there with other partitions or bad settings.
    """
    try:
        return make_topic(settings, partitions=partitions, replication=replication, retention_s=retention_s)
    except DeployError as refused:
        try:
            found = describe_topic(settings.kafka, settings.topic)
        except CollectorError:
            raise refused from None
    try:
        check_topic(settings.kafka, settings.topic, rebuild_s=settings.rebuild_s)
    except CollectorError as error:
        raise DeployError(str(error)) from error
    if found.partitions != partitions:
        raise DeployError(
            f"topic {settings.topic} must have {partitions} partitions, got {found.partitions}; they never"
            " change: `hubbub grow` adds a topic with more"
        )
    return found


def grow(
    settings: ClusterSettings, *, partitions: int, replication: int, at: datetime | None = None
) -> Layout:
    """Adds a topic, in force for rounds that start at or after a moment which every process can know before.

    Args:
        settings: The cluster.
        partitions: Of the new topic.
        replication: Copies of each.
        at: The moment; None for the earliest there is.

    Raises:
        DeployError: If the moment is too early, or brokers refuse.
    """
    with _log(settings) as log:
        try:
            surveys = _announced(log)
            earliest = least_start(time.time, max((survey.skew_s for survey in surveys), default=0))
            from_s = earliest if at is None else int(at.timestamp())
            if from_s < earliest:
                moment = datetime.fromtimestamp(earliest, UTC).isoformat()
                raise DeployError(
                    f"--at must be {moment} or later, so that every process has learnt of it, got {at}"
                )
            name = f"{settings.topic}.{len(log.layout.spans) + 1}"
            create_topic(
                settings.kafka,
                name,
                partitions=partitions,
                replication=replication,
                retention_s=max(DEFAULT_RETENTION_S, settings.rebuild_s),
            )
            with KafkaLog(settings.kafka, name, partitions, rebuild_s=settings.rebuild_s) as new:
                return log.grow(new, from_s=from_s)
        except (CollectorError, HubbubError) as error:
            raise DeployError(str(error)) from error


def _announced(log: GrowingLog) -> list[Survey]:
    records = [decode_record(record) for record in log.announced()]
    return [Survey.from_canonical(record.canonical) for record in records if isinstance(record, SurveyRecord)]


@contextlib.contextmanager
def _log(settings: ClusterSettings) -> Iterator[GrowingLog]:
    try:
        log = GrowingLog(settings.kafka, settings.topic, rebuild_s=settings.rebuild_s)
    except CollectorError as error:
        raise DeployError(str(error)) from error
    with log:
        yield log


@contextlib.contextmanager
def _store(settings: ClusterSettings, log: GrowingLog) -> Iterator[RedisStore]:
    try:
        store = RedisStore.connect(
            settings.redis,
            log_identity=log.identity,
            partitions=log.partitions,
            layout=log.layout,
            namespace=settings.namespace,
        )
    except AggregatorError as error:
        raise DeployError(str(error)) from error
    with contextlib.closing(store):
        yield store


@contextlib.contextmanager
def _dead(settings: ClusterSettings) -> Iterator[KafkaDeadTopic]:
    try:
        dead = KafkaDeadTopic(settings.kafka, settings.topic)
    except CollectorError as error:
        raise DeployError(str(error)) from error
    with dead:
        yield dead


def dead_letters(settings: ClusterSettings) -> list[dict[str, object]]:
    """Every dead letter of a cluster, in the order of their positions.

    Raises:
        DeployError: If they cannot be read.
    """
    with _dead(settings) as dead:
        try:
            return in_order(dead.records().values())
        except CollectorError as error:
            raise DeployError(str(error)) from error


def adopt(settings: ClusterSettings, partition: int, offset: int) -> str:
    """Goes on counting a partition at `offset`, without the records before it, and says what is lost.

    Raises:
        DeployError: If the record that comes next is there, `offset` is not a place to go on, or another
            process moved the partition meanwhile.
    """
    with _log(settings) as log, _store(settings, log) as store:
        try:
            state = store.load(partition)
            begin, end = log.begin(partition), log.end(partition)
            if not max(begin, state.offset + 1) <= offset <= end:
                raise DeployError(
                    f"--from must be past {state.offset}, which comes next, and in [{begin}, {end}], which "
                    f"the log has, got {offset}"
                )
            there = log.read(partition, state.offset, 1) if begin <= state.offset < end else []
            if there and there[0][0] == state.offset:
                raise DeployError(
                    f"partition {partition}: the record at {state.offset}, which comes next, is there; "
                    "nothing is lost"
                )
            store.save(partition, adoption.adopt(state, offset, _announced(log), now_s=int(time.time())))
        except (AggregatorError, CollectorError, HubbubError) as error:
            raise DeployError(str(error)) from error
        return (
            f"partition {partition}: offsets {state.offset} to {offset - 1} are given up; "
            "releases that may miss reports of them will say so"
        )


def collect(
    settings: ClusterSettings,
    surveys: tuple[Survey, ...],
    *,
    host: str,
    port: int,
    survey_list: Path | None = None,
) -> int:
    """Runs a gateway on the topic until SIGINT or SIGTERM; it serves the signed list, or a plain one.

    Raises:
        DeployError: If the topic cannot be used or the address cannot be listened on.
    """
    with _log(settings) as log, listen(host, port) as listener:
        try:
            ingest = gateway.create_app(log, surveys, survey_list=survey_list)
        except CollectorError as error:
            raise DeployError(str(error)) from error
        server = create_server(ingest, host=host, port=port)
        print(f"Hubbub collector: {base_url(host, listener)}", flush=True)
        with stopping_politely(server):
            _serve(server, listener)
    return 0


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serves until the server is told to stop.

    Raises:
        DeployError: If the application did not start.
    """
    try:
        server.run(sockets=[listener])
    except SystemExit as stop:  # uvicorn's word for an application that does not start
        raise DeployError("the server did not start; the lines above say why") from stop


def aggregate(settings: ClusterSettings, *, instance: str | None = None) -> int:
    """Counts the partitions that the group assigns, until SIGINT, SIGTERM or a doubt.

    Raises:
        DeployError: If the topic or Redis cannot be used.
    """
    with _log(settings) as log, _store(settings, log) as store, _dead(settings) as dead:
        try:
            faust_app.use_event_loop("uvloop" if settings.event_loop == "uvloop" else "asyncio")
        except ImportError as error:
            raise DeployError(f"event_loop uvloop must be installed: {error}") from error
        app = faust_app.create_app(
            log,
            store,
            bootstrap=settings.kafka,
            group=settings.group,
            instance=instance,
            session_s=settings.session_s,
            dead_letters=KeyedDeadLetters(
                dead,
                log_identity=log.identity,
                payload="whole" if settings.dead_letter_payload == "whole" else "none",
            ),
        )
        return faust_app.run(app)


def dashboard(
    settings: ClusterSettings, *, data_dir: Path, host: str, port: int, fleet: Fleet | None = None
) -> int:
    """Seals, releases into `data_dir` and shows, until SIGINT or SIGTERM.

    Raises:
        DeployError: If topic, Redis or folder cannot be used, the address cannot be listened on, or on a
            doubt.
    """
    view, stop, failed = LiveView(), threading.Event(), threading.Event()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen(host, port))
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            archive = stack.enter_context(contextlib.closing(SqliteArchive(data_dir / ARCHIVE_FILE)))
        except (AggregatorError, OSError) as error:
            raise DeployError(str(error)) from error

        @contextlib.contextmanager
        def attempt() -> Iterator[Watcher]:
            with _log(settings) as log, _store(settings, log) as store:
                watcher = Watcher(
                    log, store, archive=archive, view=view, grace_s=settings.grace_s, fleet=fleet
                )
                yield watcher

        # What is wrong from the outset should be seen by who starts it.
        try:
            with attempt():
                pass
        except (AggregatorError, CollectorError) as error:
            if not isinstance(error, LeaseLost):
                raise DeployError(str(error)) from error

        def watch() -> None:
            try:
                watching.watch(attempt, view, stop)
            except Exception:
                traceback.print_exc()
                failed.set()
                server.should_exit = True

        thread = threading.Thread(target=watch, name="hubbub-watcher")

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            thread.start()
            print(f"Hubbub dashboard: {base_url(host, listener)}", flush=True)
            yield

        page = Mount("/", api.create_app(view, closing=lambda: server.should_exit))
        server = create_server(Starlette(routes=[page], lifespan=lifespan), host=host, port=port)
        with stopping_politely(server):
            try:
                _serve(server, listener)
            finally:
                stop.set()
                if thread.ident is not None:
                    thread.join()
    if failed.is_set():
        raise DeployError("the dashboard stopped on a doubt; the archive and the store are as they were")
    return 0
