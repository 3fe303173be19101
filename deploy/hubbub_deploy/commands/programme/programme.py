"""`hubbub programme`: the least lifetime budget for several surveys, each known as well as wanted."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub_deploy.commands.arguments import positive
from hubbub_deploy.commands.survey import plan
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    from hubbub import Survey
    from hubbub_authoring.design import PlannedSurvey, Study, WantedSurvey

YEAR_S: Final = 365.25 * 86_400
"""The length of a year, seconds."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser(
        "programme", help="several surveys under one lifetime budget: epsilons, rotations, errors, years"
    )
    command.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="survey files (TOML); the epsilon of each is the most that an answer may cost",
    )
    command.add_argument("--devices", type=positive, required=True, help="how many take part in all of them")
    command.add_argument(
        "--want",
        action="append",
        type=_wanted,
        required=True,
        metavar="SURVEY=WIDTH",
        help="half a 95 %% interval of each round, such as visits=1pt; one of a mean without pt; may be "
        "repeated; a survey without one stays as it is",
    )
    command.add_argument("--budget", type=float, help="lifetime epsilon of a device: how long does it last?")
    command.add_argument("--json", action="store_true", help="print it as JSON")
    command.set_defaults(run=run)


def _wanted(text: str) -> tuple[str, tuple[float, str]]:
    name, _, width = text.partition("=")
    return name, plan.wanted(width)


@dataclass(frozen=True, slots=True)
class Line:
    """One survey of a programme.

    Attributes:
        survey: As compiled for the programme.
        planned: Its plan; None where nothing was wanted of it.
        points: True where its errors are of shares, false where of a mean.
    """

    survey: Survey
    planned: PlannedSurvey | None
    points: bool

    @property
    def reserved(self) -> float:
        """The most that a device may lose over all rounds, nats."""
        from hubbub_client.surveys import most_answers  # noqa: PLC0415 - as in `run`

        return self.survey.epsilon * most_answers(self.survey, -1)

    @property
    def a_year(self) -> float:
        """The loss of a device in a year of such rounds, nats, on average; 0 where one answer is for good."""
        from hubbub_client.surveys import is_static  # noqa: PLC0415 - as in `run`

        if is_static(self.survey):
            return 0.0
        return self.survey.epsilon * YEAR_S / (self.survey.rotation * self.survey.round_s)

    def facts(self) -> dict[str, Any]:
        """Return the line as JSON types."""
        return {
            "survey": self.survey.id,
            "epsilon": self.survey.epsilon,
            "rotation": self.survey.rotation,
            "share_asked": 1.0 / self.survey.rotation,
            "standard_error": None if self.planned is None else self.planned.error,
            "wanted": None if self.planned is None else self.planned.wanted.error,
            "reserved": self.reserved,
            "spent": self.reserved if self.planned is None else self.planned.spent,
            "a_year": self.a_year,
        }


def run(options: argparse.Namespace) -> int:
    """Print the programme; return 1 where a budget does not hold it.

    Raises:
        SurveyError: If a file is no valid survey.
        DeployError: If what is wanted cannot be had, or is of another survey or unit.
    """
    from hubbub.filter import BayesianFilter  # noqa: PLC0415 - other commands start without these
    from hubbub_authoring.design import widened  # noqa: PLC0415
    from hubbub_client.surveys import window_of  # noqa: PLC0415

    if options.budget is not None and not 0.0 < options.budget < math.inf:
        raise DeployError(f"--budget must be above 0 and finite, got {options.budget:g}")
    lines = compiled(options.folder, options.devices, dict(options.want))
    reserved = sum(line.reserved for line in lines)
    budget = reserved if options.budget is None else options.budget
    accepted = BayesianFilter(budget).reserve_all(queries([line.survey for line in lines])) is not None
    rate = sum(line.a_year for line in lines)
    once = sum(line.reserved for line in lines if line.a_year == 0.0)
    asked = [line.planned.wanted for line in lines if line.planned is not None]
    left = budget - sum(line.reserved for line in lines if line.planned is None)
    facts: dict[str, Any] = {
        "devices": options.devices,
        "surveys": [line.facts() for line in lines],
        "reserved": reserved,
        "spent": sum(line.facts()["spent"] for line in lines),
        "window": sum(window_of(line.survey) for line in lines),
        "rate_a_year": rate,
        "budget": options.budget,
        "years": max(0.0, budget - once) / rate if options.budget is not None and rate else None,
        "accepted": accepted,
        "widened": 1.0 if accepted else widened(asked, options.devices, left),
    }
    if options.json:
        print(json.dumps(facts, allow_nan=False))
    else:
        _show(lines, facts, budget)
    return 0 if accepted else 1


