"""Long lives that are asked everything about one small record, judged by what was received alone.

Tables, levels, scores of every kind, coins with cover reports, static and evolving, on the same few values.
The judge keeps the exact likelihood of every record: the values that were ever pinned, and those of every
round. It knows the surveys' published weights and which pinned values an answer was about, and nothing else.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from devices import DAY_S, Clock, Collector, opener
from independent_bound import Told, largest_log_ratio
from surveys import START_S

from hubbub.filter.regression.regression import TOTAL
from hubbub.survey.domain import Attribute
from hubbub.survey.score import Score
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import Agent, ClientError
from hubbub_client.agent import device_state, enrolments, filter_state
from hubbub_client.owner_page import account
from hubbub_client.upload.transport import Response

BUDGET = 8.0
ATTRIBUTES = (
    Attribute.integer("age", 0, 3, kind="static"),
    Attribute.integer("steps", 0, 2, kind="static"),
    Attribute.labels("mood", ["up", "down"], kind="evolving"),
    Attribute.integer("walk", 0, 2, kind="evolving"),
)
SIZES = {attribute.id: attribute.size + 1 for attribute in ATTRIBUTES}  # and missing
STATIC = tuple(attribute.id for attribute in ATTRIBUTES if attribute.kind == "static")

TEXTS = {
    "age": 'type = "integer"\nlow = 0\nhigh = 3\nkind = "static"',
    "steps": 'type = "integer"\nlow = 0\nhigh = 2\nkind = "static"',
    "mood": 'type = "label"\nlabels = ["up", "down"]\nkind = "evolving"',
    "walk": 'type = "integer"\nlow = 0\nhigh = 2\nkind = "evolving"',
}
LOW, HIGH = (
    '\n[[category]]\nname = "low"\nrange = [0, 1]\n',
    '\n[[category]]\nname = "high"\nrange = [2, 3]\n',
)
ENDS = "\nlow = 0.0\nhigh = 1.0"


def asked(name: str, epsilon: float, rounds: int, mechanism: str, **attributes: str) -> Survey:
    several = len(attributes) > 1
    parts = [f'id = "{each}"\n{TEXTS[each]}\n{more}\n' for each, more in sorted(attributes.items())]
    head = "[[attribute]]" if several else "[attribute]"
    return Survey.parse(
        f'id = "{name}"\nversion = 1\ntitle = "{name}"\nepsilon = {epsilon}\nminimum_cohort = 10\n'
        "planned_devices = 100000\n"
        f'[schedule]\nstart = 2026-01-01T00:00:00Z\nround = "1d"\nrounds = {rounds}\nlateness = "1h"\n'
        f'skew = "5m"\n{"".join(f"{head}{chr(10)}{part}" for part in parts)}[mechanism]\n{mechanism}\n'
    )


def score(
    name: str,
    epsilon: float,
    rounds: int,
    kind: str,
    *,
    intercept: float,
    default: float = 1.0,
    **coefficients: float,
) -> Survey:
    ends = "" if kind == "logistic" else ENDS
    more = {key: f"coefficient = {value}\ndefault = {default}" for key, value in coefficients.items()}
    text = f'name = "regression"\nscore = "{kind}"\nintercept = {intercept}{ends}'
    return asked(name, epsilon, rounds, text, **more)


SURVEYS = (
    asked("steps", 0.4, 40, 'name = "grr"', steps=""),
    asked("steps-coin", 0.5, 40, 'name = "grr"\nparticipation = 0.6', steps=""),
    asked("age-levels", 0.5, 40, 'name = "levels"\ncategory_share = 0.5' + LOW + HIGH, age=""),
    asked("age-by-steps", 0.6, 40, 'name = "grr"', age="", steps=""),
    asked("age-by-mood", 0.04, 25, 'name = "grr"', age="", mood=""),
    asked("mood-coin", 0.06, 30, 'name = "grr"\nparticipation = 0.5', mood=""),
    score("linear", 0.4, 40, "linear", intercept=0.1, age=0.2, steps=0.1),
    score("truncated", 0.4, 40, "truncated", intercept=-0.5, age=0.6, steps=0.4),
    score("logistic", 0.5, 40, "logistic", intercept=0.5, age=-1.0, steps=1.5),
    score("opposite", 0.4, 40, "linear", intercept=0.9, default=0.0, age=-0.2, steps=-0.1),
    score("walks", 0.03, 20, "logistic", intercept=-1.0, steps=1.0, walk=1.0),
)


class Judge:
    """The exact loss of the record from everything that was received."""

    def __init__(self) -> None:
        self.surveys = {survey.digest: survey for survey in SURVEYS}
        self.pin = dict.fromkeys(STATIC, 0)
        self.drawn: dict[bytes, tuple[int, dict[str, int]]] = {}
        self.about: dict[bytes, dict[str, int]] = {}
        self.seen: dict[bytes, wire.Report] = {}
        self.said: dict[tuple, set[int]] = defaultdict(set)
        self.committed: list[float] = []  # after every step

    def born(self, agent: Agent) -> None:
        """Has the agent answer, and notes the pinned values that each answer was drawn for."""
        answers = agent.answer()
        rows = agent._ledger.transcript() if answers else []
        for answer in answers:
            draws = sum(row.kind == "record" and row.digest == answer.digest for row in rows)
            if self.drawn.get(answer.digest, (0, {}))[0] < draws:
                self.drawn[answer.digest] = draws, dict(self.pin)
            self.about[answer.id] = self.drawn[answer.digest][1]

    def pinned_anew(self, *attributes: str) -> None:
        for each in attributes:
            self.pin[each] += 1

    def hear(self, reports: list[wire.Report]) -> None:
        for report in reports:
            assert self.seen.setdefault(report.id, report) == report, "one id came with two contents"
            survey, about = self.surveys[report.digest], self.about[report.id]
            static = all(each.kind == "static" for each in survey.attributes)
            pins = tuple((each.id, about[each.id]) for each in survey.attributes if each.kind == "static")
            self.said[report.digest, -1 if static else report.round, pins].add(report.symbol)

    def loss(self) -> float:
        """Over all pairs of records: pinned values are shared by answers, a round's own are its own."""
        assert all(len(symbols) == 1 for symbols in self.said.values()), "one answer had two noises"
        axes = sorted({pin for _, _, pins in self.said for pin in pins})
        most = np.zeros([SIZES[attribute] for attribute, _ in axes])
        least = most.copy()
        for (digest, _, pins), symbols in self.said.items():
            logs, names = self.logs(self.surveys[digest], next(iter(symbols)))
            free = tuple(i for i, name in enumerate(names) if name not in STATIC)
            shape = [1] * len(axes)
            for pin in pins:
                shape[axes.index(pin)] = SIZES[pin[0]]
            order = sorted(range(len(pins)), key=lambda i, pins=pins: axes.index(pins[i]))
            most += logs.max(axis=free).transpose(order).reshape(shape)
            least += logs.min(axis=free).transpose(order).reshape(shape)
        return float(most.max() - least.min())

    def bound(self) -> float:
        """The same by a search that knows the surveys' bytes alone: see `independent_bound`."""
        told = [
            Told(digest, slot, symbol, pins)
            for (digest, slot, pins), symbols in self.said.items()
            for symbol in symbols
        ]
        return largest_log_ratio([survey.canonical for survey in SURVEYS], told)

    @staticmethod
    def logs(survey: Survey, symbol: int) -> tuple[np.ndarray, list[str]]:
        """Log-likelihoods over the values of the survey's attributes, missing last in each."""
        names = [attribute.id for attribute in survey.attributes]
        if not isinstance(survey.form, Score):
            assert survey.mapping is not None
            return survey.channel.log_likelihood(symbol)[survey.mapping], names
        form = survey.form
        found = np.empty([SIZES[name] for name in names])
        for cell in np.ndindex(*found.shape):
            numbers = [
                default if place == SIZES[name] - 1 else float(place)  # every domain begins at 0
                for name, place, default in zip(names, cell, form.defaults, strict=True)
            ]
            weight = form.regression.weight(numbers)
            found[cell] = math.log((weight if symbol else TOTAL - weight) / TOTAL)
        return found, names


