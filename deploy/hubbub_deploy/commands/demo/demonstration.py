"""The main job on real data: a device per person-year, a real node, sealed estimates, the truth beside them.

The node runs in a process of its own and hears only what devices send over HTTP. Its clock is the demo's:
when every report is in, the demo turns it past the end of the round, and the node seals. The truth never
leaves this process; a deployment would not have it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hubbub import Survey
from hubbub.numeric import SYSTEM
from hubbub.testing import seeded
from hubbub.wire import decode_surveys
from hubbub_collector import boot_s
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import LOG_FILE, NodeSettings, serve
from hubbub_lab import texts
from hubbub_lab.evaluation import Evaluation, Rows, load, print_json, show, truth_of
from hubbub_lab.simulation import DeviceSimulator, UploadCounts

SURVEYS: Final = ("visits.toml", "health.toml", "diseases.toml")
# The lifetime budget of every device: the three surveys' epsilons, and one more survey of epsilon 1.
BUDGET: Final = 7.0
_START_IN_FILE: Final = "2026-01-01T00:00:00Z"
# A node that says nothing for so long has failed: it starts in about a second.
_START_TIMEOUT_S: Final = 60.0
_COUNT_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """The settings of one demo.

    Attributes:
        seed: Makes values drawn by the fleet repeatable; None draws from the operating system.
        port: Port of the page, 0 for any.
        people: How many take part, None for all.
        data_dir: Where the node's files stay; None for a folder that is removed at the end.
        page: Whether the page stays up after the table.
        rows: Which value rows the table has.
        output: Table for people, JSON for programs.
    """

    seed: int | None = None
    port: int = 0
    people: int | None = None
    data_dir: Path | None = None
    page: Literal["auto", "hold", "close"] = "auto"
    rows: Rows = "most frequent"
    output: Literal["table", "json"] = "table"


def run(settings: DemoSettings) -> int:
    """Run the demo and return 0, or 1 if any report was lost, refused or counted twice.

    Raises:
        DeployError: If the data is not installed, the folder is not a new one, or the node does not start or
            count.
    """
    talk = texts.talk()
    if settings.data_dir is not None and (settings.data_dir / LOG_FILE).exists():
        raise DeployError(f"{settings.data_dir}: the demo must start with no counts, got files of a node")
    people = load()
    if settings.people is not None:
        people = {name: values[: settings.people] for name, values in people.items()}
    n = len(people["visits"])
    surveys = _surveys(int(time.time()) - 60)
    by_attribute = {survey.attribute.id: survey for survey in surveys}
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = settings.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-")))
        node = stack.enter_context(_node(surveys, folder, settings.port))
        talk.print(f"The page is live at {node.url}", style="bold")
        fleet = DeviceSimulator(
            n, budget=BUDGET, source=SYSTEM if settings.seed is None else seeded(settings.seed)
        )
        talk.print(
            f"{n:,} devices read the survey list and enrol, each against its own budget of {BUDGET:g}."
        )
        for survey in node.surveys():
            fleet.register(survey.attribute)
            fleet.set(survey.attribute.id, people[survey.attribute.id])
            enrolment = fleet.enrol(survey, now_s=time.time())
            if not enrolment.accepted.all():
                raise DeployError(f"survey {survey.id!r} was refused by devices: {enrolment.reason}")
        reports = sum(len(column.devices) for column in fleet.answer(now_s=time.time()))
        sent = _upload(fleet, node.url, n, talk)
        live = _wait(node, lambda live: live["accounting"]["attempts"] >= reports, "counting")
        talk.print("Every report is counted. The demo turns the node's clock to the end of the round.")
        node.turn_clock(surveys[0])
        live = _wait(node, lambda live: _all_sealed(live, len(surveys)), "sealing")
        evaluations = [
            Evaluation(survey, node.release(survey), truth_of(survey, people[attribute]))
            for attribute, survey in by_attribute.items()
        ]
        seconds = time.monotonic() - began
        sound = _account(live, reports, sent)
        held = settings.page == "hold" or (settings.page == "auto" and sys.stdout.isatty())
        if settings.output == "json":
            print_json(
                {
                    "seed": settings.seed,
                    "devices": n,
                    "seconds": seconds,
                    "accounting": live["accounting"],
                    "reports": reports,
                    "sound": sound,
                    "epsilon": _spent(fleet),
                    "evaluations": [evaluation.as_json() for evaluation in evaluations],
                }
            )
        else:
            out = texts.results()
            show(evaluations, rows=settings.rows, console=out)
            _print_account(out, live, reports, sent, fleet, seconds=seconds, sound=sound)
            # Unwrapped: a command is copied as one line.
            page = (
                f"The page is at {node.url}" if held else "The page ends with the demo; --page hold keeps it"
            )
            out.print(TRY_NEXT.format(page=page, hubbub=typed_name(sys.argv[0])), soft_wrap=True)
        if held:
            with contextlib.suppress(KeyboardInterrupt):
                talk.print(f"The page stays at {node.url} until Ctrl-C.", style="bold")
                node.process.join()
    return 0 if sound else 1


# The README goes the same way, with a file of invented people.
TRY_NEXT = """
{page}. Try next:
  {hubbub} survey new --id visits --epsilon 3 --integer 0 77 --start now --round 10m --out visits.toml
  {hubbub} node visits.toml --data data --port 8780
  {hubbub} simulate docs/examples/people.csv --collector http://127.0.0.1:8780"""


