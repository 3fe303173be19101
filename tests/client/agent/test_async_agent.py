"""The agent on an event loop: the loop never waits, and a cancelled task loses and doubles nothing."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from devices import DAY_S, FAST, HEALTH, HEALTH_SURVEY, SETUP, VISIT_COUNT, VISITS_SURVEY, Clock, Collector
from surveys import START_S

from hubbub.wire import report as wire
from hubbub_client import Agent, AsyncAgent, ClientError, LedgerError, LedgerLockedError
from hubbub_client.agent import async_agent
from hubbub_client.agent.device_state import DeviceState
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.upload.transport import Response


@pytest.fixture
def collector() -> Collector:
    found = Collector()
    found.surveys = Response(200, wire.encode_surveys([HEALTH_SURVEY.canonical, VISITS_SURVEY.canonical]))
    return found


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S)


@pytest.fixture
def make(tmp_path: Path, collector: Collector, clock: Clock) -> Callable[..., AsyncAgent]:
    def made(**settings: object) -> AsyncAgent:
        return AsyncAgent(
            tmp_path / "l.db",
            "",
            **{"budget": 9.0, "clock": clock, "http": collector, "limits": FAST, **SETUP, **settings},
        )

    return made


def public(cls: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def test_it_has_the_verbs_and_the_arguments_of_the_agent() -> None:
    verbs = public(AsyncAgent)
    assert {name for name in verbs if name != "open"} == set(public(Agent))
    assert all(verbs[name] == signature for name, signature in public(Agent).items())
    assert inspect.signature(AsyncAgent) == inspect.signature(Agent)
    assert all(inspect.iscoroutinefunction(getattr(AsyncAgent, name)) for name in verbs)


def test_a_few_lines_answer_and_send(make, collector) -> None:
    async def host() -> None:
        async with make() as agent:
            await agent.register(HEALTH)
            await agent.set("health", "good")
            for survey in await agent.fetch_surveys():
                await agent.enrol(survey)
            assert len(await agent.answer()) == 1
            assert set((await agent.upload()).settled.values()) == {"accepted"}
            assert (await agent.account()).loss == pytest.approx(1.0)

    asyncio.run(host())
    assert len(collector.received) == 1


CALLS: dict[str, Callable[[AsyncAgent], Awaitable[object]]] = {
    "register": lambda agent: agent.register(VISIT_COUNT),
    "set": lambda agent: agent.set("health", "good"),
    "correct": lambda agent: agent.correct("visits", 3),
    "read_surveys": lambda agent: agent.read_surveys(wire.encode_surveys([HEALTH_SURVEY.canonical])),
    "opt_in": lambda agent: agent.opt_in("health"),
    "opt_out": lambda agent: agent.opt_out("health"),
    "enrol": lambda agent: agent.enrol(HEALTH_SURVEY),
    "answer": lambda agent: agent.answer(),
    "upload": lambda agent: agent.upload(),
    "check": lambda agent: agent.check(),
    "checks": lambda agent: agent.checks(),
    "pause": lambda agent: agent.pause(),
    "resume": lambda agent: agent.resume(),
    "forget": lambda agent: agent.forget(),
    "status": lambda agent: agent.status(),
    "account": lambda agent: agent.account(),
    "surveys": lambda agent: agent.surveys(),
    "sent": lambda agent: agent.sent(),
    "serve_page": lambda agent: agent.serve_page(),
    "run_background": lambda agent: agent.run_background(poll_s=3600.0),
    "close": lambda agent: agent.close(),
}


@pytest.mark.parametrize("verb", CALLS)
def test_no_verb_holds_the_loop(make, verb: str) -> None:
    """The ledger is busy until the loop itself says that it is not: a verb that held the loop would hang."""

    async def host() -> None:
        async with make() as agent:
            await agent.register(HEALTH)
            await agent.register(VISIT_COUNT)
            held, free = threading.Event(), threading.Event()

            def hold() -> None:
                with agent._agent._lock:
                    held.set()
                    assert free.wait(20)

            holder = threading.Thread(target=hold)
            holder.start()
            assert held.wait(10)
            task = asyncio.ensure_future(CALLS[verb](agent))
            for _ in range(50):  # turns of the loop, in which the verb has all the chances to hold it
                await asyncio.sleep(0)
            assert not task.done()
            free.set()
            await asyncio.wait_for(task, 10)
            holder.join()

    asyncio.run(host())


def test_every_verb_is_held_against_the_loop() -> None:
    # The first two are below; tokens are fetched as surveys are, by the thread for the network.
    assert set(CALLS) == set(public(AsyncAgent)) - {"open", "fetch_surveys", "fetch_tokens"}


class Slow(Collector):
    """A collector whose answers are let go by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let_go = threading.Event(), threading.Event()

    def post(self, path: str, body: bytes):
        self.asked.set()
        assert self.let_go.wait(20)
        return super().post(path, body)

    def get(self, path: str):
        self.asked.set()
        assert self.let_go.wait(20)
        return super().get(path)


