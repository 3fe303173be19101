"""The memory of a worker over many rounds, one sealed after another, at a constant rate of reports. Prints.

    python bench/memory.py                120 rounds of 200,000 reports
    python bench/memory.py 60 1000000     60 rounds of a million

An hour of rounds of half a minute, compressed: each round's reports are counted with exact dedup and saved,
the next round's first reports come before its seal, then it is sealed and released. In the first tenth of the
rounds the process finds its size; to the rest a straight line is fitted. A worker that kept the ids of sealed
rounds would grow by 11 to 15 bytes per report.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import numpy as np
from servers import folder

import hubbub
from hubbub.records import ReportsRecord, Segment, SurveyRecord, encode_record
from hubbub_aggregator.archive import SqliteArchive
from hubbub_aggregator.sqlite_store import SqliteStore
from hubbub_aggregator.view import LiveView
from hubbub_aggregator.worker import Worker
from hubbub_collector.sqlite_log import SqliteLog

sys.path.insert(0, str(Path(__file__).parent))
from run import SURVEY, line

PARTITIONS, RECORD = 4, 1_000


def resident() -> int:
    """Bytes of this process in memory."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * 4096


def one_round(
    log: SqliteLog, survey: hubbub.Survey, number: int, reports: int, rng: np.random.Generator
) -> None:
    """Puts a round's reports into the log, and few of the next."""
    minute = survey.round_start_s(number) // 60
    for place in range(reports // RECORD):
        segments = []
        for shift, n in ((0, RECORD), (1, RECORD // 100)):
            symbols = rng.integers(0, survey.channel.outputs, n).astype(np.uint8)
            segments.append(Segment(survey.digest, number + shift, rng.bytes(16 * n), symbols, n, {}))
        log.append({place % PARTITIONS: [encode_record(ReportsRecord(minute + 1, tuple(segments), 0))]})


def main() -> int:
    """Runs the rounds and prints what they took."""
    rounds, reports = (int(word) for word in (sys.argv[1:] or ["120", "200000"]))
    text = SURVEY.replace('round = "1d"', 'round = "1m"').replace("rounds = 1\n", f"rounds = {rounds + 1}\n")
    survey = hubbub.Survey.parse(text.replace('lateness = "1h"', 'lateness = "1m"'))
    rng, sizes, began = np.random.default_rng(8), [], time.perf_counter()
    with (
        folder() as data,
        SqliteLog(data / "log", partitions=PARTITIONS) as log,
        contextlib.closing(SqliteArchive(data / "archive")) as archive,
        contextlib.closing(
            SqliteStore(data / "store", log_identity=log.identity, partitions=PARTITIONS)
        ) as store,
    ):
        now = float(survey.start_s)
        log.announce(survey.digest, encode_record(SurveyRecord(survey.canonical)))
        worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: now)
        for number in range(rounds):
            one_round(log, survey, number, reports, rng)
            while worker.step():
                pass
            now = survey.round_end_s(number) + survey.lateness_s + 30.0
            while len(archive.rounds()) <= number:
                worker.step()
            sizes.append(resident())
    settled = np.array(sizes[max(1, rounds // 10) :]) / 2**20
    slope = float(np.polyfit(np.arange(len(settled)), settled, 1)[0])
    kept = 11.0 * reports / 2**20
    print(f"{rounds} rounds of {reports:,} reports in {time.perf_counter() - began:.0f} s:")
    line("resident after the first tenth, after the last", f"{settled[0]:.1f}, {settled[-1]:.1f} MiB")
    line("lowest, highest in between", f"{settled.min():.1f}, {settled.max():.1f} MiB")
    line(
        "growth per round, fitted",
        f"{1024 * slope:+.1f} KiB",
        f"{slope / kept:+.3f} of one round's ids",
        "target 0",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
