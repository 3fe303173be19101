"""`hubbub survey design --epsilon ... --devices ... --want ...`: accuracy over epsilon and devices."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from hubbub_authoring.design import MOST_EPSILON, AccuracyPlan, Workload
from hubbub_deploy.commands.survey.given_up import factor
from hubbub_deploy.errors import DeployError


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
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                cell.ljust(width) if i == 1 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            print("  ".join(cells).rstrip())
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
        try:
            figure.savefig(path, dpi=150)
        except OSError as error:
            raise DeployError(f"{path}: cannot be written: {error.strerror}") from None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
