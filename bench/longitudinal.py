"""Averaging and linkage attacks on what real agents sent over many rounds, beside the best possible.

    python bench/longitudinal.py                  600 agents each: the table that is kept in evidence/,
                                                  docs/figures/longitudinal.svg
    python bench/longitudinal.py --agents 20 --rounds 8 --plot ""

Agents with a ledger on disk answer to a collector in memory, which keeps the reports of a device together:
the attacker links all of them, knows surveys and channels, and guesses by the likelihood of all answers,
which no guess can beat where all candidates are equally likely. It is tried on

*a memoised answer*: one static value, the same symbol every round;
*fresh answers*: an evolving attribute that in truth never changes, with noise of its own every round;
*a broken memo* (the control): a static value, answered anew every round while the account counts one answer;
*who it is*: four static facts; the attacker knows those of all devices, and guesses whose transcript it has;
*rounds*: the devices of one round are known; whose is a report of the next one;
*a correction*: whether the owner corrected the value.

The bound is 1 / (1 + (candidates - 1) e^-loss) with the loss that the agent's own account states, on average
over the agents. No attacker exceeds it by more than chance: the posterior odds of two candidates are at most
e^loss. The account of fresh answers adds their losses, because the values of two rounds may have nothing in
common; for a value that never changes, *the same* has the bound of answers about one value.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from harness import integers, survey_text
from line_plot import Line, Panel, write_plot
from numpy.typing import NDArray
from scipy.stats import binom

from hubbub.numeric import SYSTEM, Source
from hubbub.survey import Survey
from hubbub_client import Agent, Limits, Policy
from hubbub_client.testing import FakeClock, FakeCollector

SVG: Final = Path(__file__).parents[1] / "docs" / "figures" / "longitudinal.svg"
START_S: Final = 1767225600  # 2026-01-01T00:00:00Z
AGREED: Final = Policy(require_opt_in="no")
BUDGET: Final = 50.0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def survey(name: str, values: int, epsilon: float, rounds: int, *, kind: str) -> Survey:
    """Return a daily survey of one attribute by randomised response."""
    domain, crowd = integers(0, values - 1), {"cohort": 10, "devices": 20_000}
    return Survey.parse(survey_text(name, domain, epsilon=epsilon, rounds=rounds, kind=kind, **crowd))


class BrokenMemo(dict[Any, Any]):
    """A memo that answers with a new draw whenever it is asked: the control."""

    def __init__(self, draw: Callable[[], int]) -> None:
        super().__init__()
        self._draw = draw

    def get(self, key: object, default: object = None) -> object:
        """Return another answer than the one that the account knows."""
        return self._draw() if key in self else default


@dataclass(frozen=True, eq=False)
class Transcripts:
    """The reports of agents, as the collector has them.

    Attributes:
        symbols: Of every agent, survey and round, shape (n, surveys, rounds).
        losses: Realised loss that the agent's account states after each round, nats, shape (n, rounds).
    """

    symbols: Integers
    losses: Floats


def transcripts(
    surveys: Sequence[Survey],
    values: Integers,
    rounds: int,
    *,
    broken: bool = False,
    corrected: tuple[int, Integers] | None = None,
    source: Source = SYSTEM,
) -> Transcripts:
    """Let agents answer round after round, and return what arrived.

    Args:
        surveys: Of one attribute each.
        values: One per agent and survey, shape (n, surveys).
        rounds: How many days.
        broken: True for the control; one survey.
        corrected: A round, and the values that owners then set right, -1 for none, shape (n,); one survey.
        source: Of the control's draws after the first; agents draw from the operating system.
    """
    symbols = np.full((*values.shape, rounds), -1, dtype=np.int64)
    losses = np.zeros((len(values), rounds))
    place = {each.digest: i for i, each in enumerate(surveys)}
    for number, own in enumerate(values.tolist()):
        clock = FakeClock(float(START_S))
        collector = FakeCollector(*surveys, clock=clock)
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            agent = stack.enter_context(_agent(Path(folder) / "ledger.db", clock, collector))
            for each, value in zip(surveys, own, strict=True):
                agent.register(each.attribute)
                agent.set(each.attribute.id, value)
                assert agent.enrol(each).accepted
            if broken:
                (only,), (value,) = surveys, own
                agent._state.filter_state.recorded = BrokenMemo(
                    lambda only=only, value=value: int(
                        only.channel.perturb(only.input_of(value), source=source)
                    )
                )
            for day in range(rounds):
                if corrected is not None and day == corrected[0] and corrected[1][number] >= 0:
                    done = agent.correct(surveys[0].attribute.id, int(corrected[1][number]))
                    assert done.status == "corrected"
                assert len(agent.answer()) == len(surveys)
                while agent.upload().waiting:
                    clock.advance(1.0)
                losses[number, day] = agent.status().loss
                clock.now_s = float(START_S + (day + 1) * 86_400)
        for report in collector.reports.values():
            symbols[number, place[report.digest], report.round] = report.symbol
    assert (symbols >= 0).all()
    return Transcripts(symbols, losses)


def _agent(path: Path, clock: FakeClock, collector: FakeCollector) -> Agent:
    agent = Agent(
        path,
        "",
        budget=BUDGET,
        policy=AGREED,
        clock=clock,
        http=collector,
        limits=Limits(gap_s=0.0, max_reports=64),
    )
    agent._ledger._db.execute("PRAGMA synchronous = OFF")  # what is measured is not the disk
    return agent


def guess_bound(losses: Floats, candidates: int) -> float:
    """Return the largest chance of a right guess among equally likely candidates, on average over devices."""
    return float(np.mean(1.0 / (1.0 + (candidates - 1) * np.exp(-losses))))


def log_likelihoods(asked: Survey, symbols: Integers) -> Floats:
    """Return ln Pr(symbols so far | value) for every value, shape (n, values, rounds)."""
    weights = np.log(np.asarray(asked.channel.weights(), dtype=np.float64))[:-1]  # nobody's value is missing
    return np.cumsum(weights[:, symbols].transpose(1, 0, 2), axis=2)


def known_constant_bound(asked: Survey, seen: Transcripts) -> list[float]:
    """Return the bound of every number of rounds for whoever knows that a value never changes.

    All answers are then about one value, so that likelihoods merge, as on one coordinate of an odometer.
    """
    scores = log_likelihoods(asked, seen.symbols[:, 0])
    return [guess_bound(loss, asked.channel.inputs - 1) for loss in np.ptp(scores, axis=1).T]


def best_of(scores: Floats, rng: np.random.Generator) -> Integers:
    """Return the candidate of most likelihood of each row, any of those that tie."""
    tied = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return np.asarray((tied * rng.random(tied.shape)).argmax(axis=1))


def value_hits(asked: Survey, seen: Transcripts, values: Integers, rng: np.random.Generator) -> Integers:
    """Return how many values are guessed right from the first rounds, for every number of rounds."""
    scores = log_likelihoods(asked, seen.symbols[:, 0])
    return np.array([(best_of(scores[:, :, r], rng) == values).sum() for r in range(scores.shape[2])])


def owner_hits(
    surveys: Sequence[Survey], seen: Transcripts, values: Integers, rng: np.random.Generator
) -> Integers:
    """Return how many transcripts are given to their owner, who is one of all, for every number of surveys.

    Where every round repeats a memo, only its first round is read.
    """
    scores, found = np.zeros((len(values), len(values))), []
    for place, asked in enumerate(surveys):
        last = log_likelihoods(asked, seen.symbols[:, place, :1])[:, :, -1]
        scores += last[:, values[:, place]]
        found.append((best_of(scores, rng) == np.arange(len(values))).sum())
    return np.array(found)


def link_hits(seen: Transcripts, asked: Survey | None, rng: np.random.Generator) -> int:
    """Return how many reports of the second round are given to the device that sent them.

    Args:
        seen: Transcripts of two rounds and more.
        asked: The survey of fresh answers; None where answers are memoised and equal ones are linked.
        rng: Breaks ties.
    """
    first, second = seen.symbols[:, :, 0], seen.symbols[:, :, 1]
    if asked is None:
        scores = (first[:, None, :] == second[None, :, :]).all(axis=2).astype(np.float64)
    else:
        weights = np.asarray(asked.channel.weights(), dtype=np.float64)[:-1]
        both = weights.T @ weights  # how likely two answers are of one value, all values alike
        scores = np.log(both[first[:, 0][:, None], second[:, 0][None, :]])
    return int((best_of(scores, rng) == np.arange(len(first))).sum())


def above(hits: int, tries: int, bound: float) -> float:
    """Return the chance of at least so many hits if every one had the bound's (Hoeffding 1956)."""
    return float(binom.sf(hits - 1, tries, bound))


