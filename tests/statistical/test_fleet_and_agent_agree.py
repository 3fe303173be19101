"""A fleet is as many agents: the same symbols from the same bytes, the same ledgers, the same law."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from surveys import LABELS, START_S, VISITS

from hubbub.mechanisms.unary import Unary
from hubbub.numeric.randomness import Source
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_client import Agent, Policy
from hubbub_client.agent.encoded_value import channel_input
from hubbub_client.surveys.schedule import MEMOISED
from hubbub_lab.simulation import DeviceSimulator

pytestmark = pytest.mark.statistical

DAY_S = 86_400
FALSE_ALARM = 1e-7


AGREED = Policy(require_opt_in="no")


class SeededAgent(Agent):
    """An agent of a test: its symbols come from `source`, its ids still from the operating system."""

    def __init__(self, *args, source: Source, **options) -> None:
        super().__init__(*args, **options)
        self._answerer._perturb = lambda survey, encoded: survey.channel.perturb(
            channel_input(survey, encoded, source=source), source=source
        )


class NoCollector:
    def close(self) -> None:
        pass


class Time:
    now_s = float(START_S)

    def __call__(self) -> float:
        return self.now_s


def edited(text: str, *changes: tuple[str, str]) -> Survey:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Survey.parse(text)


@contextlib.contextmanager
def agents(path: Path, count: int, budget: float, source: Source):
    time = Time()
    made = []
    with contextlib.ExitStack() as stack:
        for i in range(count):
            agent = SeededAgent(
                path / f"{i}.db",
                "",
                budget=budget,
                clock=time,
                http=NoCollector(),
                policy=AGREED,
                source=source,
            )
            made.append(stack.enter_context(agent))
        yield made, time


class TwinIds:
    """Gives a fleet its symbols from one stream and its ids from another, as agents have them."""

    def __init__(self, seed: int) -> None:
        self._symbols, self._ids = seeded(seed), seeded(seed + 1)
        self.id_bytes = 0
        """How many bytes the next ids take; no draw of symbols takes as many."""

    def token_bytes(self, n: int, /) -> bytes:
        return (self._ids if n == self.id_bytes else self._symbols).token_bytes(n)


def one_by_one(self: Unary, values: NDArray[np.integer[Any]], source: Source) -> NDArray[np.uint8]:
    """Draw many sets as many single draws would: of the same bytes the array's own way may draw others."""
    sets = b"".join(self.draw(int(value), source) for value in values)
    return np.frombuffer(sets, dtype=np.uint8).reshape(len(values), self.width)


def test_the_same_bytes_give_the_same_symbols_decisions_and_ledgers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 agents and a fleet of 60 read one stream: every number agrees to the last bit, refusals included.

    A static attribute with four surveys on it by randomised response and one by sets, so that what a device
    may still join depends on which symbols it drew: two equal answers cost 0.8 + 0.8, two different ones 0.8,
    and the later surveys fit only then.
    """
    monkeypatch.setattr(Unary, "draw_many", one_by_one)
    n = 60
    static = [
        edited(
            LABELS,
            ('kind = "evolving"', 'kind = "static"'),
            ("epsilon = 1.0", "epsilon = 0.8"),
            ("version = 1", f"version = {version}"),
        )
        for version in range(1, 5)
    ]
    sets = edited(
        LABELS,
        ('kind = "evolving"', 'kind = "static"'),
        ("epsilon = 1.0", "epsilon = 0.4"),
        ("version = 1", "version = 9"),
        ('name = "grr"', 'name = "unary"'),
    )
    evolving = edited(LABELS, ('id = "health"', 'id = "mood"'), ("epsilon = 1.0", "epsilon = 0.1"))
    pinned = edited(
        VISITS, ("epsilon = 3.0", "epsilon = 0.5"), ("boost_epsilon = 2.0", "boost_epsilon = 0.25")
    )
    choice = np.random.default_rng(5)
    health = choice.choice(["excellent", "good", "fair", "poor", None], n).tolist()
    visits = choice.integers(0, 24, n).tolist()
    budget = 2.7
    source = TwinIds(11)
    fleet = DeviceSimulator(n, budget=budget, source=source)
    for survey in (static[0], evolving, pinned):
        fleet.register(survey.attribute)
    fleet.set("health", health)
    fleet.set("visits", visits)
    with agents(tmp_path, n, budget, seeded(11)) as (devices, time):
        for agent, own_health, own_visits in zip(devices, health, visits, strict=True):
            for survey in (static[0], evolving, pinned):
                agent.register(survey.attribute)
            agent.set("health", own_health)
            agent.set("visits", own_visits)
        # One survey joins at a time, and its answers are drawn device by device, as in the fleet's column.
        for survey in [static[0], sets, static[1], evolving, static[2], pinned, static[3]]:
            expected = [agent.enrol(survey).accepted for agent in devices]
            assert fleet.enrol(survey, now_s=time.now_s).accepted.tolist() == expected
            source.id_bytes = 16 * sum(expected)
            made = [agent.answer() for agent in devices]
            (column,) = fleet.answer(now_s=time.now_s)
            assert column.survey == survey
            assert [i for i, answers in enumerate(made) if answers] == column.devices.tolist()
            slot = MEMOISED if survey.attribute.kind == "static" else 0
            drawn = [devices[i]._state.filter_state.recorded[survey.digest, slot] for i in column.devices]
            assert [list(s) if isinstance(s, bytes) else s for s in drawn] == column.symbols.tolist()
            assert [agent.status().loss for agent in devices] == fleet.loss.tolist()
            assert [agent.status().committed for agent in devices] == fleet.committed.tolist()
        decided = [len(agent.status().enrolments) for agent in devices]
    assert len(set(decided)) > 2, "the test must see devices that decide differently"
    assert len(set(fleet.loss.tolist())) > 5


def chi_square_p(counts: np.ndarray, law: np.ndarray) -> float:
    assert (law * counts.sum()).min() >= 5
    return float(stats.chisquare(counts, law * counts.sum()).pvalue)


NUMBER = """
[attribute]
id = "minutes"
kind = "evolving"
type = "number"
low = 0.0
high = 10.0

