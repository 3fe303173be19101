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
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from hubbub.survey import Attribute, Survey
from hubbub_client.agent.agent import JITTER, Agent
from hubbub_client.agent.policy import Policy
from hubbub_client.errors import ClientError, LedgerLocked
from hubbub_client.ledger.file import Counter
from hubbub_client.surveys.schedule import Enrolment
from hubbub_client.upload.outcomes import Answer, Correction, SentReport, Status, UploadOutcome
from hubbub_client.upload.transport import PlainHttp, Transport
from hubbub_client.upload.uploader import Limits

if TYPE_CHECKING:
    from hubbub_client.owner_page.account import Account
    from hubbub_client.owner_page.page import OwnerPage
    from hubbub_client.tokens.fetcher import Tokens

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_S: Final = 2.0
"""The seconds that `close` grants an upload under way before it is cut off."""


class AsyncAgent:
    """An `Agent` whose verbs are awaited; `Agent` says what each of them does, returns and raises.

    It is opened by `async with`, or by awaiting `open`; the arguments are those of `Agent`. Its calls may
    come from any task, and from any event loop.

    Raises:
        ClientError: A verb is awaited before it is open, or after `close`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        collector_url: str,
        *,
        budget: float | None,
        policy: Policy | None = None,
        device_key: bytes | None = None,
        counter: Counter | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float | None] = time.time,
        jitter: Callable[[], float] = JITTER,
        http: Transport | None = None,
        survey_key: str | Iterable[str] | None = None,
        strict: bool | None = None,
        upload_password: str | None = None,
        tokens: Tokens | None = None,
        plain_http: PlainHttp = "local",
    ) -> None:
        self._make = partial(
            Agent,
            path,
            collector_url,
            budget=budget,
            policy=policy,
            device_key=device_key,
            counter=counter,
            limits=limits,
            clock=clock,
            jitter=jitter,
            http=http,
            survey_key=survey_key,
            strict=strict,
            upload_password=upload_password,
            tokens=tokens,
            plain_http=plain_http,
        )
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

    async def register(self, attribute: Attribute) -> None:
        """See `Agent.register`."""
        await self._ask(Agent.register, attribute)

    async def set(self, attribute_id: str, value: object) -> None:
        """See `Agent.set`."""
        await self._ask(Agent.set, attribute_id, value)

    async def correct(self, attribute_id: str, value: object) -> Correction:
        """See `Agent.correct`."""
        return await self._ask(Agent.correct, attribute_id, value)

    async def fetch_surveys(self) -> tuple[Survey, ...]:
        """See `Agent.fetch_surveys`."""
        return await self._line.run(self._opened().fetch_surveys)

    async def fetch_tokens(self) -> bool:
        """See `Agent.fetch_tokens`."""
        return await self._line.run(self._opened().fetch_tokens)

    async def read_surveys(self, data: bytes) -> tuple[Survey, ...]:
        """See `Agent.read_surveys`."""
        return await self._ask(Agent.read_surveys, data)

    async def opt_in(self, asked: Survey | str) -> None:
        """See `Agent.opt_in`."""
        await self._ask(Agent.opt_in, asked)

    async def opt_out(self, asked: Survey | str) -> None:
        """See `Agent.opt_out`."""
        await self._ask(Agent.opt_out, asked)

    async def enrol(self, survey: Survey) -> Enrolment:
        """See `Agent.enrol`."""
        return await self._ask(Agent.enrol, survey)

    async def answer(self) -> tuple[Answer, ...]:
        """See `Agent.answer`."""
        return await self._ask(Agent.answer)

    async def upload(self) -> UploadOutcome:
        """See `Agent.upload`."""
        return await self._line.run(self._opened().upload)

    async def pause(self) -> None:
        """See `Agent.pause`."""
        await self._ask(Agent.pause)

    async def resume(self) -> None:
        """See `Agent.resume`."""
        await self._ask(Agent.resume)

    async def forget(self) -> None:
        """See `Agent.forget`."""
        await self._ask(Agent.forget)

    async def status(self) -> Status:
        """See `Agent.status`."""
        return await self._ask(Agent.status)

    async def account(self) -> Account:
        """See `Agent.account`."""
        return await self._ask(Agent.account)

    async def surveys(self) -> tuple[Survey, ...]:
        """See `Agent.surveys`."""
        return await self._ask(Agent.surveys)

    async def sent(self) -> tuple[SentReport, ...]:
        """See `Agent.sent`."""
        return await self._ask(Agent.sent)

    async def serve_page(self, *, port: int = 0) -> OwnerPage:
        """See `Agent.serve_page`."""
        return await self._ask(Agent.serve_page, port=port)

    async def run_background(self, *, poll_s: float = 60.0) -> None:
        """See `Agent.run_background`."""
        await self._ask(Agent.run_background, poll_s=poll_s)

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

    async def _ask(self, verb: Callable[..., T], *arguments: Any, **options: Any) -> T:  # noqa: ANN401
        return await self._desk.run(partial(verb, self._opened(), *arguments, **options))

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
            raise LedgerLocked("an agent belongs to the process that opened it, not to its fork")
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
