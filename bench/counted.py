"""Checks of answers: a collector that drops some, honest runs through kills, and the price of a list.

    python bench/counted.py                        a fleet of 100,000, 30 kills, a list of a million
    python bench/counted.py --fleet 3000 --kills 3 --large 20000

Reports lie in a node's log, are counted, released and listed as by a node. Retries are in the log twice, and
one run in two has a quota. A check is what a device does: leaf, tile, roots. A collector that drops 1 % is
checked by twenty drawings of 1,000 devices, each of which misses 10 +- 3. It fails (exit status 1) where a
check is wrong, an honest run misses an answer, a replay has another root, or a drawing misses fewer than 1 or
more than 22: a chance of 3.2e-4 each (binomial), under a seed that is fixed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from harness import labels, survey_text

from hubbub import Survey
from hubbub.transparency import Entry, found_in, leaves_of, tile_of
from hubbub.wire import ID_BYTES, ReportsRecord, Segment, SurveyRecord, encode_record
from hubbub_aggregator.runners import CountedBuilder, RoundReports, Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore, TransparencyLog
from hubbub_aggregator.web import LiveView
from hubbub_topic import SqliteLog

PARTITIONS, BATCH, CHECKS, DRAWINGS, DROPPED = 4, 300, 1_000, 20, 0.01
SURVEY = Survey.parse(survey_text("asked", labels([str(place) for place in range(12)]), epsilon=1.0))


@dataclass(frozen=True)
class Fleet:
    """The reports that devices sent, and which of them a collector dropped after it acknowledged them."""

    survey: Survey
    ids: bytes
    symbols: list[int]
    is_dropped: np.ndarray

    @property
    def leaves(self) -> list[bytes]:
        """The leaf of each."""
        return leaves_of(self.survey.digest, 0, self.ids, self.symbols)


def fleet(n: int, dropped: float, quota: int | None, rng: np.random.Generator) -> Fleet:
    """Return n devices' reports."""
    symbols = rng.integers(12, size=n)
    return Fleet(
        replace(SURVEY, quota=quota), rng.bytes(ID_BYTES * n), symbols.tolist(), rng.random(n) < dropped
    )


