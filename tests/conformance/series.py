"""A series beside the pack's cases: surveys of one form, answers, weights, accounts, and changes of these.

A line is that of a case of the pack, and follows from the series' name and its number alone. Of every series
the first lines are stored, and in series.txt its name, count and SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgpack
from case_changes import Case, altered, mutated, pack
from random_channels import Chance
from reference import result

STATED_FILE = Path(__file__).with_name("series.txt")
_TURNS = 8


@dataclass(frozen=True)
class Series:
    """A form's cases.

    Attributes:
        name: Its name.
        survey: Makes canonical bytes, now and then such that break a rule.
        values: Makes what a device holds, for the fields of a survey.
        symbol: Makes a symbol of a survey's channel.
        life: Makes an account's case of a survey.
        count: How many cases there are.
        sample: How many lines are stored.
    """

    name: str
    survey: Callable[[Chance], bytes]
    values: Callable[[Chance, list], list[object]]  # type: ignore[type-arg]  # of whatever msgpack holds
    symbol: Callable[[Chance, bytes], int | bytes | None]
    life: Callable[[Chance, bytes], Case]
    count: int = 400
    sample: int = 100

    @property
    def file(self) -> Path:
        """The file of its first lines."""
        return Path(__file__).with_name(f"{self.name}.tsv")

    def case(self, number: int) -> Case:
        """The case of a number."""
        chance = Chance(f"hubbub {self.name} {number}")
        turn = number % _TURNS
        if turn >= 6:
            base = self.case(_TURNS * chance.below(50) + chance.below(6))
            return (mutated if turn == 6 else altered)(chance, base)
        canonical = self.survey(chance)
        if turn < 2:
            return Case("survey", (canonical,))
        if turn < 4:
            return self.answer(chance, canonical)
        return self.weights(chance, canonical) if turn == 4 else self.life(chance, canonical)

    def answer(self, chance: Chance, canonical: bytes) -> Case:
        """A case of an answer to a survey."""
        values = pack(self.values(chance, msgpack.unpackb(canonical)))
        random = chance.token_bytes(400)
        identifier, number = chance.token_bytes(16), chance.below(200)
        return Case("answer", (canonical, values, identifier, pack(number), random))

    def weights(self, chance: Chance, canonical: bytes) -> Case:
        """A case of the weights of a symbol."""
        return Case("weights", (canonical, pack(self.symbol(chance, canonical))))

    def lines(self) -> list[str]:
        """All lines."""
        return [f"{each.line}\t{result(*each)}\n" for each in map(self.case, range(self.count))]

    def stated(self, lines: list[str]) -> str:
        """Name, count and digest."""
        return f"{self.name} {len(lines)} {hashlib.sha256(''.join(lines).encode()).hexdigest()}\n"


def write(series: tuple[Series, ...]) -> None:
    """Write what is stored of every series."""
    stated = []
    for each in series:
        lines = each.lines()
        each.file.write_text("".join(lines[: each.sample]), encoding="ascii")
        stated.append(each.stated(lines))
    STATED_FILE.write_text("".join(stated), encoding="ascii")