@dataclass(frozen=True)
class Attack:
    """The outcome of one attack.

    Attributes:
        name: What was attacked, and how.
        hits: Right guesses.
        tries: Guesses.
        blind: Share of right guesses without any report.
        bound: The most that any attacker can expect; nan where there is none.
        said: What the bound is made of.
    """

    name: str
    hits: int
    tries: int
    blind: float
    bound: float
    said: str

    def row(self) -> str:
        """Return its line of the table."""
        if math.isnan(self.bound):
            bound, chance = "none", ""
        else:
            bound, chance = f"{100 * self.bound:.1f} %", f"{above(self.hits, self.tries, self.bound):.2g}"
        return (
            f"| {self.name} | {100 * self.hits / self.tries:.1f} % of {self.tries} "
            f"| {100 * self.blind:.1f} % | {bound} | {chance} | {self.said} |"
        )


HEAD: Final = """| attack | right | blind | bound | chance of as many at the bound | the bound is of |
|---|---|---|---|---|---|"""

MEMO_EPSILON, FRESH_EPSILON, FACT_EPSILON, VALUES = 2.0, 0.2, 1.0, 16
FACTS: Final = {"age": 8, "region": 9, "household": 6, "income": 10}


Lines = dict[str, Sequence[tuple[float, float]]]


