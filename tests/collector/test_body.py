"""Bodies: within a length and a time, one timer for all, and nobody's cancellation taken for another's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message

from hubbub_collector.body import Bodies, HungUp, Refusal

SOON_S = 0.02


def part(body: bytes = b"", *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def receiving(*messages: Message) -> Callable[[], Awaitable[Message]]:
    """A sender that gives these messages and then nothing."""
    left = list(messages)

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return receive


def test_a_body_is_its_parts_up_to_the_limit() -> None:
    async def run() -> None:
        bodies = Bodies(5, 1000.0)
        assert await bodies.read(receiving(part())) == b""
        assert await bodies.read(receiving(part(b"12345"))) == b"12345"
        assert await bodies.read(receiving(part(b"12", more=True), part(b"345"))) == b"12345"
        for messages in ([part(b"123456")], [part(b"123", more=True), part(b"456", more=True)]):
            with pytest.raises(Refusal, match="at most 5 bytes") as refused:
                await bodies.read(receiving(*messages))
            assert refused.value.status == 413
        with pytest.raises(HungUp):
            await bodies.read(receiving(part(b"1", more=True), {"type": "http.disconnect"}))

    asyncio.run(run())


def test_who_is_late_is_told_so_in_order_and_nobody_else() -> None:
    told: list[int] = []

    async def run() -> None:
        bodies = Bodies(5, SOON_S)

        async def late(name: int) -> None:
            with pytest.raises(Refusal, match=r"in 0\.02 s") as refused:
                await bodies.read(receiving(part(b"1", more=True)))
            assert refused.value.status == 408
            told.append(name)
            # Whoever waits for something else afterwards is left alone.
            await asyncio.sleep(2 * SOON_S)

        async def in_time() -> None:
            assert await bodies.read(receiving(part(b"1", more=True), part(b"2"))) == b"12"
            await asyncio.sleep(2 * SOON_S)

        first = asyncio.gather(late(1), in_time(), late(2))
        await asyncio.sleep(SOON_S / 2)
        await asyncio.gather(first, late(3), in_time())
        # Long after the timer had nothing to do, it is there again.
        await asyncio.gather(late(4))

    asyncio.run(run())
    assert told == [1, 2, 3, 4]


def test_who_still_has_time_goes_on_when_another_is_late() -> None:
    async def run() -> None:
        bodies, come = Bodies(5, 1000.0), asyncio.Event()

        async def receive() -> Message:
            await come.wait()
            return part(b"1")

        late, other = (asyncio.create_task(bodies.read(receive)) for _ in range(2))
        await asyncio.sleep(0)
        bodies._due[late] = 0.0
        bodies._expire()
        with pytest.raises(Refusal, match="must arrive"):
            await late
        come.set()
        assert await other == b"1"

    asyncio.run(run())


def test_one_timer_serves_all_and_none_is_left_when_all_have_come() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        real = loop.call_at

        def call_at(*arguments: object, **options: object) -> asyncio.TimerHandle:
            timers.append(real(*arguments, **options))  # type: ignore[arg-type]  # as they came
            return timers[-1]

        loop.call_at = call_at  # type: ignore[method-assign]  # to see what is asked of it
        bodies = Bodies(5, SOON_S)
        for _ in range(100):
            await bodies.read(receiving(part(b"1")))
        assert len(timers) == 1
        while bodies._timer is not None:
            await asyncio.sleep(SOON_S)
        assert not bodies._due

    asyncio.run(run())


def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def run() -> None:
        bodies = Bodies(5, SOON_S)
        task = asyncio.create_task(bodies.read(receiving()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not bodies._due

        both = asyncio.create_task(bodies.read(receiving()))
        await asyncio.sleep(0)
        bodies._due[both] = 0.0
        bodies._expire()
        both.cancel()
        with pytest.raises(asyncio.CancelledError):
            await both

    asyncio.run(run())