def write(folder: Path, sent: Fleet, rng: np.random.Generator) -> None:
    """Write what was not dropped into a node's log, every twentieth report twice."""
    rows = np.flatnonzero(~sent.is_dropped)
    rows = np.concatenate([rows, rows[::20]])
    rng.shuffle(rows)
    ids = np.frombuffer(sent.ids, np.dtype((np.void, ID_BYTES)))
    homes = np.frombuffer(sent.ids, ">u8")[1::2] % PARTITIONS
    symbols, minute = np.array(sent.symbols, np.uint32), sent.survey.start_s // 60 + 9
    with contextlib.closing(SqliteLog(folder / "log.sqlite", PARTITIONS)) as log:
        log.publish_survey(sent.survey.digest, encode_record(SurveyRecord(sent.survey.canonical)))
        for partition in range(PARTITIONS):
            own = rows[homes[rows] == partition]
            batches = np.array_split(own, max(1, len(own) // BATCH))
            log.append(
                {
                    partition: [
                        encode_record(
                            ReportsRecord(
                                minute,
                                (
                                    Segment(
                                        sent.survey.digest,
                                        0,
                                        ids[each].tobytes(),
                                        symbols[each],
                                        len(each),
                                        {},
                                    ),
                                ),
                                0,
                            )
                        )
                        for each in batches
                    ]
                }
            )


def live(folder: Path, survey: Survey) -> None:
    """Count, release and list as a node does, until the list is logged."""
    end_s = survey.round_end_s(0) + survey.lateness_s + 60.0
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(contextlib.closing(SqliteLog(folder / "log.sqlite", PARTITIONS)))
        store = SqliteStore(folder / "store.sqlite", log_identity=log.identity, partitions=PARTITIONS)
        stack.enter_context(contextlib.closing(store))
        archive = stack.enter_context(contextlib.closing(SqliteArchive(folder / "archive.sqlite")))
        entries = stack.enter_context(contextlib.closing(TransparencyLog(folder / "transparency.sqlite")))
        worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: end_s, entries=entries)
        builder = CountedBuilder(
            entries,
            lambda: contextlib.closing(SqliteArchive(folder / "archive.sqlite")),
            lambda: contextlib.nullcontext(log),
        )
        while listed(entries) is None:
            worker.step()
            builder.look()


def listed(entries: TransparencyLog) -> Entry | None:
    """Return the entry of what was counted."""
    return next((each for each in entries.since(0) if each.kind == "counted"), None)


def through_kills(folder: Path, survey: Survey, kills: int, rng: np.random.Generator) -> int:
    """Run processes that are killed, then one that is not, and return how many were killed."""
    killed = 0
    for _ in range(kills):
        child = multiprocessing.get_context("fork").Process(target=live, args=(folder, survey))
        child.start()
        child.join(float(rng.uniform(0.01, 0.6)))
        if child.is_alive():
            os.kill(child.pid or 0, signal.SIGKILL)
            killed += 1
        child.join()
    live(folder, survey)
    return killed


def checked(folder: Path, leaves: list[bytes]) -> Counter[str]:
    """Return how many leaves a device finds counted, over quota, or missing."""
    found: Counter[str] = Counter()
    with contextlib.closing(TransparencyLog(folder / "transparency.sqlite")) as entries:
        entry = listed(entries)
        assert entry is not None
        digest, number, _, bits = entry.fields[:4]
        for leaf in leaves:
            tile = entries.counted_tile(digest, number, tile_of(leaf, bits))
            found[found_in(leaf, entry, tile or b"") or "missing"] += 1
    return found


def same_root(folder: Path) -> bool:
    """Return whether two replays of the log have the root that is logged."""
    with (
        contextlib.closing(SqliteLog(folder / "log.sqlite", None)) as log,
        contextlib.closing(SqliteArchive(folder / "archive.sqlite")) as archive,
        contextlib.closing(TransparencyLog(folder / "transparency.sqlite")) as entries,
    ):
        document = json.loads(archive.get(archive.rounds()[0]) or b"")
        made = [RoundReports(lambda: contextlib.nullcontext(log)).counted(document) for _ in range(2)]
        return all(each is not None and each.entry == listed(entries) for each in made)


def priced(n: int, rng: np.random.Generator) -> str:
    """Return what counting and listing a round cost, by the clock and in processor time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, fleet(n, 0.0, None, rng), rng)
        began = time.process_time()
        live(folder, SURVEY)
        whole = time.process_time() - began
        with (
            contextlib.closing(SqliteLog(folder / "log.sqlite", None)) as log,
            contextlib.closing(SqliteArchive(folder / "archive.sqlite")) as archive,
        ):
            document = json.loads(archive.get(archive.rounds()[0]) or b"")
            began, clock = time.process_time(), time.perf_counter()
            made = RoundReports(lambda: contextlib.nullcontext(log)).counted(document)
            spent, passed = time.process_time() - began, time.perf_counter() - clock
        assert made is not None
        bytes_ = sum(map(len, made.tiles))
    return (
        f"{n:,} reports: the list takes {passed:.2f} s by the clock, {spent:.2f} s of processor time, "
        f"{spent / (whole - spent):.1f} times "
        f"what counting, releasing and keeping takes; {len(made.tiles):,} tiles, {bytes_ / n:.1f} bytes a "
        f"report, "
        f"{bytes_ / len(made.tiles):,.0f} a check."
    )


def main(arguments: list[str]) -> int:
    """Print a table; return 1 where a rule is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleet", type=int, default=100_000, help="devices; default: %(default)s")
    parser.add_argument("--kills", type=int, default=30, help="of each honest run; default: %(default)s")
    parser.add_argument("--large", type=int, default=10**6, help="reports of the priced list")
    options = parser.parse_args(arguments)
    rng, n, wrong = np.random.default_rng(3303), options.fleet, []
    print("| run | killed | checks | counted | over quota | missing |\n|---|---|---|---|---|---|")
    for name, dropped, quota in (
        ("drops 1 %", DROPPED, None),
        ("honest", 0.0, None),
        ("honest, a quota", 0.0, n // 2),
    ):
        with tempfile.TemporaryDirectory() as path:
            folder, sent = Path(path), fleet(n, dropped, quota, rng)
            write(folder, sent, rng)
            killed = through_kills(folder, sent.survey, 0 if dropped else options.kills, rng)
            drawn = [np.arange(n)]
            if dropped:
                drawn = [rng.choice(n, CHECKS, replace=False) for _ in range(DRAWINGS)]
            leaves, found, missing = sent.leaves, Counter[str](), []
            for rows in drawn:
                once = checked(folder, [leaves[row] for row in rows])
                found += once
                missing.append(once["missing"])
                if once["missing"] != (truly := int(sent.is_dropped[rows].sum())):
                    wrong.append(f"{name}: {once['missing']} missing, {truly} were dropped")
                if dropped and not 1 <= once["missing"] <= 22:
                    wrong.append(f"{name}: {once['missing']} of {CHECKS} are missing")
            row = [killed, found.total(), *(found[word] for word in ("counted", "over quota", "missing"))]
            print(f"| {name} | {' | '.join(f'{value:,}' for value in row)} |")
            if dropped:
                spread = f"{np.mean(missing):.1f} +- {np.std(missing, ddof=1):.1f}"
                of_thousands = f"each {CHECKS:,} checks miss {spread}, from {min(missing)} to {max(missing)}"
            if quota is not None and found["counted"] != quota:
                wrong.append(f"{name}: {found['counted']} counted, the quota is {quota}")
            if not same_root(folder):
                wrong.append(f"{name}: a replay has another root")
    print(f"\nOf a collector that drops 1 %, {of_thousands}.\n\n{priced(options.large, rng)}")
    for line in wrong:
        print(f"\n**(!)** {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
