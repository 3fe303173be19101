"""Collector, log and worker on real files beside a model of the counts, in any order of what a node meets.

Uploads that come once, again, early, late, of other surveys or with symbols that are none; a log that fails
before it takes a batch, or after; a clock that goes either way; workers that are killed before any statement
of their store, archive or log. What lies in the log counts once, and a release keeps its bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counting_logs import report_id
from counting_model import CountingModel, Key, Sent
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from surveys import LABELS, START_S, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_collector.gateway import create_app
from hubbub_collector.settings import GatewaySettings
from hubbub_topic.errors import LogError
from hubbub_topic.sqlite import SqliteLog

GRACE_S, DAY_S, PARTITIONS = 10.0, 86_400, 2
SERVED = tuple(
    Survey.parse(text.replace("minimum_cohort = 100", "minimum_cohort = 2")) for text in (LABELS, VISITS)
)
SURVEYS = (*SERVED, Survey.parse(LABELS.replace("version = 1", "version = 2")))
TIMES = tuple(
    START_S + day * DAY_S + second
    for day in range(4)
    for second in (-400.0, -200.0, 0.0, 30.0, 3600.0, 3609.0, 3611.0, 40_000.0)
)
# Survey, rounds off the one that is open, person, and now and then a symbol that is none.
DRAWN = st.tuples(
    st.sampled_from([0, 0, 0, 0, 1, 1, 1, 2]),
    st.sampled_from([0] * 10 + [-1, -1, 1, 9]),
    st.integers(0, 15),
    st.sampled_from([0] * 12 + [1]),
)
UPLOAD = st.lists(DRAWN, min_size=1, max_size=9)
SEEN: Counter[str] = Counter()
"""Deeds of the runs of this process, for the long one to say."""


class FailingLog:
    """A log that fails when it is told to, before a batch is in it or after."""

    def __init__(self, log: SqliteLog) -> None:
        self._log, self.fails = log, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        if self.fails == "before":
            raise LogError("the disk is full")
        found = self._log.append(batches)
        if self.fails == "after":
            raise LogError("no answer came")
        return found


class CountingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="hubbub-machine-"))
        (self.folder / "node").mkdir()
        self.loop = asyncio.new_event_loop()
        self.now_s = START_S + 30.0
        self.model = CountingModel({survey.digest: survey for survey in SERVED}, GRACE_S)
        self.uploads: list[list[Sent]] = []
        self.kept: dict[Key, bytes] = {}
        self.start()

    def start(self) -> None:
        node = self.folder / "node"
        self.log = SqliteLog(node / "log.sqlite", PARTITIONS)
        self.flaky = FailingLog(self.log)
        self.start_collector()
        self.store = SqliteStore(node / "store.sqlite", log_identity=self.log.identity, partitions=PARTITIONS)
        self.archive = SqliteArchive(node / "archive.sqlite")
        self.view = LiveView()
        self.worker = self.new_worker(self.store, self.archive, self.view)

    def new_worker(self, store: SqliteStore, archive: SqliteArchive, view: LiveView) -> Worker:
        return Worker(
            self.log,
            store,
            archive=archive,
            view=view,
            grace_s=GRACE_S,
            clock=lambda: self.now_s,
            read_records=3,
        )

    def start_collector(self) -> None:
        self.app = create_app(
            self.flaky,
            SERVED,
            settings=GatewaySettings(linger_s=0.0),
            clock=lambda: self.now_s,
            boot_clock=lambda: 0.0,
        )
        self.running = self.app.state.gateway.running()
        self.loop.run_until_complete(self.running.__aenter__())

    def stop_collector(self) -> None:
        self.loop.run_until_complete(self.running.__aexit__(None, None, None))

    def stop(self) -> None:
        self.stop_collector()
        for part in (self.store, self.archive, self.log):
            part.close()

    async def post(self, upload: Sequence[Sent]) -> tuple[int, bytes]:
        body = wire.encode_upload(
            [
                wire.encode_report(wire.Report(sent.survey.digest, sent.round, sent.id, sent.symbol))
                for sent in upload
            ]
        )
        answer: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            answer.append(message)

        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/msgpack")]
        scope = {"type": "http", "path": "/v1/reports", "method": "POST", "headers": headers}
        await self.app(scope, receive, send)
        return answer[0]["status"], answer[1]["body"]

    # Steps

    @rule(now_s=st.sampled_from(TIMES))
    def clock_steps(self, now_s: float) -> None:
        self.now_s = now_s

    def send(self, uploads: list[list[Sent]]) -> None:
        async def all_at_once() -> list[tuple[int, bytes]]:
            return await asyncio.gather(*map(self.post, uploads))

        answers = self.loop.run_until_complete(all_at_once())
        for upload, (status, body) in zip(uploads, answers, strict=True):
            if self.flaky.fails:
                assert status == 503
            else:
                expected = [self.model.judge(sent, self.now_s)[0] for sent in upload]
                assert (status, list(wire.decode_response(body))) == (200, expected)
                SEEN.update(f"told {each}" for each in expected)
            if self.flaky.fails != "before":
                self.model.append(upload, self.now_s)
        self.uploads += uploads

    def sent(self, drawn: list[tuple[int, int, int, int]]) -> list[Sent]:
        opened = int((self.now_s - START_S) // DAY_S)
        found = []
        for which, off, person, wrong in drawn:
            survey, number = SURVEYS[which], max(0, opened + off)
            symbol = survey.channel.outputs if wrong else person % survey.channel.outputs
            found.append(Sent(survey, number, report_id(person + 100 * number), symbol))
        return found

    @rule(uploads=st.lists(UPLOAD, min_size=1, max_size=3))
    def reports_come(self, uploads: list[list[tuple[int, int, int, int]]]) -> None:
        self.send(list(map(self.sent, uploads)))

    @rule(upload=UPLOAD, days=st.sampled_from([0, 0, 1]), steps=st.integers(1, 6))
    def day_goes_by(self, upload: list[tuple[int, int, int, int]], days: int, steps: int) -> None:
        self.now_s += days * DAY_S
        self.send([self.sent(upload)])
        for _ in range(steps):
            self.step()

    @precondition(lambda self: self.uploads)
    @rule(data=st.data())
    def reports_come_again(self, data: st.DataObject) -> None:
        self.send([data.draw(st.sampled_from(self.uploads), label="upload")])

    @rule(fails=st.sampled_from(["before", "after"]), upload=UPLOAD)
    def log_fails(self, fails: str, upload: list[tuple[int, int, int, int]]) -> None:
        self.flaky.fails = fails
        self.send([self.sent(upload)])
        self.flaky.fails = ""
        SEEN[f"log fails {fails}"] += 1

    @rule()
    def collector_starts_again(self) -> None:
        self.stop_collector()
        self.start_collector()

    @rule(steps=st.integers(1, 4))
    def worker_works(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> int:
        begins = self.log_end()
        applied = self.worker.step()
        if not applied:
            due = self.model.due(self.now_s)
            # Written anew after a restart, a seal changes nothing.
            assert not due or self.log_end() > begins, "a round that is due must be sealed"
            self.model.seal(due)
            SEEN["rounds sealed"] += len(due)
        return applied

    def log_end(self) -> int:
        return sum(map(self.log.end, range(PARTITIONS)))

    @rule(
        file=st.sampled_from(["store", "store", "archive", "log"]),
        statement=st.integers(1, 12),
        days=st.sampled_from([0, 1, 2]),
    )
    def worker_is_killed(self, file: str, statement: int, days: int) -> None:
        """Some days on, so that rounds are due, and before a statement of one of the next steps."""
        self.now_s += days * DAY_S
        left, begins = [statement], self.log_end()

        def count(_: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                shutil.copytree(self.folder / "node", self.folder / "copy")

        databases = {"store": self.store._db, "archive": self.archive._db, "log": self.log._writer}
        databases[file].set_trace_callback(count)
        while self.worker.step() or self.worker.step():
            pass
        databases[file].set_trace_callback(None)
        if left[0] > 0:
            shutil.copytree(self.folder / "node", self.folder / "copy")
        SEEN[f"killed in {file}" if left[0] <= 0 else "killed between steps"] += 1
        self.stop()
        shutil.rmtree(self.folder / "node")
        (self.folder / "copy").rename(self.folder / "node")
        self.start()
        # All seals of one moment are written at once: they are in the copy, or none is.
        if self.log_end() > begins:
            self.model.seal(self.model.due(self.now_s))

    # Beside the model

    @invariant()
    def counts_are_as_the_model_says(self) -> None:
        states = self.worker._counter.states.values()
        behind = not self.worker.is_caught_up
        assert behind or sum(state.unknown for state in states) == self.model.unknown
        assert sum(state.dead for state in states) == 0
        keys = {key for state in states for key in state.rounds}
        assert keys <= self.model.rounds.keys()
        for key, expected in self.model.rounds.items():
            parts = [state.rounds[key] for state in states if key in state.rounds]
            verdicts = sum((part.verdicts for part in parts), VerdictCounts())
            after = sum((part.after_seal for part in parts), VerdictCounts())
            counts = Counter[int]()
            for part in parts:
                counts.update({i: n for i, n in enumerate(part.counts.tolist()) if n})
            if behind:
                assert verdicts.accepted <= expected.verdicts["accepted"]
                assert all(n <= expected.counts[i] for i, n in counts.items())
                continue
            assert self.tally(verdicts) == +expected.verdicts
            assert self.tally(after) == +expected.after_seal
            assert verdicts.attempts == expected.verdicts.total()
            assert counts == expected.counts

    @staticmethod
    def tally(verdicts: VerdictCounts) -> Counter[str]:
        return +Counter({name: n for name, n in verdicts.as_dict().items() if name != "attempts"})

    @invariant()
    def releases_are_of_the_model_and_keep_their_bytes(self) -> None:
        for key in self.archive.rounds():
            data = self.archive.get(key)
            assert data is not None
            assert self.kept.setdefault(key, data) == data
            expected = self.model.rounds[key]
            assert expected.sealed
            document = json.loads(data)
            accounting = {name: n for name, n in document["accounting"].items() if n and name != "attempts"}
            assert accounting == dict(+expected.verdicts)
            assert document["devices"] == expected.verdicts["accepted"]

    def teardown(self) -> None:
        with contextlib.ExitStack() as after:
            after.callback(shutil.rmtree, self.folder)
            after.callback(self.loop.close)
            after.callback(self.stop)
            self.now_s = START_S + 30.0 * DAY_S
            while self.step() or self.step():
                pass
            self.counts_are_as_the_model_says()
            self.releases_are_of_the_model_and_keep_their_bytes()
            answered = {key for key, known in self.model.rounds.items() if known.ids}
            assert set(self.archive.rounds()) == answered
            SEEN["releases"] += len(answered)
            self.count_anew()

    def count_anew(self) -> None:
        """The log alone gives the same bytes."""
        with tempfile.TemporaryDirectory() as name:
            store = SqliteStore(
                Path(name) / "store.sqlite", log_identity=self.log.identity, partitions=PARTITIONS
            )
            archive = SqliteArchive(Path(name) / "archive.sqlite")
            with contextlib.closing(store), contextlib.closing(archive):
                worker = self.new_worker(store, archive, LiveView())
                while worker.step():
                    pass
                assert {key: archive.get(key) for key in archive.rounds()} == {
                    key: self.archive.get(key) for key in self.archive.rounds()
                }


TestCountingMachine = CountingMachine.TestCase
TestCountingMachine.settings = settings(max_examples=4, stateful_step_count=18)
