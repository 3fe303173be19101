"""Projective geometry response, by formula: no package brings its clients.

Feldman, Nelson, Nguyen and Talwar (ICML 2022) publish C++ (minilek/private_frequency_oracles), which nothing
on a package registry builds. Its error follows from the design: over the field of q elements, with t
dimensions, there are v = (q^t - 1)/(q - 1) points, s = (q^(t-1) - 1)/(q - 1) of them are in a set and
c = (q^(t-2) - 1)/(q - 1) in two; the sets of a value are e^epsilon times as likely as others. A report
supports its own value with p = e^epsilon s / (e^epsilon s + v - s), any other with
r = (e^epsilon c + s - c) / (e^epsilon s + v - s). The best prime power q is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hubbub import mechanisms
from hubbub.channels import Channel
from hubbub.estimation import estimator_for

LARGEST = 1_024
SIZES = (91, 1_000, 41_270)


def prime_powers() -> list[int]:
    """Return all prime powers up to the largest that is tried."""
    primes = [n for n in range(2, LARGEST) if all(n % d for d in range(2, math.isqrt(n) + 1))]
    return sorted(p**e for p in primes for e in range(1, 11) if p**e <= LARGEST)


def projective(k: int, epsilon: float) -> tuple[float, int, int]:
    """Return n times the squared error of a value at even shares, q, and the bits of a report."""
    a, found = math.exp(epsilon), []
    for q in prime_powers():
        t = 2
        while (points := (q**t - 1) // (q - 1)) < k:
            t += 1
        size, common = (q ** (t - 1) - 1) // (q - 1), (q ** (t - 2) - 1) // (q - 1)
        whole = a * size + points - size
        p, r = a * size / whole, (a * common + size - common) / whole
        found.append((error(p, r, k), q, math.ceil(math.log2(points))))
    return min(found)


def error(p: float, r: float, k: int) -> float:
    """Return n times the squared error of a share 1/k, of reports that support with p and r."""
    return (r * (1 - r) + (p * (1 - p) - r * (1 - r)) / k) / (p - r) ** 2


def exact(channel: Channel, k: int) -> float:
    """Return the same of one of ours."""
    estimate = estimator_for(channel).expected_estimate(np.full(k, 1 / k), 1)
    return float(np.mean(estimate.value_errors**2))


def section(
    epsilons: tuple[float, ...],
    table: Callable[[list[str], list[list[str]]], None],
    three: Callable[[float], str],
) -> None:
    """Print its errors and bytes beside ours."""
    rows = []
    for k in SIZES:
        for epsilon in epsilons:
            theirs, q, bits = projective(k, epsilon)
            hashed = mechanisms.local_hashing(k, epsilon=epsilon)
            chosen = mechanisms.subset_selection(k, epsilon=epsilon)
            rows.append(
                [
                    f"{k:,}",
                    f"{epsilon:g}",
                    f"{three(theirs)} (q = {q}), {bits / 8:.3g}",
                    f"{three(exact(hashed, k))}, {math.log2(hashed.outputs) / 8:.3g}: "
                    f"{theirs / exact(hashed, k):.4f}",
                    f"{three(exact(chosen, k))}, {math.ceil(k / 8):,}: {theirs / exact(chosen, k):.4f}",
                ]
            )
    table(["K", "epsilon", "projective geometry", "our local hashing", "our subset selection"], rows)
    print("n times the squared error of a value at even shares, bytes of a report; its error over ours.\n")
    print("Modular subset selection: no package and no stored source of it was found.\n")
