"""The embedded setting, a node: collector, aggregator and dashboard in one process, on SQLite.

It needs nothing that would have to be installed. The gateway and the page share one HTTP server; the worker
counts in a thread of its own. Reports pass from one to the other in the log only, as they would across
machines. The log's lock keeps a second node off the same files, and a worker that meets an invariant
violation ends the process: what it had not saved is counted again at the next start. Where a disk has no
room, the page stands still and says why, and a new worker tries again (`supervise`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import hubbub_collector
from hubbub.estimation import AlertRules
from hubbub.survey import Survey, index_of_round, survey_state
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.counting import KeyedDeadLetters, in_order, skip_record, skips_of
from hubbub_aggregator.release import FleetStatement, SteadyClock
from hubbub_aggregator.runners import CountedBuilder, Retention, Worker
from hubbub_aggregator.stores import (
    RecountFolder,
    SqliteArchive,
    SqliteDeadTopic,
    SqliteStore,
    TransparencyLog,
)
from hubbub_aggregator.web import LiveView, StreamCaps, ViewCollector
from hubbub_client import owner_page
from hubbub_collector import CollectorError, GatewaySettings, Permits, boot_s
from hubbub_deploy.announced import refuse_changed
from hubbub_deploy.errors import AlreadyRunningError, DeployError
from hubbub_deploy.files import ARCHIVE_FILE, private_files
from hubbub_deploy.http_server import PageServer, listen
from hubbub_deploy.settings import NodeOptions
from hubbub_deploy.supervise import is_full, run_supervised
from hubbub_deploy.transparency import LogSettings, keeper_of, log_routes, opened_log
from hubbub_topic import BoundedLog, LogError, LogLockedError, SqliteLog


def announcement(url: str, surveys: Iterable[Survey], snapshot: Mapping[str, Any], now_s: float) -> str:
    """Return what a node prints; its first line is the address.

    Args:
        url: Where it listens.
        surveys: What it serves.
        snapshot: What its page shows, with the rounds counted before it started.
        now_s: Its clock, seconds since 1970.
    """
    counted = {entry["digest"]: entry["rounds"] for entry in snapshot["surveys"]}
    lines = [f"Hubbub node: {url}"]
    for survey in surveys:
        digest = survey.digest.hex()
        accepted = {
            index_of_round(each["round"]): each["accounting"]["accepted"] for each in counted.get(digest, ())
        }
        state = survey_state(survey, now_s, accepted=accepted)
        lines += [
            f"  {survey.id} version {survey.version}: {state.words}",
            f"    {owner_page.schedule(survey)}",
            f"    {page_of(url, digest)}",
        ]
    return "\n".join(lines)


def page_of(url: str, digest: str) -> str:
    """Return the address of a survey's page.

    Args:
        url: Where the node or the dashboard listens.
        digest: The survey's, in hexadecimal.
    """
    return f"{url}/?survey={digest}"


LOG_FILE: Final = "log.sqlite"
STORE_FILE: Final = "store.sqlite"
DEAD_FILE: Final = "dead.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(NodeOptions):
    """The settings of one node: its options, and what no file gives.

    Attributes:
        surveys: The surveys that it serves, admits and releases.
        data_dir: Folder of the log, the store, the archive and the dead letters; made if absent.
        port: See `NodeOptions`; here any free one by default.
        gateway: Bounds and waits of the gateway.
        clock: Seconds since 1970, for admission and seals.
        boot_clock: Seconds since the machine started, suspended ones included: no round is sealed while
            `clock` is further ahead of it than the grace, counted from the node's start.
        survey_list: File of the signed list that devices are served, read anew when it is replaced; None to
            serve a plain one.
        fleet: What is stated in public about the devices asked.
        alerts: The thresholds of alerts on releases.
        skip: Partition and offset of records to pass over for good.
        read_token: What readers of page and API must know; None where anyone may read. Devices need none.
        permits: What senders must show.
        transparency: The key of the log of what is published, and its witnesses; None for no such log.
    """

    surveys: tuple[Survey, ...]
    data_dir: Path
    port: int = 0
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    clock: Callable[[], float] = time.time
    boot_clock: Callable[[], float] = boot_s
    survey_list: Path | None = None
    fleet: FleetStatement = field(default_factory=FleetStatement)
    alerts: AlertRules = field(default_factory=AlertRules)
    skip: Sequence[tuple[int, int]] = ()
    read_token: str | None = field(default=None, repr=False)
    permits: Permits = field(default_factory=Permits)
    transparency: LogSettings | None = None


class _Counting:
    """A worker that is replaced by a new one, from store and log, where a disk had no room for its work.

    Attributes:
        listed: The builder of what a log says of counted reports, in another thread; None without such a log.
    """

    def __init__(
        self, begin: Callable[[], Worker], view: LiveView, listed: CountedBuilder | None = None
    ) -> None:
        self._begin, self._view, self.listed = begin, view, listed
        self._worker = begin()
        self._failed = False

    @property
    def is_caught_up(self) -> bool:
        return self._worker.is_caught_up

    def step(self) -> int:
        return self._worker.step()

    def catch_up(self) -> None:
        """Count all that the log holds; what keeps it from that, `run` meets again with a new worker."""
        self._failed = True
        with contextlib.suppress(AggregatorError, LogError):
            while not self.is_caught_up:
                self.step()
            self._failed = False

    def run(self, stop: threading.Event) -> None:
        """Count until `stop` is set; wait where there is no room, and say so in the view.

        Raises:
            AggregatorError: On an invariant violation, or where there was no room for PATIENCE_S.
        """
        # Its files are nobody else's: what passes by itself in a cluster is a violation here.
        run_supervised(self._attempt, self._view, stop, bears=is_full)

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[_Counted]:
        if self._failed:
            self._worker = self._begin()
            self._worker.step()  # writes, so that the error is one and the same while there is no room
        self._failed = True  # unless it ends because it was told to
        yield _Counted(self._worker)
        self._failed = False


class _Counted:
    """A worker that counts, at the end too, what was acknowledged."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def run(self, stop: threading.Event) -> None:
        self._worker.run(stop)
        # The last acknowledged reports are counted before the files close; a kill here loses nothing.
        while self._worker.step():
            pass


