"""Errors of every library's estimates, from reports that its own client drew.

Every cell draws from a sample of the population's devices, as many as the peer manages in the time that it
gets, and compares with the shares of that very sample: the error of the randomisation alone, the root mean
square over all values (or categories) and repetitions. Ours is exact for as many devices. Where a library
gives nothing but estimates that are cut at 0 and scaled, ours are drawn,
too, and seen by the view for that, empirical Bayes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from libraries import GRR, HASH, PEERS, SUBSET, Entry
from numpy.typing import NDArray
from populations import Population, populations

from hubbub import mechanisms
from hubbub.channels import Channel
from hubbub.estimation import estimator_for
from hubbub_authoring.mechanisms.orbits import orbits

REPEATS, SECONDS, SIGMAS = 4, 0.1, 3.0
NOTHING = 1e-6
Errors = tuple[float, float]


def over(theirs: float, ours: float) -> str:
    """Return a ratio, or that ours is nothing at all."""
    return f"{theirs / ours:.2f}" if ours > NOTHING else "ours is 0"


def errors(found: NDArray[np.float64], truth: NDArray[np.float64], population: Population) -> Errors:
    """Return the mean squared errors of values and categories."""
    off = found - truth
    together = np.bincount(population.category_of, weights=off)
    return float(np.mean(off**2)), float(np.mean(together**2))


def devices_for(entry: Entry, population: Population, epsilon: float) -> int:
    """Return how many devices a cell may have, so that a repetition takes the time that it gets."""
    client, server = entry.build(population.k, epsilon)
    few = population.values[:40].tolist()
    server([client(value) for value in few])  # compiles what is compiled at first use
    start = time.process_time()
    server([client(value) for value in few])
    each = max((time.process_time() - start) / len(few), 1e-7)
    return int(min(max(SECONDS / each, 100), len(population.values)))


def drawn(client: Any, server: Any, population: Population, devices: int, *, ours: bool) -> Errors:
    """Return root mean squared errors over samples of so many devices."""
    generator = np.random.default_rng(7)
    squares = []
    for _ in range(REPEATS):
        values = population.some(devices, generator)
        truth = np.bincount(values, minlength=population.k) / devices
        reports: Any = client(values) if ours else [client(value) for value in values.tolist()]
        found = np.asarray(server(reports), dtype=np.float64)[: population.k]
        squares.append(errors(found, truth, population))
    value, category = np.sqrt(np.mean(squares, axis=0)).tolist()
    return value, category


@cache
def channel(mechanism: str, k: int, sizes: tuple[int, ...], epsilon: float) -> Channel:
    """Return one of ours."""
    if mechanism == "orbits":
        return orbits(sizes, epsilon=epsilon)
    build = {GRR: mechanisms.grr, SUBSET: mechanisms.subset_selection, HASH: mechanisms.local_hashing}
    return build[mechanism](k, epsilon=epsilon)


def expected(mechanism: str, population: Population, epsilon: float, devices: int) -> Errors:
    """Return exact root mean squared errors of one of ours."""
    found = channel(mechanism, population.k, population.sizes, epsilon)
    shares = np.bincount(population.values, minlength=found.inputs) / len(population.values)
    groups = None if mechanism == "orbits" else population.category_of
    estimate = estimator_for(found, category_of=groups).expected_estimate(shares, devices)
    m = len(population.sizes)
    value = math.sqrt(np.mean(estimate.value_errors[: population.k] ** 2))
    return value, math.sqrt(np.mean(estimate.category_errors[:m] ** 2))


def of_ours(population: Population, epsilon: float, devices: int, *, biased: bool) -> tuple[str, Errors]:
    """Return our mechanism that is best for values, its value error, and the category error of orbits.

    Where a report of orbits would take more than 1,024 bytes the category error is of the first one, too.
    """
    names = [name for name in (GRR, SUBSET, HASH) if population.k <= 1_000 or name != SUBSET]
    known = {name: expected(name, population, epsilon, devices) for name in names}
    best = min(known, key=lambda name: known[name][0])
    both = "orbits" if population.k <= 1_000 else best
    if not biased:
        return best, (known[best][0], expected(both, population, epsilon, devices)[1])
    found = {}
    for name in {best, both}:
        of = channel(name, population.k, population.sizes, epsilon)
        fitted = estimator_for(of, category_of=None if name == "orbits" else population.category_of)

        def server(reports: Any, of: Any = of, fitted: Any = fitted) -> Any:
            return fitted(of.tally(reports), len(reports)).empirical_bayes().values

        found[name] = drawn(of.perturb, server, population, devices, ours=True)
    return best, (found[best][0], found[both][1])


def section(
    adult: Path | None,
    epsilons: tuple[float, ...],
    table: Callable[[list[str], list[list[str]]], None],
    three: Callable[[float], str],
) -> None:
    """Print a table per population, and every cell where a peer has the smaller error."""
    ahead: list[str] = []
    for population in populations(adult):
        rows: list[list[str]] = []
        for entry in PEERS:
            if population.k > entry.most:
                continue
            cells = [entry.library, entry.mechanism + (", cut" if entry.biased else "")]
            for epsilon in epsilons:
                devices = devices_for(entry, population, epsilon)
                client, server = entry.build(population.k, epsilon)
                theirs = drawn(client, server, population, devices, ours=False)
                best, (value, category) = of_ours(population, epsilon, devices, biased=entry.biased)
                cells.append(
                    f"{100 * theirs[0]:.3g} / {100 * theirs[1]:.3g} ({devices:,}): "
                    f"{over(theirs[0], value)} / {over(theirs[1], category)}"
                )
                cells_of = population.k, len(population.sizes)
                for i, what in enumerate(("value", "category")):
                    ratio = theirs[i] / max((value, category)[i], NOTHING)
                    if ratio < 1.0 - SIGMAS / math.sqrt(2 * REPEATS * cells_of[i]):
                        ahead.append(
                            f"{population.name}, epsilon {epsilon:g}, {what}: {entry.library}, "
                            f"{entry.mechanism}, {ratio:.2f} of ours ({best} for values)"
                        )
            rows.append(cells)
        print(f"**{population.name}**\n", flush=True)
        table(["library", "mechanism", *(f"epsilon {e:g}" for e in epsilons)], rows)
    print("A cell: value / category error in points (devices): both over ours, from as many devices.\n")
    print(
        f"A peer has less of an error than ours, by {SIGMAS:g} standard errors of its own, in "
        + (f"{len(ahead)} cells:\n" if ahead else "no cell.")
    )
    for line in ahead:
        print(f"- {line}")
    print()
