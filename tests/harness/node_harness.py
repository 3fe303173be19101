"""Makes nodes and kills them: `python node_nursery.py CLOCK PORT SURVEY...`, then one JSON line per life.

Every life is a fork of this process (which never has a file of the node open), so that a life costs
milliseconds and not an interpreter's start. The clock is a file of one float64, seconds since 1970, that the
test turns; the surveys are files of canonical bytes. A life is

    {"data": FOLDER}                      where the files are; always
    "after": "fork" | "ready", "delay_s"  killed by this process, so long after that point
    "at": "appended" | "saved", "times": 3     killed by itself, right after the third of these
    "until": "told"                       asked to stop when the next line comes
    "end": "killed"                       or killed then
    "broken": "early answer"              a node that answers before its log is written
    "log": "held"                         nothing is written into its log once it is ready
    "origins": "https://a.example"        web origins whose pages may upload

Each life is answered by its exit code, -9 for killed; "told" lives answer "ready" before.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sqlite3
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hubbub.survey.survey import Survey
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_collector.batching.pending_batch import PendingBatch
from hubbub_collector.settings import GatewaySettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import NodeSettings, serve
from hubbub_topic.sqlite import SqliteLog

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
CONNECT = sqlite3.connect  # not counted

METHODS = {
    "appended": (SqliteLog, "append"),
    "saved": (SqliteStore, "save"),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def after_each(point: str, act: Callable[[int], None]) -> None:
    """Calls `act` with 1, 2, ... right after the named thing was done."""
    owner, name = METHODS[point]
    method, done = getattr(owner, name), 0

    def counted(*arguments: Any, **settings: Any) -> Any:
        nonlocal done
        result = method(*arguments, **settings)
        done += 1
        act(done)
        return result

    setattr(owner, name, counted)


def answer_early() -> None:
    """The mistake that a gateway must not make: a device forgets what no log holds yet."""
    judge = PendingBatch.judge

    def careless(self: PendingBatch, admission: Any) -> None:
        judge(self, admission)
        self.answer_all()
        self._waiting.clear()
        self._answers.clear()

    PendingBatch.judge = careless  # type: ignore[method-assign]


def hold_log(started: threading.Event) -> None:
    """Nothing is written any more once the node is ready: what is answered from then on is in no log."""
    append = SqliteLog.append

    def held(self: SqliteLog, *arguments: Any) -> Any:
        if started.is_set():
            threading.Event().wait()
        return append(self, *arguments)

    SqliteLog.append = held  # type: ignore[method-assign]


def live(order: dict[str, Any], world: tuple[mmap.mmap, int, tuple[Survey, ...]], ready: int) -> int:
    clock, port, surveys = world
    if "at" in order:
        after_each(order["at"], lambda n: die() if n == order["times"] else None)
    started = threading.Event()
    if order.get("broken") == "early answer":
        answer_early()
    if order.get("log") == "held":
        hold_log(started)
    settings = NodeSettings(
        surveys=surveys,
        data_dir=Path(order["data"]),
        port=port,
        gateway=GatewaySettings(linger_s=0.005, metrics_s=0, allowed_origins=order.get("origins", "")),
        clock=lambda: struct.unpack_from("<d", clock)[0],
        # The world's time goes in leaps, and its machine's with it.
        boot_clock=lambda: struct.unpack_from("<d", clock)[0],
    )

    def announce(_: str) -> None:
        os.write(ready, b"!")
        started.set()

    try:
        return serve(settings, ready=announce)
    except DeployError as error:
        print(error, file=sys.stderr)
        return 1


def one_life(order: dict[str, Any], world: tuple[mmap.mmap, int, tuple[Survey, ...]]) -> int:
    hears, says = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(hears)
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            if os.getppid() == parent:
                code = live(order, world, says)
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    os.close(says)
    try:
        if "delay_s" in order:
            if order["after"] == "ready":
                os.read(hears, 1)  # returns at once if the child is gone
            time.sleep(order["delay_s"])
            os.kill(child, signal.SIGKILL)
        elif order.get("until") == "told":
            print("ready" if os.read(hears, 1) else "gone", flush=True)
            sys.stdin.readline()
            os.kill(child, signal.SIGKILL if order.get("end") == "killed" else signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    finally:
        os.close(hears)


def main() -> None:
    clock_path, port, *files = sys.argv[1:]
    surveys = tuple(Survey.from_canonical(Path(name).read_bytes()) for name in files)
    with open(clock_path, "r+b") as file:  # noqa: PTH123 - mmap wants a descriptor
        clock = mmap.mmap(file.fileno(), 8)
    for line in sys.stdin:
        print(one_life(json.loads(line), (clock, int(port), surveys)), flush=True)


if __name__ == "__main__":
    main()
