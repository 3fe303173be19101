"""Run worlds from seeds, and tell what broke: `make simulate SEED=17`, `make simulate SEEDS=1000`.

One seed prints its story, a line an event, and the trace's hash. Many print what failed, and the pace. A
seed's trace is the same on one Python each time; another version of asyncio takes other turns, and must come
to the same verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import time
from collections.abc import Iterator

from invariants import violations
from mutants import MUTANTS
from node_world import NodeWorld
from shrink import off_the_ordinary, shrunk
from world import Seen, world


@contextlib.contextmanager
def _with(mutant: str | None) -> Iterator[None]:
    if mutant is None:
        yield
        return
    with MUTANTS[mutant]():
        yield


def run(
    seed: int, *, tape: list[int] | None = None, mutant: str | None = None
) -> tuple[list[str], Seen, list[int]]:
    """Return what does not hold of a world, what was seen of it, and its decisions."""
    with _with(mutant), world(NodeWorld, seed, tape=tape) as made:
        seen = made.run()
        return violations(made, seen), seen, made.tape.made


def shortest(seed: int, *, mutant: str | None = None) -> list[int]:
    """Return the shrunk tape of a seed that fails."""
    found, _, tape = run(seed, mutant=mutant)
    kinds = {each.split()[0] for each in found}

    def fails(tried: list[int]) -> bool:
        return bool(kinds & {each.split()[0] for each in run(seed, tape=tried, mutant=mutant)[0]})

    return shrunk(tape, fails)


def main(words: list[str] | None = None) -> int:
    """Return 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="one world: its story, and where it fails a shorter one")
    parser.add_argument("--seeds", type=int, default=100, help="how many worlds (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="with a mistake in the product")
    options = parser.parse_args(words)
    logging.disable(logging.WARNING)
    if options.seed is not None:
        found, seen, tape = run(options.seed, mutant=options.mutant)
        if found:
            tape = shortest(options.seed, mutant=options.mutant)
            found, seen, _ = run(options.seed, tape=tape, mutant=options.mutant)
            print(f"{off_the_ordinary(tape)} decisions off the ordinary are left")
        print(*seen.story, sep="\n")
        print(*found, f"trace {seen.trace.hexdigest()[:32]}", sep="\n")
        return int(bool(found))
    began, failed = time.process_time(), 0
    for seed in range(options.first, options.first + options.seeds):
        found, _, _ = run(seed, mutant=options.mutant)
        for each in found:
            print(f"seed {seed}: {each}")
        failed += bool(found)
        if failed and options.mutant:
            break
    many = seed + 1 - options.first
    pace = 60.0 * many / (time.process_time() - began)
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"{failed} of {many} worlds failed; {pace:.0f} a minute of one core, Python {python}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