def compiled(folder: Path, devices: int, want: dict[str, tuple[float, str]]) -> list[Line]:
    """Return every survey of a folder, those that something is wanted of at their least cost.

    Args:
        folder: Survey files.
        devices: How many take part.
        want: Half a 95 % interval and its unit, by the survey's id.

    Raises:
        SurveyError: If a file is no valid survey.
        DeployError: If nothing is there, or what is wanted cannot be had, or is of another survey or unit.
    """
    from hubbub_authoring.design import planned  # noqa: PLC0415 - as in `run`
    from hubbub_authoring.files import PlannedTerms, survey_of, survey_text  # noqa: PLC0415
    from hubbub_deploy.files import comparing  # noqa: PLC0415

    lines = []
    with comparing() as study:
        files = sorted(folder.glob("*.toml"))
        surveys = [survey_of(survey_text(file), str(file), compare=study) for file in files]
        known = [survey.id for survey in surveys]
        for name in (*want, *known):
            if known.count(name) != 1:
                rule = f"must name one survey of {folder} ({', '.join(known) or 'which has none'})"
                raise DeployError(f"--want {rule}, got {name}")
        for file, survey in zip(files, surveys, strict=True):
            text, terms, found, points = survey_text(file), (survey.epsilon, survey.rotation), None, True
            if survey.id in want:
                asked, points = wanted_of(survey, text, want[survey.id], study)
                found = planned(asked, devices)
                if found is None:
                    least = (
                        1.96 * math.sqrt(asked.variance(survey.epsilon) / devices) * (100 if points else 1)
                    )
                    width, unit = want[survey.id]
                    raise DeployError(
                        f"--want {survey.id} must be at least {least:.3g}{unit}, an answer in every round at "
                        f"epsilon {survey.epsilon:g} with {devices:,} devices, got {width:g}{unit}"
                    )
                terms = found.epsilon, found.rotation
            own = survey_of(text, str(file), compare=study, planned=PlannedTerms(*terms, devices))
            lines.append(Line(own, found, points))
    return lines


