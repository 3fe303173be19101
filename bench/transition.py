"""Transitions by real agents: each with a ledger file, over the two rounds that an answer reads.

    python bench/transition.py                    5,000 agents, flat and by same and changed
    python bench/transition.py --agents 50000     more, where there is the time

Five values, epsilon 1. A tenth of the devices has no value in the first round, a tenth none in the second;
the others move from each value to each of the five alike. Every agent sets its value, is closed, and comes
back in the second round from its ledger alone, as after a restart. Then its answer is made, and its ledger
must hold no value any more. Told is the largest error of a cell in standard errors of its estimate; the exit
status is 1 where it is 5 or more, or a ledger still holds a value.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from hubbub import Survey
from hubbub_client import Agent, Policy
from hubbub_client.testing import FakeClock, FakeCollector

START_S: Final = 1767225600  # 2026-01-01T00:00:00Z
DAY_S: Final = 86_400
AGREED: Final = Policy(require_opt_in="no")
TOO_FAR: Final = 5.0
TEMPLATE: Final = """
id = "way"
version = 1
title = "Who changed"
epsilon = 1.0
minimum_cohort = 100
planned_devices = {agents}
[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 2
lateness = "1h"
skew = "5m"
[attribute]
id = "way"
kind = "evolving"
type = "integer"
low = 0
high = 4
[transition]
lag = 1
asks = "{asks}"
[mechanism]
name = "auto"
"""


def values(number: int) -> tuple[int | None, int | None]:
    """Return an agent's value then and now."""
    then, now = divmod(number % 25, 5)
    return None if number % 10 == 3 else then, None if number % 10 == 7 else now


def answer(survey: Survey, folder: Path, number: int) -> tuple[int | bytes, int]:
    """Return the symbol that an agent sends, and how many values its ledger holds after the answer."""
    clock, before = FakeClock(START_S + 60.0), values(number)
    path, collector = folder / f"{number}.db", FakeCollector(survey, clock=clock)
    for place, value in enumerate(before):
        clock.now_s = START_S + place * DAY_S + 60.0
        with Agent(
            path, "http://none.invalid", budget=4.0, policy=AGREED, clock=clock, http=collector
        ) as agent:
            agent.register(survey.attribute)
            agent.enrol(survey)
            if value is not None:
                agent.set("way", value)
            agent.answer()
            if place == 1:
                agent.upload()
                held = len(agent._ledger.kept_values())
    for each in folder.glob(f"{number}.db*"):
        each.unlink()
    (report,) = collector.reports.values()
    return report.symbol, held


def run(asks: str, agents: int) -> bool:
    """Print a row for a way of asking; return whether all went well."""
    survey = Survey.parse(TEMPLATE.format(asks=asks, agents=agents))
    truth = np.zeros(survey.channel.inputs)
    symbols, held = [], 0
    with tempfile.TemporaryDirectory(prefix="hubbub-transition-") as name:
        for number in range(agents):
            symbol, kept = answer(survey, Path(name), number)
            symbols.append(symbol)
            held += kept
            truth[survey.input_of(*values(number))] += 1 / agents
    estimate = survey.estimate(symbols)
    errors = np.abs(estimate.values - truth) / estimate.value_errors
    cell = agents * float(np.mean(np.square(estimate.value_errors[:-1])))
    print(
        f"| {asks}, {survey.channel.kind} | {agents:,} | {survey.channel.inputs} | {errors.max():.2f} | "
        f"{cell:.2f} | {held} |"
    )
    return bool(errors.max() < TOO_FAR) and held == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=5000)
    agents = parser.parse_args(arguments).agents
    print(
        "| asked | agents | inputs | largest error, standard errors | n Var stated | values left in ledgers |"
    )
    print("|---|---|---|---|---|---|")
    good = [run(asks, agents) for asks in ("pairs", "changed")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
