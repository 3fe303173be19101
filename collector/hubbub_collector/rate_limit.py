"""The limit on reports a second that one permit lets in: a token bucket each, in memory.

A permit is the password that devices share, an issuer whose tokens vouch for reports, or, where nothing is
asked for, everybody. A bucket knows numbers alone: nothing of a sender, and no single token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

# Devices come in clumps, at the begin of a round and after a collector was away: ten seconds' worth at once.
BURST_S: Final = 10.0
# Seconds times a rate are rounded; a sender that waits as long as it was told finds something all the same.
_ROUNDING_S: Final = 1e-6


class RateLimit:
    """A token bucket for each permit; a bucket that is empty turns uploads away until it has something again.

    An upload is taken whole while there is anything in the bucket, which may fall below zero by it: so no
    upload is too large to be ever taken, and in the long run no more than the rate is.

    Args:
        rate: Reports a second; 0 for any number.
        clock: Seconds that only grow.
    """

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, reports: Mapping[str, int]) -> tuple[str, int] | None:
        """Take an upload's reports from their permits' buckets, or nothing where one of these is empty.

        Args:
            reports: Permit -> how many reports of the upload it lets in.

        Returns:
            None if they were taken; else a permit whose bucket is empty, and after how many whole seconds it
            is not, at least 1.
        """
        if not self._rate:
            return None
        now_s = self._clock()
        levels = {permit: self._level(permit, now_s) for permit in reports}
        for permit, level in levels.items():
            if level <= 0.0:
                return permit, 1 + math.floor(-level / self._rate + _ROUNDING_S)
        for permit, level in levels.items():
            self._levels[permit] = level - reports[permit], now_s
        return None

    def _level(self, permit: str, now_s: float) -> float:
        full = BURST_S * self._rate
        level, at_s = self._levels.get(permit, (full, now_s))
        return min(full, level + max(0.0, now_s - at_s) * self._rate)