def drawn(found: Sequence[float] | Floats) -> Sequence[tuple[float, float]]:
    """Return shares as points in percent, the first at 1."""
    return [(i + 1.0, 100.0 * float(y)) for i, y in enumerate(found)]


def value_attacks(agents: int, rounds: int, rng: np.random.Generator, lines: Lines) -> Iterator[Attack]:
    """Yield what many rounds say about one value, and which rounds are of one device."""
    for key, name, kind, epsilon in (
        ("memo", "a memoised answer", "static", MEMO_EPSILON),
        ("broken", "a broken memo (control)", "static", MEMO_EPSILON),
        ("fresh", "fresh answers", "evolving", FRESH_EPSILON),
    ):
        asked = survey(key, VALUES, epsilon, rounds, kind=kind)
        values = rng.integers(VALUES, size=(agents, 1))
        seen = transcripts([asked], values, rounds, broken=key == "broken")
        hits = value_hits(asked, seen, values[:, 0], rng)
        bounds = [guess_bound(seen.losses[:, day], VALUES) for day in range(rounds)]
        lines[key], lines[f"{key} bound"] = drawn(hits / agents), drawn(bounds)
        for day in (0, rounds - 1):
            said = f"stated loss {seen.losses[:, day].mean():.2f}"
            many = "1 round" if day == 0 else f"{day + 1} rounds"
            yield Attack(f"{name}, {many}", int(hits[day]), agents, 1 / VALUES, bounds[day], said)
        if key == "fresh":
            constant = known_constant_bound(asked, seen)
            lines["fresh constant"] = drawn(constant)
            said = "the answers, as of one value"
            yield Attack(f"the same, {many}", int(hits[-1]), agents, 1 / VALUES, constant[-1], said)
            most = guess_bound(np.full(1, 2.0 * asked.channel.epsilon), agents)
            linked, said = link_hits(seen, asked, rng), "twice a round's epsilon"
        else:
            most = min(1.0, asked.channel.outputs / agents)
            linked, said = link_hits(seen, None, rng), f"{asked.channel.outputs} symbols"
        if key != "broken":
            yield Attack(f"next round, by {name}", linked, agents, 1 / agents, most, said)


