"""Transitions by real agents: each with a ledger file, over the two rounds that an answer reads.

    python bench/transition.py                    5,000 agents and 20,000 rounds: two minutes
    python bench/transition.py --agents 50000     more, where there is the time

Five values, epsilon 1. A tenth of the devices has no value in the first round, a tenth none in the second;
the others move from each value to each of the five alike. Every agent sets its value, is closed, and comes
back in the second round from its ledger alone, as after a restart. Then its answer is made, and its ledger
must hold no value any more. Told is the largest error of a cell in standard errors of its estimate; the exit
status is 1 where it is 5 or more, or a ledger still holds a value.

Then rounds of 500 devices, a twenty-fifth of them at each pair of values, by the same channels and no
agents: n Var of a pair beside its formula, and of same and changed. The last row asks for the value in both
rounds, at half the epsilon each, as if the two answers of a device could be linked. Of 20,000 rounds the
figure of a category has a standard error of 1 %: the exit status is 1 where one is off by 5 % or more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub import Survey
from hubbub.estimation import estimator_for
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import subset_selection
from hubbub_client import Agent, Policy
from hubbub_client.testing import FakeClock, FakeCollector

START_S: Final = 1767225600  # 2026-01-01T00:00:00Z
DAY_S: Final = 86_400
AGREED: Final = Policy(require_opt_in="no")
TOO_FAR: Final = 5.0
SMALL: Final = 500
CLOSE: Final = 0.05
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


def simulated(asks: str, rounds: int) -> bool:
    """Print n Var of a pair and of a category beside the formulas; return whether they are within 5 %."""
    survey = Survey.parse(TEMPLATE.format(asks=asks, agents=SMALL))
    pairs, source = np.arange(SMALL) % 25, seeded(rounds)
    told = np.array([survey.input_of(*divmod(pair, 5)) for pair in range(25)])[pairs]
    counted, estimator = np.bincount(told, minlength=survey.channel.inputs) / SMALL, survey.estimator()
    cells, squares = np.unique(told), np.zeros((2, rounds))
    groups = np.array([0.2, 0.8]) if asks == "changed" else np.empty(0)
    for number in range(rounds):
        found = estimator(survey.channel.tally(survey.channel.perturb(told, source=source)), SMALL)
        squares[0, number] = np.square((found.values - counted)[cells]).mean()
        squares[1, number] = np.square(found.categories[: len(groups)] - groups).sum() / 2.0
    stated = estimator.expected_estimate(counted, SMALL)
    formulas = [np.square(stated.value_errors[cells]).mean(), np.square(stated.category_errors[:2]).mean()]
    return row(asks, rounds, squares, formulas if len(groups) else formulas[:1])


def linked_halves(rounds: int) -> bool:
    """Print the row of two answers at half the epsilon, by the best subsets of six inputs."""
    channel, source = subset_selection(6, epsilon=0.5), seeded(rounds)
    of_one = estimator_for(channel).expected_estimate(np.eye(6)[0], 1)
    own, rest = np.square(of_one.value_errors[:2])  # of a report's score for its own value, and any other
    told = [each[np.arange(SMALL) % 25] for each in np.divmod(np.arange(25), 5)]
    support = channel.levels[0].support
    p, q = float(support.p), float(support.q)
    squares = np.zeros((1, rounds))
    for number in range(rounds):
        sets = [
            np.unpackbits(channel.perturb(each, source=source), axis=1, bitorder="little") for each in told
        ]
        then, now = ((each[:, :5] - q) / (p - q) for each in sets)
        squares[0, number] = np.square(then.T @ now / SMALL - 0.04).mean()
    both, neither = (own + 1.0) ** 2, rest**2
    formula = (0.04 * both + 0.32 * (own + 1.0) * rest + 0.64 * neither - 0.04) / SMALL
    return row("values, linked", rounds, squares, [formula])


def row(asks: str, rounds: int, squares: NDArray[np.float64], formulas: Sequence[float]) -> bool:
    """Print n Var as simulated and by formula; return whether they are within 5 %."""
    pairs = [(SMALL * found, SMALL * one) for found, one in zip(squares.mean(axis=1), formulas, strict=False)]
    cells = [f"{found:.2f} | {one:.2f}" for found, one in pairs] + ["|"] * (2 - len(pairs))
    print(f"| {asks} | {rounds:,} | {' | '.join(cells)} |", flush=True)
    return all(abs(found / one - 1.0) < CLOSE for found, one in pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=20_000)
    options = parser.parse_args(arguments)
    print(
        "| asked | agents | inputs | largest error, standard errors | n Var stated | values left in ledgers |"
    )
    print("|---|---|---|---|---|---|")
    good = [run(asks, options.agents) for asks in ("pairs", "changed")]
    print("\n| asked | rounds | n Var of a pair | by formula | of same or changed | by formula |")
    print("|---|---|---|---|---|---|")
    good += [simulated(asks, options.rounds) for asks in ("pairs", "changed")]
    good.append(linked_halves(options.rounds))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
