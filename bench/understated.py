"""Random records and transcripts of every survey form: losses stated too low, if any, and how far too high.

    python bench/understated.py --cases 100000

The account's loss stands beside the largest log-ratio of two records that a search finds, from the surveys'
bytes and the answers alone (tests/harness/independent_bound.py). Printed are the losses that were
understated, and
stated less found, nats. What a sum over coordinates overstates by design is in it: surveys of several
numbers, scores of other defaults, rounding coins. A thousand cases take 6 s of one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))
from random_cases import Case, cases

CHUNK = 1_000
"""Cases of one seed."""


def chunk(task: tuple[int, int]) -> list[Case]:
    seed, count = task
    return list(cases(count, seed=seed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first thousand; the next ones follow")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    tasks = [
        (options.seed + number, min(CHUNK, options.cases - number * CHUNK))
        for number in range(-(-options.cases // CHUNK))
    ]
    began, over, forms, wrong = time.monotonic(), [], Counter(), 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for (seed, _), found in zip(tasks, pool.map(chunk, tasks), strict=True):
            for case in found:
                over.append(case.stated - case.found)
                forms.update(case.forms)
                if case.understated:
                    wrong += 1
                    print(f"understated: seed {seed}, {case}")
            spent_s = time.monotonic() - began
            print(f"{len(over)} cases in {spent_s:.0f} s, {wrong} understated", file=sys.stderr)
            if spent_s > 60 * options.minutes:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    print(f"cases       {len(over)}")
    print(f"understated {wrong}")
    print(f"overstated  median {np.median(over):.2e}, p99 {np.quantile(over, 0.99):.3f}, ", end="")
    print(f"largest {np.max(over):.3f} nats; by less than 1e-6 in {np.mean(np.array(over) < 1e-6):.1%}")
    print("answers     " + ", ".join(f"{kind} {count}" for kind, count in forms.most_common()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
