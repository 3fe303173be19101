"""Checks whether an answer was counted: of few answers, once each, hours later, among hundreds of others.

What the server learns is that this address sent one of the reports of a tile. Whether an answer is looked for
is tossed, and no value has a part in it; nor does the server learn what was found.
"""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom
from typing import Final

from hubbub.survey import Survey, number_of_round
from hubbub.transparency import (
    LogPolicy,
    NotLoggedError,
    counted_path,
    found_in,
    leaves_of,
    logged_round,
    tile_of,
)
from hubbub.wire import Report
from hubbub_client.agent.device_state import DeviceState
from hubbub_client.errors import TransportError
from hubbub_client.ledger.process_lock import ProcessLock
from hubbub_client.ledger.stored import StoredCheck
from hubbub_client.surveys.schedule import is_static
from hubbub_client.upload.outcomes import AnswerCheck, CheckResult
from hubbub_client.upload.transport import Transport

SOONEST_S: Final = 3_600.0
LATEST_S: Final = 24 * 3_600.0
"""Seconds after a round takes no reports any more within which the time of a check is drawn."""

GIVEN_UP_S: Final = 14 * 86_400.0
"""Seconds after which what nobody could tell stays unknown."""

_DRAWN: Final = SystemRandom()


class AnswerChecker:
    """The checks of one device.

    Args:
        state: The device's state.
        lock: Held around every use of the ledger, never while a server is waited for.
        policy: The log and the witnesses that are believed.
        share: The share of answers that are looked for.
        connect: Return a new way to where the log is served.
    """

    def __init__(
        self,
        state: DeviceState,
        lock: ProcessLock,
        policy: LogPolicy,
        share: float,
        connect: Callable[[], Transport],
    ) -> None:
        self._state, self._lock, self._policy, self._share = state, lock, policy, share
        self._connect = connect

    def planned(self, survey: Survey, report: Report) -> StoredCheck | None:
        """Return the check that will be taken for a report, None for almost all.

        A static survey has one in its life: all its reports have one symbol, and the tiles of several checks
        would have few symbols in common.
        """
        if _DRAWN.random() >= self._share:
            return None
        if is_static(survey) and self._state.ledger.was_checked(survey.digest):
            return None
        (leaf,) = leaves_of(report.digest, report.round, report.id, [report.symbol])
        due_s = _closed_s(survey, report.round) + _DRAWN.uniform(SOONEST_S, LATEST_S)
        return StoredCheck(report.digest, report.round, due_s, leaf)

    def check(self, now_s: float) -> AnswerCheck | None:
        """Take the check that has been due for longest; see `Agent.check`."""
        ledger = self._state.ledger
        with self._lock:
            due = None if ledger.paused() else ledger.next_check(now_s)
            if due is None:
                return None
            survey, size = self._state.surveys[due.digest], ledger.log_size(self._policy.log.public)
        found = self._found(due, size)
        if found is None and now_s < _closed_s(survey, due.round) + GIVEN_UP_S:
            with self._lock:
                ledger.put_off(due, now_s + _DRAWN.uniform(SOONEST_S, LATEST_S))
            return None
        with self._lock:
            ledger.keep_found(due, found or "not known")
        return AnswerCheck(survey.id, due.digest, due.round, found or "not known")

    def _found(self, due: StoredCheck, size: int) -> CheckResult | None:
        """Return what became of a report; None while nobody can tell."""
        number = number_of_round(due.round)
        way = self._connect()
        try:
            about = way.get(counted_path(due.digest, number))
            if about.status != 200:
                return None
            entry, witnessed = logged_round(about.body, self._policy, due.digest, number)
            if witnessed.checkpoint.size < size:
                return None
            bits = entry.fields[3]
            assert isinstance(bits, int)  # noqa: S101 - of this kind
            tile = way.get(counted_path(due.digest, number, tile_of(due.leaf, bits)))
            if tile.status != 200:
                return None
            found = found_in(due.leaf, entry, tile.body)
        except (TransportError, NotLoggedError):
            return None
        finally:
            way.close()
        return found or ("missing" if due.is_acknowledged else "not known")


def _closed_s(survey: Survey, number: int) -> float:
    """Return when a round takes no reports any more, epoch seconds."""
    return survey.round_end_s(number) + survey.lateness_s
