"""Run worlds from seeds, and tell what broke: `make simulate SEED=17`, `make simulate SEEDS=1000`.

One seed prints its story, a line an event, and the trace's hash. Many print what failed, and the pace. A
seed's trace is the same on one Python each time; another version of asyncio takes other turns, and must come
to the same verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))

from cluster_world import ClusterWorld
from invariants import violations
from mutants import MUTANTS, UNSEEN
from node_world import NodeWorld
from shrink import off_the_ordinary, shrunk
from world import Seen, World, world

T = TypeVar("T")
R = TypeVar("R")

WORLDS: Final[dict[str, type[World]]] = {"node": NodeWorld, "cluster": ClusterWorld}

TRACED: Final = {"node": 150, "cluster": 50}
"""Worlds of each kind whose traces evidence compares."""
CLUSTERS: Final = 4
"""Worlds of nodes for one of a cluster."""
YEAR: Final[dict[str, Any]] = {"rounds": 365, "every": "1d", "devices": 12, "phones": 0, "pace": 10.0}


@contextlib.contextmanager
def _with(mutant: str | None) -> Iterator[None]:
    if mutant is None:
        yield
        return
    with MUTANTS[mutant][1]():
        yield


def run(
    seed: int,
    *,
    tape: list[int] | None = None,
    mutant: str | None = None,
    kind: str | None = None,
    **size: Any,
) -> tuple[list[str], Seen, list[int]]:
    """Return what does not hold of a world, what was seen of it, and its decisions."""
    kind = kind or ("node" if mutant is None else MUTANTS[mutant][0])
    if kind not in WORLDS:
        kind, size = "cluster", {"disaster": kind, **size}
    with _with(mutant), world(WORLDS[kind], seed, tape=tape, **size) as made:
        seen = made.run()
        return violations(made, seen), seen, made.tape.made


def shortest(seed: int, **which: Any) -> list[int]:
    """Return the shrunk tape of a seed that fails."""
    found, _, tape = run(seed, **which)
    kinds = {each.split()[0] for each in found}

    def fails(tried: list[int]) -> bool:
        return bool(kinds & {each.split()[0] for each in run(seed, tape=tried, **which)[0]})

    return shrunk(tape, fails)


def main(words: list[str] | None = None) -> int:
    """Return 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="one world: its story, and where it fails a shorter one")
    parser.add_argument("--seeds", type=int, default=100, help="how many worlds (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--world", choices=sorted(WORLDS), help="which (default: node, or the mutant's)")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="with a mistake in the product")
    parser.add_argument("--evidence", action="store_true", help="worlds of both kinds, traces, a year")
    parser.add_argument("--mistakes", action="store_true", help="the first world that finds each mistake")
    parser.add_argument("--most", type=int, default=3_000, help="worlds a mistake (default: %(default)s)")
    parser.add_argument("--traces", choices=sorted(WORLDS), help="so many worlds: the hash of each trace")
    options = parser.parse_args(words)
    seeds = range(options.first, options.first + options.seeds)
    which = {"mutant": options.mutant, "kind": options.world}
    if options.traces is not None:
        for seed in seeds:
            print(run(seed, kind=options.traces)[1].trace.hexdigest())
        return 0
    if options.seed is not None:
        found, seen, tape = run(options.seed, **which)
        if found:
            tape = shortest(options.seed, **which)
            found, seen, _ = run(options.seed, tape=tape, **which)
            print(f"{off_the_ordinary(tape)} decisions off the ordinary are left")
        print(*seen.story, sep="\n")
        print(*found, f"trace {seen.trace.hexdigest()[:32]}", sep="\n")
        return int(bool(found))
    if options.evidence:
        return evidence(options.seeds, options.jobs)
    if options.mistakes:
        return mistakes(options.most, options.jobs)
    return many(seeds, which, options.jobs)


def spread(jobs: int, function: Callable[[T], R], things: Iterable[T]) -> Iterator[R]:
    """Yield what a function says of each thing, in order, from so many processes."""
    if jobs == 1:
        yield from map(function, things)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(function, things)
        finally:
            pool.shutdown(cancel_futures=True)


def _judged(which: dict[str, Any], seed: int) -> tuple[int, list[str], float]:
    """Return a seed, what does not hold of its world, and the processor time that it took."""
    began = time.process_time()
    try:
        found = run(seed, **which)[0]
    except Exception as error:
        found = [f"raised {error!r}"]
    return seed, found, time.process_time() - began


def many(seeds: range, which: dict[str, Any], jobs: int = 1) -> int:
    """Run worlds, say which failed and the pace, and return 1 if one did."""
    took_s, failed, done = 0.0, 0, 0
    for seed, found, seconds in spread(jobs, partial(_judged, which), seeds):
        done, took_s = done + 1, took_s + seconds
        for each in found:
            print(f"seed {seed}: {each}")
        failed += bool(found)
        if failed and which.get("mutant"):
            break
    pace = 60.0 * done / took_s
    python = ".".join(map(str, sys.version_info[:3]))
    print(
        f"{failed} of {done} worlds failed; {pace:.0f} a minute of one core, Python {python}",
        flush=True,
    )
    return int(failed > 0)


def _traced(worlds: dict[str, int], hash_seed: str) -> str:
    said = ""
    for kind, seeds in worlds.items():
        words = [sys.executable, __file__, "--traces", kind, "--seeds", str(seeds)]
        env = os.environ | {"PYTHONHASHSEED": hash_seed}
        said += subprocess.run(words, check=True, capture_output=True, text=True, env=env).stdout
    return said


def traces(worlds: dict[str, int], jobs: int = 1) -> set[str]:
    """Return what processes of several hash seeds say of the same worlds."""
    return set(spread(jobs, partial(_traced, worlds), ("0", "0", "1", "2")))


def evidence(seeds: int, jobs: int) -> int:
    """Say how many worlds fail, whether a seed is one trace, and what a year takes."""
    failed = 0
    for kind in WORLDS:
        print(f"{kind}: ", end="", flush=True)
        failed |= many(range(seeds if kind == "node" else seeds // CLUSTERS), {"kind": kind}, jobs)
    ways = len(traces(TRACED, jobs))
    print(
        f"{sum(TRACED.values())} worlds, under three hash seeds and one twice: {ways} trace(s) each",
        flush=True,
    )
    began = time.process_time()
    found, seen, _ = run(0, **YEAR)
    print(f"a year of daily rounds: {time.process_time() - began:.0f} s, {len(seen.sent)} reports, {found}")
    return int(failed or bool(found) or ways > 1)


def _first(most: int, mutant: str) -> int | None:
    seeds = range(most // 10 if mutant in UNSEEN else most)
    return next((seed for seed in seeds if run(seed, mutant=mutant)[0]), None)


def mistakes(most: int, jobs: int) -> int:
    """Say in which world each mistake is found first, and return 1 if one is not that should be."""
    missed = 0
    for mutant, first in zip(MUTANTS, spread(jobs, partial(_first, most), MUTANTS), strict=True):
        worlds = most // 10 if mutant in UNSEEN else most
        said = f"in none of {worlds}" if first is None else f"world {first}"
        print(f"{mutant}: {said}; {UNSEEN[mutant]}" if mutant in UNSEEN else f"{mutant}: {said}", flush=True)
        missed += first is None and mutant not in UNSEEN
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