def wanted_of(survey: Survey, text: str, want: tuple[float, str], study: Study) -> tuple[WantedSurvey, bool]:
    """Return what is wanted of a survey, with the errors of its own mechanism; and whether they are shares.

    Args:
        survey: The survey.
        text: Its TOML.
        want: Half a 95 % interval, and its unit.
        study: How "auto" compares mechanisms.

    Raises:
        DeployError: If it is answered once for all rounds, asks for several attributes, or the unit is wrong.
    """
    from hubbub.errors import SurveyError  # noqa: PLC0415 - as in `run`
    from hubbub_authoring.design import (  # noqa: PLC0415
        WantedSurvey,
        Workload,
        measured,
        measured_by_category,
        spread,
    )
    from hubbub_authoring.files import PlannedTerms, survey_of  # noqa: PLC0415
    from hubbub_client.surveys import is_static  # noqa: PLC0415
    from hubbub_deploy.commands.survey import floors  # noqa: PLC0415

    if is_static(survey) or not survey.form.alone:
        raise DeployError(f"--want must be of a survey of one evolving attribute, got {survey.id}")

    def workload_of(at: Survey) -> Workload:
        objective, coin = floors.asked(at, text)
        return Workload.of_survey(at, objective=objective, participation=coin)

    @cache
    def variance(epsilon: float) -> float:
        terms = PlannedTerms(epsilon, 1, survey.planned_devices)
        try:
            at = survey_of(text, survey.id, compare=study, planned=terms)
        except SurveyError:  # its mechanism has no such epsilon
            return math.inf
        workload = workload_of(at)
        measure = measured if at.channel.inputs == workload.inputs else measured_by_category
        return measure("", {}, workload, at.channel).cost * workload.devices

    workload = workload_of(survey)
    width, unit = want
    points = workload.objective.quantity != "mean"
    if unit != ("pt" if points else ""):
        rule = "in percentage points (1pt)" if points else "in the unit of the mean, without pt"
        raise DeployError(f"--want {survey.id} must be {rule}, got {width:g}{unit}")
    error = width / 1.96 / (100.0 if points else 1.0)
    asked = WantedSurvey(survey.id, survey.rounds, error, survey.epsilon, variance, spread(workload))
    return asked, points


def queries(surveys: list[Survey]) -> list[Any]:
    """Return what a filter is asked for by a device that joins all surveys, whatever slots it draws."""
    from hubbub_client.surveys import MEMOISED, is_static, scheduled_query  # noqa: PLC0415 - as in `run`

    return [
        scheduled_query(survey, slot, pin_version=0)
        for survey in surveys
        for slot in ((MEMOISED,) if is_static(survey) else range(0, survey.rounds, survey.rotation))
    ]


def _show(lines: list[Line], facts: dict[str, Any], budget: float) -> None:
    """Print the programme for people."""
    from hubbub_deploy.commands.survey.given_up import factor, no_round_shown  # noqa: PLC0415 - as in `run`

    rows = [("survey", "epsilon", "rotation", "asked a round", "standard error", "±", "at most", "a year")]
    for line in lines:
        survey, error = line.survey, "-"
        half = "-"
        if line.planned is not None:
            scale, unit = (100.0, " points") if line.points else (1.0, "")
            error = f"{line.planned.error * scale:.3g}{unit}"
            half = f"{1.96 * line.planned.error * scale:.3g}"
        rows.append(
            (
                survey.id,
                f"{survey.epsilon:.4g}",
                f"{survey.rotation:,}" if survey.rotation > 1 else "none",
                f"{100.0 / survey.rotation:.3g} %",
                error,
                half,
                f"{line.reserved:.4g}",
                f"{line.a_year:.3g}" if line.a_year else "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]))
    reserved, rate = facts["reserved"], facts["rate_a_year"]
    print(
        f"\n± is half a 95 % interval of a round about all {facts['devices']:,} devices. A device that joins "
        f"all of it reserves {reserved:.4g} at most (odds change by up to {factor(reserved)}) and spends "
        f"{facts['spent']:.4g} on average. In any 7 days at most {facts['window']:.4g}: so much all answers "
        f"tell about what changed then alone, odds by up to {factor(facts['window'])}."
    )
    if rate:
        lasts = "" if facts["years"] is None else f"; a budget of {budget:g} lasts {facts['years']:.3g} years"
        print(
            f"Going on like this is a rate and no bound for life: {rate:.3g} a year, {5 * rate:.3g} in 5 "
            f"years{lasts}."
        )
    word = "accepts" if facts["accepted"] else "refuses"
    print(f"A privacy filter with a budget of {budget:.4g} {word} the whole programme.")
    if not facts["accepted"]:
        wider = facts["widened"]
        print(
            f"It accepts one whose intervals are {wider:.3g} times as wide."
            if wider is not None
            else "It accepts none of these surveys, however wide the intervals."
        )
    for line in lines:
        if (empty := no_round_shown(line.survey)) is not None:
            print(f"Warning: {line.survey.id}: {empty}.")