@contextlib.contextmanager
def _parts(
    settings: NodeSettings, entries: TransparencyLog | None = None
) -> Iterator[tuple[SqliteLog, _Counting, LiveView]]:
    """Return the log, a worker that has counted all that it holds, and its view; closed again at the end.

    Raises:
        AlreadyRunningError: If another node has the files open.
        DeployError: If a file cannot be used; the message says which and why.
    """
    folder = settings.data_dir
    with contextlib.ExitStack() as stack:
        try:
            with private_files():
                folder.mkdir(parents=True, exist_ok=True)
                log = stack.enter_context(
                    contextlib.closing(SqliteLog(folder / LOG_FILE, partitions=settings.partitions))
                )
                store = SqliteStore(
                    folder / STORE_FILE, log_identity=log.identity, partitions=settings.partitions
                )
                stack.enter_context(contextlib.closing(store))
                archive = stack.enter_context(contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)))
                dead = stack.enter_context(contextlib.closing(SqliteDeadTopic(folder / DEAD_FILE)))
            kept: Literal["none", "whole"] = "whole" if settings.dead_letter_payload == "whole" else "none"
            letters = KeyedDeadLetters(dead, log_identity=log.identity, payload=kept)
            skips = skips_of(dead.records().values(), log.identity)
            for partition, offset in settings.skip:
                stored, now_s = store.load(partition).offset, int(settings.clock())
                if skip_record(log, stored, letters, skips, (partition, offset), now_s=now_s):
                    skips[partition, offset] = now_s
            view = LiveView()
            steady = SteadyClock(settings.clock, settings.boot_clock, tolerance_s=settings.grace_s)
            listed = None
            if entries is not None:
                listed = CountedBuilder(
                    entries,
                    lambda: contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)),
                    lambda: contextlib.nullcontext(log),
                )
            retention = Retention(
                log,
                archive,
                keep_s=settings.log_keep_s,
                keep_bytes=settings.log_keep_bytes,
                clock=steady,
                is_waiting=(lambda key: False) if listed is None else listed.is_waiting,
            )
            worker = _Counting(
                partial(
                    Worker,
                    log,
                    store,
                    archive=archive,
                    view=view,
                    grace_s=settings.grace_s,
                    clock=steady,
                    fleet=settings.fleet,
                    alerts=settings.alerts,
                    dead_letters=letters,
                    skips=skips,
                    retention=retention if settings.log_keep_s or settings.log_keep_bytes else None,
                    entries=entries,
                ),
                view,
                listed,
            )
            while not worker.is_caught_up:
                worker.step()
        except LogLockedError as error:
            raise AlreadyRunningError(f"{folder}: another node runs on these files ({error})") from error
        except OSError as error:
            raise DeployError(f"{folder}: must be a folder to write in, got {error.strerror!r}") from error
        except (CollectorError, LogError, AggregatorError, ValueError) as error:
            raise DeployError(f"{folder}: {error}") from error
        yield log, worker, view


