"""Local hashing of 2^17 and of 2^20 candidates: error beside its formula, time and memory of every step.

    python bench/hash_pool.py [DEVICES]

Each of DEVICES (2^18) holds one of 1,000 values. Every row is made in a process of its own, whose most memory
is stated. With p = e^eps/(e^eps + q - 1), r = (1 - p)/(q - 1) and o = r + c (p - r), the formula is
n x mse = o (1 - o)/(p - o)^2.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import time

import numpy as np

from hubbub.estimation import InverseEstimator
from hubbub.mechanisms import local_hashing
from hubbub.testing import seeded

CASES = [(2**17, 1.0), (2**20, 1.0), (2**20, 2.0), (2**20, 3.0)]
HEADER = (
    "| candidates | epsilon | buckets | symbols | draw, us a report | estimate, s | intervals, s | MB "
    "| n x mse | formula |\n|---|---|---|---|---|---|---|---|---|---|"
)


def formula(points: int, buckets: int, epsilon: float) -> float:
    """Return n x mse of a rare value."""
    held, rest = math.exp(epsilon) / (math.exp(epsilon) + buckets - 1), 1 / (math.exp(epsilon) + buckets - 1)
    other = rest + (points // buckets - 1) / (points - 1) * (held - rest)
    return other * (1 - other) / (held - other) ** 2


def row(inputs: int, epsilon: float, devices: int) -> str:
    """Return one measured row."""
    channel = local_hashing(inputs, epsilon=epsilon)
    category_of = np.append(np.zeros(inputs - 1, dtype=np.intp), 1)
    values = np.arange(devices) % 1000
    channel.perturb(values[:100])  # the directions are made once
    begun = time.perf_counter()
    symbols = channel.perturb(values, source=seeded(7))
    drawn = time.perf_counter() - begun
    counts = channel.tally(symbols)
    begun = time.perf_counter()
    estimate = InverseEstimator(channel, category_of=category_of)(counts, devices)
    estimated = time.perf_counter() - begun
    begun = time.perf_counter()
    estimate.simultaneous()
    spanned = time.perf_counter() - begun
    truth = np.bincount(values, minlength=inputs) / devices
    error = devices * float(np.mean((estimate.values - truth) ** 2))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    pool = channel.pool
    return (
        f"| {inputs:,} | {epsilon:g} | {pool.buckets} | {pool.symbols:,} | {1e6 * drawn / devices:.2f} "
        f"| {estimated:.2f} | {spanned:.2f} | {memory} | {error:.4f} "
        f"| {formula(pool.points, pool.buckets, channel.epsilon):.4f} |"
    )


def main(arguments: list[str]) -> int:
    """Print the table; a row by itself where its numbers are given."""
    if len(arguments) == 3:
        print(row(int(arguments[0]), float(arguments[1]), int(arguments[2])))
        return 0
    devices = arguments[0] if arguments else str(2**18)
    print(HEADER, flush=True)
    for inputs, epsilon in CASES:
        subprocess.run([sys.executable, __file__, str(inputs), str(epsilon), devices], check=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
