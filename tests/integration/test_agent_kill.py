"""An agent killed again and again in the middle of answering and uploading, against a real gateway."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import agent_harness
import gateway_process
import pytest
from surveys import AGE_BY_SEX, LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, decode_record
from hubbub_client.agent.filter_state import replay
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.surveys.schedule import MEMOISED
from hubbub_topic.sqlite import SqliteLog

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]

ROUNDS = 1300
BUDGET = 0.01 * ROUNDS + 2.0


def surveys() -> list[Survey]:
    """An evolving survey and a table of two static attributes; all rounds lie in the gateway's window."""
    # A day of skew lets the agent's clock run ahead through every round while the gateway's stands still.
    schedule = {
        "start = 2026-01-01T00:00:00Z": time.strftime("start = %Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        'round = "1d"': 'round = "60s"',
        'skew = "5m"': 'skew = "24h"',
    }
    found = []
    for text, changes in (
        (LABELS, {"rounds = 3": f"rounds = {ROUNDS}", "epsilon = 1.0": "epsilon = 0.01"}),
        (AGE_BY_SEX, {"rounds = 2": f"rounds = {ROUNDS}"}),
    ):
        changed = text
        for old, new in (schedule | changes).items():
            assert old in changed
            changed = changed.replace(old, new)
        found.append(Survey.parse(changed))
    return found


class Process:
    """A Python process that is told things on stdin and answers in lines."""

    def __init__(self, module: object, *arguments: object) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._process = subprocess.Popen(
            [sys.executable, module.__file__, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, line: str = "") -> int:
        if line:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.stdin.close()
        try:
            assert self._process.wait(120) == 0
        finally:
            self._process.kill()
            self._process.stdout.close()


class World:
    """A ledger, a gateway with its log, and a nursery of agents."""

    def __init__(self, path: Path) -> None:
        self.surveys = surveys()
        self.ledger, self.log = path / "ledger.db", path / "log.db"
        files = []
        for survey in self.surveys:
            files.append(path / survey.id)
            files[-1].write_bytes(survey.canonical)
        self._running = contextlib.ExitStack()
        gateway = Process(gateway_process, self.log, *files)
        self._running.callback(gateway.end)
        url = f"http://127.0.0.1:{gateway.ask()}"
        nursery = Process(agent_harness, self.ledger, url, BUDGET, *files)
        self._running.callback(nursery.end)
        self._nursery = nursery

    def live(self, **order: object) -> int:
        return self._nursery.ask(json.dumps(order))

    def end(self) -> None:
        self._running.close()

    def answers(self) -> int:
        """How many answers the ledger holds, between two lives."""
        ledger = Ledger(self.ledger, budget=BUDGET)
        found = len(ledger.answers())
        ledger.close()
        return found

    def check(self) -> int:
        """Holds the ledger against what the gateway logged; gives the number of rounds answered.

        Raises:
            AssertionError: If any of the promises is broken.
        """
        assert self.live(drain=True) == 0
        self.end()
        sent: dict[bytes, set[tuple[bytes, int, int]]] = defaultdict(set)
        self.received = 0
        for digest, number, identifier, symbol in logged(self.log):
            self.received += 1
            sent[identifier].add((digest, number, symbol))
        self.distinct = len(sent)
        assert all(len(seen) == 1 for seen in sent.values()), "an id came with two answers"

        ledger = Ledger(self.ledger, budget=BUDGET)
        rows, answers = ledger.transcript(), ledger.answers()
        assert ledger.waiting() == 0
        ledger.close()
        written = {answer.id: (answer.digest, answer.round) for answer in answers}
        assert sent.keys() <= written.keys(), "something was sent that is not in the ledger"
        assert sent.keys() == written.keys(), "an answer was lost"
        assert {answer.outcome for answer in answers} == {"accepted"}

        symbols: dict[tuple[bytes, int], set[int]] = defaultdict(set)
        for identifier, seen in sent.items():
            digest, number, symbol = next(iter(seen))
            assert (digest, number) == written[identifier]
            symbols[digest, number].add(symbol)
        assert len(symbols) == len(written), "a round was answered twice"

        evolving, static = self.surveys
        answered = [sum(1 for digest, _ in symbols if digest == s.digest) for s in self.surveys]
        for survey, count in zip(self.surveys, answered, strict=True):
            # No round was skipped: a kill costs neither a round nor what was reserved for it.
            assert {r for digest, r in symbols if digest == survey.digest} == set(range(count))

        recorded = {(row.digest, row.slot): row.symbol for row in rows if row.kind == "record"}
        assert len(recorded) == sum(row.kind == "record" for row in rows) == answered[0] + 1
        for (digest, number), seen in symbols.items():
            slot = MEMOISED if digest == static.digest else number
            assert seen == {recorded[digest, slot]}, "one answer had two noises"

        book = replay(rows, {survey.digest: survey for survey in self.surveys}, budget=BUDGET)
        unanswered = {(evolving.digest, number) for number in range(answered[0], ROUNDS)}
        assert book.open.keys() == unanswered, "budget was lost"
        loss = 0.0
        for (digest, _), symbol in recorded.items():
            survey = evolving if digest == evolving.digest else static
            column = survey.channel.log_likelihood(symbol)
            loss += column.max() - column.min()
        assert book.filter.loss == pytest.approx(loss, abs=1e-6)
        assert book.filter.committed == pytest.approx(
            loss + len(unanswered) * evolving.channel.divergence().max(), abs=1e-6
        )
        assert book.filter.committed <= BUDGET
        return min(answered)


def logged(path: Path) -> Iterator[tuple[bytes, int, bytes, int]]:
    """Every report that the gateway made durable, repeats included."""
    log = SqliteLog(path)
    for partition in range(log.partitions):
        offset = 0
        while records := log.read(partition, offset, 1000):
            for _, data in records:
                record = decode_record(data)
                if isinstance(record, ReportsRecord):
                    assert record.unknown == 0
                    for segment in record.segments:
                        for i, symbol in enumerate(segment.symbols.tolist()):
                            yield segment.digest, segment.round, segment.ids[16 * i : 16 * i + 16], symbol
            offset = records[-1][0] + 1
    log.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.end()


def test_an_agent_killed_at_random_points_loses_and_repeats_nothing(world: World) -> None:
    """30 lives or more, each killed at its own time: no budget lost, one noise and one count per answer.

    One life in five is timed from its start, so that kills fall into opening and enrolling too; the others
    from when the ledger is open. The times come from a fixed seed, what they hit does not: the
    promises must hold wherever it is.
    """
    chance = random.Random(7)  # noqa: S311 - kill times
    for life in range(2000):
        # Kills that hit nothing would prove nothing: a loaded machine gets more of them, not a lower bound.
        if life >= 30 and life % 10 == 0 and world.answers() >= 2 * 20:
            break
        if life % 5 == 0:
            code = world.live(after="fork", delay_s=chance.uniform(0.0, 0.06))
        else:
            code = world.live(after="open", delay_s=chance.uniform(0.0, 0.06))
        assert code == -9
    assert world.check() >= 15


def test_an_agent_killed_before_any_of_its_statements_loses_and_repeats_nothing(world: World) -> None:
    """A kill before each SQL statement in turn: of making the ledger, of opening it, of some answers."""
    for statement in range(1, 60):
        assert world.live(statement=statement) == -9
    assert world.live(drain=True) == 0  # enrolled: its thousands of statements need not all be tried
    for statement in range(1, 97):
        assert world.live(statement=statement) == -9
    assert world.check() >= 45
    # A kill between the gateway's answer and its settling sends a report again: the sweep cannot miss that.
    assert world.received > world.distinct


def test_a_kill_before_any_statement_of_the_very_first_answers_leaves_one_noise(world: World) -> None:
    """The sweep above draws the static answer once, and hits few statements of that; here each has its turn.

    Every kill falls on a copy of the same ledger, enrolled and without an answer. A second life is killed
    rounds later, a third uploads what is left.
    """
    assert world.live(drain=True) == 0
    enrolled, stages, lives = world.ledger.read_bytes(), [], []
    for statement in range(30, 78):
        for path in world.ledger.parent.glob("ledger.db-*"):
            path.unlink()
        world.ledger.write_bytes(enrolled)
        assert world.live(statement=statement) == -9
        ledger = Ledger(world.ledger, budget=BUDGET)
        stages.append((len(ledger.answers()), ledger.waiting()))
        ledger.close()
        assert world.live(statement=110) == -9
        assert world.live(drain=True) == 0
        ledger = Ledger(world.ledger, budget=BUDGET)
        lives.append((ledger.transcript(), ledger.answers()))
        ledger.close()
    # From before the first answer to after both were settled, one statement after the other.
    assert stages == sorted(stages, key=lambda stage: (stage[0], -stage[1] if stage[0] == 2 else stage[1]))
    assert {(0, 0), (1, 1), (2, 2), (2, 0)} <= set(stages)

    world.end()
    sent = {identifier: (digest, number, symbol) for digest, number, identifier, symbol in logged(world.log)}
    evolving, static = world.surveys
    slots = {(evolving.digest, number) for number in range(ROUNDS)} | {(static.digest, MEMOISED)}
    assert len(sent) == sum(len(answers) for _, answers in lives)
    for rows, answers in lives:
        recorded = {(row.digest, row.slot): row.symbol for row in rows if row.kind == "record"}
        assert len(recorded) == sum(row.kind == "record" for row in rows)
        for answer in answers:
            slot = MEMOISED if answer.digest == static.digest else answer.round
            symbol = recorded[answer.digest, slot]
            assert sent[answer.id] == (answer.digest, answer.round, symbol), "one answer had two noises"
        book = replay(rows, {survey.digest: survey for survey in world.surveys}, budget=BUDGET)
        assert book.open.keys() == slots - recorded.keys()
        assert book.committed <= BUDGET


def test_an_agent_that_sends_before_it_writes_is_caught(world: World) -> None:
    """Negative control: the same kills and the same check find the mistake."""
    assert world.live(drain=True) == 0
    for statement in range(31, 61):
        assert world.live(statement=statement, premature=True) == -9
    with pytest.raises(AssertionError, match="not in the ledger"):
        world.check()
