"""Counts round after round and says how large it is: `memory_process.py FOLDER ROUNDS REPORTS [leak]`.

One line per sealed round: resident bytes. With "leak" the ids of sealed rounds are kept, as a bug might.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from counting_logs import MINUTE, announcement
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, SealRecord, Segment, encode_record
from hubbub_aggregator.counting import counting
from hubbub_aggregator.counting.dedup import IdTable
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_topic.sqlite import SqliteLog

RECORD = 1_000
KEPT: list[IdTable] = []


class Leaking(IdTable):
    """Stays, whoever lets go of it."""

    def __init__(self) -> None:
        super().__init__()
        KEPT.append(self)


def resident() -> int:
    with Path("/proc/self/status").open() as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def main(folder: str, rounds: int, reports: int) -> None:
    survey = Survey.parse(LABELS.replace("rounds = 3", f"rounds = {rounds}"))
    rng = np.random.default_rng(12)
    with SqliteLog(Path(folder) / "log", partitions=1) as log:
        store = SqliteStore(Path(folder) / "store", log_identity=log.identity, partitions=1)
        archive = SqliteArchive(Path(folder) / "archive")
        worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: 0.0)
        if len(sys.argv) > 4:
            for state in worker._counter.states.values():
                state.id_set = Leaking
        log.publish_survey(survey.digest, announcement(survey))
        for number in range(rounds):
            for _ in range(reports // RECORD):
                symbols = rng.integers(0, survey.channel.outputs, RECORD).astype(np.uint8)
                segment = Segment(survey.digest, number, rng.bytes(16 * RECORD), symbols, RECORD, {})
                log.append({0: [encode_record(ReportsRecord(MINUTE + 1440 * number, (segment,), 0))]})
            while worker.step():  # a round whose seal comes with its reports remembers nothing
                pass
            log.append({0: [encode_record(SealRecord(survey.digest, number))]})
            worker.step()
            state = worker._counter.states[0].rounds[survey.digest, number]
            assert state.verdicts == counting.VerdictCounts(attempts=reports, accepted=reports)
            print(resident(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
