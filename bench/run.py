"""Speed and size of the parts that count, as ratios measured in one run.

    make bench            every section
    make bench ARGS=wire  one section: sampling, sets, counting, estimation, filter, wire

Each figure is the best of several repetitions, the peer's repetitions interleaved with ours, so that a
machine whose speed drifts slows both.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filters
import msgpack
import numpy as np
from counting_alone import count_only
from harness import best, integers, line, survey_text

import hubbub
from hubbub.channels import Channel, SetChannel
from hubbub.estimation import Estimate, InverseEstimator, estimator_for
from hubbub.mechanisms import set_selection
from hubbub.mechanisms.orbits.short import compiled
from hubbub.mechanisms.tree import tree
from hubbub.wire import record as records
from hubbub.wire import report as wire
from hubbub_aggregator.counting import counting
from hubbub_authoring import mechanisms
from hubbub_authoring.mechanisms.orbits import orbits

SURVEY = survey_text("bench", integers(10, 99), epsilon=2.0, attribute="age")


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


def sets() -> None:
    """Measure secure reports that are sets, in batches and one at a time, and their bytes."""
    channels: dict[str, Channel] = {}
    for inputs in (91, 1000):
        many = f", K = {inputs:,}"
        channels[f"subset selection{many}"] = mechanisms.subset_selection(inputs, epsilon=1.0)
        channels[f"unary encoding{many}"] = mechanisms.unary(inputs, epsilon=1.0)
        channels[f"tree of 2{many}"] = tree(inputs, epsilon=1.0)
    channels["orbits, 9 categories of 10, epsilon 1"] = orbits([10] * 9, epsilon=1.0)
    for epsilon in (1.0, 4.0):
        channels[f"orbits, 10 of 100, epsilon {epsilon:g}"] = orbits([100] * 10, epsilon=epsilon)
    for name, channel in channels.items():
        values = np.random.default_rng(1).integers(0, channel.inputs, 40_000)

        def many_times(channel: Channel = channel, values: np.ndarray = values) -> object:
            return channel.perturb(values)

        def alone(channel: Channel = channel, values: np.ndarray = values) -> None:
            for value in values[:500].tolist():
                channel.perturb(value)

        batch, one = best(many_times, alone, repeats=5, clock=time.process_time)
        width = channel.width
        line(
            name,
            f"{values.size / batch / 1e6:.2f} M/s",
            f"{batch / values.size * 1e6:.2f} us, alone {one / 500 * 1e6:.1f} us",
            f"{width} bytes",
        )
    items = set_selection(200, most=8, epsilon=1.0)
    ranks = np.random.default_rng(1).random((10_000, 200)).argsort(axis=1)
    held = np.packbits(ranks < 6, axis=1, bitorder="little")
    (batch,) = best(lambda: items.perturb(held), repeats=5, clock=time.process_time)
    line("any of 200 items, at most 8 count", "", f"{batch / len(held) * 1e6:.2f} us", f"{items.width} bytes")


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
            return count_only(survey, payloads)

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
        boosted = mechanisms.pbgrr(sizes, epsilon=4.0, boost_epsilon=2.0)
        estimator = InverseEstimator(boosted, category_of=np.repeat(np.arange(len(sizes)), sizes))
        counts = rng.multinomial(1_000_000, np.full(boosted.outputs, 1 / boosted.outputs))

        def estimate(estimator: InverseEstimator = estimator, counts: np.ndarray = counts) -> object:
            found = estimator(counts, 1_000_000)
            return found.values, found.value_errors, found.categories, found.category_errors

        (seconds,) = best(estimate)
        line(f"estimate and errors by PB-GRR, K = {inputs:,}", f"{seconds * 1e3:.3f} ms", "", target)
    big: dict[str, Channel] = {
        "orbits, 1,000 categories of 100": two_orbits(1000, 100, epsilon=1.0),
        "a tree of 2": tree(99_999, epsilon=1.0),
        "a tree of 4": tree(99_999, epsilon=1.0, branching=4),
    }
    for name, channel in big.items():
        counts = (1e6 * channel.expected(np.full(channel.inputs, 1 / channel.inputs))).astype(np.int64)
        fitted, n = estimator_for(channel), of_reports(channel, counts)

        def fit(fitted: Callable[..., Estimate] = fitted, counts: np.ndarray = counts, n: int = n) -> object:
            found = fitted(counts, n)
            return found.values, found.value_errors, found.categories, found.category_errors

        (seconds,) = best(fit, clock=time.process_time)
        line(
            f"the same by {name}, K = 100,000",
            f"{seconds * 1e3:.1f} ms",
            "",
            "target 10 ms",
        )


def of_reports(channel: Channel, counts: np.ndarray) -> int:
    """Return how many reports the counts of a tree or of orbits are of."""
    assert isinstance(channel, SetChannel)
    return round(sum(size for size, _ in channel.split(counts, 0.0)))


def two_orbits(categories: int, size: int, *, epsilon: float) -> Channel:
    """Return a channel of sets of a quarter of the values: spread, and together with the missing input."""
    a, values = math.exp(epsilon), categories * size
    held = values // 4
    rows = np.array([[1 + (a - 1) * held / values] * 2, [1.0, a]])
    shares = np.linalg.solve(rows, [1.0, 1.0]) * rows[0]
    spread = [held // categories] * categories
    clustered = [size] * (held // size) + [0] * (categories - held // size)
    mixture = [([spread], False, shares[0]), ([clustered], True, shares[1])]
    return compiled([size] * categories, mixture, epsilon=epsilon, missing=True)


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
    "sets": sets,
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
