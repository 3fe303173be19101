"""The runs that are too long for CI: each keeps what it printed in evidence/NAME.json.

    make evidence                                           the names, with a sentence each
    make evidence NAME=understated                          run it; its file gets one run more
    make evidence NAME=understated ARGS="--cases 5000"      the same with other words
    make evidence NAME=show ARGS=understated                its last runs as Markdown

A run says date, commit, machine, command and duration. A file keeps the last
five, the newest last. A run that fails, is skipped or prints nothing leaves the file as it was, and its exit
status is the runner's.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "evidence"
KEPT = 5


@dataclass(frozen=True)
class Run:
    """A command that prints evidence: words for Python, a sentence for the list."""

    command: str
    sentence: str
    markdown: bool = False
    """True where the output is Markdown already."""


class Record(TypedDict):
    """A run that was made: what it printed, line by line, and how to have it again."""

    date: str
    commit: str
    machine: str
    seconds: int
    command: str
    markdown: bool
    output: list[str]


RUNS = {
    "alerts": Run("bench/alerts.py", "how often alerts are false, and see forged reports", markdown=True),
    "bands": Run("bench/interval_bands.py", "how often bands of curves hold the truth", markdown=True),
    "bundle": Run("bench/bundle.py", "every pair of a file's columns in one survey", markdown=True),
    "brokers": Run("bench/brokers.py", "Kafka 3.9 and 4 beside Redis and Valkey: one table", markdown=True),
    "busy": Run("bench/busy.py", "the integration tests five times beside eight busy processes"),
    "capture": Run("bench/capture.py", "lengths that an observer of encrypted uploads reads", markdown=True),
    "certificate": Run("bench/certificate.py", "floors beside a general convex solver", markdown=True),
    "chaos": Run("bench/chaos/chaos.py", "truth against counts while broker, Redis and workers are killed"),
    "collector": Run("bench/collector.py", "uploads beside an empty handler"),
    "conformance": Run("bench/conformance.py", "10,000 cases by two implementations", markdown=True),
    "coverage": Run("bench/interval_coverage.py", "how often intervals hold the truth", markdown=True),
    "coverage-large": Run("bench/interval_coverage.py --values 1000", "of 1,000 values", markdown=True),
    "counted": Run("bench/counted.py", "what devices find of their answers", markdown=True),
    "crowd-coverage": Run(
        "bench/crowd_coverage.py --part panel --part labels --part tables --part scores --part trees",
        "how often intervals hold a crowd", markdown=True),
    "crowd-curves": Run("bench/crowd_coverage.py --part curves --part bundles --rounds 1000",
        "the same of curves and bundles", markdown=True),
    "crowd-numbers": Run("bench/crowd_coverage.py --part numbers", "the same of numbers", markdown=True),
    "device-import": Run("bench/device_import.py", "importing the agent, before and now", markdown=True),
    "drills": Run("bench/drills.py", "backup, keys, disks, brokers and tokens of a cluster", markdown=True),
    "evaluate": Run("bench/evaluate.py", "a million simulated devices: time and memory", markdown=True),
    "extremes": Run("bench/interval_extremes.py", "all cells at once at large epsilon", markdown=True),
    "faults": Run("bench/faults.py", "sixteen faults of six parts, and what a user saw", markdown=True),
    "first-answer": Run("bench/first_answer.py", "a device from its start to an answer", markdown=True),
    "floor": Run("bench/floor.py", "the pick beside the least error of any mechanism", markdown=True),
    "fuzz": Run("bench/fuzz.py", "every decoder fuzzed by coverage, from the golden files", markdown=True),
    "hostile": Run("bench/hostile_connections.py", "honest senders beside 10,000 hostile connections"),
    "install": Run("bench/install.py", "the wheel with each extra: packages, sizes, a walk with node"),
    "issuers": Run("bench/issuers.py", "forged reports with tokens, and without an issuer", markdown=True),
    "kafka": Run("bench/kafka.py", "counting from a broker into Redis beside the parts alone"),
    "key-value": Run("bench/crowd_coverage.py --part key-value",
        "a number that some lack: how often intervals hold its mean", markdown=True),
    "longitudinal": Run("bench/longitudinal.py", "averaging and linkage attacks on agents", markdown=True),
    "long": Run("bench/long.py", "the tests that are too long for every run"),
    "looseness": Run("bench/papers/looseness.py", "bounds of several logistic answers beside losses found"),
    "mechanisms": Run("bench/mechanisms.py", "exact squared errors of mechanisms for labels", markdown=True),
    "not-built": Run("bench/not_built.py", "ways over time that are not built, in numbers", markdown=True),
    "numeric": Run("bench/papers/numeric.py", "the variance of a number's mean, by mechanism", markdown=True),
    "overload": Run("bench/overload.py", "four times a slowed capacity, and who comes after it"),
    "page-devices": Run(
        "bench/long.py tests/integration/test_page_devices.py", "a browser killed 200 times, 1,000 pages"
    ),
    "papers": Run("bench/papers/papers.py --table", "the papers' claims beside what is exact", markdown=True),
    "peers": Run("bench/peers/peers.py speed", "other libraries beside this one: speed", markdown=True),
    "audit": Run("bench/peers/peers.py --audit", "what an audit finds, and what it passes", markdown=True),
    "peers-errors": Run("bench/peers/peers.py errors", "the same: errors", markdown=True),
    "poisoning": Run("bench/poisoning.py", "what forged reports gain, by attack", markdown=True),
    "quantiles": Run("bench/quantiles.py", "trees: cost, distance, coverage, speed", markdown=True),
    "regression": Run("bench/papers/regression.py", "regressions about nine numbers until one is refused"),
    "rotation": Run("bench/rotation.py", "the variance of rotating panels beside splitting", markdown=True),
    "scale": Run("bench/scale.py", "10^9 devices a day, from costs measured in the run", markdown=True),
    "screens": Run("bench/screens.py", "every page and state of the dashboard, photographed", markdown=True),
    "secured": Run("bench/secured.py", "a cluster that asks everybody, without each right", markdown=True),
    "mistakes": Run("tests/simulation/simulate.py --mistakes --jobs 2", "the first world that finds each"),
    "simulate": Run(
        "tests/simulation/simulate.py --evidence --seeds 8000 --jobs 2", "10,000 worlds, traces, a year"
    ),
    "speed": Run("bench/run.py", "speed and size of the parts that count, as ratios"),
    "scan": Run("bench/scan.py", "jumps and drifts that windows of rounds find", markdown=True),
    "still-crowds": Run("bench/still_crowds.py", "intervals and alarms of still crowds", markdown=True),
    "table-statistics": Run("bench/table_statistics.py", "statistics of tables: do they hold", markdown=True),
    "tokens": Run("bench/tokens.py", "the price of one-time tokens", markdown=True),
    "transition": Run("bench/transition.py", "who changed, by real agents with ledgers", markdown=True),
    "understated": Run("bench/understated.py --cases 100000 --jobs 2", "losses beside an independent bound"),
    "verify": Run("bench/verify.py", "rounds made again from their counts, and lies", markdown=True),
    "watchers": Run("bench/watchers.py", "500 pages on one dashboard, streams and polls", markdown=True),
    "watched-rounds": Run("bench/watched_rounds.py", "bands that hold at every look", markdown=True),
    "web-device": Run("bench/web_core.py", "the browser's core: size and speed", markdown=True),
    "year": Run("bench/year.py", "a year of surveys by both filters, and by adding epsilons", markdown=True),
}  # fmt: skip
"""One line a name."""


class EvidenceError(Exception):
    """A run whose output must not be written; `status` is the exit status to end with."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def listing() -> str:
    """Return the names with a sentence each."""
    lines = ["make evidence NAME=... keeps what it measures in evidence/:"]
    for name, run in RUNS.items():
        lines.append(f"  {name:17}{run.sentence}")
    return "\n".join(lines)