async def seen(event: threading.Event) -> None:
    async with asyncio.timeout(10):
        while not event.is_set():
            await asyncio.sleep(0.001)


async def ready(agent: AsyncAgent) -> None:
    await agent.register(HEALTH)
    await agent.enrol(HEALTH_SURVEY)
    await agent.answer()


def test_a_slow_network_holds_neither_the_loop_nor_the_owner(make) -> None:
    collector = Slow()

    async def host() -> None:
        async with make(http=collector) as agent:
            await ready(agent)
            upload = asyncio.ensure_future(agent.upload())
            await seen(collector.asked)
            assert (await agent.status()).waiting == 1
            await agent.pause()
            assert not upload.done()
            collector.let_go.set()
            assert len((await upload).settled) == 1

    asyncio.run(host())


def test_fetching_and_opening_do_not_hold_the_loop(make, monkeypatch) -> None:
    free = threading.Event()
    waiting = threading.Event()
    prepare = Ledger.__init__

    def slow(*arguments: object, **settings: object) -> None:
        waiting.set()
        assert free.wait(20)
        prepare(*arguments, **settings)

    collector = Slow()
    monkeypatch.setattr(Ledger, "__init__", slow)

    async def host() -> None:
        agent = make(http=collector)
        opening = asyncio.ensure_future(agent.open())
        await seen(waiting)
        free.set()
        await opening
        fetching = asyncio.ensure_future(agent.fetch_surveys())
        await seen(collector.asked)
        assert not fetching.done()
        fetching.cancel()
        collector.let_go.set()
        await agent.close()

    asyncio.run(host())


def test_a_cancelled_upload_is_finished_and_neither_lost_nor_sent_again(make) -> None:
    collector = Slow()

    async def host() -> None:
        async with make(http=collector) as agent:
            await ready(agent)
            upload = asyncio.ensure_future(agent.upload())
            await seen(collector.asked)
            upload.cancel()
            with pytest.raises(asyncio.CancelledError):
                await upload
            collector.let_go.set()
            assert (await agent.upload()).settled == {}  # nothing is left for it
            assert [report.outcome for report in await agent.sent()] == ["accepted"]

    asyncio.run(host())
    assert len(collector.bodies) == 1


def test_a_cancelled_answer_is_in_the_ledger_wholly_or_not_at_all(make, clock, collector) -> None:
    """Cancelled before it begins, while it works, and after."""

    async def host() -> None:
        async with make() as agent:
            await agent.register(HEALTH)
            await agent.enrol(HEALTH_SURVEY)
            for turns in (0, 1, 3):
                held, free = threading.Event(), threading.Event()
                agent._desk.submit(lambda held=held, free=free: (held.set(), free.wait(20)))
                assert held.wait(10)
                task = asyncio.ensure_future(agent.answer())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                free.set()
                assert (await agent.status()).answers == 0  # it had not begun, so it was not made
            begun, go_on = threading.Event(), threading.Event()
            add = agent._agent._ledger.add_answer

            def slow(**answer: object) -> None:
                begun.set()
                assert go_on.wait(20)
                add(**answer)

            agent._agent._ledger.add_answer = slow
            task = asyncio.ensure_future(agent.answer())
            await seen(begun)
            task.cancel()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await agent.status()).answers == 1  # it had begun, so it was finished
            assert await agent.answer() == ()
            await agent.upload()

    asyncio.run(host())
    assert len(collector.received) == 1


