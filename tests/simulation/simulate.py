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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))

from cluster_world import ClusterWorld
from invariants import violations
from mutants import MUTANTS, UNSEEN
from node_world import NodeWorld
from shrink import off_the_ordinary, shrunk
from world import Seen, World, world

WORLDS: Final[dict[str, type[World]]] = {"node": NodeWorld, "cluster": ClusterWorld}

TRACED: Final = 100
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
    parser.add_argument("--world", choices=sorted(WORLDS), help="which (default: node, or the mutant's)")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="with a mistake in the product")
    parser.add_argument("--evidence", action="store_true", help="worlds of both kinds, every mistake, a year")
    parser.add_argument("--most", type=int, default=3_000, help="worlds a mistake (default: %(default)s)")
    parser.add_argument("--traces", type=int, help="so many worlds of each kind: the hash of each trace")
    options = parser.parse_args(words)
    if options.traces is not None:
        for kind in WORLDS:
            for seed in range(options.traces):
                print(run(seed, kind=kind)[1].trace.hexdigest())
        return 0
    which = {"mutant": options.mutant, "kind": options.world}
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
        return evidence(options.seeds, options.most)
    return many(range(options.first, options.first + options.seeds), which)


def many(seeds: range, which: dict[str, Any]) -> int:
    """Run worlds, say which failed and the pace, and return 1 if one did."""
    began, failed, done = time.process_time(), 0, 0
    for seed in seeds:
        done += 1
        found, _, _ = run(seed, **which)
        for each in found:
            print(f"seed {seed}: {each}")
        failed += bool(found)
        if failed and which.get("mutant"):
            break
    pace = 60.0 * done / (time.process_time() - began)
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"{failed} of {done} worlds failed; {pace:.0f} a minute of one core, Python {python}")
    return int(failed > 0)


def traces(worlds: int) -> set[str]:
    """Return what processes of several hash seeds say of the same worlds."""
    words = [sys.executable, __file__, "--traces", str(worlds)]
    return {
        subprocess.run(
            words, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "0", "1", "2")
    }


def evidence(seeds: int, most: int) -> int:
    """Say how many worlds fail, in which world each mistake is found first, and what a year takes."""
    failed = 0
    for kind in WORLDS:
        print(f"{kind}: ", end="")
        failed |= many(range(seeds if kind == "node" else seeds // 4), {"kind": kind})
    for mutant in MUTANTS:
        worlds = most // 10 if mutant in UNSEEN else most
        first = next((seed for seed in range(worlds) if run(seed, mutant=mutant)[0]), None)
        said = f"in none of {worlds}" if first is None else f"world {first}"
        print(f"{mutant}: {said}; {UNSEEN[mutant]}" if mutant in UNSEEN else f"{mutant}: {said}", flush=True)
    ways = len(traces(TRACED))
    print(f"{TRACED} worlds of each kind under three hash seeds, one of them twice: {ways} trace(s) each")
    began = time.process_time()
    found, seen, _ = run(0, **YEAR)
    print(f"a year of daily rounds: {time.process_time() - began:.0f} s, {len(seen.sent)} reports, {found}")
    return int(failed or bool(found) or ways > 1)


if __name__ == "__main__":
    sys.exit(main())
