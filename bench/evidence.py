"""The runs that are too long for CI: each writes what it printed into docs/evaluation.md.

    make evidence                                           the names, with a sentence each
    make evidence NAME=understated                          run it; its block in the page is replaced
    make evidence NAME=understated ARGS="--cases 5000"      the same with other words
    make evidence NAME=coverage-file ARGS="adult.csv docs/examples/age.toml 1000"

A block says date, commit, machine, command and duration, so that a figure can be had again. A run that fails,
is skipped or prints nothing leaves the page as it was, and its exit status is the runner's.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evaluation.md"


@dataclass(frozen=True)
class Run:
    """A command that prints evidence: words for Python, a sentence for the list."""

    command: str
    sentence: str
    needs: str = ""
    """The words that ARGS must give, for what the repository does not hold."""
    markdown: bool = False
    """True where the output is Markdown already."""


RUNS = {
    "alerts": Run("bench/alerts.py", "how often alerts are false, and see forged reports", markdown=True),
    "bands": Run("bench/interval_bands.py", "how often bands of curves hold the truth", markdown=True),
    "boosting": Run("bench/papers/boosting.py", "the error of PB-GRR by boost_epsilon", "CSV [RUNS]", True),
    "busy": Run("bench/busy.py", "the integration tests five times beside eight busy processes"),
    "capture": Run("bench/capture.py", "lengths that an observer of encrypted uploads reads", markdown=True),
    "certificate": Run("bench/certificate.py", "floors beside a general convex solver", markdown=True),
    "chaos": Run("bench/chaos/chaos.py", "truth against counts while broker, Redis and workers are killed"),
    "collector": Run("bench/collector.py", "uploads beside an empty handler, delays from POST to page"),
    "composition": Run("bench/papers/composition.py", "a thousand laws composed, beside the exact value"),
    "conformance": Run("bench/conformance.py", "10,000 cases by two implementations", markdown=True),
    "coverage": Run("bench/interval_coverage.py", "how often intervals hold the truth", markdown=True),
    "coverage-large": Run("bench/interval_coverage.py --values 1000", "of 1,000 values", markdown=True),
    "coverage-numbers": Run("bench/interval_coverage.py", "of numbers, and K = 1,000", markdown=True),
    "coverage-file": Run("bench/file_coverage.py", "intervals that hold for a file", "CSV SURVEY [RUNS]"),
    "device-import": Run("bench/device_import.py", "importing the agent, before and now", markdown=True),
    "device-year": Run("bench/device_year.py", "a year of one device: time, ledger size, restarts"),
    "drills": Run("bench/drills.py", "backup, keys, disks, brokers and tokens of a cluster", markdown=True),
    "evaluate": Run("bench/evaluate.py", "a million simulated devices: time and memory", markdown=True),
    "faults": Run("bench/faults.py", "sixteen faults of six parts, and what a user saw", markdown=True),
    "filters": Run("bench/filters.py", "a step of the filter beside OpenDP's and dp_accounting's"),
    "first-answer": Run("bench/first_answer.py", "a device from its start to an answer", markdown=True),
    "floor": Run("bench/floor.py", "the pick beside the least error of any mechanism", markdown=True),
    "fuzz": Run("bench/fuzz.py", "every decoder fuzzed by coverage, from the golden files", markdown=True),
    "hostile": Run("bench/hostile_connections.py", "honest senders beside 10,000 hostile connections"),
    "hostile-memory": Run("bench/hostile_memory.py", "memory of a node under endless trailers and the like"),
    "install": Run("bench/install.py", "the wheel with each extra: packages, sizes, a walk with node"),
    "issuers": Run("bench/issuers.py", "forged reports with tokens, and without an issuer", markdown=True),
    "kafka": Run("bench/kafka.py", "counting from a broker into Redis beside the parts alone"),
    "lifetime": Run("bench/papers/lifetime.py", "how many surveys a lifetime budget holds", markdown=True),
    "longitudinal": Run("bench/longitudinal.py", "averaging and linkage attacks on agents", markdown=True),
    "long": Run("bench/long.py", "the tests that are too long for every run"),
    "looseness": Run("bench/papers/looseness.py", "bounds of several logistic answers beside losses found"),
    "machines": Run("bench/machines.py", "agent, collector and store beside models", markdown=True),
    "mechanisms": Run("bench/mechanisms.py", "exact squared errors of mechanisms for labels", markdown=True),
    "memory": Run("bench/memory.py", "the memory of an aggregator over 120 rounds"),
    "numeric": Run("bench/papers/numeric.py", "the variance of a number's mean, by mechanism", markdown=True),
    "overload": Run("bench/overload.py", "four times a slowed capacity, and who comes after it"),
    "overload-full": Run("bench/overload.py --full", "as much as the generator reaches"),
    "papers": Run("bench/papers/papers.py", "what the papers claim beside what is exact"),
    "peers": Run("bench/peers/peers.py speed", "other libraries beside this one: speed", markdown=True),
    "audit": Run("bench/peers/peers.py --audit", "what an audit finds, and what it passes", markdown=True),
    "peers-errors": Run("bench/peers/peers.py errors research", "the same: errors", markdown=True),
    "poisoning": Run("bench/poisoning.py", "what forged reports gain, by attack", markdown=True),
    "quantiles": Run("bench/quantiles.py", "trees: cost, distance, coverage, speed", markdown=True),
    "regression": Run("bench/papers/regression.py", "regressions about nine numbers until one is refused"),
    "scale": Run("bench/scale.py", "10^9 devices a day, from costs measured in the run", markdown=True),
    "screens": Run("bench/screens.py", "every page and state of the dashboard, photographed", markdown=True),
    "secured": Run("bench/secured.py", "a cluster that asks everybody, without each right", markdown=True),
    "speed": Run("bench/run.py", "speed and size of the parts that count, as ratios"),
    "tokens": Run("bench/tokens.py", "the price of one-time tokens", markdown=True),
    "understated": Run("bench/understated.py --cases 100000 --jobs 2", "losses beside an independent bound"),
    "views": Run("bench/views.py", "the error that every view takes off raw estimates", markdown=True),
    "watchers": Run("bench/watchers.py", "500 pages on one dashboard, streams and polls", markdown=True),
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
    lines = ["make evidence NAME=... writes what it measures into docs/evaluation.md:"]
    for name, run in RUNS.items():
        needs = f' (ARGS="{run.needs}")' if run.needs else ""
        lines.append(f"  {name:17}{run.sentence}{needs}")
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

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/evaluation.md")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (" with changes" if changed else "")


def without_paths(text: str, words: list[str]) -> str:
    """Return `text` with files of this machine by name only: the page is read elsewhere."""
    for word in words:
        if Path(word).is_absolute():
            text = text.replace(word, Path(word).name)
    return text.replace(f"{ROOT}/", "")


def block(name: str, words: list[str], output: str, *, now: datetime, spent_s: float, rev: str) -> str:
    """Return the marked block of a run, without the newline at its end."""
    command = without_paths(shlex.join(["python", *words]), words)
    output = without_paths(output, words)
    if "<!-- evidence" in output or "<!-- end of evidence" in output:
        raise EvidenceError("output must hold no marker of a block: nothing is written")
    body = output if RUNS[name].markdown else f"```text\n{output}\n```"
    system = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    return "\n".join(
        [
            f"<!-- evidence {name} -->",
            f"### {name}: {RUNS[name].sentence}",
            "",
            f"{now:%Y-%m-%d %H:%M} UTC, commit {rev}, {system}, {spent_s:.0f} s: `{command}`",
            "",
            body,
            f"<!-- end of evidence {name} -->",
        ]
    )


def replaced(page: str, name: str, new: str) -> str:
    """Return the page with the block of `name` replaced, or with a new one at its end.

    Raises:
        EvidenceError: If the page's markers of that name are not one pair in order.
    """
    first, last = f"<!-- evidence {name} -->", f"<!-- end of evidence {name} -->"
    marks = (page.count(first), page.count(last))
    if marks == (0, 0):
        return f"{page.rstrip()}\n\n{new}\n"
    if marks != (1, 1) or page.index(first) > page.index(last):
        raise EvidenceError(f"markers of {name} must be one pair in order, got {marks[0]} and {marks[1]}")
    head, _, rest = page.partition(first)
    return head + new + rest.partition(last)[2]


def write(name: str, extra: list[str], *, page: Path = PAGE) -> None:
    """Run `name` and write its block into `page`.

    Raises:
        EvidenceError: If there is nothing to write; the page is as it was.
    """
    if name not in RUNS:
        raise EvidenceError(f"NAME must be one of {', '.join(RUNS)}, got {name!r}", 2)
    if RUNS[name].needs and not extra:
        raise EvidenceError(f'{name} must be given ARGS="{RUNS[name].needs}", got none', 2)
    words = shlex.split(RUNS[name].command) + extra
    replaced(page.read_text(), name, "")  # a page that cannot be written into is told before hours of work
    rev, now, began = commit(), datetime.now(UTC), time.monotonic()
    output = output_of(words)
    new = block(name, words, output, now=now, spent_s=time.monotonic() - began, rev=rev)
    waiting = page.with_suffix(".new")
    waiting.write_text(replaced(page.read_text(), name, new))
    waiting.replace(page)


def main(words: list[str], *, page: Path = PAGE) -> int:
    """Print the list, or run one name; return the exit status."""
    if not words:
        print(listing())
        return 0
    try:
        write(words[0], words[1:], page=page)
    except EvidenceError as error:
        print(f"evidence: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