def test_closing_grants_an_upload_its_time_and_then_cuts_it_off(make, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(async_agent, "PATIENCE_S", 0.05)
    collector = Slow()

    async def host() -> None:
        agent = await make(http=collector).open()
        await ready(agent)
        upload = asyncio.ensure_future(agent.upload())
        await seen(collector.asked)
        await agent.close()
        Ledger(tmp_path / "l.db", budget=None).close()  # it was given up
        collector.let_go.set()
        with pytest.raises(LedgerError):
            await upload

    asyncio.run(host())


def test_closing_finishes_what_was_asked_before_and_takes_nothing_after(make, clock, collector) -> None:
    async def host() -> None:
        agent = await make().open()
        await agent.register(HEALTH)
        held, free = threading.Event(), threading.Event()
        agent._desk.submit(lambda: (held.set(), free.wait(20)))
        assert held.wait(10)
        calls = [asyncio.ensure_future(agent.enrol(HEALTH_SURVEY)), asyncio.ensure_future(agent.answer())]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(agent.close())
        again = asyncio.ensure_future(agent.close())
        await asyncio.sleep(0)
        with pytest.raises(ClientError, match="closed"):
            await agent.status()
        closing.cancel()
        free.set()
        await again
        assert [task.done() for task in calls] == [True, True]
        assert len(await calls[1]) == 1

    asyncio.run(host())


def test_a_task_cancelled_while_it_opens_leaves_no_ledger_open(make, tmp_path, monkeypatch) -> None:
    entered, free = threading.Event(), threading.Event()
    load = DeviceState.load

    def slow(self: DeviceState) -> None:
        entered.set()
        assert free.wait(20)
        load(self)

    monkeypatch.setattr(DeviceState, "load", slow)

    async def host() -> None:
        async with make():
            raise AssertionError("it was cancelled before that")

    async def outer() -> None:
        task = asyncio.ensure_future(host())
        await seen(entered)
        task.cancel()
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        Ledger(tmp_path / "l.db", budget=None).close()

    asyncio.run(outer())


def test_what_the_ledger_refuses_is_raised_to_who_awaits(make, tmp_path) -> None:
    async def host() -> None:
        async with make():
            with pytest.raises(LedgerLockedError):
                async with make():
                    raise AssertionError("two agents held one ledger")
        with pytest.raises(ClientError, match="must be open"):
            await make().answer()

    asyncio.run(host())


def test_many_tasks_at_once_answer_every_round_once(make, clock, collector) -> None:
    async def host() -> None:
        async with make() as agent:
            await agent.register(HEALTH)
            await agent.enrol(HEALTH_SURVEY)
            for _ in range(HEALTH_SURVEY.rounds):
                await asyncio.gather(
                    *(agent.answer() for _ in range(10)), *(agent.upload() for _ in range(10))
                )
                await agent.upload()
                clock.now_s += DAY_S

    asyncio.run(host())
    assert sorted(report.round for report in collector.received) == [0, 1, 2]


@pytest.mark.parametrize("poll_s", [0.0, -1.0, math.nan, math.inf, 1e12, "60", None])
def test_a_poll_that_no_thread_can_wait_for_is_refused_to_who_asks(make, poll_s) -> None:
    """Otherwise the background would spin, or end with an error that reaches the host's standard error."""

    async def host() -> None:
        async with make() as agent:
            with pytest.raises(ClientError, match="poll_s must be above 0"):
                await agent.run_background(poll_s=poll_s)
            assert not any(thread.name == "hubbub-agent" for thread in threading.enumerate())

    asyncio.run(host())


def test_one_agent_serves_loops_after_and_beside_each_other(make, clock, collector) -> None:
    """Three loops in threads of their own, each in every round; opened by one loop, closed by another."""
    agent = make()

    async def begin() -> None:
        await agent.open()
        await agent.register(HEALTH)
        await agent.enrol(HEALTH_SURVEY)

    asyncio.run(begin())
    made: list[int] = []
    failed: list[BaseException] = []

    async def work() -> None:
        calls = [call() for _ in range(5) for call in (agent.answer, agent.upload, agent.status)]
        for task in [asyncio.ensure_future(each) for each in calls]:
            if len(made) % 2:
                task.cancel()
            try:
                found = await task
                made.append(len(found) if isinstance(found, tuple) else 0)
            except asyncio.CancelledError:
                made.append(0)

    def loop() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            failed.append(error)
            raise

    for _ in range(HEALTH_SURVEY.rounds):
        loops = [threading.Thread(target=loop) for _ in range(3)]
        for thread in loops:
            thread.start()
        for thread in loops:
            thread.join(30)
        assert not failed and not any(thread.is_alive() for thread in loops)
        asyncio.run(agent.answer()), asyncio.run(agent.upload())
        clock.now_s += DAY_S
    status = asyncio.run(agent.status())
    assert (status.answers, status.waiting) == (HEALTH_SURVEY.rounds, 0)
    asyncio.run(agent.close())
    received = {report.id: report.round for report in collector.received}
    assert sorted(received.values()) == list(range(HEALTH_SURVEY.rounds))


def test_loops_that_close_at_once_all_see_it_closed(make, monkeypatch) -> None:
    """Twenty agents, each closed by four loops in threads of their own, with the narrowest of switches."""
    monkeypatch.setattr(async_agent, "PATIENCE_S", 5.0)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            agent = make()
            asyncio.run(agent.open())
            start = threading.Barrier(4)

            def close(agent: AsyncAgent = agent, start: threading.Barrier = start) -> None:
                start.wait(10)
                asyncio.run(agent.close())

            closers = [threading.Thread(target=close, daemon=True) for _ in range(4)]
            for thread in closers:
                thread.start()
            for thread in closers:
                thread.join(20)
                assert not thread.is_alive(), "it waits for a close that was never made"
    finally:
        sys.setswitchinterval(interval)


def test_a_loop_that_is_closed_over_a_call_leaves_the_agent_to_others(make, collector, caplog) -> None:
    agent = make()
    asyncio.run(agent.open())
    held, free = threading.Event(), threading.Event()
    agent._desk.submit(lambda: (held.set(), free.wait(20)))
    assert held.wait(10)
    loop = asyncio.new_event_loop()
    task = loop.create_task(agent.register(HEALTH))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    free.set()
    asyncio.run(agent.enrol(HEALTH_SURVEY))
    assert len(asyncio.run(agent.answer())) == 1  # what had been asked was done
    asyncio.run(agent.close())
    assert caplog.records == []
    assert not task.done()
    task._log_destroy_pending = False  # the host's own doing, and asyncio says so


def test_closing_under_a_background_loses_nothing_and_raises_nothing(make, clock, collector) -> None:
    """Fifteen lives; the background is at any point of a step when the agent is closed, and says nothing."""
    raised: list[object] = []
    hook, threading.excepthook = threading.excepthook, raised.append
    try:

        async def host(life: int) -> None:
            async with make(clock=lambda: START_S + (life % 3) * DAY_S) as agent:
                await agent.register(HEALTH)
                await agent.enrol(HEALTH_SURVEY)
                await agent.run_background(poll_s=1e-4)
                await asyncio.sleep(0.002 * life)

        for life in range(15):
            asyncio.run(host(life))
        threads = [thread for thread in threading.enumerate() if thread.name == "hubbub-agent"]
        for thread in threads:
            thread.join(10)
    finally:
        threading.excepthook = hook
    assert raised == []

    async def end() -> None:
        async with make() as agent:
            status = await agent.status()
            assert status.answers == len({r.id for r in collector.received}) + status.waiting

    asyncio.run(end())
    assert len({(r.round, r.id) for r in collector.received}) == len({r.round for r in collector.received})


def test_no_thread_is_left(make) -> None:
    async def host() -> None:
        async with make() as agent:
            await agent.status()
            await agent.upload()
            assert {"hubbub-ledger", "hubbub-network"} <= {t.name for t in threading.enumerate()}
            assert all(t.daemon for t in threading.enumerate() if t.name.startswith("hubbub"))

    asyncio.run(host())
    for thread in threading.enumerate():
        if thread.name.startswith("hubbub"):
            thread.join(10)
            assert not thread.is_alive()
