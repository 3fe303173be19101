"""The clock by which rounds are sealed: never ahead of another one, and silent where clocks disagree.

A clock that is ahead would end every open round, and what devices send meanwhile would be late for good. A
seal that comes later than it might harms nobody. So the time is the earliest that any clock says. Where
clocks differ by more than they should, nothing is sealed until somebody has looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

from hubbub_aggregator.errors import ClockDoubtError

# Servers that keep time differ by milliseconds, and an answer of Redis is awaited before and after.
TOLERANCE_S: Final = 5.0


class SteadyClock:
    """A clock that may not run ahead of the boot clock.

    It begins with what the clock says first, and from then on is the earlier of the clock and of what the
    boot clock makes of that beginning. If the clock is set back, the beginning moves back with it. It cannot
    know how far the clock was ahead before the first look.

    Args:
        clock: Seconds since 1970.
        boot: Seconds since the machine started, suspended ones included.
        tolerance_s: How far the clock may run ahead.
    """

    def __init__(
        self, clock: Callable[[], float], boot: Callable[[], float], *, tolerance_s: float = TOLERANCE_S
    ) -> None:
        self._clock, self._boot, self._tolerance_s = clock, boot, tolerance_s
        # When the machine started, by the clock: the earliest that it ever said.
        self._started_s = clock() - boot()

    def __call__(self) -> float:
        """Return the time, seconds since 1970.

        Raises:
            ClockDoubtError: If the clock is further ahead of the boot clock than the tolerance.
        """
        # The clock first: a pause between the two makes it look late, never ahead.
        now_s = self._clock()
        boot_s = self._boot()
        self._started_s = min(self._started_s, now_s - boot_s)
        steady_s = self._started_s + boot_s
        if now_s - steady_s > self._tolerance_s:
            raise ClockDoubtError(
                f"the clock must not run ahead of the boot clock by more than {self._tolerance_s:g} s, got "
                f"{now_s - steady_s:.0f} s: no round is sealed; set it right, or start this process again "
                "if it is right now"
            )
        return min(now_s, steady_s)


class AgreedClock:
    """A clock that must agree with those of other machines.

    Args:
        clock: Seconds since 1970.
        others: The times that the others say now, seconds since 1970.
        tolerance_s: How far apart they may be.
        believed: Which of the times it says: the earliest, or the latest where a moment that is early harms.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        others: Callable[[], Iterable[float]],
        *,
        tolerance_s: float = TOLERANCE_S,
        believed: Literal["earliest", "latest"] = "earliest",
    ) -> None:
        self._clock, self._others, self._tolerance_s = clock, others, tolerance_s
        self._believed = believed

    def __call__(self) -> float:
        """Return the earliest of all times, or the latest, seconds since 1970.

        Raises:
            ClockDoubtError: If one is further from this clock than the tolerance and the wait for its answer.
        """
        before_s = self._clock()
        others = list(self._others())
        after_s = self._clock()
        for other_s in others:
            apart_s = max(before_s - other_s, other_s - after_s)
            if apart_s > self._tolerance_s:
                raise ClockDoubtError(
                    f"the clocks of this machine and of the store must agree within {self._tolerance_s:g} s, "
                    f"got {apart_s:.0f} s: nothing is decided by them until they do"
                )
        return min(before_s, *others) if self._believed == "earliest" else max(after_s, *others)
