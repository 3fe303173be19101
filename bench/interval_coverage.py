"""The coverage of a release's intervals, for every mechanism that a survey file can name.

    python bench/interval_coverage.py                          all cases, by two processes
    python bench/interval_coverage.py --only 'orbits;tree'      some mechanisms
    python bench/interval_coverage.py --values 1000 --only 'tree;tree, oracles grr'
    python bench/interval_coverage.py --part 1/4 --save a.jsonl    a quarter of the cases, to be merged later
    python bench/interval_coverage.py --merge a.jsonl b.jsonl ...  the table of what parts saved

Every case fixes the devices' inputs, perturbs them again and again through the channel itself, and asks how
often the intervals hold the truth of these devices: each value and category, all at once, the mean of the
numbers, and their change to a later round (of fresh answers, or with half of the devices repeating theirs).
The intervals of a history are those of its rounds. Beside them stand the control, intervals by the
normal law, and the mean width over that of an oracle who knows every cell's variance, cut to 0
and 1 likewise.

One-sided upper bounds of coverage (Clopper and Pearson) have a false alarm probability of 1e-6 for all of
them together. They are taken of every cell, family and mean of every case, and, since rounds are independent,
of families, means, changes of means and four marked cells over all cases of a row at once, which is far
sharper. One below .94 is listed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from interval_cases import LABELS, NUMBERS, Case, cases, exists
from interval_rounds import Found, Hits, judge
from scipy.stats import beta

FALSE_ALARM = 1e-6
LEAST = 0.94
RUNS = 200
FEW_RUNS = 100
"""Rounds of numbers, and where there are several levels."""
LEAST_RUNS = 40
"""Rounds of 1,000 values."""

DEVICES = [50, 100, 500, 5000]
EPSILONS = [0.5, 1.0, 2.0, 4.0]
LARGE = 1000
DIAGONAL = [(50, 0.5), (100, 1.0), (500, 2.0), (5000, 4.0)]
"""Devices and epsilons at 1,000 values, where every round takes long."""

KINDS = ("values", "categories")
CHANGES = ("change ", "memoised change ")


@dataclass(frozen=True)
class Tally:
    """The hits of one quantity in one case.

    Attributes:
        rounds: Rounds.
        mean: Mean coverage over cells.
        worst: Hits of the worst cell.
        together: Rounds in which all hold at once.
        marked: Hits of the first, third, middle and last cell.
    """

    rounds: int
    mean: float
    worst: int
    together: int
    marked: list[int]

    @classmethod
    def of(cls, hits: Hits) -> Tally:
        """Return the tally of counted hits."""
        cells = len(hits.cells)
        marked = [int(hits.cells[i]) for i in sorted({0, min(2, cells - 1), cells // 2, cells - 1})]
        rounds = max(hits.rounds, 1)
        return cls(
            hits.rounds, float(hits.cells.mean()) / rounds, int(hits.cells.min()), hits.together, marked
        )


@dataclass(frozen=True)
class Result:
    """A case with its tallies by name, the number of its cells, widths and rounds without estimates."""

    case: Case
    tallies: dict[str, Tally]
    cells: int
    width: tuple[float, float]
    silent: int

    @classmethod
    def of(cls, case: Case, found: Found) -> Result:
        """Return the result of a judged case."""
        cells = sum(len(found.hits[kind].cells) for kind in KINDS)
        tallies = {name: Tally.of(hits) for name, hits in found.hits.items()}
        return cls(case, tallies, cells, found.width, found.silent)

    @classmethod
    def parse(cls, line: str) -> Result:
        """Return a result from a saved line."""
        found = json.loads(line)
        tallies = {name: Tally(**tally) for name, tally in found["tallies"].items()}
        width = (found["width"][0], found["width"][1])
        return cls(Case(**found["case"]), tallies, found["cells"], width, found["silent"])


def upper(hits: int, runs: int, family: int) -> float:
    """Return the one-sided upper bound of a coverage, at FALSE_ALARM over a family of tests."""
    return 1.0 if hits == runs else float(beta.isf(FALSE_ALARM / family, hits + 1, runs - hits))


def every_case(only: str) -> list[Case]:
    """Return the cases, those of a channel one after the other."""
    names = only.split(";") if only else [*LABELS, *NUMBERS]
    found = [
        case
        for case in cases(names, [5, 91], EPSILONS, DEVICES)
        if case.population != "spike" or case.epsilon == 1.0
    ]
    found += [
        case
        for case in cases(names, [LARGE], EPSILONS, DEVICES)
        if (case.devices, case.epsilon) in DIAGONAL and case.population != "spike"
    ]
    return found


def runs_of(case: Case) -> int:
    """Return the rounds of a case."""
    if case.values == LARGE:
        return LEAST_RUNS
    slow = case.mechanism in NUMBERS or case.mechanism.startswith("levels")
    return FEW_RUNS if slow else RUNS


def measured(case: Case) -> Result | None:
    """Return the result of a case; None where the mechanism has no channel of this size."""
    if not exists(case.mechanism, case.values, case.epsilon):
        return None
    return Result.of(case, judge(case, runs_of(case), seed=_seed(case)))


def _seed(case: Case) -> int:
    return abs(hash((case.values, case.devices, round(8 * case.epsilon), len(case.mechanism)))) % 2**32


def results(listed: list[Case], jobs: int) -> Iterator[Result]:
    """Yield the results of the cases, as they come; what they say of progress goes to stderr."""
    with multiprocessing.Pool(jobs) as pool:
        for done, found in enumerate(pool.imap(measured, listed, chunksize=4)):
            if done % 50 == 0:
                print(f"{done} of {len(listed)} cases", file=sys.stderr, flush=True)
            if found is not None:
                yield found


def tests_of(result: Result) -> Iterator[tuple[str, int, int]]:
    """Yield the tests of one case: what, hits and rounds of the worst."""
    for name in (*KINDS, "mean", *(f"{word}{kind}" for word in CHANGES for kind in (*KINDS, "mean"))):
        tally = result.tallies[name]
        yield name, tally.worst, tally.rounds
        if name in KINDS:
            yield f"{name} at once", tally.together, tally.rounds


def pooled(rows: list[Result]) -> Iterator[tuple[str, int, int]]:
    """Yield tests over all cases of a row: rounds are independent, whatever their coverage is."""
    for name in (*KINDS, *(f"{word}{kind}" for word in CHANGES for kind in KINDS)):
        tallies = [row.tallies[name] for row in rows]
        for place in range(len(tallies[0].marked)):
            hits = sum(tally.marked[place] for tally in tallies)
            yield f"{name}, cell {place + 1} of those marked", hits, sum(t.rounds for t in tallies)
        if name in KINDS:
            hits = sum(tally.together for tally in tallies)
            yield f"{name} at once", hits, sum(tally.rounds for tally in tallies)
    for name in ("mean", *(f"{word}mean" for word in CHANGES)):
        tallies = [row.tallies[name] for row in rows]
        yield name, sum(t.worst for t in tallies), sum(t.rounds for t in tallies)


def report(found: list[Result]) -> int:
    """Print the table and what lies below; return the exit status."""
    by_row: dict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in found:
        by_row[result.case.mechanism, result.case.values].append(result)
    family = sum(3 * result.cells + 8 for result in found) + 40 * len(by_row)
    below = []
    for result in found:
        for what, hits, runs in tests_of(result):
            if runs and upper(hits, runs, family) < LEAST:
                below.append(f"{_named(result.case)}: {what} {hits / runs:.3f} of {runs}")
    for (mechanism, values), rows in by_row.items():
        for what, hits, runs in pooled(rows):
            if runs and upper(hits, runs, family) < LEAST:
                below.append(f"{mechanism}, K {values}, all cases: {what} {hits / runs:.3f} of {runs}")
    print(
        "Coverage over all cases of a row; in brackets that of the control, normal intervals. *Cell* is the\n"
        "mean over cells, *least* the worst cell of any case, *at once* all cells together. *Change* is the\n"
        "least mean over cells of fresh and half memoised rounds. *Width* is that of values over an\n"
        "oracle's, at 50 and at 5,000 devices.\n"
    )
    heads = "mechanism,K,rounds,cell,least,at once,category,at once,mean,change,width"
    print("| " + " | ".join(heads.split(",")) + " |\n" + "|---" * len(heads.split(",")) + "|")
    for (mechanism, values), rows in by_row.items():
        print("| " + " | ".join([mechanism, f"{values:,}", *_columns(rows)]) + " |")
    controls = sum(
        upper(tally.worst, tally.rounds, family) < LEAST
        or upper(tally.together, tally.rounds, family) < LEAST
        for result in found
        for tally in (result.tallies["normal values"],)
        if tally.rounds
    )
    rounds = sorted(result.tallies["values"].rounds + result.silent for result in found)
    silent = sum(result.silent for result in found)
    planned = len(every_case(""))
    print(
        f"\n{len(found)} of {planned} cases, of {rounds[0]} to {rounds[-1]} rounds, a quarter compared\n"
        f"with a later one; {family:,} tests, false alarm {FALSE_ALARM:g} for all of them. Below\n"
        f"{LEAST}: {len(below)}. "
        f"Of the control's cases {controls} lie below."
    )
    print(f"{silent} rounds had no estimates, since nobody reported about a level that needs reports.")
    for line in below:
        print(f"- {line}")
    return 1 if below or not controls else 0


def _named(case: Case) -> str:
    return f"{case.mechanism}, K {case.values}, epsilon {case.epsilon:g}, n {case.devices}, {case.population}"


def _columns(rows: list[Result]) -> list[str]:
    rows = [row for row in rows if row.tallies["values"].rounds]
    total = sum(row.tallies["values"].rounds for row in rows)

    def share(name: str, part: str) -> float:
        tallies = [row.tallies[name] for row in rows]
        if part == "mean":
            return sum(t.mean * t.rounds for t in tallies) / total
        if part == "least":
            return min(t.worst / t.rounds for t in tallies)
        return sum(t.together for t in tallies) / total

    def both(name: str, part: str) -> str:
        return f"{share(name, part):.3f} ({share(f'normal {name}', part):.3f})"

    hidden = share("mean", "mean") == share("normal mean", "mean") == 1.0  # no interval misses nothing

    changes = [
        sum(row.tallies[f"{word}{kind}"].mean for row in rows) / len(rows)
        for word in CHANGES
        for kind in KINDS
    ]
    widths = []
    for devices in (DEVICES[0], DEVICES[-1]):
        some = [r.width[0] / r.width[1] for r in rows if r.case.devices == devices and r.width[1] > 0]
        widths.append(f"{sum(some) / len(some):.2f}" if some else "-")
    return [
        f"{total:,}",
        both("values", "mean"),
        both("values", "least"),
        both("values", "at once"),
        both("categories", "mean"),
        both("categories", "at once"),
        "-" if hidden else both("mean", "mean"),
        f"{min(changes):.3f}",
        ", ".join(widths),
    ]


def main() -> int:
    """Judge the cases, or read what parts saved; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mechanisms, with semicolons in between")
    parser.add_argument("--values", type=int, choices=(5, 91, LARGE), help="cases of so many values alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--part", default="1/1", help="i/n: every n-th channel, from the i-th on")
    parser.add_argument("--save", type=Path, help="add a line per case that is not there, and print no table")
    parser.add_argument("--merge", type=Path, nargs="+", help="read what parts saved")
    words = parser.parse_args()
    if words.merge:
        lines = [line for path in words.merge for line in path.read_text().splitlines()]
        every = [Result.parse(line) for line in lines]
        return report(_in_order(list({result.case: result for result in every}.values())))
    part, parts = (int(word) for word in words.part.split("/"))
    listed = [case for case in every_case(words.only) if words.values in (None, case.values)]
    channels = list(dict.fromkeys((case.mechanism, case.values, case.epsilon) for case in listed))
    mine = set(channels[part - 1 :: parts])
    listed = [case for case in listed if (case.mechanism, case.values, case.epsilon) in mine]
    if words.save is None:
        return report(list(results(listed, words.jobs)))
    known = words.save.read_text().splitlines() if words.save.exists() else []
    done = {Result.parse(line).case for line in known}
    listed = [case for case in listed if case not in done]
    with words.save.open("a") as out:
        for result in results(listed, words.jobs):
            print(json.dumps(asdict(result)), file=out, flush=True)
    return 0


def _in_order(found: list[Result]) -> list[Result]:
    names = [*LABELS, *NUMBERS]
    return sorted(found, key=lambda result: (result.case.values == LARGE, names.index(result.case.mechanism)))


if __name__ == "__main__":
    sys.exit(main())
