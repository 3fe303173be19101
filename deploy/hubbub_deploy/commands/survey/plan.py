"""`hubbub survey design --epsilon`, `--devices`, `--want`, `--over`: accuracy over what may be chosen."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from hubbub import Survey
from hubbub_authoring.design import MOST_EPSILON, AccuracyPlan, LifetimePlan, Spending, Workload
from hubbub_deploy.commands.survey.given_up import factor
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import writing


def numbers(text: str) -> list[float]:
    """Return numbers above 0 that are separated by commas."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(0.0 < number < math.inf for number in found):
        raise argparse.ArgumentTypeError(f"must be numbers above 0 with commas between, got {text!r}")
    return found


def wholes(text: str) -> list[int]:
    """Return whole numbers above 0 that are separated by commas; 5e4 and 50_000 are read too."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(number >= 1.0 and number == math.floor(number) < math.inf for number in found):
        raise argparse.ArgumentTypeError(f"must be whole numbers above 0 with commas between, got {text!r}")
    return [int(number) for number in found]


def wanted(text: str) -> tuple[float, str]:
    """Return an accuracy and its unit: 1pt is one percentage point, 0.5 is in the unit of the mean."""
    unit = "pt" if text.endswith("pt") else ""
    try:
        number = float(text.removesuffix("pt"))
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, with pt for points, got {text!r}")
    return number, unit


def in_columns(rows: Sequence[tuple[str, ...]], *, left: Container[int]) -> str:
    """Return rows as lines with their cells below each other, to the right but in the columns `left`.

    A row with fewer cells than the first is a remark: it makes no column wider.
    """
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    lines = [
        [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        for row in rows
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


@dataclass(frozen=True, eq=False)
class PlanTable:
    """The errors of a workload over some epsilons and numbers of devices.

    Attributes:
        workload: The question.
        objective: The objective in words.
        epsilons: Per report, rising.
        devices: Numbers of devices, rising.
        want: Half a 95 % interval that is wanted, in the table's unit; None for none.
    """

    workload: Workload
    objective: str
    epsilons: tuple[float, ...]
    devices: tuple[int, ...]
    want: float | None

    @classmethod
    def of(
        cls,
        workload: Workload,
        objective: str,
        *,
        epsilons: list[float] | None,
        devices: list[int] | None,
        want: tuple[float, str] | None,
    ) -> PlanTable:
        """Return the table; what is not given is the survey's own.

        Raises:
            DeployError: If what is wanted is in the unit of another objective.
            ParameterError: If the objective is about one report.
        """
        unit = "" if workload.objective.quantity == "mean" else "pt"
        if want is not None and want[1] != unit:
            rule = "in percentage points (1pt)" if unit else "in the unit of the mean, without pt"
            raise DeployError(
                f"--want must be {rule} for the objective ({objective}), got {want[0]:g}{want[1]}"
            )
        return cls(
            workload,
            objective,
            tuple(sorted(set(epsilons or [workload.epsilon]))),
            tuple(sorted(set(devices or [workload.devices]))),
            None if want is None else want[0],
        )

    @cached_property
    def plan(self) -> AccuracyPlan:
        """The accuracy over epsilon and devices."""
        return AccuracyPlan(self.workload)

    @property
    def points(self) -> bool:
        """True where errors are shown in percentage points, false where in the unit of the mean."""
        return self.workload.objective.quantity != "mean"

    def error(self, epsilon: float, devices: int) -> float:
        """Return half a 95 % interval, in the table's unit."""
        return self.plan.error(epsilon, devices) * (100.0 if self.points else 1.0)

    @property
    def _asked(self) -> float:
        return 0.0 if self.want is None else self.want / (100.0 if self.points else 1.0)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's rows under their headings."""
        found = [("epsilon", "best mechanism", *(f"{n:,} devices" for n in self.devices), "odds change by")]
        for epsilon in self.epsilons:
            errors = [self.error(epsilon, n) for n in self.devices]
            shown = [f"±{error:.3g}" if math.isfinite(error) else "hidden" for error in errors]
            label = self.plan.best(epsilon, self.devices[0]).label
            found.append((f"{epsilon:g}", label, *shown, f"up to {factor(epsilon)}"))
        return found

    def answers(self) -> list[str]:
        """Return in words what is needed for the accuracy wanted; nothing where none is."""
        if self.want is None:
            return []
        goal = f"±{self.want:g}{' points' if self.points else ''}"
        found = []
        for n in self.devices:
            least = self.plan.least_epsilon(n, self._asked)
            need = f"no epsilon up to {MOST_EPSILON:g} is enough" if least is None else f"epsilon {least:g}"
            found.append(f"For {goal} with {n:,} devices: {need}.")
        for epsilon in self.epsilons:
            fewest = self.plan.fewest_devices(epsilon, self._asked)
            need = "no number of devices is enough" if fewest is None else f"{fewest:,} devices"
            found.append(f"For {goal} at epsilon {epsilon:g}: {need}.")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the table as JSON types; errors in shares of 1 or in the unit of the mean."""
        asked = self._asked
        return {
            "objective": self.workload.objective.quantity,
            "interval": 0.95,
            "errors": [
                {
                    "epsilon": epsilon,
                    "devices": n,
                    "mechanism": self.plan.best(epsilon, n).mechanism,
                    "half_interval": _finite(self.plan.error(epsilon, n)),
                }
                for epsilon in self.epsilons
                for n in self.devices
            ],
            "want": asked or None,
            "least_epsilon": {str(n): self.plan.least_epsilon(n, asked) for n in self.devices}
            if asked
            else {},
            "fewest_devices": {f"{e:g}": self.plan.fewest_devices(e, asked) for e in self.epsilons}
            if asked
            else {},
        }

    def show(self, title: str, output: Literal["table", "json"]) -> None:
        """Print the table."""
        if output == "json":
            print(json.dumps(self.as_json(), allow_nan=False))
            return
        unit = "percentage points" if self.points else "the unit of the mean"
        print(f"{title}: half a 95 % interval, in {unit}, for the objective ({self.objective})")
        print()
        print(in_columns(self.rows(), left=(1,)))
        if self.want is not None:
            print()
            print("\n".join(self.answers()))

    def draw(self, title: str, path: Path) -> None:
        """Draw error over epsilon, a line for each number of devices.

        Raises:
            DeployError: If the file cannot be written.
        """
        import matplotlib as mpl  # noqa: PLC0415 - the table needs no drawing library
        from matplotlib.figure import Figure  # noqa: PLC0415

        from hubbub_lab.evaluation import as_typed, log_axes  # noqa: PLC0415 - as above

        mpl.use("Agg")
        figure = Figure(figsize=(7, 5), layout="constrained")
        axes = figure.add_subplot()
        for n in self.devices:
            errors = [self.error(epsilon, n) for epsilon in self.epsilons]
            axes.plot(self.epsilons, errors, marker="o", label=f"{n:,} devices")
        if self.want is not None:
            axes.axhline(self.want, color="black", linestyle="--", label="wanted")
        log_axes(axes, "x", "y")
        axes.set_xlabel("epsilon of one report")
        axes.set_ylabel("±, percentage points" if self.points else "±, unit of the mean")
        with as_typed():
            axes.set_title(f"{title}: {self.objective}", fontsize=10)
        axes.legend(frameon=False)
        with writing(path):
            figure.savefig(path, dpi=150)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def show_ways(
    survey: Survey,
    workload: Workload,
    objective: str,
    *,
    rounds: int,
    budget: float,
    output: Literal["table", "json"],
) -> None:
    """Print how well a round is known for each way of spending a lifetime budget.

    Args:
        survey: The survey, whose planned devices all take part.
        workload: Its question.
        objective: The objective in words.
        rounds: How many rounds the budget has to last.
        budget: Lifetime epsilon of the devices.
        output: A table for people or JSON for programs.
    """
    devices = survey.planned_devices
    plan = LifetimePlan(workload, rounds=rounds, budget=budget, devices=devices)
    found, best = plan.table(), plan.best_epsilon()
    if output == "json":
        said = {
            "objective": workload.objective.quantity,
            "interval": 0.95,
            "rounds": rounds,
            "budget": budget,
            "devices": devices,
            "best_epsilon": best,
            "ways": [_facts(each) for each in found],
        }
        print(json.dumps(said, allow_nan=False))
        return
    points = workload.objective.quantity != "mean"
    unit = "percentage points" if points else "the unit of the mean"
    print(
        f"{survey.title}: {rounds:,} rounds out of a budget of {budget:g}, {devices:,} devices: half a 95 % "
        f"interval of a round about all of them, in {unit}, for the objective ({objective})"
    )
    print()
    rows = [("rotation", "answers", "epsilon of each", "devices a round", "a round", "best mechanism")]
    for each in found:
        half = each.half_interval * (100.0 if points else 1.0)
        rows.append(
            (
                f"{each.rotation:,}" if each.rotation > 1 else "none",
                f"{each.answers:,}",
                f"{each.epsilon:.4g}",
                f"{each.devices:,.0f}",
                f"±{half:.3g}" if math.isfinite(half) else "hidden",
                each.mechanism.label,
            )
        )
    print(in_columns(rows, left=(5,)))
    print()
    least = min(found, key=lambda each: each.half_interval)
    narrower = found[0].half_interval / least.half_interval
    print(
        f"Best is {_way(least)}: its interval is {narrower:.3g} times narrower than that of an answer in "
        "every round. One answer in a life, at whatever epsilon your policy allows, is best up to epsilon "
        f"{best:g}; a larger budget is best spent in answers of about that. "
        f"Odds change by up to {factor(budget)} in all."
    )


def _way(each: Spending) -> str:
    if each.rotation == 1:
        return "an answer in every round"
    return f"rotation = {each.rotation}, epsilon = {each.epsilon:.4g}"


def _facts(each: Spending) -> dict[str, object]:
    return {
        "rotation": each.rotation,
        "answers": each.answers,
        "epsilon": each.epsilon,
        "devices": each.devices,
        "mechanism": each.mechanism.mechanism,
        "half_interval": each.half_interval if math.isfinite(each.half_interval) else None,
    }