def serve(
    settings: NodeSettings,
    *,
    ready: Callable[[str], None] | None = None,
) -> int:
    """Run a node until SIGINT or SIGTERM, and return the process's exit code: what `hubbub node` does.

    Args:
        settings: What to serve, and where.
        ready: Told the base URL once the node takes uploads; by default the lines of `announcement` are
            printed.

    Raises:
        AlreadyRunningError: If another node has the files open.
        DeployError: If the files cannot be used, the address cannot be listened on, or the worker meets an
            invariant violation.
    """
    with (
        opened_log(settings.data_dir, settings.transparency) as entries,
        _parts(settings, entries) as (log, worker, view),
        listen(settings.host, settings.port) as listener,
    ):
        keeper = keeper_of(entries, settings.transparency)
        try:
            known = {
                (entry["id"], entry["version"]): bytes.fromhex(entry["digest"])
                for entry in view.snapshot()["surveys"]
            }
            refuse_changed(settings.surveys, known)
            ingest = hubbub_collector.create_app(
                BoundedLog(log, settings.log_max_bytes) if settings.log_max_bytes else log,
                settings.surveys,
                settings=_within_grace(settings),
                clock=settings.clock,
                boot_clock=settings.boot_clock,
                survey_list=settings.survey_list,
                unsealed=lambda: view.unsealed or view.stands_still,
                permits=settings.permits,
            )
            # One /metrics for both parts; whether it seals the gateway says itself.
            ingest.state.gateway.add_metrics(ViewCollector(view, without=("hubbub_sealing",)))
        except (CollectorError, LogError) as error:
            raise DeployError(str(error)) from error

        def said(url: str) -> None:
            lines = announcement(url, settings.surveys, view.snapshot(), settings.clock())
            print(lines, flush=True)

        PageServer(
            name="node",
            view=view,
            work=worker.run,
            kept="the log and the store",
            # The gateway's few paths and the log's; all the rest is the page and its API.
            routes=[*ingest.routes, *(log_routes(entries) if entries is not None else ())],
            running=partial(_counted_first, ingest.state.gateway.running, worker),
            settings=settings.gateway,
            read_token=settings.read_token,
            streams=StreamCaps(settings.streams, settings.client_streams),
            recounts=RecountFolder(settings.data_dir),
            keeper=keeper,
            beside=None if worker.listed is None else worker.listed.run,
        ).serve(
            listener,
            host=settings.host,
            announce=ready or said,
        )
    return 0


@contextlib.asynccontextmanager
async def _counted_first(
    running: Callable[[], AbstractAsyncContextManager[None]], worker: _Counting
) -> AsyncIterator[None]:
    """Run the gateway, and let the page know every survey that it published before an address is said."""
    async with running():
        await asyncio.to_thread(worker.catch_up)
        yield


def _within_grace(settings: NodeSettings) -> GatewaySettings:
    """Return the gateway's settings, with a delivery_s that is no longer than seals wait."""
    chosen = settings.gateway
    return replace(chosen, delivery_s=min(chosen.delivery_s, settings.grace_s))


def dead_letters(data_dir: Path) -> list[dict[str, object]]:
    """Return every dead letter of a node, in the order of their positions.

    Raises:
        DeployError: If the folder is no node's.
    """
    path = data_dir / DEAD_FILE
    if not path.is_file() or path.stat().st_size == 0:
        raise DeployError(f"{path} must be a node's file of dead letters, got none")
    try:
        with contextlib.closing(SqliteDeadTopic(path)) as dead:
            return in_order(dead.records().values())
    except AggregatorError as error:
        raise DeployError(str(error)) from error
