"""All cases of an evaluation with what they took: as JSON, and as a table for a terminal."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hubbub.version import version_line
from hubbub_lab.evaluate.figures import LEVEL, QUANTITIES, Quantity, QuantityFigures
from hubbub_lab.evaluate.run import MeasuredCase, peak_memory

FEWEST: Final = 10
"""Repeats from which measured errors tell mechanisms apart: of fewer, their own errors are badly known."""


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationResults:
    """The cases of an evaluation, and what they took.

    Attributes:
        cases: Measured.
        seed: What made them repeatable; None where the operating system was drawn from.
        seconds: Wall-clock time of all of them.
        peak_bytes: The most memory that the process ever held.
        machine: Version, Python, system and cores.
    """

    cases: tuple[MeasuredCase, ...]
    seed: int | None
    seconds: float
    peak_bytes: int
    machine: str

    @classmethod
    def of(cls, cases: Sequence[MeasuredCase], *, seed: int | None, seconds: float) -> EvaluationResults:
        """Return the results, with what this process took."""
        system = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"
        machine = f"{version_line()}, {system}"
        return cls(tuple(cases), seed, seconds, peak_memory(), machine)

    @property
    def faultless(self) -> list[MeasuredCase]:
        """The cases without faults."""
        return [case for case in self.cases if case.key.faults.label == "none"]

    def lines(self) -> list[tuple[MeasuredCase, Quantity, QuantityFigures]]:
        """Return every figure of every case."""
        return [
            (case, quantity, case.figures[quantity])
            for case in self.cases
            for quantity in QUANTITIES
            if quantity in case.figures
        ]

    def sentence(self) -> str:
        """Return what the cases without faults say, in a sentence or two."""
        found = [each for case in self.faultless for each in case.figures.values()]
        hits, intervals = sum(each.hits for each in found), sum(each.intervals for each in found)
        if not intervals:
            return "No case makes anything known."
        reports = sum(case.verdicts["attempts"] for case in self.cases)
        ratios = sorted(each.ratio for each in found if each.cells > 1)
        said = (
            f"Without faults {hits:,} of {intervals:,} intervals hold the truth "
            f"({100 * hits / intervals:.1f} %; {100 * LEVEL:g} % are meant to)"
        )
        if ratios:
            said += f", and errors are {ratios[0]:.2f} to {ratios[-1]:.2f} times the exact ones"
        few = min(case.repeats for case in self.cases)
        if few < FEWEST:
            said += (
                f". {few} round{'s are' if few > 1 else ' is'} too few to compare mechanisms by measured "
                f"errors ({FEWEST} or more): exact ones do not vary"
            )
        memory = f"{self.peak_bytes / 1e6:,.0f} MB of memory"
        return f"{said}. {reports:,} reports in {self.seconds:.1f} s, at most {memory}."

    def as_json(self) -> dict[str, Any]:
        """Return all figures as JSON types."""
        return {
            "machine": self.machine,
            "seed": self.seed,
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
            "level": LEVEL,
            "cases": [case.as_json() for case in self.cases],
        }

    def text(self) -> str:
        """Return them as JSON text."""
        return json.dumps(self.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def show(self, console: Console) -> None:
        """Print a table per data set and number of devices, and the sentence."""
        of_population = groupby(self.lines(), key=lambda line: (line[0].key.data, line[0].key.devices))
        for (data, devices), lines in of_population:
            title = Text(f"{data}, {devices:,} devices")
            table = Table(
                box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left"
            )
            for heading in (
                "mechanism",
                "epsilon",
                "of",
                "error",
                "/exact",
                "above floor",
                "covered",
                "bias",
            ):
                justify: Literal["left", "right"] = "left" if heading in ("mechanism", "of") else "right"
                least = 12 if heading == "mechanism" else None
                table.add_column(heading, justify=justify, no_wrap=heading != "mechanism", min_width=least)
            for case, those in groupby(lines, key=lambda line: line[0]):
                faults = case.key.faults.label
                # Its keys are in the report: a terminal is narrow.
                name = case.short + ("" if faults == "none" else f", {faults}")
                for number, (_, quantity, found) in enumerate(those):
                    table.add_row(
                        Text(name if number == 0 else ""),
                        f"{case.key.epsilon:g}" if number == 0 else "",
                        quantity,
                        shown(quantity, found.error),
                        found.ratio_text(2),
                        beyond(found),
                        f"{100 * found.coverage:.1f} %",
                        f"{found.bias:.2f}",
                    )
            console.print(table)
        console.print(self.sentence(), soft_wrap=True)


def shown(quantity: Quantity, error: float) -> str:
    """Return an error as people read it: a share in points, a mean in its units."""
    return f"{error:.3g}" if quantity == "mean" else f"{100 * error:.3g} pt"


def beyond(found: QuantityFigures) -> str:
    """Return the variance beyond the floor's as people read it: in percent, or as a factor of it."""
    above = found.above_floor
    if above is None:
        return "-"
    return f"{1.0 + above:.3g} times" if above >= 10.0 else f"{100 * max(above, 0.0):.3g} %"
