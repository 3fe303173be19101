"""A million simulated devices for every kind of mechanism: time, peak memory, and whether figures are right.

    python bench/evaluate.py [DEVICES]

Every case is a process of its own, `hubbub evaluate` with one mechanism, so that its peak memory is its own.
Seconds are those of the whole process, start, compiling and figures included; and of the processor: on a
machine that others use the second is what the case takes. The round is from values to estimates; the rest is
start, compiling, and the floor of the mean, which takes a second at 100 values and five at 1,000.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

MILLION = 1_000_000
EPSILON = "1"
CASES = (
    ("zipf:100", 5, ("grr", "pbgrr", "subset", "unary", "local_hashing", "levels", "orbits")),
    ("zipf:1000", 10, ("grr", "pbgrr", "subset", "unary", "local_hashing")),
)
FAULTS = "loss=0.1+duplicates=0.05+skew=0.02+fakes=0.01"


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def evaluated(*words: str) -> tuple[dict[str, Any], float, float]:
    began, used = time.perf_counter(), processor()
    command = [sys.executable, "-m", "hubbub_deploy", "evaluate", *words, "--json", "-"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout), time.perf_counter() - began, processor() - used


def main(devices: int) -> None:
    print(
        f"{devices:,} devices a case, epsilon {EPSILON}, one round, one process; targets for a million: below"
    )
    print("10 s for randomised response and its like, 60 s for sets, 1,000 MB of memory.")
    load = os.getloadavg()[0]
    print(f"{load:.0f} processes wanted the {os.cpu_count()} cores when this began.")
    print()
    print(
        "| data | mechanism | report | process | processor | of it the round | peak memory "
        "| error, measured/exact | covered |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    common = ("--epsilon", EPSILON, "--devices", str(devices), "--repeats", "1")
    runs = [(data, groups, name, "none") for data, groups, names in CASES for name in names]
    runs.append(("zipf:100", 5, "subset", FAULTS))
    for data, groups, name, faults in runs:
        asked = ("--data", data, "--categories", str(groups), "--mechanisms", name, "--faults", faults)
        found, seconds, used = evaluated(*asked, *common)
        case = found["cases"][-1]
        value = case["figures"]["value"]
        said = "" if faults == "none" else f", without faults and with {faults}"
        print(
            f"| {data} | {name}{said} | {case['report_bytes']} bytes | {seconds:.1f} s | {used:.1f} s | "
            f"{case['processor_seconds']:.1f} s | "
            f"{found['peak_bytes'] / 1e6:,.0f} MB | {value['ratio']:.3f} | {100 * value['coverage']:.1f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MILLION)
