"""The agent for hosts with an event loop: every verb of `Agent` is awaited, and none runs on the loop.

    async with AsyncAgent("ledger.db", "https://collect.example.org", budget=4.0) as agent:
        await agent.register(Attribute.integer("visits", 0, 77, kind="static"))
        await agent.set("visits", 3)
        ...
        await agent.upload()

Two threads of its own do the work, each one call at a time: one owns the ledger, the other waits for the
collector. So a pause or a look at the account never queues behind a slow network.

If the task that awaits a call is cancelled, the call is still made whole or not at all: one that has begun is
finished, and the ledger holds its result; one that has not begun is dropped.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, Self, TypeAlias, TypeVar

from hubbub_client.agent.agent import Agent
from hubbub_client.errors import ClientError, LedgerLockedError

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_S: Final = 2.0
"""The seconds that `close` grants an upload under way before it is cut off."""


Thread: TypeAlias = Literal["_desk", "_line"]
"""The thread of the ledger, or the one that waits for the collector."""


def _signed_as(
    model: Callable[Concatenate[Agent, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[AsyncAgent, P], None]]:
    """Return a decorator that gives a constructor the arguments of another one."""
    return wraps(model, assigned=(), updated=())


def _awaited(
    verb: Callable[Concatenate[Agent, P], T], *, at: Thread = "_desk"
) -> Callable[Concatenate[AsyncAgent, P], Coroutine[Any, Any, T]]:
    """Return a verb of `Agent` to be awaited, with its arguments and its docstring.

    Args:
        verb: The verb.
        at: The thread that does it.
    """

    @wraps(verb, assigned=("__name__", "__doc__"))
    async def asked(agent: AsyncAgent, /, *arguments: P.args, **options: P.kwargs) -> T:
        worker: _Worker = getattr(agent, at)
        return await worker.run(partial(verb, agent._opened(), *arguments, **options))

    return asked


class AsyncAgent:
    """An `Agent` whose verbs are awaited; `Agent` says what each of them does, returns and raises.

    It is opened by `async with`, or by awaiting `open`; the arguments are those of `Agent`. Its calls may
    come from any task, and from any event loop.

    Raises:
        ClientError: A verb is awaited before it is open, or after `close`.
    """

    @_signed_as(Agent.__init__)
    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - checked against the model's
        inspect.signature(Agent).bind(*arguments, **options)
        self._make = partial(Agent, *arguments, **options)
        self._agent: Agent | None = None
        self._desk = _Worker("hubbub-ledger")
        self._line = _Worker("hubbub-network")

    async def open(self) -> Self:
        """Open the ledger, as `Agent` does.

        Raises:
            LedgerError: The ledger cannot be used; its subclasses say why.
            TransportError: The URL is not http or https, or http to another machine.
        """
        await self._desk.run(self._open)
        return self

    def _open(self) -> None:
        if self._agent is None:
            self._agent = self._make()

    register = _awaited(Agent.register)
    set = _awaited(Agent.set)
    correct = _awaited(Agent.correct)
    fetch_surveys = _awaited(Agent.fetch_surveys, at="_line")
    fetch_tokens = _awaited(Agent.fetch_tokens, at="_line")
    read_surveys = _awaited(Agent.read_surveys)
    opt_in = _awaited(Agent.opt_in)
    opt_out = _awaited(Agent.opt_out)
    enrol = _awaited(Agent.enrol)
    answer = _awaited(Agent.answer)
    upload = _awaited(Agent.upload, at="_line")
    check = _awaited(Agent.check, at="_line")
    checks = _awaited(Agent.checks)
    pause = _awaited(Agent.pause)
    resume = _awaited(Agent.resume)
    forget = _awaited(Agent.forget)
    status = _awaited(Agent.status)
    account = _awaited(Agent.account)
    surveys = _awaited(Agent.surveys)
    sent = _awaited(Agent.sent)
    serve_page = _awaited(Agent.serve_page)
    run_background = _awaited(Agent.run_background)

    async def close(self) -> None:
        """End what is under way and give up the ledger; a second call waits for the first.

        Calls on the ledger that were made before are finished, which takes as long as the disk does. An
        upload is given two seconds, then cut off as by `Agent.close`, and its awaiter gets a LedgerError.
        Should the task that awaits this be cancelled, the closing goes on all the same. In a forked child it
        does nothing: the agent is its parent's.
        """
        if not self._desk.inherited:
            self._line.end()
            await asyncio.shield(asyncio.wrap_future(self._desk.end(self._close)))

    def _close(self) -> None:
        self._line.join(PATIENCE_S)
        if self._agent is not None:
            self._agent.close()

    def _opened(self) -> Agent:
        if self._agent is None:
            raise ClientError("an agent must be open: `async with AsyncAgent(...)`, or await its open()")
        return self._agent

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class _Worker:
    """A daemon thread that does one thing after another; it keeps no host from exiting."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._last: Future[None] | None = None
        self._name = name
        self._thread: threading.Thread | None = None
        self._process: int | None = None

    @property
    def inherited(self) -> bool:
        """True in a fork of the process whose thread this is, where it would never answer."""
        return self._process not in {None, os.getpid()}

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[], T]) -> Future[T]:
        if self.inherited:
            raise LedgerLockedError("an agent belongs to the process that opened it, not to its fork")
        with self._lock:
            if self._last is not None:
                raise ClientError("an agent that was closed cannot be used")
            return self._put(work)

    def _put(self, work: Callable[[], T]) -> Future[T]:
        if self._thread is None:
            self._process = os.getpid()
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._work.put((future, work))
        return future

    def end(self, last: Callable[[], None] = lambda: None) -> Future[None]:
        """Take no more work than what is queued and `last`, and give what comes of that.

        A second call, whoever makes it, gives the same: there is one end.
        """
        with self._lock:
            if self._last is None:
                self._last = self._put(last)
                self._work.put(None)
            return self._last

    def join(self, timeout_s: float) -> None:
        """Wait for what is queued, but not for ever."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
