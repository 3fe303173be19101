"""An event loop in virtual time, and the decisions of one run: where the loop chooses, a tape says what.

The loop runs what is ready in an order that the tape draws, and jumps to the next moment at which something
is due. What asyncio would give to a thread runs in the loop itself, after a pause and before another one: so
that a batch may be written long after it was judged, and be answered long after it was written.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

PAUSES_S = (0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.05, 0.3, 2.0, 9.0, 40.0, 90.0)
"""Of work in a thread, seconds: mostly none; the longest is a machine that slept."""


class Tape:
    """The decisions of a run, small integers: drawn from a seed, or given, and 0 behind what is given.

    0 is always the ordinary thing: the first in line, no pause, no fault.
    """

    def __init__(self, seed: int, given: Sequence[int] | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - chooses among orders and faults
        self._given = None if given is None else list(given)
        self.made: list[int] = []

    def pick(self, n: int) -> int:
        """Return a number below n."""
        if self._given is None:
            found = self._random.randrange(n)
        else:
            place = len(self.made)
            found = min(self._given[place], n - 1) if place < len(self._given) else 0
        self.made.append(found)
        return found

    def happens(self, one_in: int) -> bool:
        """Return True once in so many times; False is the ordinary thing."""
        return self.pick(one_in) == one_in - 1

    def bytes_of(self, n: int) -> bytes:
        """Return n bytes that are no decision: they stay as they are when a tape is made shorter."""
        return self._random.randbytes(n)


class Host:
    """A process: its tasks end together, and what it gave to a thread is not done once it is gone."""

    def __init__(self, name: str) -> None:
        self.name, self.alive = name, True
        self.told = asyncio.Event()
        """Set when it is told to end in order."""
        # In order: a set of tasks has the order of their addresses.
        self.tasks: dict[asyncio.Task[Any], None] = {}

    def kill(self) -> None:
        """End it as `kill -9` does: nothing of it runs on."""
        self.alive = False
        for task in [*self.tasks]:
            task.cancel()


_HOST: contextvars.ContextVar[Host | None] = contextvars.ContextVar("host", default=None)


class _Selector(Protocol):
    def select(self, timeout: float | None) -> list[Any]: ...


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's loop on a clock that stands still while anything is ready."""

    _ready: Any
    _selector: _Selector
    _clock_resolution: float

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape, self._now = tape, 0.0
        self._selector = self
        # asyncio adds it to see what is due. A nanosecond is nothing to a float of 194 days: a timer that is
        # due right now would never be.
        self._clock_resolution = 1e-6
        self.set_task_factory(self._task)
        self.steps = 0

    def time(self) -> float:
        """Return seconds of virtual time since the beginning."""
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Jump over the time in which nothing happens."""
        if timeout is None:
            raise RuntimeError("something must be due, got a world in which everybody waits for ever")
        self._now += max(timeout, 0.0)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no events but those of time."""

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""

    def _run_once(self) -> None:
        self.steps += 1
        if len(self._ready) > 1:
            self._ready.rotate(-self._tape.pick(len(self._ready)))
        super()._run_once()  # type: ignore[misc]  # asyncio's own

    @staticmethod
    def _task(loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        """Make a task, and know whose it is."""
        task = asyncio.Task(coro, loop=loop, **more)
        if (host := _HOST.get()) is not None:
            if not host.alive:
                task.cancel()
            host.tasks[task] = None
            task.add_done_callback(lambda done: host.tasks.pop(done, None))
        return task

    def start(self, host: Host, coro: Any) -> asyncio.Task[Any]:
        """Run a coroutine as a part of a host."""
        task: asyncio.Task[Any] = self.as_host(host, self.create_task, coro)
        return task

    @staticmethod
    def as_host(host: Host, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function as a part of a host: the tasks that it makes are the host's."""
        context = contextvars.copy_context()
        context.run(_HOST.set, host)
        return context.run(function, *given)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Call the function later, in this thread; the answer comes later still."""
        host, answer = _HOST.get(), self.create_future()

        def call() -> None:
            if host is not None and not host.alive:
                return
            try:
                found, error = func(*args), None
            except Exception as problem:
                found, error = None, problem
            self.call_later(self.pause_s(), tell, found, error)

        def tell(found: Any, error: Exception | None) -> None:
            if answer.done() or (host is not None and not host.alive):
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)

        self.call_later(self.pause_s(), call)
        return answer

    def pause_s(self) -> float:
        """Return a pause of a thread, seconds."""
        return PAUSES_S[self._tape.pick(len(PAUSES_S))]
