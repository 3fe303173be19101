"""Speed, errors, filter and composition of other libraries and this one; `peers.py` starts it.

Times are of the processor, the least of several stretches, all libraries in turn, so that a machine whose
speed drifts slows all of them. Ratios above 1 are in favour of Hubbub.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accuracy
import filters
import numpy as np
import reckoning
from libraries import BINARY, GRR, OURS, PEERS
from populations import has_ages

PACKAGES = ("pure-ldp", "multi-freq-ldpy", "opendp", "diffprivlib", "dp-accounting", "numpy")
EPSILONS = (0.5, 1.0, 2.0, 5.0)
STRETCHES = 3


def quickest(jobs: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Return processor seconds of one thing of each job, which does so many; jobs take turns."""
    least = dict.fromkeys(jobs, float("inf"))
    for _ in range(STRETCHES):
        for name, (job, things) in jobs.items():
            start = time.process_time()
            job()
            least[name] = min(least[name], (time.process_time() - start) / things)
    return least


def table(heads: list[str], rows: list[list[str]]) -> None:
    """Print a table."""
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def three(number: float) -> str:
    """Return three digits, with commas."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def repeated(client: Callable[[Any], Any], values: list[Any]) -> Callable[[], object]:
    """Return a job: one report after the other."""

    def job() -> None:
        for value in values:
            client(value)

    return job


def once(server: Callable[[Any], object], reports: Any) -> Callable[[], object]:
    """Return a job: estimates of all reports."""
    return lambda: server(reports)


def stretch_of(job: Callable[[], object], *, seconds: float = 0.05, most: int = 20_000, of: int = 5) -> int:
    """Return how many things a stretch may hold, by a first run of `of` of them."""
    job()
    start = time.process_time()
    job()
    return int(min(max(seconds * of / max(time.process_time() - start, 1e-7), 20), most))


def clients(entries: tuple[Any, ...], k: int, epsilon: float) -> dict[str, dict[str, float]]:
    """Measure clients and servers of all entries at one K and epsilon; print a table; return seconds."""
    values = np.random.default_rng(1).integers(0, k, 200_000)
    alone: dict[str, tuple[Callable[[], object], int]] = {}
    servers: dict[str, tuple[Callable[[], object], int]] = {}
    entered = {f"{entry.library}, {entry.mechanism}": entry for entry in entries if k <= entry.most}
    memory = {}
    for name, entry in entered.items():
        client, server = entry.build(k, epsilon)
        some = values[:5].tolist()
        number = stretch_of(repeated(client, some))
        alone[name] = repeated(client, values[:number].tolist()), number
        if entry.library == "Hubbub":
            alone[f"{name}, in batches"] = (lambda client=client: client(values)), len(values)
            reports, number = client(values), len(values)
        else:
            most = len(values) if entry.serves else 500
            number = stretch_of(once(server, [client(v) for v in some]), seconds=0.2, most=most)
            reports = [client(value) for value in values[:number].tolist()]
        servers[name] = once(server, reports), number
        memory[name] = held(client, server, values[:300], batch=entry.library == "Hubbub")
    took, counted = quickest(alone), quickest(servers)
    rows = []
    for name, entry in entered.items():
        ours = f"Hubbub, {entry.mechanism}"
        batch = took.get(f"{ours}, in batches", took[f"Hubbub, {entries[0].mechanism}, in batches"])
        own, own_server = took.get(ours), counted.get(ours)
        mine = entry.library == "Hubbub"
        rows.append(
            [
                entry.library,
                entry.mechanism,
                "secure" if entry.secure else "insecure",
                f"{three(1e-3 / took[name])}" + (f" ({three(1e-3 / batch)})" if mine else ""),
                "" if mine or own is None else f"{three(took[name] / own)} ({three(took[name] / batch)})",
                three(1e6 * counted[name]) if entry.serves else "none",
                "" if mine or own_server is None or not entry.serves else three(counted[name] / own_server),
                f"{entry.bits(k, epsilon) / 8:.3g}",
                three(memory[name]),
                str(entry.lines),
            ]
        )
    print(f"**K = {k:,}, epsilon {epsilon:g}**\n")
    table(
        [
            "library",
            "mechanism",
            "generator",
            "reports, k/s",
            "ours over it, alone (in batches)",
            "server, us a report",
            "over ours",
            "bytes",
            "memory, bytes a report",
            "lines",
        ],
        rows,
    )
    said = []
    for name, entry in entered.items():
        own = took.get(f"Hubbub, {entry.mechanism}", math.inf)
        if entry.library != "Hubbub" and took[name] < own < math.inf:
            how = "predictable generator" if not entry.secure else "secure generator"
            said.append(f"{name} ({own / took[name]:.1f} times, {how})")
    print(f"Ahead of ours, one report at a time: {'; '.join(said) or 'none'}. In batches: none has any.\n")
    return {name: {"client": took[name], "server": counted[name]} for name in entered} | {
        name: {"client": took[name]} for name in took if name.endswith("in batches")
    }


def held(client: Callable[[Any], Any], server: Callable[[Any], object], values: Any, *, batch: bool) -> float:
    """Return the most bytes that reports and their estimates held, by report."""
    tracemalloc.start()
    reports = client(values) if batch else [client(value) for value in values.tolist()]
    server(reports)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / len(values)


def target(what: str, ratio: float, least: float) -> str:
    """Return a line of a target."""
    return f"- {what}: {three(ratio)} times, target {least:,.0f}: {'met' if ratio >= least else 'MISSED'}"


def client_section(options: argparse.Namespace) -> None:
    """Print clients and servers, and the targets of randomised response."""
    for k in (91, 1_000):
        took = clients((*OURS, *PEERS), k, 1.0)
        batch = took[f"Hubbub, {GRR}, in batches"]["client"]
        insecure = [took[f"{name}, {GRR}"] for name in ("pure-ldp", "multi-freq-ldpy")]
        secure = [took[f"{name}, {GRR}"] for name in ("OpenDP", "diffprivlib")]
        least = min(row["server"] for row in insecure)  # the others have none
        print(f"Randomised response at K = {k:,}, in batches as a fleet or a test draws them:\n")
        print(
            target(
                "secure client over the fastest insecure peer", min(r["client"] for r in insecure) / batch, 20
            )
        )
        print(
            target(
                "secure client over the fastest secure peer", min(r["client"] for r in secure) / batch, 1_000
            )
        )
        print(target("server over the fastest peer's", least / took[f"Hubbub, {GRR}"]["server"], 20))
        print()


def binary_section(options: argparse.Namespace) -> None:
    """Print two values: diffprivlib has one mechanism that is meant for a person's own answer."""
    took = clients(BINARY, 2, 1.0)
    batch = took["Hubbub, binary, in batches"]["client"]
    fastest = {
        kind: min(took[f"{name}, binary"]["client"] for name in names) for kind, names in KINDS.items()
    }
    print(target("secure client in batches over the fastest insecure peer", fastest["insecure"] / batch, 20))
    print(target("secure client in batches over the fastest secure peer", fastest["secure"] / batch, 1_000))
    print()


