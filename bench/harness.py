"""A survey about one attribute, a timer that takes turns, and a line of figures, for many benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def integers(low: int, high: int) -> str:
    """Return the domain of integers as TOML lines."""
    return f'type = "integer"\nlow = {low}\nhigh = {high}'


def labels(names: list[str]) -> str:
    """Return the domain of labels as TOML lines."""
    listed = ", ".join(f'"{name}"' for name in names)
    return f'type = "label"\nlabels = [{listed}]'


def survey_text(
    survey_id: str,
    domain: str,
    *,
    epsilon: float,
    attribute: str = "",
    kind: str = "evolving",
    cohort: int = 100,
    devices: int = 100_000,
    start: str = "2026-01-01T00:00:00Z",
    period: str = "1d",
    rounds: int = 1,
    lateness: str = "1h",
    skew: str = "5m",
    mechanism: str = 'name = "grr"',
) -> str:
    """Return the text of a survey about one attribute.

    Args:
        survey_id: Its id.
        domain: The attribute's type and domain, as TOML lines.
        epsilon: Of a report.
        attribute: The attribute's id; the survey's if empty.
        kind: The attribute's kind.
        cohort: The minimum cohort.
        devices: Planned devices.
        start: Of the first round.
        period: Of a round.
        rounds: How many.
        lateness: After a round's end.
        skew: Of clocks.
        mechanism: The mechanism's keys, as TOML lines; categories may follow.
    """
    return f"""
id = "{survey_id}"
version = 1
title = "{survey_id}"
epsilon = {epsilon}
minimum_cohort = {cohort}
planned_devices = {devices}
[schedule]
start = {start}
round = "{period}"
rounds = {rounds}
lateness = "{lateness}"
skew = "{skew}"
[attribute]
id = "{attribute or survey_id}"
kind = "{kind}"
{domain}
[mechanism]
{mechanism}
"""


def best(
    *jobs: Callable[[], object], repeats: int = 9, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the least seconds of each job, the jobs taken in turn."""
    least = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            start = clock()
            job()
            least[i] = min(least[i], clock() - start)
    return least


def line(what: str, value: str, ratio: str = "", target: str = "") -> None:
    """Print one figure."""
    print(f"  {what:58} {value:>16}  {ratio:22} {target}".rstrip())
