"""Surveys that a lifetime budget holds: adding epsilons against the filters.

    python bench/papers/lifetime.py            40 devices a series: the table
    python bench/papers/lifetime.py --alike    the same if everybody has the first value of everything

Every survey asks for one answer about a static attribute, drawn once and sent again in later rounds for
nothing. A survey is offered, and answered if the filter takes it, before the next one is offered. Values are
drawn uniformly and independently: how much a device's answers have in common is up to the noise far more than
to the values, as `--alike` shows. Adding epsilons is shown twice, with and without the memo.

The figures:

*of ten*: how many of the ten fit half of the sum of their epsilons, in turn, refused ones left out;
*again*: the ten are asked anew year after year, each with a fresh answer: how many before the first refusal;
*needed*: the budget with which none of the ten would have been refused.

A number is the mean over devices; in brackets what 5 % stay below and 5 % exceed, where devices differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.filter import BayesianFilter
from hubbub.testing import seeded
from hubbub_authoring import mechanisms
from hubbub_lab.filters import ApproximateFilter, SimplifiedFilter

DEVICES, ROUNDS, DELTA = 40, 12, 1e-6
MOST = 500
"""Answers of a device at which it is asked no more."""

Account = BayesianFilter | ApproximateFilter
ACCOUNTS: dict[str, Callable[[float], Account]] = {
    "simplified": SimplifiedFilter,
    "full": BayesianFilter,
    "approximate": lambda budget: ApproximateFilter(budget, delta=DELTA),
}


@dataclass(frozen=True)
class Question:
    """One survey: what it reads of which attribute, and the channel of its answer."""

    attribute: str
    channel: Channel
    mapping: NDArray[np.intp] | None = None

    @property
    def values(self) -> int:
        """The number of values of its attribute."""
        return self.channel.inputs if self.mapping is None else len(self.mapping)


AGES = 74
"""17 to 90."""


def by_age(ends: list[int], epsilon: float, boost_epsilon: float) -> Question:
    """Return age in years by PB-GRR with categories up to, and without, each of these ages."""
    sizes = np.diff([17, *ends, 91]).tolist()
    return Question("age", mechanisms.pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost_epsilon))


def read(attribute: str, sizes: list[int], epsilon: float) -> Question:
    """Return which category, of these sizes, a value is in, by GRR."""
    mapping = np.repeat(np.arange(len(sizes)), sizes)
    mapping.setflags(write=False)
    return Question(attribute, mechanisms.grr(len(sizes), epsilon=epsilon), mapping)


def grouped(attribute: str, sizes: list[int], epsilon: float, boost_epsilon: float) -> Question:
    """Return a value by PB-GRR with categories of these sizes."""
    return Question(attribute, mechanisms.pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost_epsilon))


def plain(attribute: str, values: int, epsilon: float) -> Question:
    """Return a value by GRR."""
    return Question(attribute, mechanisms.grr(values, epsilon=epsilon))


TENS = [20, 30, 40, 50, 60, 70, 80]
FIVES = [25, 35, 45, 55, 65, 75]
PROGRAMME = [
    by_age(TENS, 2.0, 1.0),
    plain("sex", 2, 0.5),
    grouped("education", [8, 4, 4], 2.0, 1.0),
    read("age", [8, 15, 20, 31], 1.0),
    plain("income", 2, 1.0),
    grouped("marital status", [2, 5], 1.5, 0.75),
    read("age", [48, 26], 0.5),
    grouped("region", [2, 2, 3, 2], 1.5, 0.5),
    read("education", [12, 4], 0.5),
    by_age(FIVES, 2.0, 1.0),
]
APART = [2, 16, 7, 9, 2, 5, 6, 14, 4, 50]
SERIES: dict[str, tuple[list[Question], float]] = {
    "a demographic programme": (PROGRAMME, 12.5),
    "ten groupings of age, PB-GRR at 1": ([by_age([e + i for e in TENS], 1.0, 0.5) for i in range(10)], 10.0),
    "ten groupings of age, PB-GRR at 3": ([by_age([e + i for e in TENS], 3.0, 1.5) for i in range(10)], 30.0),
    "ten attributes, GRR at 1": ([plain(f"attribute {i}", k, 1.0) for i, k in enumerate(APART)], 10.0),
    "500 days of one that changes, GRR at 0.01": ([plain(f"day {i}", 5, 0.01) for i in range(MOST)], 1.0),
}
"""Surveys, and the budget of `again`."""


def record_of(questions: list[Question], seed: int, *, alike: bool) -> dict[str, int]:
    """Return one value for every attribute."""
    rng = np.random.default_rng(seed)
    sizes = {question.attribute: question.values for question in questions}
    return {attribute: 0 if alike else int(rng.integers(size)) for attribute, size in sizes.items()}


class Device:
    """One record, its account and its own noise."""

    def __init__(self, account: Account, record: dict[str, int], seed: int) -> None:
        self.account, self.record, self.source = account, record, seeded(seed)

    def takes(self, question: Question) -> bool:
        """Ask for a survey, answer it if it is accepted, and return whether it was."""
        ticket = self.account.reserve(question.attribute, question.channel, mapping=question.mapping)
        if ticket is None:
            return False
        value = self.record[question.attribute]
        if question.mapping is not None:
            value = int(question.mapping[value])
        self.account.record(ticket, question.channel.perturb(value, source=self.source))
        return True


def held_of_ten(questions: list[Question], device: Device) -> int:
    """Return the number accepted, one after the other."""
    return sum([device.takes(question) for question in questions])


def held_again(questions: list[Question], device: Device) -> int:
    """Return the surveys answered before the first refusal, the series repeated, MOST at most."""
    held = 0
    while held < MOST and device.takes(questions[held % len(questions)]):
        held += 1
    return held


def needed(questions: list[Question], device: Device) -> float:
    """Return the least budget with which every one of the series would have been accepted in its turn."""
    assert isinstance(device.account, BayesianFilter)
    most = 0.0
    for question in questions:
        ticket = device.account.reserve(question.attribute, question.channel, mapping=question.mapping)
        assert ticket is not None
        most = max(most, device.account.committed)
        value = device.record[question.attribute]
        value = value if question.mapping is None else int(question.mapping[value])
        device.account.record(ticket, question.channel.perturb(value, source=device.source))
    return most


def total(questions: list[Question]) -> float:
    """Return the sum of the declared epsilons, which are certified to within 10^-8 of it."""
    return round(sum(question.channel.epsilon for question in questions), 4)


def added(questions: list[Question], budget: float, *, rounds: int = 1) -> tuple[int, int]:
    """Return, by adding epsilons, how many come before the first refusal, and how many with it left out."""
    costs = [rounds * question.channel.epsilon for question in questions]
    spent, held = 0.0, 0
    for cost in costs:
        if spent + cost <= budget:
            spent, held = spent + cost, held + 1
    return int((np.cumsum(costs) <= budget).sum()), held


def shown(found: NDArray[np.float64], digits: int) -> str:
    """Return the mean and the spread."""
    low, high = np.quantile(found, [0.05, 0.95])
    mean = f"{found.mean():.{digits}f}"
    return (
        mean
        if f"{low:.{digits}f}" == f"{high:.{digits}f}"
        else f"{mean} ({low:.{digits}f}-{high:.{digits}f})"
    )


def rows(devices: int, *, alike: bool = False) -> Iterator[str]:
    """Print the table, a line for every series and figure."""
    for name, (questions, budget) in SERIES.items():
        one = total(questions)
        some = devices if len(questions) == 10 else 2  # lone answers of GRR cost all devices the same
        records = [record_of(questions, seed, alike=alike) for seed in range(some)]

        def over(
            figure: Callable[[list[Question], Device], float],
            make: Callable[[float], Account],
            allowed: float,
            questions: list[Question] = questions,
            records: list[dict[str, int]] = records,
        ) -> NDArray[np.float64]:
            made = [Device(make(allowed), record, seed) for seed, record in enumerate(records)]
            return np.array([figure(questions, device) for device in made])

        asked = (questions * MOST)[:MOST]
        cells = " | ".join(shown(over(held_again, make, budget), 1) for make in ACCOUNTS.values())
        plain = f"{added(asked, budget, rounds=ROUNDS)[0]} | {added(asked, budget)[0]}"
        yield f"| {name} | again, budget {budget:g} | {plain} | {cells} |"
        if len(questions) != 10:
            continue
        cells = " | ".join(shown(over(held_of_ten, make, one / 2), 1) for make in ACCOUNTS.values())
        plain = f"{added(questions, one / 2, rounds=ROUNDS)[1]} | {added(questions, one / 2)[1]}"
        yield f"| | of ten, budget {one / 2:g} | {plain} | {cells} |"
        wanted = [over(needed, make, 4 * one) for make in (SimplifiedFilter, BayesianFilter)]
        cells = " | ".join(shown(found, 2) for found in wanted)
        yield f"| | needed | {ROUNDS * one:g} | {one:g} | {cells} | |"


HEAD = f"""| series | figure | adding, {ROUNDS} rounds | adding | simplified | full | approximate |
|---|---|---|---|---|---|---|"""


def main() -> int:
    parser = argparse.ArgumentParser(description="How many surveys a lifetime budget holds.")
    parser.add_argument("--devices", type=int, default=DEVICES, help=f"of each series (default {DEVICES})")
    parser.add_argument("--alike", action="store_true", help="all devices have the first value of everything")
    arguments = parser.parse_args()
    print(HEAD)
    for row in rows(arguments.devices, alike=arguments.alike):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
