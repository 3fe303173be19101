"""The design of a survey before its launch: every mechanism that fits, one sentence, JSON for programs."""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np

from hubbub import Survey
from hubbub.estimation import curve_cohort
from hubbub.survey import read_compiled
from hubbub_authoring.design import (
    ASKED,
    WORDS,
    Accuracy,
    Candidate,
    Comparison,
    Distance,
    Errors,
    Floors,
    Objective,
    Quantity,
    Workload,
    compare,
    distances,
    measured,
    measured_by_category,
    within_gain,
)
from hubbub_authoring.files import survey_of, survey_text
from hubbub_deploy.commands.survey import floors, risks
from hubbub_deploy.commands.survey.design_joint import INTERVAL_95, show
from hubbub_deploy.commands.survey.given_up import given_up, warnings
from hubbub_deploy.commands.survey.plan import PlanTable, in_columns, show_ways
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import comparing, create, refuse_unwritable, said_of_auto

FORMATS: Final = (".png", ".svg", ".pdf", ".html")
"""Endings of a picture of all mechanisms."""

PLAN_FORMATS: Final = (".png", ".svg", ".pdf")
"""Endings of a picture over epsilon and devices."""

TIE: Final = 2e-3
"""Costs this near count as equal: nobody should change a survey for them."""


# Options of surveys of one attribute, in the order in which they are refused of others.
_OF_ONE: Final = [
    "objective",
    "plot",
    "write",
    "epsilon",
    "devices",
    "want",
    "over",
    "max_gain",
    "missing",
    "shuffled",
]
# A cell of a table that is a number and nothing else.
_PLAIN: Final = re.compile(r"-?[\d,]+(?:\.\d+)?")


@dataclass(frozen=True)
class DesignSettings:
    """The options of `hubbub survey design`.

    Attributes:
        file: The survey's TOML file; - is stdin.
        objective: What mechanisms are judged by; None: what fits the survey.
        within: For the objective "hit", how near a report must be to its value; else None.
        epsilon: Epsilons to show the accuracy at; None for the survey's own.
        devices: Numbers of devices to show it for; None for the planned one.
        want: Half a 95 % interval that is wanted, and its unit; None for none.
        budget: Lifetime epsilon of the devices; None if it is not known.
        over: Rounds that the budget has to last, to say how it is best spent; None: not asked.
        max_gain: The most points by which 1 % of forged reports may move a share; None: as the survey says.
        missing: The share of devices that will have no value; None: nobody.
        shuffled: The round whose shuffled reports are looked at; None: none.
        plot: Where to draw the trade-offs (.png, .svg, .pdf or .html); None: nowhere.
        write: Where to write the survey with the best mechanism in place of its own; None: nowhere.
        output: A table for people or JSON for programs.
    """

    file: Path
    objective: Quantity | None
    plot: Path | None
    write: Path | None
    output: Literal["table", "json"]
    within: float | None = None
    epsilon: list[float] | None = None
    devices: list[int] | None = None
    want: tuple[float, str] | None = None
    budget: float | None = None
    over: int | None = None
    max_gain: float | None = None
    missing: float | None = None
    shuffled: risks.Shuffling | None = None

    @property
    def plans(self) -> bool:
        """True where the accuracy over epsilon, devices or time is asked for, not that of all mechanisms."""
        return any(each is not None for each in (self.epsilon, self.devices, self.want, self.over))


