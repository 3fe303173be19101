"""Phones: the product's own agents, on a disk whose power may fail at any write."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import network
from disk import UNSYNCED
from power_cut import Step

from hubbub.survey import Attribute
from hubbub_client import Agent, AttributeRefusedError, LedgerError, Limits, Policy, TransportError
from hubbub_client.upload.transport import Response

if TYPE_CHECKING:
    from world import World

HEALTH = Attribute.labels("health", ["a", "b", "c"], kind="evolving")
HOME = Attribute.labels("home", ["x", "y"], kind="static")
BUDGET = 6.0
"""Enough for a survey of two rounds at epsilon 2 with the one about home, and for no more rounds."""
_LIMITS = Limits(gap_s=0.0, base_s=5.0, cap_s=120.0, retry_after_cap_s=60.0)


class Phone:
    """One installation: it answers two surveys from time to time, and loses power now and then.

    Its requests leave it before it has an answer, as if each had met its timeout; what a request of the same
    bytes heard meanwhile is the answer to the next. So the agent, which waits for nobody, lives in a loop.
    """

    def __init__(self, world: World, place: int) -> None:
        self._world, self._place = world, place
        self.name = f"phone-{place}"
        self._out: list[tuple[int, bytes]] = []
        self._answers: dict[bytes, Response] = {}
        self.told: list[bytes] = []
        """Every upload that left it, in order."""

    def post(self, path: str, body: bytes) -> Response:
        """Let an upload leave, and return what an earlier one like it heard."""
        self._world.disk.steps.append(Step("sent"))
        self._out.append((self._world.disk.mark, body))
        if body not in self._answers:
            raise TransportError("collector cannot be reached: not yet")
        return self._answers.pop(body)

    def get(self, path: str) -> Response:
        """Nobody publishes lists here."""
        raise TransportError("collector cannot be reached: no lists")

    def close(self) -> None:
        """Nothing is kept open."""

    def _opened(self) -> Agent:
        agent = Agent(
            self._world.folder / f"{self.name}.db",
            "http://collector.invalid",
            budget=BUDGET,
            policy=Policy(require_opt_in="no"),
            limits=_LIMITS,
            clock=self._world.now_s,
            jitter=lambda: 0.5,
            http=self,
        )
        agent.register(HEALTH)
        agent.register(HOME)
        return agent

    async def live(self) -> None:
        """Answer until the world ends, or the ledger cannot be read."""
        try:
            await self._live()
        except LedgerError as error:
            self._world.seen.wrong.append(f"I7 {self.name}: its ledger is lost, {type(error).__name__}")

    async def _live(self) -> None:
        world = self._world
        self._opened().close()
        world.disk.settle(self.name)  # a new ledger gets its name when all of it is on disk
        while True:
            with contextlib.closing(self._opened()) as agent:
                first, fails = world.disk.mark, False
                while not fails:
                    self._use(agent)
                    fails = world.fault(8)
                    if not fails:
                        self._leave(world.disk.mark)
                        await asyncio.sleep(60.0 * world.pace * (1 + world.tape.pick(36)))
                        first = world.disk.mark
                last = world.disk.mark
            at = last - world.tape.pick(last - first + 1)
            unsynced = UNSYNCED[world.tape.pick(3)]
            world.say(f"{self.name}: power fails, what was not synced is {unsynced}")
            world.disk.cut(self.name, at, unsynced, world.tape.bytes_of(8))
            self._leave(at)
            await asyncio.sleep(60.0 * (1 + world.tape.pick(9)))

    def _use(self, agent: Agent) -> None:
        for survey in self._world.surveys:
            agent.enrol(survey)
        value = self._world.tape.bytes_of(1)[0]
        agent.set("health", "abc"[value % 3])
        with contextlib.suppress(AttributeRefusedError):  # pinned by its first answer
            agent.set("home", "xy"[value // 3 % 2])
        agent.answer()
        agent.upload()

    def _leave(self, until: int) -> None:
        """Let those uploads out that were made by then."""
        out, self._out = self._out, []
        for mark, body in out:
            if mark <= until:
                self.told.append(body)
                self._world.later(self._sent(body))

    async def _sent(self, body: bytes) -> None:
        answer = await network.sent(self._world, body)
        if answer is not None:
            self._answers[body] = Response(answer.status, answer.body)
            self._world.heard(self.name, body, answer)
