"""The series of releases beside the pack's cases: is a release what its survey and its public counts say?

    python tests/conformance/release_cases.py   write releases.tsv and the series' name, count and digest

A line is `release`, the canonical bytes of the survey, the public counts and the release in hexadecimal,
and the result: `same`, or `differs` and the first path that differs. Half of the releases are lies.

Survey, counts, lie and result follow from a case's number alone, and the digest is of them: the last digits
of a release may be another processor's.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))
from lies import LIES, released, told
from random_channels import Chance
from random_surveys import MECHANISMS, attributes
from random_surveys import survey as random_survey

from hubbub import Survey
from hubbub.checking import check_release

NAME = "release"
CASES = 500
SAMPLE = 22
SAMPLE_FILE = Path(__file__).with_name("releases.tsv")
DIGEST_FILE = Path(__file__).with_name("releases-digest.txt")
SURVEYS = Path(__file__).parents[1] / "golden"
SIZES = (3, 30, 300)
GOLDEN = ("curve", "weighted", "hidden", "scattered", "region", "heat-map", "short-orbits", "number-levels")
"""Surveys of tests/golden with channels that a random one seldom has."""
READ = (*MECHANISMS[:22], *GOLDEN)
"""The mechanisms of random surveys, and the others, in their order."""


@dataclass(frozen=True)
class ReleaseCase:
    """A release, with what it should follow from.

    Attributes:
        survey: The survey.
        lie: The kind of lie; "" where it is honest.
        document: The release.
        counts: The bytes of its public counts.
    """

    survey: Survey
    lie: str
    document: dict[str, object]
    counts: bytes

    @property
    def line(self) -> str:
        """The case as other implementations read it."""
        release = json.dumps(self.document, sort_keys=True, separators=(",", ":")).encode()
        return "\t".join(["release", *(each.hex() for each in (self.survey.canonical, self.counts, release))])

    @property
    def result(self) -> str:
        """The words of its result here."""
        wrong = check_release(self.survey, self.document, self.counts).differences
        return f"differs {wrong[0].path}" if wrong else "same"


def case(number: int) -> ReleaseCase:
    """The case of a number."""
    chance = random.Random(f"hubbub {NAME} {number}")  # noqa: S311 - test cases
    asked, name = None, READ[number % len(READ)]
    if name in GOLDEN:
        asked = Survey.from_canonical((SURVEYS / f"survey-{name}.bin").read_bytes())
    while asked is None:
        asked = random_survey(chance, attributes(chance), "s", name)
    n = max(chance.choice(SIZES), asked.minimum_cohort)
    inputs = asked.channel.inputs
    values = np.array(chance.choices(range(inputs), [chance.random() ** 3 for _ in range(inputs)], k=n))
    symbols = asked.channel.perturb(values, source=Chance(f"hubbub {NAME} {number}"))
    honest = released(asked, asked.channel.tally(symbols), n, asked=chance.choice([None, 2 * n]))
    lie, lied = "", None
    if (number + number // len(READ)) % 2:
        while lied is None:
            lie = chance.choice(sorted(LIES))
            lied = told(lie, honest, chance)
    document, counts = lied or honest
    return ReleaseCase(asked, lie, document, counts)


def cases(count: int = CASES) -> Iterator[ReleaseCase]:
    """The first cases."""
    return map(case, range(count))


def stated(made: list[ReleaseCase], results: list[str]) -> str:
    """Name, count and digest of a series."""
    digest = hashlib.sha256()
    for each, words in zip(made, results, strict=True):
        digest.update(f"{each.survey.digest.hex()} {each.counts.hex()} {each.lie} {words}\n".encode())
    return f"{NAME} {len(made)} {digest.hexdigest()}\n"


if __name__ == "__main__":
    everything = list(cases())
    words = [each.result for each in everything]
    lines = [f"{each.line}\t{word}\n" for each, word in zip(everything, words, strict=True)]
    SAMPLE_FILE.write_text("".join(lines[:SAMPLE]), encoding="ascii")
    DIGEST_FILE.write_text(stated(everything, words), encoding="ascii")
