"""Random rounds of every kind of channel, verified, and lies about them, named; the price of a large round.

    python bench/verify.py                   10,000 rounds, a thousand lies of each kind: an hour of one core
    python bench/verify.py --rounds 220 --lies 20

Every round is of a random survey by one of the mechanisms (tests/harness/random_surveys.py), with random
counts. A lie is one of tests/harness/lies.py about one of them. A lie about a part that `hubbub verify` names
as not checked is counted apart. The independent checkers, in Rust and in JavaScript, are asked the same where
rustc and node are at hand: they have to name each lie, or the parts that it is about as not checked. It fails
(exit status 1) where an honest round is not verified, a lie is missed, or verifying the large round takes
more than three times the processor time of making it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from harness import labels, survey_text

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "conformance"))
import release_checkers
import second_implementation
import web_device
from lies import LIES, Printed, printed, released, told
from random_surveys import MECHANISMS, attributes
from random_surveys import survey as random_survey
from release_cases import ReleaseCase

from hubbub import Survey
from hubbub_aggregator.release import verify

SIZES = (3, 30, 300, 5000, 10**6)
LARGE = 131_071
"""Labels of the large round: with missing, the most inputs that a channel has."""
REPORTS = 10**6
MOST = 3.0
BATCH = 400
"""Releases that a program is asked about at a time."""


def large() -> Survey:
    """Return a survey of the most labels, by randomised response."""
    domain = labels([f"{place:x}" for place in range(LARGE)])
    return Survey.parse(survey_text("large", domain, epsilon=8.0, kind="static", devices=10**6))


class Others:
    """The independent checkers that are at hand, and what they said."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.checkers: dict[str, release_checkers.Checker] = {}
        if second_implementation.RUSTC is not None:
            program = release_checkers.build(Path(self._folder.name), fast=True)
            self.checkers["Rust"] = partial(release_checkers.in_rust, program)
        if web_device.NODE is not None:
            self.checkers["JavaScript"] = release_checkers.in_javascript
        self.said: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []
        self._waiting: list[tuple[ReleaseCase, set[str]]] = []

    def ask(self, survey: Survey, lie: str, shown: Printed, honest: Printed) -> None:
        """Put a release among those to be asked about, many at once."""
        parts = (
            set()
            if not lie
            else changed(honest[0], shown[0]) | ({"counts"} if shown[1] != honest[1] else set())
        )
        self._waiting.append((ReleaseCase(survey, lie, *shown), parts))
        if len(self._waiting) >= BATCH:
            self.answer()

    def answer(self) -> None:
        """Ask about all that wait."""
        waiting, self._waiting = self._waiting, []
        for name, checker in self.checkers.items():
            results = checker([case.line for case, _ in waiting])
            for (case, parts), (words, unchecked) in zip(waiting, results, strict=True):
                if words.startswith("refused "):
                    word = "a form that it does not know"
                elif not case.lie or words != "same":
                    word = "right" if not case.lie else "named"
                    if not case.lie and words != "same":
                        self.wrong.append(f"in {name}, an honest {case.survey.channel.kind}: {words}")
                else:
                    word = "in a part said to be not checked"
                    if not all(release_checkers.parts_of(part) & set(unchecked) for part in parts):
                        self.wrong.append(f"in {name}, missed: {case.lie}, {case.survey.channel.kind}")
                self.said[name, word] += 1

    def tell(self) -> None:
        """Ask about the last ones, and print a table."""
        self.answer()
        self._folder.cleanup()
        print("\n| independent checker | answer | releases |\n|---|---|---|")
        for (name, word), many in sorted(self.said.items()):
            print(f"| {name} | {word} | {many:,} |")


def changed(honest: object, lied: object, path: str = "") -> set[str]:
    """Return the parts in which two releases differ."""
    if isinstance(honest, dict) and isinstance(lied, dict) and honest.keys() == lied.keys():
        return {
            each for key in honest for each in changed(honest[key], lied[key], f"{path}.{key}".lstrip("."))
        }
    if isinstance(honest, list) and isinstance(lied, list) and len(honest) == len(lied):
        return {part for pair in zip(honest, lied, strict=True) for part in changed(*pair, path)}
    return set() if honest == lied else {path}


def main(arguments: list[str]) -> int:
    """Print two tables; return 1 where a rule is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10_000, help="default: %(default)s")
    parser.add_argument("--lies", type=int, default=1_000, help="of each kind; default: %(default)s")
    options = parser.parse_args(arguments)
    chance, rng = random.Random(33), np.random.default_rng(33)  # noqa: S311 - cases
    rounds: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    named: Counter[str] = Counter()
    unseen: Counter[str] = Counter()
    wrong = []
    others = Others()
    while sum(rounds.values()) < options.rounds:
        mechanism = MECHANISMS[sum(rounds.values()) % len(MECHANISMS)]
        survey = random_survey(chance, attributes(chance), "s", mechanism)
        if survey is None:
            continue
        n, asked = chance.choice(SIZES), chance.random() < 0.5
        estimator = survey.estimator()
        honest = printed(survey, n, rng, asked=2 * n if asked else None)
        found = verify(survey, *honest, estimator)
        rounds[survey.channel.kind] += 1
        others.ask(survey, "", honest, honest)
        numbers.update(exact=found.exact, within=found.within, again=found.again)
        if found.differences:
            wrong.append(f"an honest round by {mechanism} of {n}: {found.differences[0]}")
        for lie in LIES:
            if named[lie] >= options.lies:
                continue
            lied = told(lie, honest, chance)
            if lied is None:
                continue
            answer = verify(survey, *lied, estimator)
            others.ask(survey, lie, lied, honest)
            if answer.differences:
                named[lie] += 1
            elif lie == "the mean's end" and any(part.startswith("mean.") for part in answer.unchecked):
                unseen[lie] += 1
            else:
                wrong.append(f"missed: {lie}, {mechanism} of {n}")
    print(f"{sum(rounds.values()):,} rounds verified, of {len(rounds)} kinds of channels: ", end="")
    print(", ".join(f"{kind} {many:,}" for kind, many in sorted(rounds.items())) + ".\n")
    print(f"{numbers['exact']:,} facts exact, {numbers['within']:,} numbers by the counts alone, ", end="")
    print(f"{numbers['again']:,} by the estimator.\n")
    print("| lie | told and named | in a part said to be not checked |\n|---|---|---|")
    for lie in LIES:
        print(f"| {lie} | {named[lie]:,} | {unseen[lie]:,} |")
    others.tell()
    wrong += others.wrong + priced()
    for line in wrong:
        print(f"\n**(!)** {line}")
    return 1 if wrong else 0


def priced() -> list[str]:
    """Print the processor time of making the large round and of verifying it; return what is wrong."""
    survey, rng = large(), np.random.default_rng(1)
    counts = rng.multinomial(REPORTS, rng.dirichlet(np.full(survey.channel.inputs, 0.1)))
    estimator = survey.estimator()
    began = time.process_time()
    document, data = released(survey, counts, REPORTS)
    made = time.process_time() - began
    began = time.process_time()
    found = verify(survey, document, data, estimator)
    checked = time.process_time() - began
    print(f"\nK = {survey.channel.inputs:,}, {REPORTS:,} reports, counts of {len(data):,} bytes: ", end="")
    print(f"made in {made:.1f} s, verified in {checked:.1f} s of processor time, {checked / made:.2f} times.")
    wrong = [f"the large round: {found.differences[0]}"] if found.differences else []
    return wrong + (["verifying takes too long"] if checked > MOST * made else [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
