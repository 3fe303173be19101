"""`hubbub survey design --over ROUNDS --budget E`: few answers of a large epsilon, or many of a small one."""

from __future__ import annotations

import json
import math
from typing import Literal

from hubbub import Survey
from hubbub_authoring.design import LifetimePlan, Spending, Workload
from hubbub_deploy.commands.survey.given_up import factor


def show(
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print("  ".join([*cells, row[-1]]))
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
