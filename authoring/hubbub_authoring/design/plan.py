"""The choice of epsilon and devices: the accuracy of each pair, and the least of one for an accuracy wanted.

All errors here are halves of 95 % intervals for a workload's objective, of the best mechanism at an epsilon.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from hubbub.errors import ParameterError
from hubbub_authoring.design.comparison import Candidate, compare
from hubbub_authoring.mechanisms.workload import Workload

INTERVAL_95: Final = 1.96
"""Standard errors from the middle of a 95 % interval to its ends."""

MOST_EPSILON: Final = 10.0
"""The largest epsilon that is looked at: beyond it, a report gives away whatever it is asked."""

STEP: Final = 0.01
"""The fineness of a least epsilon."""

MOST_DEVICES: Final = 10**12


class AccuracyPlan:
    """The accuracy of a workload over epsilon and devices.

    Args:
        workload: Its own epsilon and devices do not matter.

    Raises:
        ParameterError: If its objective does not fall with the number of devices ("hit" is about one report).
    """

    def __init__(self, workload: Workload) -> None:
        if workload.objective.quantity == "hit":
            raise ParameterError("objective must be about many devices, got hit, which is about one report")
        self._workload = workload
        self._best: dict[tuple[float, int], Candidate] = {}

    def best(self, epsilon: float, devices: int) -> Candidate:
        """Return the mechanism of least cost, with its cost for so many devices.

        Args:
            epsilon: Per report, nats.
            devices: How many report.
        """
        # A smooth population's error has a part that stays with any number of devices; others fall as 1 / n.
        shape = self._workload.objective.quantity == "shape"
        asked = devices if shape else self._workload.devices
        found = self._best.get((epsilon, asked))
        if found is None:
            found = compare(replace(self._workload, epsilon=epsilon, devices=asked))[0]
            self._best[epsilon, asked] = found
        return found if shape else replace(found, cost=found.cost * asked / devices)

    def error(self, epsilon: float, devices: int) -> float:
        """Return half a 95 % interval, in shares of 1 or the mean's unit; inf if no mechanism has one."""
        return INTERVAL_95 * math.sqrt(self.best(epsilon, devices).cost)

    def least_epsilon(self, devices: int, wanted: float) -> float | None:
        """Return the least epsilon, in steps of `STEP`, whose error is at most the one wanted; None if none.

        Args:
            devices: How many report.
            wanted: Half a 95 % interval, > 0.
        """
        low, high = 0, round(MOST_EPSILON / STEP)
        if self.error(MOST_EPSILON, devices) > wanted:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self.error(round(middle * STEP, 2), devices) <= wanted:
                high = middle
            else:
                low = middle
        return round(high * STEP, 2)

    def fewest_devices(self, epsilon: float, wanted: float) -> int | None:
        """Return the fewest devices whose error is at most the one wanted; None if no number up to 10^12 is.

        Args:
            epsilon: Per report, nats.
            wanted: Half a 95 % interval, > 0.
        """
        if self.error(epsilon, MOST_DEVICES) > wanted:
            return None
        low, high = 0, MOST_DEVICES
        while high - low > 1:
            middle = (low + high) // 2
            if self.error(epsilon, middle) <= wanted:
                high = middle
            else:
                low = middle
        return high
