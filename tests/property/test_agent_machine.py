"""An agent on a real ledger beside a model of it: any order of what a device lives through, killed anywhere.

A kill leaves what was on the disk before some SQL statement: the files are copied at that moment, and the
next life opens the copy. What the model says of budget, outbox and surveys must hold after every step.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from device_model import REPLIES, DeviceModel, Listed, Reply, outcomes
from devices import AGREED, DAY_S, FAST, Clock, Collector
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from surveys import START_S, small

from hubbub.survey.domain import Attribute
from hubbub.survey.signed_list import SurveyList, public_text
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import Agent, ListRefusedError
from hubbub_client.upload.transport import Response

BUDGET = 4.05
"""No sum of the epsilons below comes nearer than 0.05 to it."""

KEY, OTHER_KEY = (Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32) for i in (1, 2))
HEALTH = Attribute.labels("health", ["good", "fair", "poor"], kind="evolving")
SEX = Attribute.labels("sex", ["f", "m", "x"], kind="static")
ON_HEALTH, ON_SEX = (
    'type = "label"\nlabels = ["good", "fair", "poor"]',
    'type = "label"\nlabels = ["f", "m", "x"]',
)
SURVEYS = tuple(
    map(
        Survey.parse,
        (
            small("daily", ON_HEALTH, attribute="health", epsilon=0.8, rounds=3),
            small("often", ON_HEALTH, attribute="health", epsilon=0.4, rounds=4),
            small("dear", ON_HEALTH, attribute="health", epsilon=1.1, rounds=3),
            small("sex", ON_SEX, kind="static", epsilon=0.7, rounds=3),
            small("sex-again", ON_SEX, attribute="sex", kind="static", epsilon=0.9, rounds=4),
            small("panel", ON_HEALTH, attribute="health", epsilon=0.6, rounds=5, rotation=2),
            small("wide", ON_HEALTH, attribute="health", epsilon=1.3, rounds=4, rotation=3),
        ),
    )
)
TIMES = tuple(
    START_S + day * DAY_S + second for day in range(5) for second in (-1.0, 0.0, 30.0, DAY_S / 2)
)  # fmt: skip
SEEN: Counter[str] = Counter()
"""Deeds of the runs of this process, for the long one to say."""


class Deaths:
    """A copy of a ledger's files as a kill before one of its statements leaves them."""

    def __init__(self, agent: Agent, folder: Path, statement: int, collector: Collector) -> None:
        self._agent, self._folder, self._left, self._collector = agent, folder, statement, collector
        self.posted = -1

    def _count(self, _: str) -> None:
        self._left -= 1
        if self._left == 0:
            self.take()

    def take(self) -> None:
        shutil.copytree(self._folder / "device", self._folder / "copy")
        self.posted = len(self._collector.bodies)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self._agent._ledger._db.set_trace_callback(self._count)
        try:
            yield
        finally:
            if self.posted < 0:
                SEEN["killed behind it"] += 1
                self.take()
            else:
                SEEN["killed within it"] += 1


class AgentMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="hubbub-machine-"))
        (self.folder / "device").mkdir()
        self.clock, self.collector = Clock(START_S + 30.0), Collector()
        self.reply: Reply = "accepted"
        self.collector.reply = self.replied
        self.model = DeviceModel(BUDGET)
        self.lists: list[Listed] = []
        self.noises: dict[bytes, wire.Report] = {}
        self.agent = self.opened()

    def opened(self) -> Agent:
        agent = Agent(
            self.folder / "device" / "ledger.db",
            "http://collector.invalid",
            budget=BUDGET,
            clock=self.clock,
            http=self.collector,
            limits=FAST,
            jitter=lambda: 0.5,
            policy=AGREED,
            survey_key=public_text(KEY),
        )
        agent.register(HEALTH)
        agent.register(SEX)
        return agent

    def replied(self, reports: list[wire.Report]) -> Response | None:
        told = outcomes(self.reply, len(reports))
        if told is not None:
            return Response(200, wire.encode_response(told))
        return {
            "down": None,
            "busy": Response(503, b"", "60"),
            "refused": Response(413, b""),
            "short": Response(200, wire.encode_response(["accepted"] * (len(reports) - 1))),
            "noise": Response(200, b"\xff" * 5),
        }[self.reply]

    def teardown(self) -> None:
        self.agent.close()
        shutil.rmtree(self.folder)

    # Beside the model

    def queued(self) -> list[wire.Report]:
        return [wire.decode_report(entry.data) for entry in self.agent._ledger.outbox(2**31)]

    def differs(self, model: DeviceModel) -> str | None:
        """Return what the device says otherwise than the model, None if nothing."""
        status, backoff = self.agent.status(), self.agent._ledger.backoff()
        pairs = {
            "loss": (round(status.loss, 6), round(model.loss(), 6)),
            "committed": (round(status.committed, 6), round(model.committed(), 6)),
            "outbox": ([report.id for report in self.queued()], [i for i, _ in model.outbox]),
            "cancelled": (self.agent._state.cancelled, model.cancelled),
            "back-off": (
                (backoff.failures, backoff.not_before_s, backoff.single),
                (model.failures, model.not_before_s, model.single),
            ),
            "surveys": (
                [(each.digest, each.state, each.high_water, each.answered) for each in status.enrolments],
                [
                    (digest, each.state, max(each.high, -1), len(each.answered))
                    for digest, each in model.joined.items()
                ],
            ),
        }
        return next((f"{name}: {a} is not {b}" for name, (a, b) in pairs.items() if a != b), None)

    @invariant()
    def device_is_as_the_model_says(self) -> None:
        assert (difference := self.differs(self.model)) is None, difference
        status = self.agent.status()
        assert status.loss <= status.committed + 1e-9 <= BUDGET + 2e-9

    @invariant()
    def no_answer_leaves_with_two_noises(self) -> None:
        rounds = defaultdict(set)
        for report in self.collector.received:
            assert self.noises.setdefault(report.id, report) == report
            assert report.id in self.model.answered, "what is sent must be in the ledger"
            rounds[report.digest, report.round].add((report.id, report.symbol))
        assert all(len(each) == 1 for each in rounds.values())

    # Steps

    def do(self, act: Callable[[], object], states: Callable[[], list[DeviceModel]], killed_at: int) -> None:
        """Have the device do something, whole or killed; the model becomes what it may be afterwards."""
        before = self.model.copy()
        if not killed_at:
            act()
            self.model = states()[-1]
            return
        deaths = Deaths(self.agent, self.folder, killed_at, self.collector)
        with deaths.watching():
            act()
        # The model's rest needs the outbox as it would be; what lies in the copy is what counts.
        self.agent.close()
        shutil.rmtree(self.folder / "device")
        (self.folder / "copy").rename(self.folder / "device")
        del self.collector.bodies[deaths.posted :]
        self.agent = self.opened()
        possible = [before, *states()]
        found = [model for model in possible if self.differs(model) is None]
        assert found, [self.differs(model) for model in possible]
        self.model = found[0]
        SEEN["a kill left what was before" if found[0] is before else "a kill left more"] += 1

    KILLS = st.sampled_from([0] * 30 + list(range(1, 21)))
    """No kill, or one before so many statements: an answer takes about ten."""

    @initialize(
        value=st.sampled_from(["f", "m", None]), surveys=st.sets(st.sampled_from(range(len(SURVEYS))))
    )
    def begin(self, value: str | None, surveys: set[int]) -> None:
        self.agent.set("sex", value)
        for place in surveys:
            self.enrol_in(SURVEYS[place], 0)

    @rule(
        reply=st.sampled_from(["accepted", "accepted", *REPLIES]),
        days=st.sampled_from([0, 1, 1, 1, 2]),
        kills=st.tuples(KILLS, KILLS),
    )
    def day_goes_by(self, reply: Reply, days: int, kills: tuple[int, int]) -> None:
        """Go through most of a device's life: where it is killed, it goes on."""
        self.clock.now_s = (self.now_s or START_S) + days * DAY_S
        self.answer_all(kills[0])
        self.answer_all(0)
        self.upload_all(reply, kills[1])

    @rule(now_s=st.sampled_from([*TIMES, *TIMES, *TIMES, None, float("nan")]))
    def clock_steps(self, now_s: float | None) -> None:
        self.clock.now_s = now_s

    @rule(seconds=st.sampled_from([0.5, 5.0, 61.0, 7200.0]))
    def time_passes(self, seconds: float) -> None:
        if self.clock.now_s is not None:
            self.clock.now_s += seconds

    @property
    def now_s(self) -> float | None:
        now_s = self.clock.now_s
        return None if now_s is None or math.isnan(now_s) else now_s

    @rule(value=st.sampled_from(["good", "poor", "no such thing", None]))
    def health_is_told(self, value: str | None) -> None:
        self.agent.set("health", value)

    @rule(survey=st.sampled_from(SURVEYS), killed_at=KILLS)
    def enrol(self, survey: Survey, killed_at: int) -> None:
        self.enrol_in(survey, killed_at)

    def enrol_in(self, survey: Survey, killed_at: int) -> None:
        after = self.model.copy()
        expected = after.enrol(survey, self.now_s)

        def act() -> None:
            found = self.agent.enrol(survey)
            assert (found.status, found.reason) == expected
            if survey.rotation > 1 and expected[0] == "enrolled":
                seed = self.agent._state.enrolments[survey.digest].slot_seed
                assert seed is not None
                after.drawn(survey.digest, seed)
            SEEN[f"enrol: {found.reason or found.status}"] += 1

        self.do(act, lambda: [after], killed_at)

    @rule(killed_at=KILLS)
    def answer(self, killed_at: int) -> None:
        self.answer_all(killed_at)

    def answer_all(self, killed_at: int) -> None:
        before, due = self.model.copy(), self.model.due(self.now_s)

        def act() -> None:
            made = self.agent.answer()
            assert [(each.digest, each.round) for each in made] == due
            SEEN["answers"] += len(made)

        def states() -> list[DeviceModel]:
            made = self.queued()[len(before.outbox) :]
            assert [(report.digest, report.round) for report in made] == due[: len(made)]
            found = []
            for report in made:
                before.answer(report)
                found.append(before.copy())
            return found or [before]

        self.do(act, states, killed_at)

    @rule(reply=st.sampled_from(REPLIES), killed_at=KILLS)
    def upload(self, reply: Reply, killed_at: int) -> None:
        self.upload_all(reply, killed_at)

    def upload_all(self, reply: Reply, killed_at: int) -> None:
        self.reply = reply
        model, posted = self.model.copy(), len(self.collector.bodies)
        found, sent = [], []
        for ids in model.upload(self.now_s, reply):
            sent.append(ids)
            found.append(model.copy())

        def act() -> None:
            self.agent.upload()
            bodies = self.collector.bodies[posted:]
            assert [[each.id for each in self.collector.reports(body)] for body in bodies] == sent
            SEEN[f"posts, {reply}"] += len(sent)

        self.do(act, lambda: found or [model], killed_at)

    @rule(survey=st.sampled_from(SURVEYS))
    def leave(self, survey: Survey) -> None:
        self.agent.opt_out(survey)
        self.agent.opt_in(survey)
        self.model.leave(survey.digest)

    @rule(killed_at=KILLS, go=st.integers(0, 3))
    def forget(self, killed_at: int, go: int) -> None:
        if go:
            return  # seldom: it ends everything
        after = self.model.copy()
        after.forget()
        SEEN["forget"] += 1
        self.do(self.agent.forget, lambda: [after], killed_at)

    @rule(
        step=st.sampled_from([0, 1, 1, 2]),
        ends=st.sets(st.sampled_from(SURVEYS), max_size=1),
        life_s=st.sampled_from([DAY_S, 3 * DAY_S, 10 * DAY_S]),
    )
    def list_is_signed(self, step: int, ends: set[Survey], life_s: int) -> None:
        newest = max((each.sequence for each in self.lists), default=1)
        asked = tuple(survey for survey in SURVEYS if survey not in ends)
        made = SurveyList(
            newest + step,
            START_S,
            START_S + life_s,
            tuple(survey.canonical for survey in asked),
            tuple(survey.digest for survey in ends),
        )
        cancelled = frozenset(made.cancelled)
        self.lists.append(Listed(made.sequence, START_S, made.expires_s, made.signed(KEY), asked, cancelled))
        foreign = made.signed(OTHER_KEY)
        self.lists.append(Listed(made.sequence, START_S, made.expires_s, foreign, asked, cancelled))

    @precondition(lambda self: self.lists)
    @rule(data=st.data(), killed_at=KILLS)
    def list_comes(self, data: st.DataObject, killed_at: int) -> None:
        found = data.draw(st.sampled_from(self.lists), label="list")
        forged = self.lists.index(found) % 2 == 1
        after = self.model.copy()
        if forged:
            reason: str | None = "wrong_signature" if self.now_s is not None else "clock_not_trusted"
        else:
            reason = after.take(found, self.now_s)

        def act() -> None:
            try:
                taken = self.agent.read_surveys(found.data)
            except ListRefusedError as error:
                assert error.reason == reason
            else:
                assert reason is None
                asked = [each.digest for each in found.surveys if each.digest not in after.cancelled]
                assert [each.digest for each in taken] == asked
            SEEN[f"list: {reason or 'taken'}"] += 1

        self.do(act, lambda: [after], killed_at)

    @rule()
    def open_again(self) -> None:
        self.agent.close()
        self.agent = self.opened()


TestAgentMachine = AgentMachine.TestCase
TestAgentMachine.settings = settings(max_examples=10, stateful_step_count=25)
