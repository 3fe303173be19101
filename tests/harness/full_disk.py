"""An agent whose disk fills up: `python full_disk.py FOLDER tmpfs|limit`; prints what it found as JSON.

tmpfs: a small file system mounted on FOLDER, with a ballast file that leaves ever less room (needs root,
and a mount namespace of its own: run under `unshare -m`); it also remounts it read-only. limit:
RLIMIT_FSIZE, for anybody.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from devices import AGREED, FAST, HEALTH, Clock, Collector, changed
from surveys import LABELS, START_S

from hubbub_client import Agent, LedgerError

SURVEY = changed(LABELS, rounds="400", epsilon="0.02")
BUDGET = 8.0


def open_agent(folder: Path, clock: Clock, collector: Collector) -> Agent:
    agent = Agent(
        folder / "ledger.db", "", budget=BUDGET, clock=clock, http=collector, limits=FAST, policy=AGREED
    )
    try:
        agent.register(HEALTH)
        assert agent.enrol(SURVEY).accepted
    except BaseException:
        agent.close()
        raise
    return agent


@contextlib.contextmanager
def filled(folder: Path, kind: str, room: int) -> Iterator[None]:
    """A disk with `room` bytes left, or one on which no file may be longer than that."""
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return
    ballast = folder / "ballast"
    free = os.statvfs(folder)
    ballast.write_bytes(b"b" * max(0, free.f_bavail * free.f_frsize - room))
    try:
        yield
    finally:
        ballast.unlink()


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    if kind == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    clock, collector = Clock(START_S), Collector()
    open_agent(folder, clock, collector).close()
    number = failures = 0
    for room in range(0, 192_000, 4_000):
        with filled(folder, kind, room):
            agent = None
            try:
                agent = open_agent(folder, clock, collector)
                for _ in range(6):
                    clock.now_s = SURVEY.round_start_s(number)
                    agent.answer()
                    agent.upload()
                    number += 1
            except LedgerError:
                failures += 1
                number += 1
            finally:
                if agent is not None:
                    agent.close()
    agent = open_agent(folder, clock, collector)  # there is room again
    agent.upload()
    written = {answer.id: answer for answer in agent._ledger.answers()}
    symbols: dict[bytes, set[int]] = {}
    for report in collector.received:
        symbols.setdefault(report.id, set()).add(report.symbol)
    status = agent.status()
    recorded = {row.slot: row.symbol for row in agent._ledger.transcript() if row.kind == "record"}
    found = {
        "failures": failures,
        "answers": len(written),
        "sent_not_written": len(symbols.keys() - written.keys()),
        "written_not_sent": len(written.keys() - symbols.keys()),
        "two_noises": sum(len(seen) > 1 for seen in symbols.values()),
        "wrong_symbol": sum(seen != {recorded[written[i].round]} for i, seen in symbols.items()),
        "committed": status.committed,
    }
    agent.close()
    if kind == "tmpfs":
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        bodies = len(collector.bodies)
        try:
            open_agent(folder, clock, collector).answer()
        except LedgerError as error:
            found["read_only"] = str(error)
        found["sent_read_only"] = len(collector.bodies) - bodies
    print(json.dumps(found))


if __name__ == "__main__":
    main()
