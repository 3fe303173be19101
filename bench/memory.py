"""The memory of an aggregator over many rounds, one sealed after another, at a constant rate.

    python bench/memory.py                120 rounds of 200,000 reports
    python bench/memory.py 60 1000000     60 rounds of a million

An hour of rounds of half a minute, compressed: each round's reports are counted with exact dedup and saved
into a real Redis, the next round's first reports come before its seal, then it is sealed. In the first
quarter of the rounds the process finds its size; to the rest a straight line is fitted. A process that kept
the ids of sealed rounds would grow by 11 to 15 bytes per report.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from servers import redis_server

import hubbub
from hubbub.wire.record import ReportsRecord, SealRecord, Segment, SurveyRecord, encode_record
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.stores.redis_store import RedisStore

sys.path.insert(0, str(Path(__file__).parent))
from run import SURVEY, line

PARTITIONS, RECORD, GROUP = 4, 1_000, 16


def resident() -> int:
    """Return bytes of this process in memory."""
    with Path("/proc/self/status").open() as file:
        return next(1024 * int(row.split()[1]) for row in file if row.startswith("VmRSS"))


def one_round(survey: hubbub.Survey, number: int, reports: int, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield a round's records, each with a few reports of the next."""
    minute = survey.round_start_s(number) // 60
    for _ in range(reports // RECORD):
        segments = []
        for shift, n in ((0, RECORD), (1, RECORD // 100)):
            symbols = rng.integers(0, survey.channel.outputs, n).astype(np.uint8)
            segments.append(Segment(survey.digest, number + shift, rng.bytes(16 * n), symbols, n, {}))
        yield encode_record(ReportsRecord(minute + 1, tuple(segments), 0))


def main() -> int:
    """Run the rounds and print what they took."""
    rounds, reports = (int(word) for word in (sys.argv[1:] or ["120", "200000"]))
    text = SURVEY.replace('round = "1d"', 'round = "1m"').replace("rounds = 1\n", f"rounds = {rounds + 1}\n")
    survey = hubbub.Survey.parse(text.replace('lateness = "1h"', 'lateness = "1m"'))
    rng, sizes, began = np.random.default_rng(8), [], time.perf_counter()
    with redis_server() as url:
        store = RedisStore.connect(url, log_identity="memory", partitions=PARTITIONS)
        assignment = Assignment(
            store, begin=lambda _: 0, end=lambda _: 2**40, keep="open", clock=time.monotonic
        )
        offsets = assignment.load(range(PARTITIONS))

        def take(partition: int, records: list[bytes]) -> None:
            assignment.process(partition, list(enumerate(records, start=offsets[partition])))
            offsets[partition] += len(records)

        for partition in range(PARTITIONS):
            take(partition, [encode_record(SurveyRecord(survey.canonical))])
        for number in range(rounds):
            group: list[bytes] = []
            for place, record in enumerate(one_round(survey, number, reports, rng)):
                group.append(record)
                if len(group) == GROUP:
                    take(place // GROUP % PARTITIONS, group)
                    group = []
            take(0, [*group, encode_record(SealRecord(survey.digest, number))])
            for partition in range(1, PARTITIONS):
                take(partition, [encode_record(SealRecord(survey.digest, number))])
            sizes.append(resident())
        store.close()
    settled = np.array(sizes[max(1, rounds // 4) :]) / 2**20
    slope = float(np.polyfit(np.arange(len(settled)), settled, 1)[0])
    kept = 11.0 * reports / 2**20
    print(f"{rounds} rounds of {reports:,} reports in {time.perf_counter() - began:.0f} s:")
    line("resident after the first quarter, after the last", f"{settled[0]:.1f}, {settled[-1]:.1f} MiB")
    line("lowest, highest in between", f"{settled.min():.1f}, {settled.max():.1f} MiB")
    line("growth per round, fitted", f"{1024 * slope:+.1f} KiB", f"{slope / kept:+.4f} of one round's ids")
    return 0


if __name__ == "__main__":
    sys.exit(main())
