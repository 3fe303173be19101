"""Lives with everything against them: a lying collector, clocks that jump, owners who change their mind.

The judge reads what the collector received, and nothing of the agent's own account: symbols, the surveys'
published weights, and which pinned value each answer was about. It holds whatever the agent accepted.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import DAY_S, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, changed, opener
from independent_bound import ROUNDING, Told, largest_log_ratio
from surveys import LABELS, START_S, VISITS

from hubbub.survey.signed_list import SurveyList, public_text
from hubbub.wire import report as wire
from hubbub_client import Agent, ClientError
from hubbub_client.upload.transport import Response

KEY, STOLEN = (Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32) for i in (1, 2))
BUDGET = 9.0

# One id and one version, and other content: each has a digest of its own.
FACES = (
    HEALTH_SURVEY,
    changed(LABELS, epsilon="0.4"),
    changed(LABELS, rounds="5", epsilon="0.3"),
    VISITS_SURVEY,
    changed(VISITS, epsilon="1.5", boost_epsilon="0.5"),
    changed(VISITS, rounds="4", epsilon="0.8", boost_epsilon="0.4"),
)


class Judge:
    """What an observer of every report has learned at least, from the reports alone."""

    def __init__(self) -> None:
        self.surveys = {survey.digest: survey for survey in FACES}
        self.seen: dict[bytes, wire.Report] = {}
        self.said: dict[tuple[bytes, int, int], set[int]] = defaultdict(set)
        self.pin, self.pins = 0, dict[bytes, int]()
        self.drawn: dict[bytes, tuple[int, int]] = {}

    def born(self, agent: Agent) -> None:
        """Has the agent answer, and notes which pinned value each answer was drawn for.

        Where the ledger has no new draw, the answer must repeat the last one: it is held to that symbol.
        """
        for answer in agent.answer():
            draws = sum(
                row.kind == "record" and row.digest == answer.digest for row in agent._ledger.transcript()
            )
            if self.drawn.get(answer.digest, (0, 0))[0] < draws:
                self.drawn[answer.digest] = draws, self.pin
            self.pins[answer.id] = self.drawn[answer.digest][1]

    def hear(self, reports: list[wire.Report]) -> None:
        for report in reports:
            if report.id in self.seen:
                assert self.seen[report.id] == report, "one id came with two contents"
                continue
            self.seen[report.id] = report
            static = self.surveys[report.digest].attributes[0].kind == "static"
            # A static value has one answer for each value that was ever pinned, an evolving one each round.
            place = (-1, self.pins[report.id]) if static else (report.round, 0)
            self.said[report.digest, *place].add(report.symbol)

    def loss(self) -> float:
        assert all(len(symbols) == 1 for symbols in self.said.values()), "one answer had two noises"
        total = 0.0
        values: dict[int, np.ndarray] = {}
        for (digest, slot, pin), symbols in self.said.items():
            survey = self.surveys[digest]
            logs = survey.channel.log_likelihood(next(iter(symbols)))
            if slot >= 0:
                total += float(logs.max() - logs.min())
            else:
                logs = logs if survey.mapping is None else logs[survey.mapping]
                values[pin] = values.get(pin, 0.0) + logs
        return total + sum(float(each.max() - each.min()) for each in values.values())

    def bound(self) -> float:
        """The same by a search that knows the surveys' bytes alone: see `independent_bound`."""
        told = [
            Told(digest, slot, symbol, () if slot >= 0 else (("visits", pin),))
            for (digest, slot, pin), symbols in self.said.items()
            for symbol in symbols
        ]
        return largest_log_ratio([survey.canonical for survey in FACES], told)


@pytest.mark.parametrize("seed", range(6))
def test_no_life_sends_more_than_its_budget_or_two_noises_for_one_answer(tmp_path: Path, seed: int) -> None:
    """200 steps: clocks about round boundaries; lists that are old, foreign, changed or of a stolen key."""
    chance = random.Random(seed)  # noqa: S311 - a game, not an answer
    clock, collector, judge = Clock(START_S + 10), Collector(), Judge()
    lists: list[bytes] = []

    def reply(reports: list[wire.Report]) -> Response | None:
        judge.hear(reports)
        fate = chance.random()
        if fate < 0.25:
            return None
        if fate < 0.4:
            return Response(503, b"")
        outcome = chance.choice(["accepted", "accepted", "early", "invalid", "unknown_survey"])
        return Response(200, wire.encode_response([outcome] * len(reports)))

    collector.reply = reply
    with opener(tmp_path, clock, collector) as make:
        pins = [public_text(KEY)]

        def live() -> Agent:
            return make(BUDGET, survey_key=pins)

        agent, heard, checked = live(), 0, 0
        agent.set("visits", 3)
        for _ in range(200):
            step = chance.random()
            try:
                if step < 0.2:
                    boundary = START_S + chance.randrange(6) * DAY_S
                    clock.now_s = boundary + chance.choice(
                        [-1.0, -1e-3, 0.0, 1e-3, 1.0, DAY_S / 2, float("nan")]
                    )
                elif step < 0.4:
                    agent.set("health", chance.choice(["good", "poor", "no such thing", None]))
                    judge.born(agent)
                elif step < 0.6:
                    agent.upload()
                elif step < 0.75:
                    agent.enrol(chance.choice(FACES))
                elif step < 0.85:
                    asked = chance.sample(FACES, 2)
                    signed = SurveyList(
                        chance.randrange(1, 9),
                        START_S,
                        START_S + chance.choice([1, 10]) * DAY_S,
                        tuple(each.canonical for each in asked),
                        tuple(each.digest for each in FACES if each not in asked and chance.random() < 0.05),
                    ).signed(chance.choice([KEY, KEY, STOLEN]))
                    lists.append(signed)
                    data = bytearray(chance.choice(lists))
                    if chance.random() < 0.3:
                        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                    for survey in agent.read_surveys(bytes(data)):
                        agent.enrol(survey)
                elif step < 0.9:
                    agent.close()
                    pins = chance.choice([[public_text(KEY)], [public_text(KEY), public_text(STOLEN)]])
                    agent = live()
                elif step < 0.93:
                    agent.opt_out(chance.choice(FACES))
                elif step < 0.96:
                    judge.pin += agent.correct("visits", chance.randrange(0, 9)).status == "corrected"
                elif step < 0.97:
                    agent.forget()
                    judge.pin += 1
                    judge.drawn.clear()
                    agent.set("visits", 4)
            except ClientError:
                pass
            account = agent.status()
            assert account.committed <= BUDGET + 1e-9
            assert account.loss <= account.committed + 1e-9
            assert judge.loss() <= account.loss + 1e-9
            if len(judge.seen) > checked:
                checked = len(judge.seen)
                assert judge.bound() <= account.loss + ROUNDING
            heard += len(judge.seen)
        assert judge.bound() == pytest.approx(judge.loss(), abs=1e-9) and checked
    assert heard > 0


