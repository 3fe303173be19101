"""Seconds that only grow, also while the machine sleeps: how long something took, whatever was set."""

from __future__ import annotations

import time
from typing import Final

# Linux counts suspended time in this one; where there is none (macOS), CLOCK_MONOTONIC does.
_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_s() -> float:
    """Return the seconds since the machine started, suspended ones included."""
    return time.clock_gettime(_CLOCK)
