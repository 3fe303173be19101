"""Checks whether an answer was counted: what a device finds and keeps, and what a server learns of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from surveys import LABELS

from hubbub import Survey
from hubbub import transparency as tlog
from hubbub.survey import public_text
from hubbub.wire import Report, decode_upload, encode_response
from hubbub_aggregator.stores import TransparencyLog
from hubbub_client import Agent, AnswerCheck, ClientError
from hubbub_client.agent.checks import GIVEN_UP_S, LATEST_S, SOONEST_S
from hubbub_client.upload import Response
from hubbub_deploy.transparency import log_routes

PRIVATE = [Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32) for place in range(1, 5)]
KEY = tlog.NoteKey("log.example", tlog.LOG_KEY, PRIVATE[0].public_key().public_bytes_raw())
WITNESS = tlog.NoteKey("w.example", tlog.WITNESS_KEY, PRIVATE[1].public_key().public_bytes_raw())
POLICY = tlog.LogPolicy(KEY, (WITNESS,), 1)
HEALTH = Survey.parse(LABELS)
STATIC = Survey.parse(LABELS.replace('kind = "evolving"', 'kind = "static"'))
NOBODY = [bytes([place % 256, place // 256]) * 8 for place in range(2_000)]


class World:
    """A collector that may lose what it accepts, and a log that is served over HTTP."""

    def __init__(self, folder: Path, url: str, log: TransparencyLog, asked: list[tuple[str, int]]) -> None:
        self.folder, self.url, self.log, self.asked = folder, url, log, asked
        self.reports: list[Report] = []
        self.now_s = float(HEALTH.start_s + 60)
        self.outcome, self.is_cut_off = "accepted", False

    def get(self, path: str) -> Response:
        raise AssertionError(path)

    def post(self, path: str, body: bytes) -> Response:
        reports = decode_upload(body, max_reports=99)
        self.reports += [each for each in reports if isinstance(each, Report)]
        return Response(503 if self.is_cut_off else 200, encode_response([self.outcome] * len(reports)))

    def close(self) -> None:
        pass

    def agent(self, name: str = "l.db", **options: object) -> Agent:
        options = {"check_share": 1.0, "log_url": self.url, **options}
        key = public_text(PRIVATE[2])
        return Agent(
            self.folder / name,
            "http://127.0.0.1:1",
            budget=9.0,
            http=self,
            clock=lambda: self.now_s,
            survey_key=key,
            log=POLICY,
            **options,
        )

    def answered(self, agent: Agent, survey: Survey = HEALTH) -> None:
        agent.register(survey.attributes[0])
        agent.set(survey.attributes[0].id, "good")
        agent.opt_in(survey)
        agent.enrol(survey)
        assert len(agent.answer()) == 1
        agent.upload()

    def list(self, reports: list[Report], over: tuple[Report, ...] = (), *, crowd: int = 600) -> tlog.Entry:
        """Log what was counted of the first round, and have log and witness sign."""
        digest = reports[0].digest if reports else HEALTH.digest
        leaves = [leaves_of(each) for each in reports] + NOBODY[:crowd]
        made = tlog.CountedTiles.of(digest, 1, leaves, [leaves_of(each) for each in over], 256)
        self.log.append_counted(made)
        self.sign()
        return made.entry

    def sign(self) -> None:
        text = self.log.checkpoint(KEY.name).text
        self.log.publish(f"{text}\n{KEY.sign(text, PRIVATE[0])}{WITNESS.sign(text, PRIVATE[1], 1)}")

    def later(self) -> None:
        self.now_s = HEALTH.round_end_s(0) + HEALTH.lateness_s + LATEST_S + 1


def leaves_of(report: Report) -> bytes:
    (leaf,) = tlog.leaves_of(report.digest, report.round, report.id, [report.symbol])
    return leaf


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    log, asked = TransparencyLog(tmp_path / "log.sqlite"), list[tuple[str, int]]()
    app = Starlette(routes=log_routes(log))

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            asked.append((scope["path"], scope["client"][1]))
            assert [name for name, _ in scope["headers"] if name in (b"authorization", b"cookie")] == []
        await app(scope, receive, send)

    with contextlib.closing(log), socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(noted, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield World(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}", log, asked)
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize(
    ("lie", "due"),
    [
        (lambda world: world.list(world.reports), "counted"),
        (lambda world: world.list([], tuple(world.reports)), "over quota"),
        (lambda world: world.list([]), "missing"),
        # Another symbol under the same id is another answer: this one is missing.
        (
            lambda world: world.list([replace(each, symbol=(each.symbol + 1) % 5) for each in world.reports]),
            "missing",
        ),
    ],
)
def test_a_device_finds_what_became_of_its_answer(
    world: World, lie: Callable[[World], object], due: str
) -> None:
    with world.agent() as agent:
        world.answered(agent)
        lie(world)
        world.later()
        found = agent.check()
        assert found == AnswerCheck(HEALTH.id, HEALTH.digest, 0, due)
        assert agent.checks() == (found,) and agent.check() is None
    with world.agent() as agent:
        assert agent.checks() == (found,)


def test_what_was_never_acknowledged_is_not_called_missing(world: World) -> None:
    world.is_cut_off = True
    with world.agent() as agent:
        world.answered(agent)
        world.list([])
        world.later()
        found = agent.check()
        assert found is not None and found.found == "not known"


def test_before_the_seal_nothing_is_asked_and_until_it_is_logged_no_tile(world: World) -> None:
    """Rule 1; and what nobody can tell in two weeks stays unknown."""
    with world.agent() as agent:
        world.answered(agent)
        world.now_s = HEALTH.round_end_s(0) + HEALTH.lateness_s + SOONEST_S - 1
        assert agent.check() is None and world.asked == []
        world.later()
        assert agent.check() is None
        assert [path for path, _ in world.asked] == [f"/log/counted/{HEALTH.digest.hex()}/1"]
        assert agent.check() is None and len(world.asked) == 1  # put off for hours
        world.now_s += LATEST_S + 1
        assert agent.check() is None and len(world.asked) == 2
        world.now_s += GIVEN_UP_S
        found = agent.check()
        assert found is not None and found.found == "not known"


def test_a_tile_of_fewer_reports_is_never_asked_for(world: World) -> None:
    """Rule 2: an entry of so many bits would have the device name its report."""
    with world.agent() as agent:
        world.answered(agent)
        roots = [bytes(32), bytes(32)]
        world.log.append([tlog.Entry("counted", (HEALTH.digest, 1, 1_000, 2, *roots))])
        world.sign()
        world.later()
        assert agent.check() is None
        assert [path for path, _ in world.asked] == [f"/log/counted/{HEALTH.digest.hex()}/1"]


def test_every_look_has_its_hour_and_its_connection(world: World) -> None:
    """Rule 3: 60 times of checks are all of the day, and no connection serves two.

    An hour's draw is below 6 or above 19 of 23 hours with probability .4: of 60 none with 5e-14.
    """
    hours = []
    for place in range(60):
        with world.agent(f"{place}.db") as agent:
            world.now_s = float(HEALTH.start_s + 60)
            world.answered(agent)
            due = agent._ledger.next_check(1e12)
            assert due is not None
            hours.append((due.due_s - HEALTH.round_end_s(0) - HEALTH.lateness_s) / 3_600)
    assert all(1 <= hour <= 24 for hour in hours) and min(hours) < 6 and max(hours) > 19
    world.list(world.reports)
    world.later()
    ports = []
    for place in range(3):
        with world.agent(f"{place}.db") as agent:
            world.asked.clear()
            assert agent.check() is not None
            assert len({port for _, port in world.asked}) == 1 and len(world.asked) == 2
            ports.append(world.asked[0][1])
    assert len(set(ports)) == 3


@pytest.mark.parametrize(("survey", "many"), [(STATIC, 0), (HEALTH, 1)])
def test_a_static_survey_is_looked_for_once_in_its_life(world: World, survey: Survey, many: int) -> None:
    """Rule 3: several tiles would have few symbols in common; after `forget` too."""
    with world.agent() as agent:
        world.answered(agent, survey)
        world.now_s = survey.round_start_s(1) + 60.0
        assert len(agent.answer()) == 1
        agent.forget()
        agent.set(survey.attributes[0].id, "good")
        agent.opt_in(survey)
        agent.enrol(survey)
        world.now_s = survey.round_start_s(2) + 60.0
        assert len(agent.answer()) == 1
        # What `forget` erased is not checked, and the static survey has had its check.
        assert agent._ledger._read("SELECT count(*) FROM answer_check") == [(many,)]


def test_without_being_asked_for_nothing_is_kept_or_looked_for(world: World) -> None:
    """Rule 4."""
    with world.agent(check_share=0.0) as agent:
        world.answered(agent)
        world.list(world.reports)
        world.later()
        assert agent.check() is None and agent.checks() == () and world.asked == []
        assert agent._ledger._read("SELECT count(*) FROM answer_check")[0][0] == 0
    for share, options in ((0.5, {"log": None}), (1.5, {}), (-0.1, {}), (float("nan"), {})):
        with pytest.raises(ClientError, match="check_share must be within 0 and 1"):
            Agent(
                world.folder / "x.db",
                "http://x",
                budget=1.0,
                http=world,
                **{"log": POLICY, "survey_key": public_text(PRIVATE[2]), "check_share": share, **options},
            )


def test_the_share_is_the_share_of_answers(world: World) -> None:
    """Of 200 answers a share of .1 is 5 to 40, but for 1 in 10^4 of the time below and 1 in 10^5 above."""
    planned = 0
    with world.agent(check_share=0.1) as agent:
        checker = agent._checker
        assert checker is not None
        agent.register(HEALTH.attributes[0])
        planned = sum(
            checker.planned(HEALTH, Report(HEALTH.digest, 0, bytes(16), 1)) is not None for _ in range(200)
        )
    assert 5 <= planned <= 40


def test_the_leaf_is_all_that_is_kept_and_it_is_erased(world: World) -> None:
    """Rule 5: after the check no byte of it is in the ledger's files."""
    with world.agent() as agent:
        world.answered(agent)
        (report,) = world.reports
        leaf = leaves_of(report)
        due = agent._ledger.next_check(1e12)
        assert due is not None and due.leaf == leaf
        assert leaf in files(world.folder)
        world.list(world.reports)
        world.later()
        found = agent.check()
        assert found is not None and found.found == "counted"
    assert leaf not in files(world.folder)