def typed_name(ran: str) -> str:
    """Return the command as a reader types it: with its folder where it was run from a checkout."""
    path = Path(ran)
    return ran if path.name == "hubbub" and not path.is_absolute() else "hubbub"


def _surveys(start_s: int) -> tuple[Survey, ...]:
    """Return the demo's surveys, their first round beginning at `start_s`."""
    start = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    folder = files("hubbub_deploy") / "surveys"
    texts = [(name, (folder / name).read_text(encoding="utf-8")) for name in SURVEYS]
    return tuple(Survey.parse(text.replace(_START_IN_FILE, start), file=name) for name, text in texts)


def _serve(
    canonicals: list[bytes], folder: Path, port: int, clock: Synchronized[float], pipe: Connection
) -> None:
    """Return the node's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C while it starts is the demo's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    surveys = tuple(Survey.from_canonical(data) for data in canonicals)
    settings = NodeSettings(
        surveys=surveys,
        data_dir=folder,
        port=port,
        clock=lambda: time.time() + clock.value,
        # The demo turns the time of the whole machine: a clock alone that ran ahead would seal nothing.
        boot_clock=lambda: boot_s() + clock.value,
    )
    try:
        serve(settings, ready=pipe.send)
    except DeployError as error:
        pipe.send(error)


def _end_with_parent() -> None:
    """Ask this process to stop when the demo is gone, however it went."""
    demo = multiprocessing.parent_process()
    if demo is not None:
        demo.join()
        os.kill(os.getpid(), signal.SIGTERM)


class _NodeClient:
    """The running node, as its clients see it."""

    def __init__(
        self, url: str, clock: Synchronized[float], process: multiprocessing.process.BaseProcess
    ) -> None:
        self.url, self._clock, self.process = url, clock, process

    def surveys(self) -> list[Survey]:
        """Return the surveys that the collector serves, checked as a device checks them."""
        return [Survey.from_canonical(data) for data in decode_surveys(self._get("/v1/surveys"))]

    def live(self) -> dict[str, Any]:
        """Return everything that the page shows."""
        found: dict[str, Any] = json.loads(self._get("/api/live"))
        return found

    def release(self, survey: Survey) -> dict[str, Any]:
        """Return a survey's first round."""
        found: dict[str, Any] = json.loads(self._get(f"/api/surveys/{survey.digest.hex()}/rounds/1"))
        return found

    def turn_clock(self, survey: Survey) -> None:
        """Put the node's clock past the moment at which a survey's first round is sealed."""
        self._clock.value = survey.round_end_s(0) + survey.lateness_s + 60.0 - time.time()

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=10) as reply:  # noqa: S310 - our own http:// URL
            body: bytes = reply.read()
            return body