@dataclass(frozen=True, eq=False)
class SurveyDesign:
    """A survey, the question behind it, its own mechanism measured, and all others that fit, best first."""

    survey: Survey
    workload: Workload
    own: Candidate
    others: tuple[Candidate, ...]
    budget: float | None = None
    shuffled: risks.Shuffling | None = None

    @classmethod
    def of(
        cls,
        survey: Survey,
        text: str,
        objective: Quantity | None,
        within: float | None = None,
        max_gain: float | None = None,
        *,
        missing: float = 0.0,
        study: Comparison = compare,
    ) -> SurveyDesign:
        """Return the design of a survey and the TOML text that it was loaded from.

        Raises:
            ParameterError: If the objective cannot be asked of it.
        """
        keys = tomllib.loads(text)["mechanism"]
        name = keys["name"]
        parameters = {key: value for key, value in keys.items() if key not in ("name", "participation")}
        if objective is None and within is not None:
            raise DeployError(f"--within must come with --objective hit, got {within:g} without it")
        asked = None if objective is None else Objective(objective, within=within)
        own_objective, coin = floors.asked(survey, text)
        if survey.choice is not None:
            # The survey's own mechanism, seen through the objective asked for now.
            asked = asked or own_objective
            max_gain = parameters.get("max_gain") if max_gain is None else max_gain
            name, parameters = survey.choice.mechanism, dict(survey.choice.parameters)
        workload = Workload.of_survey(survey, objective=asked, participation=coin, max_gain=max_gain)
        prior = workload.prior * (1.0 - missing)
        prior[-1] = missing
        workload = replace(workload, prior=prior)
        measure = measured if survey.channel.inputs == workload.inputs else measured_by_category
        own = within_gain(workload, measure(name, parameters, workload, survey.channel))
        found = study(workload)
        others = tuple(other for other in found if not _same(other, own))
        return cls(survey, workload, own, others)

    @cached_property
    def floors(self) -> Floors:
        """The errors that no mechanism can be below."""
        return Floors(self.workload)

    @cached_property
    def distances(self) -> list[Distance]:
        """The distances of this survey from the floors of all questions that it answers."""
        return distances(self.workload, self.survey.channel)

    def least(self) -> str:
        """Return the floor of the objective in one sentence, rounded down, or "" where none is known."""
        cost = self.floors.cost(self.workload.objective.quantity)
        if cost is None:
            return ""
        half, unit = INTERVAL_95 * math.sqrt(cost), ""
        if self.workload.objective.quantity != "mean":
            half, unit = 100.0 * half, " points"
        digits = 2 - math.floor(math.log10(half))
        shown = math.floor(half * 10.0**digits) / 10.0**digits
        said = (
            f"No mechanism at epsilon {self.survey.epsilon:g} can have less than ±{shown:.3g}{unit} "
            f"for the objective ({self.objective}), on average over crowds drawn from {self.floors.crowd}"
        )
        above = self.floors.above(self.own.cost)
        if above is None:
            return said + "."
        far = f"is {floors.above(above)} " + ("that" if above >= 10.0 else "above that")
        return f"{said}: the variance of this survey {far}."

    def sentence(self) -> str:
        """Return what the survey buys, in one sentence."""
        known = _known(self.own)
        parts = []
        if len(self.survey.category_names) > 2 and math.isfinite(known.category):
            parts.append(f"a category's share is known to {_points(known.category)}")
        if math.isfinite(known.value):
            verb = "" if parts else " is known"
            what = "a value's share" if not parts else "a value's"
            parts.append(f"{what}{verb} to {_points(known.value)}")
        if known.mean is not None and math.isfinite(known.mean):
            verb = "" if parts else " is known"
            parts.append(f"the mean{verb} to ±{INTERVAL_95 * known.mean:.3g}")
        width = self.median_width()
        if width is not None:
            verb = "" if parts else " is known"
            parts.append(f"the median{verb} to an interval of {width:.3g}")
        if known.miss is not None and math.isfinite(known.miss):
            rate = 100 * math.floor(1e4 * (1.0 - known.miss)) / 1e4
            within = self.workload.objective.within
            parts.append(f"a report lies within {within:g} of its value with probability {rate:g} % or more")
        if not parts:
            return "This survey makes nothing known: its channel hides what is asked."
        said = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
        devices = self.workload.devices
        share = self.workload.prior[-1]
        among = f" of which {100 * share:g} % have no value" if share else ""
        return f"With {devices:,} devices{among}, {said} (95 % intervals)."

    def median_width(self) -> float | None:
        """Return the width of the median's interval where values are equally common; None if not told."""
        survey = self.survey
        least = curve_cohort(survey.channel.inputs) if survey.channel.shows_curve else None
        if least is None or self.workload.devices < least:
            return None
        foreseen = survey.estimator().expected_estimate(self.workload.prior, self.workload.devices)
        curve = foreseen.cumulative()
        if curve is None:
            return None
        median = curve.quantile(0.5)
        return median.high - median.low

    def risks(self) -> str:
        """Return what forged reports can move and what a report gives away, in two sentences."""
        by_category = self.survey.channel.inputs < self.workload.inputs
        return risks.sentence(cast(Accuracy, self.own.accuracy), "category" if by_category else "value")

    def advice(self) -> str:
        """Return whether another mechanism would do better, or ""."""
        best = self.others[0] if self.others else None
        if best is None or not best.cost < self.own.cost * (1.0 - TIE):
            return f"No other mechanism compared does better for the objective ({self.objective})."
        if self.own.refusal:
            return f"This survey's mechanism is over its limit ({self.own.refusal}): take {best.label}."
        if not math.isfinite(self.own.cost):
            return f"The objective ({self.objective}) cannot be answered as it stands: take {best.label}."
        hits = self.workload.objective.quantity == "hit"
        share = best.cost / self.own.cost if hits else math.sqrt(best.cost / self.own.cost)
        return (
            f"{best.label} would do better at the same epsilon: {100 * (1 - share):.2g} % "
            f"{'fewer misses' if hits else 'less error'} for the objective ({self.objective})."
        )

    def resolved(self, text: str) -> str:
        """Return the text of the survey file with the best mechanism in place of its own, and why.

        Raises:
            DeployError: If the file does not write its mechanism as a [mechanism] table.
        """
        best = self.own
        if self.others and self.others[0].cost < self.own.cost * (1.0 - TIE):
            best = self.others[0]
        lines = [
            f"# Chosen by exact variance for {self.workload.devices:,} devices, objective {self.objective}:",
            *(f"# {row}" for row in _table(self.rows()).splitlines()),
            "[mechanism]",
            f'name = "{best.mechanism}"',
            *(f"{key} = {json.dumps(value)}" for key, value in best.parameters.items()),
        ]
        if self.workload.participation < 1.0:
            lines.append(f"participation = {self.workload.participation!r}")
        table = re.compile(r"^\[mechanism\][^\n]*\n(?:(?!\s*\[)[^\n]*\n?)*", re.MULTILINE)
        if len(table.findall(text)) != 1:
            raise DeployError("the survey must have its mechanism as one [mechanism] table to be rewritten")
        return table.sub(lambda _: "\n".join(lines) + "\n\n", text)

    def why(self, candidate: Candidate) -> str:
        """Return why a mechanism fits the workload, or does not."""
        if candidate.refusal:
            return f"does not fit: {candidate.refusal}"
        if not math.isfinite(candidate.cost):
            return f"does not answer the objective ({self.objective}): it hides what is asked"
        least = min((one.cost for one in (self.own, *self.others)), default=math.inf)
        if candidate.cost <= least * (1.0 + TIE):
            return f"fits: the least cost for the objective ({self.objective})"
        return f"fits: {candidate.cost / least:.3g} times the least cost for the objective ({self.objective})"

    @property
    def objective(self) -> str:
        """The objective in words."""
        objective = self.workload.objective
        if objective.within is not None:
            return f"reports within {objective.within:g}"
        return WORDS[objective.quantity]

    def as_json(self) -> dict[str, Any]:
        """Return the design as JSON types; what is hidden or does not apply is null."""
        survey, missing = self.survey, self.workload.prior[-1]
        return {
            "survey": survey.id,
            "devices": self.workload.devices,
            "objective": self.workload.objective.quantity,
            "prior": f"uniform over the values, {f'{100 * missing:g} %' if missing else 'nobody'} missing",
            "declared_epsilon": survey.epsilon,
            **_facts(self.own, self),
            "inputs": survey.channel.inputs,
            "sentence": self.sentence(),
            "advice": self.advice(),
            "given_up": given_up(survey),
            "warnings": warnings(survey, _known(self.own), budget=self.budget),
            "least": self.least(),
            "risks": self.risks(),
            "max_gain": self.workload.max_gain,
            "after_shuffling": "" if self.shuffled is None else self.shuffled.sentence(survey.channel),
            "floor": {quantity: self.floors.cost(quantity) for quantity in ASKED},
            **floors.facts(self.distances),
            "floor_proof": None if self.floors.objective is None else self.floors.objective.proof,
            "median_width": self.median_width(),
            "alternatives": [_facts(other, self) for other in self.others],
        }

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's rows under their headings; the survey's own mechanism first."""
        found: list[tuple[str, ...]] = [
            (
                *("", "mechanism", "±value", "±category", "±mean", "above floor"),
                *("leverage", "1 % moves", "guess", "bytes", "epsilon"),
                *(["shuffled"] if self.shuffled is not None else []),
            )
        ]
        for mark, candidate in (("*", self.own), *((" ", other) for other in self.others)):
            if candidate.accuracy is None or candidate.channel is None:
                found.append((mark, f"{candidate.label}: {candidate.refusal}"))
                continue
            known, weighed = candidate.accuracy.errors, candidate.accuracy
            found.append(
                (
                    mark,
                    candidate.label,
                    _share(known.value),
                    _share(known.category) if self._categories else "-",
                    "-" if known.mean is None else _number(INTERVAL_95 * known.mean),
                    floors.above(self.floors.above(candidate.cost)),
                    _number(weighed.leverage),
                    risks.moved(weighed),
                    risks.guessed(weighed),
                    str(weighed.bytes_per_report),
                    f"{candidate.channel.epsilon:.6g}",
                    *([] if self.shuffled is None else [self.shuffled.cell(candidate.channel)]),
                )
            )
        return found

    @property
    def _categories(self) -> bool:
        return len(self.workload.sizes) > 2


def _check(settings: DesignSettings) -> None:
    if settings.budget is not None and not 0.0 < settings.budget < math.inf:
        raise DeployError(f"--budget must be above 0 and finite, got {settings.budget:g}")
    if settings.missing is not None and not 0.0 <= settings.missing < 1.0:
        raise DeployError(f"--missing must be at least 0 and below 1, got {settings.missing:g}")
    if settings.shuffled is not None and not 0.0 < settings.shuffled.delta < 1.0:
        raise DeployError(f"--delta must lie strictly between 0 and 1, got {settings.shuffled.delta:g}")
    if settings.over is not None:
        if settings.budget is None:
            raise DeployError(f"--over must come with --budget, got {settings.over} without it")
        for name in ("epsilon", "devices", "want", "plot", "write"):
            if getattr(settings, name) is not None:
                raise DeployError(f"--{name} must be absent with --over, got {settings.over} with it")
    if settings.plot is not None:
        if settings.plans and settings.plot.suffix not in PLAN_FORMATS:
            raise DeployError(f"--plot must end in .png, .svg or .pdf here, got {settings.plot.name!r}")
        if settings.plot.suffix not in FORMATS:
            raise DeployError(f"--plot must end in one of {', '.join(FORMATS)}, got {settings.plot.name!r}")
        refuse_unwritable(settings.plot, kind="file")
    if settings.write is not None:
        if settings.write.exists():
            raise DeployError(f"{settings.write} is there already, and is not overwritten")
        refuse_unwritable(settings.write, kind="file")


def run(settings: DesignSettings) -> int:
    """Print the design of a survey file, and draw it where asked; return the exit code.

    Raises:
        SurveyError: If the file is no valid survey.
        DeployError: If a file cannot be written, or more is asked of a survey of several attributes than its
            own sentence.
    """
    _check(settings)
    if read_compiled(settings.file) is not None:
        raise DeployError(f"{settings.file}: must be a survey in TOML to be designed, got a compiled one")
    with comparing() as study:
        return _run(settings, study)


def _run(settings: DesignSettings, study: Comparison) -> int:
    text, file = survey_text(settings.file), "stdin" if str(settings.file) == "-" else str(settings.file)
    survey = survey_of(text, file, compare=study)
    for line in said_of_auto(survey):
        print(f"{file}: {line}", file=sys.stderr)
    if not survey.form.alone:
        for name in _OF_ONE:
            if (value := getattr(settings, name)) is not None:
                option, said = name.replace("_", "-"), getattr(value, "reports", value)
                rule = "must be absent for a table, a tree, a bundle or a score"
                raise DeployError(f"--{option} {rule}, got {said}")
        wanted = tomllib.loads(text).get("bundle", {}).get("error")
        show(survey, floors.asked(survey, text)[1], settings.output, study, error=wanted)
        return 0
    design = replace(
        SurveyDesign.of(
            survey,
            text,
            settings.objective,
            settings.within,
            settings.max_gain,
            missing=settings.missing or 0.0,
            study=study,
        ),
        budget=settings.budget,
        shuffled=settings.shuffled,
    )
    if settings.plans:
        return _run_plan(design, settings)
    if settings.plot is not None:
        from hubbub_deploy.commands.survey.design_plot import draw  # noqa: PLC0415 - the table needs no drawing library

        draw(design, settings.plot, say=lambda text: print(text, file=sys.stderr))
    if settings.write is not None:
        resolved = design.resolved(text)
        create(settings.write, resolved.encode(), mode=0o666)
        chosen = tomllib.loads(resolved)["mechanism"]
        keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in chosen.items())
        print(f"wrote {settings.write} with [mechanism] {keys}", file=sys.stderr)
    if settings.output == "json":
        print(json.dumps(design.as_json(), ensure_ascii=False, allow_nan=False))
        return 0
    print(f"{survey.title}: epsilon {survey.epsilon:g} declared, {survey.channel.epsilon!r} certified")
    print()
    print(_table(design.rows()))
    print()
    print("* this survey. ± is half a 95 % interval of a typical cell, shares in percentage points;")
    print(
        "above floor is how much more variance than the least that any mechanism can have (docs/frontier.md);"
    )
    print("leverage is how many devices one forged report can pretend to be; 1 % moves is by how many points")
    print("1 % of forged reports can move a share; guess is how often the best guess from a report is right.")
    print()
    print(design.sentence())
    for said in (design.least(), floors.sentence(design.distances, survey.epsilon)):
        if said:
            print(said)
    print(design.advice())
    print(design.risks())
    print(given_up(survey))
    if design.shuffled is not None:
        print(design.shuffled.sentence(survey.channel))
    for warning in warnings(survey, _known(design.own), budget=settings.budget):
        print(f"Warning: {warning}.")
    return 0


def _run_plan(design: SurveyDesign, settings: DesignSettings) -> int:
    """Print the accuracy over epsilon and devices, and draw it where asked; or that over time."""
    if settings.over is not None and settings.budget is not None:
        show_ways(
            design.survey,
            design.workload,
            design.objective,
            rounds=settings.over,
            budget=settings.budget,
            output=settings.output,
        )
        return 0
    table = PlanTable.of(
        design.workload,
        design.objective,
        epsilons=settings.epsilon,
        devices=settings.devices,
        want=settings.want,
    )
    if settings.write is not None:
        raise DeployError(f"--write must be absent with --epsilon, --devices or --want, got {settings.write}")
    title = design.survey.title
    table.show(title, settings.output)
    if settings.plot is not None:
        table.draw(title, settings.plot)
    return 0


def _same(one: Candidate, other: Candidate) -> bool:
    if one.mechanism != other.mechanism or one.accuracy is None or other.accuracy is None:
        return False
    if one.channel == other.channel:
        return True
    known, seen = one.accuracy, other.accuracy
    return math.isclose(known.leverage, seen.leverage, rel_tol=1e-9) and math.isclose(
        known.errors.value, seen.errors.value, rel_tol=1e-9
    )


def _known(candidate: Candidate) -> Errors:
    return cast(Accuracy, candidate.accuracy).errors  # the survey's own channel has been measured


def _facts(candidate: Candidate, design: SurveyDesign) -> dict[str, Any]:
    weighed, channel = candidate.accuracy, candidate.channel
    facts: dict[str, Any] = {
        "mechanism": candidate.mechanism,
        "parameters": candidate.parameters,
        "cost": _finite(candidate.cost),
        "why": design.why(candidate),
        "above_floor": design.floors.above(candidate.cost),
    }
    if weighed is None or channel is None:
        return facts | {"refusal": candidate.refusal}
    known = weighed.errors
    return facts | {
        "epsilon": channel.epsilon,
        "inputs": channel.inputs,
        "outputs": None if channel.width else channel.bins,
        "bytes_per_report": weighed.bytes_per_report,
        "standard_error": {
            "value": _finite(known.value),
            "category": _finite(known.category) if len(design.workload.sizes) > 2 else None,
            "mean": None if known.mean is None else _finite(known.mean),
        },
        "leverage": _finite(weighed.leverage),
        **risks.facts(weighed),
        **({} if design.shuffled is None else {"shuffled": design.shuffled.facts(channel)}),
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _points(error: float) -> str:
    return f"±{100 * INTERVAL_95 * error:.2g} points"


def _share(error: float) -> str:
    return f"{100 * INTERVAL_95 * error:.3g}" if math.isfinite(error) else "hidden"


def _number(number: float) -> str:
    return f"{number:.3g}" if math.isfinite(number) else "hidden"


def _aligned(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows with each column's numbers padded until their points stand in line."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    for column in columns:
        tails = [len(text) - len(text.partition(".")[0]) for text in column]
        numbers = [bool(_PLAIN.fullmatch(text)) for text in column]
        most = max((tail for tail, number in zip(tails, numbers, strict=True) if number), default=0)
        for k, (tail, number) in enumerate(zip(tails, numbers, strict=True)):
            column[k] += " " * (most - tail) * number
    return list(zip(*columns, strict=True))


def _table(rows: list[tuple[str, ...]]) -> str:
    whole = iter(_aligned([row for row in rows if len(row) == len(rows[0])]))
    return in_columns([next(whole) if len(row) == len(rows[0]) else row for row in rows], left=(0, 1))
