"""The distributed setting: collectors, aggregators and a dashboard, each a process, on Kafka and Redis.

Any number of collectors and aggregators, one dashboard. They meet in the topic and in Redis only, so that any
of them may end at any time; whatever supervises them starts them again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, cast

import hubbub_collector
from hubbub import Survey
from hubbub.errors import HubbubError
from hubbub.estimation import AlertRules
from hubbub_aggregator import AggregatorError, LeaseLostError, counting, runners
from hubbub_aggregator.counting import KeyedDeadLetters, in_order, skip_record, skips_of
from hubbub_aggregator.release import AgreedClock, FleetStatement, SteadyClock
from hubbub_aggregator.runners import CountedBuilder, Publisher
from hubbub_aggregator.stores import (
    RecountFolder,
    RedisStore,
    SqliteArchive,
)
from hubbub_aggregator.web import LiveView, StreamCaps, worker_page
from hubbub_collector import CollectorError, Permits, boot_s, create_server
from hubbub_deploy import supervise
from hubbub_deploy.announced import digests_of, refuse_changed
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.cluster_topics import opened, published_surveys
from hubbub_deploy.errors import DeployError
from hubbub_deploy.extras import missing
from hubbub_deploy.files import ARCHIVE_FILE, private_files
from hubbub_deploy.http_server import PageServer, base_url, listen, run, stopping_politely
from hubbub_deploy.transparency import LogSettings, keeper_of, log_routes, opened_log
from hubbub_topic import LogError
from hubbub_topic.kafka import GrowingLog, KafkaDeadTopic


@contextlib.contextmanager
def _store(
    settings: ClusterSettings, log: GrowingLog, *, id_table: counting.IdTableKind = "numpy"
) -> Iterator[RedisStore]:
    try:
        store = RedisStore.connect(
            settings.redis,
            log_identity=log.identity,
            partitions=log.partitions,
            partition_map=log.partition_map,
            namespace=settings.namespace,
            id_table=counting.id_table_of(id_table),
        )
    except AggregatorError as error:
        raise DeployError(str(error)) from error
    except ImportError as error:
        raise DeployError(f"id_table compiled: {missing(error.name or 'numba')}") from error
    with contextlib.closing(store):
        yield store


@contextlib.contextmanager
def _dead(settings: ClusterSettings) -> Iterator[KafkaDeadTopic]:
    try:
        dead = KafkaDeadTopic(settings.brokers, settings.topic)
    except (CollectorError, LogError) as error:
        raise DeployError(str(error)) from error
    with dead:
        yield dead


def dead_letters(settings: ClusterSettings) -> list[dict[str, object]]:
    """Return every dead letter of a cluster, in the order of their positions.

    Raises:
        DeployError: If they cannot be read.
    """
    with _dead(settings) as dead:
        try:
            return in_order(dead.records().values())
        except (CollectorError, LogError) as error:
            raise DeployError(str(error)) from error


def skip_lost(settings: ClusterSettings, partition: int, offset: int) -> str:
    """Go on counting a partition at `offset`, without the records before it, and say what is lost.

    Raises:
        DeployError: If the record that comes next is there, `offset` is not the first that is, or another
            process moved the partition meanwhile.
    """
    with opened(settings) as log, _store(settings, log) as store:
        try:
            state = store.load(partition)
            first = _first_there(log, partition, state.offset)
            if first < state.offset:
                raise DeployError(
                    f"partition {partition}: the log ends at {first}, and {state.offset} comes next: "
                    "it was cut, and only another namespace counts what is left of it"
                )
            if first == state.offset:
                raise DeployError(
                    f"partition {partition}: the record at {first}, which comes next, is there or not yet "
                    "written; nothing is lost"
                )
            if offset != first:
                raise DeployError(
                    f"--from must be {first}, the first that is there from {state.offset} on, got {offset}"
                )
            # The later clock: a round that one which is behind leaves out would seem to have lost nothing.
            now_s = int(AgreedClock(time.time, store.clocks, believed="latest")())
            store.save(partition, counting.skip_lost(state, offset, published_surveys(log), now_s=now_s))
        except (AggregatorError, CollectorError, LogError, HubbubError) as error:
            raise DeployError(str(error)) from error
        return (
            f"partition {partition}: offsets {state.offset} to {offset - 1} are given up; "
            "releases that may miss reports of them will say so"
        )


def _first_there(log: GrowingLog, partition: int, offset: int) -> int:
    """Return the first offset at or after `offset` that the log holds; its end where it holds none."""
    begin, end = log.begin(partition), log.end(partition)
    at = max(begin, offset)
    there = log.read(partition, at, 1) if at < end else []
    return there[0][0] if there else end


def collect(
    settings: ClusterSettings,
    surveys: tuple[Survey, ...],
    *,
    host: str,
    port: int,
    sharing: Literal["alone", "shared"] = "alone",
    survey_list: Path | None = None,
    permits: Permits | None = None,
) -> int:
    """Run a gateway on the topic until SIGINT or SIGTERM; it serves the signed list, or a plain one.

    Args:
        settings: The cluster.
        surveys: The surveys served and admitted.
        host: Address to listen on.
        port: TCP port; 0 for any free one.
        sharing: Whether other collectors may listen on this port, too; see `listen`.
        survey_list: File of the signed list to serve.
        permits: What senders must show; nothing if absent.

    Raises:
        DeployError: If the topic cannot be used or the address cannot be listened on.
    """
    with opened(settings) as log, listen(host, port, sharing=sharing) as listener:
        try:
            refuse_changed(surveys, digests_of(log.published_surveys()))
            ingest = hubbub_collector.create_app(
                log, surveys, settings=settings.gateway, survey_list=survey_list, permits=permits
            )
            ingest.state.gateway.publish_surveys()  # what keeps it from that is for who starts it to read
        except (CollectorError, LogError) as error:
            raise DeployError(str(error)) from error
        server = create_server(ingest, host=host, port=port, settings=settings.gateway)
        print(f"Hubbub collector: {base_url(host, listener)}", flush=True)
        with stopping_politely(server):
            run(server, listener, name="collector")
    return 0


def aggregate(
    settings: ClusterSettings,
    *,
    instance: str | None = None,
    skip: Sequence[tuple[int, int]] = (),
    address: tuple[str, int] | None = None,
) -> int:
    """Count the partitions that the group assigns, until SIGINT, SIGTERM or an invariant violation.

    Args:
        settings: The cluster.
        instance: A name that this worker has again after a restart.
        skip: Partition and offset of records to pass over for good.
        address: Host and port of health and metrics; None for none.

    Raises:
        DeployError: If the address cannot be listened on, topic or Redis cannot be used, or a record to
            skip was counted or is not there.
    """
    seal_rules = settings.seal_rules  # a key that is none is said before anybody is asked
    with (
        contextlib.ExitStack() as stack,
        opened(settings) as log,
        _store(settings, log, id_table=cast(counting.IdTableKind, settings.id_table)) as store,
        _dead(settings) as dead,
    ):
        try:
            runners.use_event_loop("uvloop" if settings.event_loop == "uvloop" else "asyncio")
        except ImportError as error:
            raise DeployError(f"event_loop uvloop must be installed: {error}") from error
        letters = KeyedDeadLetters(
            dead,
            log_identity=log.identity,
            payload="whole" if settings.dead_letter_payload == "whole" else "none",
        )
        try:
            skips = skips_of(dead.records().values(), log.identity)
            for partition, offset in skip:
                now_s = int(time.time())
                if skip_record(
                    log, store.offset(partition), letters, skips, (partition, offset), now_s=now_s
                ):
                    skips[partition, offset] = now_s
        except (AggregatorError, CollectorError, LogError, ValueError) as error:
            raise DeployError(str(error)) from error
        app = runners.create_app(
            log,
            store,
            bootstrap=settings.brokers,
            group=settings.group,
            instance=instance,
            session_s=settings.session_s,
            dead_letters=letters,
            skips=skips,
            seal_rules=seal_rules,
        )
        if address is not None:
            listener = stack.enter_context(listen(*address))
            stack.enter_context(worker_page(listener, app.assignment.progress))
            print(f"Hubbub aggregator: {base_url(address[0], listener)}", flush=True)
        return runners.run(app)


def dashboard(
    settings: ClusterSettings,
    *,
    data_dir: Path,
    host: str,
    port: int,
    fleet: FleetStatement | None = None,
    alerts: AlertRules | None = None,
    read_token: str | None = None,
    streams: StreamCaps | None = None,
    transparency: LogSettings | None = None,
) -> int:
    """Seal, release into `data_dir` and show, until SIGINT or SIGTERM.

    Args:
        settings: The cluster.
        data_dir: Folder of the archive.
        host: Address to listen on.
        port: TCP port; 0 for any free one.
        fleet: What is stated in public about the devices asked.
        alerts: The thresholds of alerts on releases; None for the usual ones.
        read_token: What readers of page and API must know; None where anyone may read.
        streams: Caps on the page's streams of changes; None for the usual ones.
        transparency: The key of the log of what is published, and its witnesses; None for no such log.

    Raises:
        DeployError: If topic, Redis or folder cannot be used, the address cannot be listened on, or on an
            invariant violation.
    """
    view, sign = LiveView(), settings.seal_signer
    # Begins once: a new connection must not forget what the clock said before it.
    steady = SteadyClock(time.time, boot_s)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen(host, port))
        entries = stack.enter_context(opened_log(data_dir, transparency))
        try:
            with private_files():
                data_dir.mkdir(parents=True, exist_ok=True)
                archive = stack.enter_context(contextlib.closing(SqliteArchive(data_dir / ARCHIVE_FILE)))
        except OSError as error:
            raise DeployError(f"{data_dir}: must be a folder to write in, got {error.strerror!r}") from error
        except AggregatorError as error:
            raise DeployError(str(error)) from error

        @contextlib.contextmanager
        def attempt() -> Iterator[Publisher]:
            with opened(settings) as log, _store(settings, log) as store:
                yield Publisher(
                    log,
                    store,
                    archive=archive,
                    view=view,
                    grace_s=settings.grace_s,
                    clock=AgreedClock(steady, store.clocks),
                    fleet=fleet,
                    alerts=alerts,
                    sign=sign,
                    entries=entries,
                )

        # A fault from the outset should be seen by the person who starts it.
        try:
            with attempt():
                pass
        except (AggregatorError, CollectorError, LogError) as error:
            if not isinstance(error, LeaseLostError):
                raise DeployError(str(error)) from error

        PageServer(
            name="dashboard",
            view=view,
            work=lambda stop: supervise.run_supervised(attempt, view, stop),
            kept="the archive and the store",
            routes=log_routes(entries) if entries is not None else (),
            read_token=read_token,
            streams=streams or StreamCaps(),
            recounts=RecountFolder(data_dir),
            keeper=keeper_of(entries, transparency),
            beside=None
            if entries is None
            else CountedBuilder(
                entries,
                lambda: contextlib.closing(SqliteArchive(data_dir / ARCHIVE_FILE)),
                lambda: opened(settings),
            ).run,
        ).serve(listener, host=host, announce=lambda url: print(f"Hubbub dashboard: {url}", flush=True))
    return 0