def test_leaving_or_forgetting_erases_what_was_to_be_looked_for(world: World) -> None:
    for name, leave in (
        ("a.db", lambda agent: agent.opt_out(HEALTH)),
        ("b.db", lambda agent: agent.forget()),
    ):
        world.now_s = float(HEALTH.start_s + 60)
        with world.agent(name) as agent:
            world.answered(agent)
            leave(agent)
            world.later()
            assert agent.check() is None and world.asked == []
            assert agent._ledger.next_check(1e12) is None


def files(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.glob("l.db*"))


def test_a_leaf_says_nothing_that_the_ledger_does_not(world: World) -> None:
    """Rule 6: it is a receipt, and so is the account that the owner has anyway."""
    with world.agent() as agent:
        world.answered(agent)
        (sent,) = agent.sent()
        (leaf,) = tlog.leaves_of(sent.digest, sent.round, sent.id, [sent.symbol])
        due = agent._ledger.next_check(1e12)
        assert due is not None and due.leaf == leaf


def test_a_server_is_told_the_same_whatever_is_found(world: World) -> None:
    asked = []
    for name in ("a.db", "b.db"):
        with world.agent(name) as agent:
            world.answered(agent)
    counted, _ = world.reports
    world.list([counted])
    world.later()
    for name, due in (("a.db", "counted"), ("b.db", "missing")):
        with world.agent(name) as agent:
            world.asked.clear()
            found = agent.check()
            assert found is not None and found.found == due
            asked.append(
                [path.rsplit("/", 1)[0] if path.count("/") == 5 else path for path, _ in world.asked]
            )
            assert agent.upload().settled == {}
    assert asked[0] == asked[1] and len(world.reports) == 2


def test_a_log_that_was_longer_tells_nothing(world: World) -> None:
    with world.agent() as agent:
        world.answered(agent)
        world.list(world.reports)
        agent._ledger.see_log(KEY.public, 10)
        world.later()
        assert agent.check() is None
        for place in range(9):
            world.log.append([tlog.Entry("erased", (bytes([place]) * 16,))])
        world.sign()
        world.now_s += LATEST_S + 1
        found = agent.check()
        assert found is not None and found.found == "counted"