def lived(folder: Path, seed: int, steps: int) -> Iterator[tuple[Judge, Agent]]:
    """One life; every 50 steps, and at the end when all was sent, its judge and its agent."""
    chance = random.Random(seed)  # noqa: S311 - a game, not an answer
    clock, collector, judge = Clock(START_S + 10), Collector(), Judge()
    day, quiet = 0, False

    def reply(reports: list[wire.Report]) -> Response | None:
        judge.hear(reports)
        fate = 1.0 if quiet else chance.random()
        if fate < 0.15:
            return None
        if fate < 0.25:
            return Response(503, b"")
        return Response(200, wire.encode_response(["accepted"] * len(reports)))

    collector.reply = reply
    with opener(folder, clock, collector) as make:

        def live() -> Agent:
            made = make(BUDGET)
            for attribute in ATTRIBUTES:
                made.register(attribute)
            return made

        agent = live()
        for number in range(steps):
            step = chance.random()
            try:
                if step < 0.2:
                    day += chance.choice([0, 1, 1, 1, -1]) if day else 1
                    clock.now_s = START_S + day * DAY_S + chance.choice([0.0, 10.0, DAY_S - 1e-3])
                elif step < 0.55:
                    agent.set("mood", chance.choice(["up", "down", None, 7]))
                    agent.set("walk", chance.randrange(-1, 3))
                    judge.born(agent)
                elif step < 0.77:
                    agent.upload()
                elif step < 0.92:
                    agent.enrol(chance.choice(SURVEYS))
                elif step < 0.95:
                    before = agent.status()
                    agent.close()
                    agent = live()
                    after = agent.status()
                    assert (after.loss, after.committed) == (before.loss, before.committed)
                elif step < 0.96:
                    agent.opt_out(chance.choice(SURVEYS))
                elif step < 0.994 or max(judge.pin.values()) > 2:
                    which = chance.choice(STATIC)
                    if (
                        judge.pin[which] < 3
                        and agent.correct(which, chance.randrange(4)).status == "corrected"
                    ):
                        judge.pinned_anew(which)
                else:
                    agent.forget()
                    judge.pinned_anew(*STATIC)
                    judge.drawn.clear()
            except ClientError:
                pass
            judge.committed.append(agent.status().committed)
            if number % 50 == 49:
                yield judge, agent
        quiet = True
        clock.now_s += 3600.0
        while agent.upload().waiting:
            clock.now_s += 3600.0
        yield judge, agent


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_a_long_life_of_tables_scores_and_coins_keeps_what_it_promised(tmp_path: Path, seed: int) -> None:
    """400 steps, 130 to 210 reports: what was received stays within the budget and the owner's account."""
    surveys: set[bytes] = set()
    for judge, agent in lived(tmp_path, seed, 400):
        loss = judge.loss()
        assert loss <= BUDGET
        assert judge.bound() == pytest.approx(loss, abs=1e-9)  # every record is tried, by either
        assert max(judge.committed) <= BUDGET
        assert loss <= agent.account().loss + 1e-9  # what waits or was withdrawn counts at its worst there
        surveys |= {report.digest for report in judge.seen.values()}
    assert len(judge.seen) > 60 and len(surveys) >= 7
    assert loss > 1.0


def test_an_account_that_merges_answers_about_two_values_is_caught(tmp_path: Path, monkeypatch) -> None:
    """Negative control: a corrected value on the coordinate of the earlier one, also when replayed.

    Eight lives of ten catch it; it is the first of twenty that counts.
    """
    for module in (device_state, enrolments, filter_state, account):
        honest = module.scheduled_query
        monkeypatch.setattr(
            module,
            "scheduled_query",
            lambda survey, slot, *, pin_version, honest=honest: honest(survey, slot, pin_version=0),
        )
    monkeypatch.setattr(filter_state, "memoised_by", lambda *_: [])

    def is_caught(seed: int) -> bool:
        (folder := tmp_path / str(seed)).mkdir()
        return any(judge.loss() > agent.account().loss + 1e-6 for judge, agent in lived(folder, seed, 400))

    assert any(map(is_caught, range(20)))