@contextlib.contextmanager
def _node(surveys: tuple[Survey, ...], folder: Path, port: int) -> Iterator[_NodeClient]:
    context = multiprocessing.get_context("spawn")
    clock: Synchronized[float] = context.Value("d", 0.0)
    here, there = context.Pipe(duplex=False)
    arguments = ([survey.canonical for survey in surveys], folder, port, clock, there)
    process = context.Process(target=_serve, args=arguments, name="hubbub-node", daemon=True)
    process.start()
    there.close()
    try:
        try:
            said = (
                here.recv() if here.poll(_START_TIMEOUT_S) else DeployError("the node did not start in time")
            )
        except EOFError:
            said = DeployError("the node ended before it was ready")
        if isinstance(said, DeployError):
            raise said
        yield _NodeClient(said, clock, process)
    finally:
        process.terminate()
        process.join(10)
        process.kill()
        process.join()


def _upload(fleet: DeviceSimulator, url: str, n: int, talk: Console) -> UploadCounts:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("devices"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=talk) as progress:
        task = progress.add_task("uploading", total=n)
        return fleet.upload(
            url, progress=lambda done, total: progress.update(task, completed=done, total=total)
        )


def _wait(node: _NodeClient, done: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
    """Return the live document once `done` says so.

    Raises:
        DeployError: If it takes too long, or the node has ended.
    """
    deadline = time.monotonic() + _COUNT_TIMEOUT_S
    while not done(live := node.live()):
        if time.monotonic() > deadline or not node.process.is_alive():
            raise DeployError(f"{what} must end within {_COUNT_TIMEOUT_S:g} s, got {live['accounting']}")
        time.sleep(_POLL_S)
    return live


def _all_sealed(live: dict[str, Any], surveys: int) -> bool:
    rounds = [entry for survey in live["surveys"] for entry in survey["rounds"]]
    return len(rounds) == surveys and all(entry["sealed"] for entry in rounds)


def _account(live: dict[str, Any], reports: int, sent: UploadCounts) -> bool:
    """Return whether every report was counted exactly once: the copies of retried uploads are duplicates."""
    accounting = live["accounting"]
    verdicts = sum(count for name, count in accounting.items() if name != "attempts")
    return (
        accounting["accepted"] == reports
        and accounting["attempts"] == verdicts
        and not sent.given_up
        and sent.outcomes.get("accepted", 0) == reports
    )


def _spent(fleet: DeviceSimulator) -> dict[str, float]:
    loss, committed = fleet.loss, fleet.committed
    return {
        "budget": BUDGET,
        "loss_least": float(np.min(loss)),
        "loss_median": float(np.median(loss)),
        "loss_most": float(np.max(loss)),
        "committed_most": float(np.max(committed)),
    }


def _print_account(
    out: Console,
    live: dict[str, Any],
    reports: int,
    sent: UploadCounts,
    fleet: DeviceSimulator,
    *,
    seconds: float,
    sound: bool,
) -> None:
    accounting, spent = live["accounting"], _spent(fleet)
    parts = " + ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in accounting.items() if name != "attempts"
    )
    out.print(f"Sent: {reports:,} reports in {sent.uploads:,} uploads, {sent.retries:,} retried.")
    out.print(f"Received: {accounting['attempts']:,} = {parts}.")
    out.print(
        "Every answer was counted exactly once."
        if sound
        else "[bold red]The counts do not add up.[/bold red]"
    )
    out.print(
        f"Epsilon spent per device: {spent['loss_least']:.3f} to {spent['loss_most']:.3f} "
        f"(median {spent['loss_median']:.3f}) of {spent['budget']:g}, realised; "
        f"at most {spent['committed_most']:.3f} were ever reserved."
    )
    out.print(f"{seconds:.0f} seconds.")