[mechanism]
name = "boosted"
kernel = "uniform"
region = "absolute"
half_width = 2.0
points = 6
"""


@pytest.mark.parametrize("case", ["labels", "number"])
def test_fleet_and_agent_draw_from_the_law_that_the_survey_publishes(tmp_path: Path, case: str) -> None:
    """Symbols of 3,000 answers of one agent, and of a fleet of 30,000, against the exact law of a fixed
    value.

    n: 3,000 rounds of fresh noise by one agent (one real SQLite transaction each), 30,000 devices of a fleet
        in one round.
    Statistic: Pearson's chi-square of the counts per symbol, against w[x, y]/T from the channel's integers;
    for the number 3.7 on the grid 0, 2, .., 10 the law is the mixture .15 row(2) + .85 row(4) of its two
    roundings. False alarm: each p-value below 1e-7 with probability 1e-7 (chi-square approximation, every
    expected count at least 5); 4 tests in all, 4e-7.
    Negative control: the same counts against the law of the same survey at 1.3 times the epsilon must be
    refused.
    """
    rounds = 3000
    text = LABELS if case == "labels" else LABELS.split("[attribute]")[0] + NUMBER
    text = text.replace("rounds = 3", f"rounds = {rounds}").replace('round = "1d"', 'round = "60s"')
    survey = edited(text, ("epsilon = 1.0", "epsilon = 1.2"))
    wrong = edited(text, ("epsilon = 1.0", "epsilon = 1.56"))
    value = "good" if case == "labels" else 3.7

    def law(of: Survey) -> np.ndarray:
        weights = of.channel.weights() / of.channel.total
        return weights[1] if case == "labels" else 0.15 * weights[1] + 0.85 * weights[2]

    budget = 1.2 * rounds
    with agents(tmp_path, 1, budget, seeded(3)) as ((agent,), time):
        agent.register(survey.attribute)
        agent.set(survey.attribute.id, value)
        assert agent.enrol(survey).accepted
        for number in range(rounds):
            time.now_s = float(survey.round_start_s(number))
            assert len(agent.answer()) == 1
        drawn = np.array(list(agent._state.filter_state.recorded.values()))
    assert drawn.size == rounds
    assert wrong.channel.outputs == survey.channel.outputs
    fleet = DeviceSimulator(30_000, budget=budget, source=seeded(4))
    fleet.register(survey.attribute)
    fleet.set(survey.attribute.id, [value] * 30_000)
    assert fleet.enrol(survey, now_s=START_S).accepted.all()
    (column,) = fleet.answer(now_s=START_S)
    for symbols in (drawn, column.symbols):
        counts = np.bincount(symbols, minlength=survey.channel.outputs)
        assert chi_square_p(counts, law(survey)) > FALSE_ALARM
        assert chi_square_p(counts, law(wrong)) < FALSE_ALARM