def owner_attacks(agents: int, rng: np.random.Generator, lines: Lines) -> Iterator[Attack]:
    """Yield what memoised answers about four facts say about who answered."""
    facts = [survey(name, size, FACT_EPSILON, 2, kind="static") for name, size in FACTS.items()]
    known = np.stack([rng.integers(size, size=agents) for size in FACTS.values()], axis=1)
    seen = transcripts(facts, known, 2)
    owners = owner_hits(facts, seen, known, rng)
    epsilons = np.cumsum([each.channel.epsilon for each in facts])
    bounds = [guess_bound(np.full(1, epsilon), agents) for epsilon in epsilons]
    lines["owner"], lines["owner bound"] = drawn(owners / agents), drawn(bounds)
    for place in (0, len(facts) - 1):
        name = "who it is, by 1 fact" if place == 0 else f"who it is, by {place + 1} facts"
        said = f"epsilon {epsilons[place]:.2f}"
        yield Attack(name, int(owners[place]), agents, 1 / agents, bounds[place], said)
    together = math.prod(each.channel.outputs for each in facts)
    linked, most = link_hits(seen, None, rng), min(1.0, together / agents)
    yield Attack("next round, by four memos", linked, agents, 1 / agents, most, f"{together:,} quadruples")


def correction_attack(agents: int, rng: np.random.Generator) -> Attack:
    """Return what a changed memo says about whether an owner, one in two, corrected the value."""
    asked = survey("moved", VALUES, MEMO_EPSILON, 2, kind="static")
    values = rng.integers(VALUES, size=(agents, 1))
    moved = np.where(np.arange(agents) % 2 == 0, (values[:, 0] + 1) % VALUES, -1)
    seen = transcripts([asked], values, 2, corrected=(1, moved))
    changed = seen.symbols[:, 0, 0] != seen.symbols[:, 0, 1]
    hits = int((changed == (moved >= 0)).sum())
    return Attack("a correction, by a changed memo", hits, agents, 0.5, math.nan, "no epsilon covers it")


def main() -> int:
    parser = argparse.ArgumentParser(description="Attacks on what real agents sent over many rounds.")
    parser.add_argument("--agents", type=int, default=600, help="of each kind (default 600)")
    parser.add_argument("--rounds", type=int, default=30, help="(default 30)")
    parser.add_argument("--plot", default=str(SVG), help="the figure to write; empty for none")
    arguments = parser.parse_args()
    agents, rounds = arguments.agents, arguments.rounds
    rng, lines = np.random.default_rng(1), {}
    print(f"{agents} agents of each kind, {rounds} rounds, {VALUES} values, by randomised response\n")
    print(HEAD, flush=True)
    for attack in value_attacks(agents, rounds, rng, lines):
        print(attack.row(), flush=True)
    for attack in owner_attacks(agents, rng, lines):
        print(attack.row(), flush=True)
    print(correction_attack(agents, rng).row())
    if arguments.plot:
        plot(Path(arguments.plot), lines, agents)
    return 0


GREEN, RED, BLUE = "#1b7f5c", "#d0021b", "#3b5bb5"


def plot(path: Path, lines: Lines, agents: int) -> None:
    """Draw success beside bounds."""
    right = "% guessed right"
    last = int(lines["memo"][-1][0])
    rounds = sorted({1, *range(5, last, 5), last})
    memo = [
        Line("attack", GREEN, lines["memo"]),
        Line("bound", GREEN, lines["memo bound"], dashed=True),
        Line("broken memo", RED, lines["broken"]),
    ]
    fresh = [
        Line("attack", BLUE, lines["fresh"]),
        Line("bound", BLUE, lines["fresh bound"], dashed=True),
        Line("if it never changes", "#888888", lines["fresh constant"], dashed=True),
    ]
    owner = [
        Line("attack", GREEN, lines["owner"]),
        Line("bound", GREEN, lines["owner bound"], dashed=True),
    ]
    write_plot(
        path,
        [
            Panel(f"Memoised, epsilon {MEMO_EPSILON:g} in all", "rounds seen", right, memo, 100.0, rounds),
            Panel(f"Fresh, epsilon {FRESH_EPSILON:g} a round", "rounds seen", right, fresh, 100.0, rounds),
            Panel(
                f"Which of {agents} owners, epsilon {FACT_EPSILON:g} a fact",
                "facts asked for",
                right,
                owner,
                100.0,
                range(1, len(FACTS) + 1),
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