def test_forgetting_while_reports_are_on_their_way_sends_and_keeps_nothing_more(tmp_path: Path) -> None:
    clock, collector = Clock(START_S + 10), Collector()
    with opener(tmp_path, clock, collector) as make:
        agent = make(30.0)
        agent.set("health", "good"), agent.set("visits", 3)
        for survey in FACES:
            assert agent.enrol(survey).accepted
        made = 0
        for day in range(3):
            clock.now_s = START_S + day * DAY_S + 10
            made += len(agent.answer())
        before = agent.status()
        forgot = threading.Event()

        def forget() -> None:
            agent.forget()
            forgot.set()

        def reply(reports: list[wire.Report]) -> Response | None:
            if not forgot.is_set():
                owner = threading.Thread(target=forget)
                owner.start()
                owner.join(10.0)
                assert not owner.is_alive(), "an owner must not wait for a collector"
            return Response(200, wire.encode_response(["accepted"] * len(reports)))

        collector.reply = reply
        agent.upload()
        first = len(collector.received)
        assert forgot.is_set()
        clock.now_s += 60
        agent.upload()
        assert len(collector.received) == first < made
        assert agent.sent() == ()
        assert agent.answer() == ()
        after = agent.status()
        assert after.loss >= before.loss
        assert after.committed == pytest.approx(before.committed, abs=1e-9)
        agent.close()
        assert make(None).status().committed == pytest.approx(before.committed, abs=1e-9)


def test_threads_that_answer_forget_correct_and_send_at_once_keep_one_account(tmp_path: Path) -> None:
    clock, collector = Clock(START_S + 10), Collector()
    failed: list[BaseException] = []
    with opener(tmp_path, clock, collector) as make:
        agent = make(BUDGET)

        def often(*verbs: object) -> threading.Thread:
            def run() -> None:
                for number in range(25):
                    for verb in verbs:
                        try:
                            verb(number)
                        except ClientError:
                            pass
                        except BaseException as error:
                            failed.append(error)
                            raise

            return threading.Thread(target=run)

        def jump(number: int) -> None:
            clock.now_s = START_S + [5.0, DAY_S + 5.0, DAY_S - 0.001, 2 * DAY_S + 1.0][number % 4]

        threads = [
            often(lambda _: agent.answer(), lambda _: agent.upload()),
            often(lambda _: agent.answer(), jump),
            often(lambda n: agent.enrol(FACES[n % len(FACES)]), lambda n: agent.set("health", "good")),
            often(lambda n: agent.correct("visits", n % 9), lambda n: agent.forget() if n % 8 == 7 else None),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert not failed and not any(thread.is_alive() for thread in threads)
        account = agent.status()
        assert account.loss <= account.committed <= BUDGET + 1e-9
        rounds = [(r.digest, r.round) for r in {r.id: r for r in collector.received}.values()]
        assert len(rounds) == len(set(rounds)), "a round was answered twice"
        agent.close()
        again = make(None).status()
        assert (again.loss, again.committed) == (account.loss, account.committed)


def test_a_ledger_with_any_byte_changed_is_refused_or_says_the_same(tmp_path: Path) -> None:
    """200 changed bytes, each in its own copy, anywhere but in what is blank; nothing else is ever raised."""
    chance = random.Random(3)  # noqa: S311 - places
    clock, collector = Clock(START_S + 10), Collector()
    (tmp_path / "kept").mkdir(), (tmp_path / "copy").mkdir()
    with opener(tmp_path / "kept", clock, collector) as make:
        agent = make(BUDGET)
        for survey in (HEALTH_SURVEY, VISITS_SURVEY):
            assert agent.enrol(survey).accepted
        agent.answer(), agent.upload()
        kept = agent.status()
    files = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    places = [place for place, byte in enumerate(files["ledger.db"]) if byte]
    refused = 0
    for place in chance.sample(places, 200):
        changed_file = bytearray(files["ledger.db"])
        changed_file[place] ^= chance.randrange(1, 256)
        for path in (tmp_path / "copy").iterdir():
            path.unlink()
        for name, data in (files | {"ledger.db": bytes(changed_file)}).items():
            (tmp_path / "copy" / name).write_bytes(data)
        try:
            with opener(tmp_path / "copy", clock, collector) as make:
                opened = make(None).status()
        except ClientError:
            refused += 1
        else:
            assert (opened.budget, opened.loss, opened.committed) == (kept.budget, kept.loss, kept.committed)
    assert refused > 60