KINDS = {"insecure": ("pure-ldp", "multi-freq-ldpy"), "secure": ("OpenDP", "diffprivlib")}


def errors_section(options: argparse.Namespace) -> None:
    """Print errors of values and categories, for every population and epsilon."""
    accuracy.section(options.adult, EPSILONS, table, three)


def filter_section(options: argparse.Namespace) -> None:
    """Print the cost of a step of the filter."""
    k, past = 1_000, 1_000
    steps = {
        "Hubbub": filters.ours(k, past, draws=True),
        "OpenDP": filters.opendp_filter(k, past),
        "dp-accounting": filters.accountant(k, past),
    }
    took = filters.quickest(steps, lengths={"Hubbub": filters.LONG})
    gives = {
        "Hubbub": "decides, draws, and gives back what an answer did not cost",
        "OpenDP": "decides and draws; adds epsilons, whatever was answered",
        "dp-accounting": "an account of known mechanisms; decides nothing, draws nothing, has a delta",
    }
    table(
        ["library", "us a step", "over ours", "what it does"],
        [[name, three(1e6 * s), three(s / took["Hubbub"]), gives[name]] for name, s in took.items()],
    )
    print(f"K = {k:,}, epsilon {filters.EPSILON:g} a query, {past:,} answers before it.\n")


def composition_section(options: argparse.Namespace) -> None:
    """Print the epsilon of a thousand releases, each of another scale."""
    reckoning.section(table, three)


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "clients": client_section,
    "binary": binary_section,
    "errors": errors_section,
    "filter": filter_section,
    "composition": composition_section,
}
TITLES = {
    "clients": "Clients and servers",
    "binary": "Two values",
    "errors": "Errors",
    "filter": "A step of the privacy filter",
    "composition": "Composition",
}


def main(arguments: list[str]) -> int:
    """Print the sections named on the command line, or all."""
    parser = argparse.ArgumentParser(description="other libraries beside this one")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--adult", type=Path, help="a file with a column `age`")
    options = parser.parse_args(arguments)
    speed = [name for name in SECTIONS if name != "errors"]
    named = [each for name in options.sections for each in (speed if name == "speed" else [name])]
    sections = named or list(SECTIONS)
    if strange := set(sections) - set(SECTIONS):
        parser.error(f"sections must be among {', '.join(SECTIONS)}, got {', '.join(sorted(strange))}")
    if options.adult is not None and not has_ages(options.adult):
        parser.error(f"--adult must be a CSV file with a column age, got {options.adult}")
    warnings.simplefilter("ignore")  # theirs, about deprecated names
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{versions}. Load of the machine when it began: {os.getloadavg()[0]:.1f}.\n")
    for name in sections:
        print(f"#### {TITLES[name]}\n", flush=True)
        SECTIONS[name](options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
