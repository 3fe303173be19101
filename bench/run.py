"""Speed and size of the parts that count, as ratios measured in one run.

    make bench            every section
    make bench ARGS=wire  one section: sampling, counting, estimation, filter, wire

Each figure is the best of several repetitions, the peer's repetitions interleaved with ours, so that a
machine whose speed drifts slows both.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filters
import msgpack
import numpy as np

import hubbub
from hubbub import mechanisms
from hubbub.estimation import Estimator
from hubbub.wire import record as records
from hubbub.wire import report as wire
from hubbub_aggregator.counting import counting

REPEATS = 9
SURVEY = """
id = "bench"
version = 1
title = "Bench"
epsilon = 2.0
minimum_cohort = 100
planned_devices = 100000
[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 1
lateness = "1h"
skew = "5m"
[attribute]
id = "age"
kind = "evolving"
type = "integer"
low = 10
high = 99
[mechanism]
name = "grr"
"""


def best(*jobs: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Return the least seconds of each job, the jobs taken in turn."""
    least = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            least[i] = min(least[i], time.perf_counter() - start)
    return least


def line(what: str, value: str, ratio: str = "", target: str = "") -> None:
    """Print one figure."""
    print(f"  {what:58} {value:>16}  {ratio:22} {target}".rstrip())


def sampling() -> None:
    """Measure secure batch sampling against a plain NumPy GRR; one secure report at a time."""
    n, inputs, epsilon = 1_000_000, 91, 1.0
    rng = np.random.default_rng(1)
    values = rng.integers(0, inputs, n)
    truth = np.exp(epsilon) / (np.exp(epsilon) + inputs - 1)

    def plain() -> object:
        other = rng.integers(0, inputs - 1, n)
        return np.where(rng.random(n) < truth, values, other + (other >= values))

    grr = mechanisms.grr(inputs, epsilon=epsilon)
    pbgrr = mechanisms.pbgrr([10] * 9 + [1], epsilon=epsilon, boost_epsilon=epsilon / 2)
    peer, ours, boosted, entropy = best(
        plain, lambda: grr.perturb(values), lambda: pbgrr.perturb(values), lambda: os.urandom(4 * n)
    )
    line("plain NumPy GRR, insecure generator, K = 91", f"{n / peer / 1e6:.1f} M/s")
    line("operating system's generator, 4 bytes a report", f"{n / entropy / 1e6:.1f} M/s")
    line(
        "GRR from the CSPRNG, in batches, K = 91",
        f"{n / ours / 1e6:.1f} M/s",
        f"{peer / ours:.2f} of NumPy",
        "target 10 M/s or 0.5",
    )
    line(
        "PB-GRR from the CSPRNG, in batches, K = 91",
        f"{n / boosted / 1e6:.1f} M/s",
        f"{peer / boosted:.2f} of NumPy",
    )
    single = 100_000

    def one_at_a_time() -> None:
        perturb = grr.perturb
        for _ in range(single):
            perturb(17)

    (alone,) = best(one_at_a_time)
    line("GRR, one secure report at a time", f"{single / alone / 1e3:.0f} k/s", "", "target 500 k/s")


def counting_core() -> None:
    """Measure the counting core against a bare np.bincount over the same bytes, without and with dedup."""
    survey = hubbub.Survey.parse(SURVEY)
    rng = np.random.default_rng(2)
    for n in (1_000, 20_000):
        batches = 2_000_000 // n // 4
        payloads = []
        for _ in range(batches):
            symbols = rng.integers(0, survey.channel.outputs, n).astype(np.uint8)
            segment = records.Segment(survey.digest, 0, rng.bytes(16 * n), symbols, n, {})
            minute = survey.start_s // 60 + 5
            payloads.append(records.encode_record(records.ReportsRecord(minute, (segment,), 0)))

        def bare(payloads: list[bytes] = payloads) -> object:
            counts = np.zeros(survey.channel.outputs, dtype=np.int64)
            for payload in payloads:
                fields = msgpack.unpackb(payload)
                column = np.frombuffer(fields[4][0][4], dtype=np.uint8)
                counts += np.bincount(column, minlength=survey.channel.outputs)
            return counts

        def core(payloads: list[bytes] = payloads) -> object:
            return counting.count_only(survey, payloads)

        def whole(payloads: list[bytes] = payloads, group: int = 20_000 // n) -> object:
            state = counting.PartitionState()
            first = records.encode_record(records.SurveyRecord(survey.canonical))
            state.commit(counting.apply(state, 0, first))
            for start in range(0, len(payloads), group):
                chosen = payloads[start : start + group]
                state.commit(counting.apply_many(state, enumerate(chosen, start=start + 1)))
            return state

        peer, ours, full = best(bare, core, whole, repeats=5)
        total = n * batches
        line(f"unpack + np.bincount, batches of {n:,}", f"{total / peer / 1e6:.0f} M/s")
        line(
            f"counting core (decode, checks, count), batches of {n:,}",
            f"{total / ours / 1e6:.0f} M/s",
            f"{peer / ours:.2f} of bare",
            "target 0.5",
        )
        line(
            f"apply, exact dedup of ids included, batches of {n:,}",
            f"{total / full / 1e6:.1f} M/s",
            f"{peer / full:.3f} of bare",
        )


def estimation() -> None:
    """Measure values, categories and their errors from counts."""
    rng = np.random.default_rng(3)
    for inputs, target in ((91, "target 1 ms"), (100_000, "target 10 ms")):
        sizes = [10] * (inputs // 10) + ([inputs % 10] if inputs % 10 else [])
        channel = mechanisms.pbgrr(sizes, epsilon=4.0, boost_epsilon=2.0)
        estimator = Estimator(channel, category_of=np.repeat(np.arange(len(sizes)), sizes))
        counts = rng.multinomial(1_000_000, np.full(channel.outputs, 1 / channel.outputs))

        def estimate(estimator: Estimator = estimator, counts: np.ndarray = counts) -> object:
            found = estimator(counts, 1_000_000)
            return found.values, found.value_errors, found.categories, found.category_errors

        (seconds,) = best(estimate)
        line(f"estimate and errors by PB-GRR, K = {inputs:,}", f"{seconds * 1e3:.3f} ms", "", target)


def wire_size() -> None:
    """Measure bytes per report in an upload and in the log, ids included."""
    survey = hubbub.Survey.parse(SURVEY)
    rng = np.random.default_rng(4)
    for reports in (1, 3, 8):
        body = wire.encode_upload(
            [wire.encode_report(wire.Report(survey.digest, 0, rng.bytes(16), 17)) for _ in range(reports)]
        )
        line(f"upload of {reports} report(s)", f"{len(body) / reports:.1f} B/report", "", "target 40")
    for n in (100, 1_000):
        segment = records.Segment(survey.digest, 0, rng.bytes(16 * n), np.full(n, 17, dtype=np.uint8), n, {})
        record = records.encode_record(records.ReportsRecord(29_000_000, (segment,), 0))
        line(f"log record of {n:,} reports", f"{len(record) / n:.2f} B/report", "", "target 20")


SECTIONS: dict[str, Callable[[], None]] = {
    "sampling": sampling,
    "counting": counting_core,
    "estimation": estimation,
    "filter": filters.filter_step,
    "wire": wire_size,
}


def main() -> int:
    """Run the sections named on the command line, or all."""
    chosen = sys.argv[1:] or list(SECTIONS)
    if {"-h", "--help"} & set(chosen):
        print(__doc__)
        return 0
    if strange := [name for name in chosen if name not in SECTIONS]:
        print(
            f"{Path(__file__).name}: sections are {', '.join(SECTIONS)}, got {', '.join(strange)}",
            file=sys.stderr,
        )
        return 2
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, NumPy {np.__version__}, one process")
    for name in chosen:
        print(f"{name}:")
        SECTIONS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