def output_of(words: list[str]) -> str:
    """Run Python with `words`, show its output as it comes, and return it.

    Raises:
        EvidenceError: If the command fails, skips itself (77) or prints nothing.
    """
    lines = []
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, *words]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise EvidenceError(
            f"exit status must be 0, got {process.returncode}: nothing is written",
            process.returncode if process.returncode > 0 else 1,
        )
    if not (output := "".join(lines).strip("\n")):
        raise EvidenceError("the run printed nothing: nothing is written")
    return output


def commit() -> str:
    """Return the short commit of the tree, and a word if the tree differs from it."""

    def git(*words: str) -> str:
        command = ["git", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!evidence")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (" with changes" if changed else "")


def without_paths(text: str, words: list[str]) -> str:
    """Return `text` with files of this machine by name only: it is read elsewhere."""
    for word in words:
        if Path(word).is_absolute():
            text = text.replace(word, Path(word).name)
    return text.replace(f"{ROOT}/", "")


def runs_of(name: str, *, folder: Path = FOLDER) -> list[Record]:
    """Return the runs that are kept under a name, the newest last; [] where there is none.

    Raises:
        EvidenceError: If the file is not one of such runs.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return []
    try:
        found: list[Record] = json.loads(path.read_text(encoding="utf-8"))
        if not all(each.keys() == Record.__annotations__.keys() for each in found):
            raise ValueError
    except (ValueError, AttributeError, TypeError):
        raise EvidenceError(f"{path.name} must be a list of runs with all their keys") from None
    return found


def markdown(name: str, runs: list[Record]) -> str:
    """Return the newest run in full, and when the ones before it were made."""
    newest = runs[-1]
    output = "\n".join(newest["output"])
    lines = [
        f"### {name}: {RUNS[name].sentence}",
        "",
        f"{newest['date']}, commit {newest['commit']}, {newest['machine']}, {newest['seconds']} s: "
        f"`{newest['command']}`",
        "",
        output if newest["markdown"] else f"```text\n{output}\n```",
    ]
    if len(runs) > 1:
        lines += ["", "| earlier runs | commit | machine | seconds |", "|---|---|---|---|"]
        lines += [
            f"| {each['date']} | {each['commit']} | {each['machine']} | {each['seconds']} |"
            for each in reversed(runs[:-1])
        ]
    return "\n".join(lines)


def write(name: str, extra: list[str], *, folder: Path = FOLDER) -> None:
    """Run `name` and keep what it printed.

    Raises:
        EvidenceError: If there is nothing to keep; the file is as it was.
    """
    if name not in RUNS:
        raise EvidenceError(f"NAME must be one of {', '.join(RUNS)}, got {name!r}", 2)
    words = shlex.split(RUNS[name].command) + extra
    runs_of(name, folder=folder)  # a file that cannot be added to is told before hours of work
    rev, now, began = commit(), datetime.now(UTC), time.monotonic()
    output = output_of(words)
    made: Record = {
        "date": f"{now:%Y-%m-%d %H:%M} UTC",
        "commit": rev,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}",
        "seconds": round(time.monotonic() - began),
        "command": without_paths(shlex.join(["python", *words]), words),
        "markdown": RUNS[name].markdown,
        "output": without_paths(output, words).split("\n"),
    }
    kept = [*runs_of(name, folder=folder), made][-KEPT:]
    folder.mkdir(exist_ok=True)
    waiting = folder / f"{name}.new"
    waiting.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    waiting.replace(folder / f"{name}.json")


def main(words: list[str], *, folder: Path = FOLDER) -> int:
    """Print the list, show or run one name; return the exit status."""
    if not words:
        print(listing())
        return 0
    try:
        if words[0] == "show":
            for name in words[1:] or sorted(path.stem for path in folder.glob("*.json")):
                runs = runs_of(name, folder=folder) if name in RUNS else []
                if not runs:
                    raise EvidenceError(f"{name} must have been run once, and was not", 2)
                print(markdown(name, runs), end="\n\n")
        else:
            write(words[0], words[1:], folder=folder)
    except EvidenceError as error:
        print(f"evidence: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
