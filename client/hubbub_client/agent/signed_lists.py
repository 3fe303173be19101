"""The signed lists of surveys that a device takes: what they cancel is cancelled for good, on disk, first.

`survey_lists` has the rules; here they are applied to the device's state.

A device whose host pins a log takes lists only out of one that witnesses have seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hubbub.errors import ListError, WireError
from hubbub.wire import unpack
from hubbub_client.agent.device_state import DeviceState
from hubbub_client.agent.values import Values
from hubbub_client.errors import ListRefusedError
from hubbub_client.surveys.stored_list import StoredList
from hubbub_client.surveys.survey_lists import list_refusal, newest, opened

if TYPE_CHECKING:
    from hubbub.transparency import LogPolicy


class SignedLists:
    """The lists that one device takes.

    Args:
        state: The device's state.
        values: The device's values; kept ones that no round waits for any more are deleted.
        keys: Public keys of who may ask.
    """

    def __init__(self, state: DeviceState, values: Values, keys: tuple[bytes, ...]) -> None:
        self._state, self._values, self._keys = state, values, keys

    def take(self, data: bytes, *, now_s: float | None) -> tuple[bytes, ...]:
        """Return the canonical bytes of a signed list, once what it cancels is cancelled on disk.

        Args:
            data: The list as it came.
            now_s: Clock time, epoch seconds; None if it is not trusted: then no list can be judged.

        Raises:
            ListRefusedError: The rules of `survey_lists` refuse the list. One that has expired is remembered,
                so that a clock that is set back does not make it good.
        """
        if now_s is None:
            raise ListRefusedError("clock_not_trusted", "a list of surveys must be judged by a trusted clock")
        state = self._state
        found = opened(data, self._keys)
        reason = list_refusal(
            found, newest(state.lists, self._keys), now_s=now_s, seen_s=state.last_answered_s()
        )
        if reason == "rolled_back":
            raise ListRefusedError(reason, f"list {found.listed.sequence} must be the newest that was seen")
        if reason == "clock_not_trusted":
            raise ListRefusedError(
                reason, f"list {found.listed.sequence} must not live for over a year from now"
            )
        judged_s = max(
            [float(now_s), *(each.judged_s for each in state.lists if each.digest == found.digest)]
        )
        stored = StoredList(found.key, found.listed.sequence, found.digest, judged_s)
        ends = [] if reason else [each for each in found.listed.cancelled if each not in state.cancelled]
        self._take(stored, ends, now_s)
        if reason:
            raise ListRefusedError(reason, f"list {found.listed.sequence} must not have expired")
        return found.listed.surveys

    def _take(self, stored: StoredList, ends: list[bytes], now_s: float) -> None:
        """Write down that a list was seen, and end the surveys that it cancels."""
        state = self._state
        known = [state.surveys[digest] for digest in ends if digest in state.surveys]
        given_back = [row for survey in known for row in state.filter_state.unanswered(survey)]
        state.ledger.take_list(stored, cancelled=ends, given_back=given_back)
        for row in given_back:
            state.filter_state.cancel(row, state.surveys[row.digest])
        state.lists, state.cancelled = state.ledger.lists(), state.cancelled.union(ends)
        if ends:
            state.refresh_enrolments()
            self._values.drop_unwaited(now_s)


LOGGED_PATH: Final = "/v2/surveys"
"""The path of a collector's list with a proof: the array ["hubbub-logged-list", list, proof]."""

MAX_AGE_S: Final = 30 * 86_400
"""Seconds after which what witnesses saw is no news: for so long a newer log can be withheld."""

_MAGIC: Final = "hubbub-logged-list"


def out_of_log(data: bytes, policy: LogPolicy, *, now_s: float | None, size: int = 0) -> tuple[bytes, int]:
    """Return a signed list that came with the proof that it is in a log, and how long that was.

    Nobody has looked at the list's signature.

    Args:
        data: Bytes that anybody may have made.
        policy: The log and the witnesses that the host pins.
        now_s: Clock time, epoch seconds; None if it is not trusted.
        size: The most entries that the log was ever seen to have.

    Raises:
        ListRefusedError: Its `reason`: "unlogged", it is not in the log; "unwitnessed", too few witnesses saw
            that; "stale_checkpoint", too long ago; "log_rolled_back", it was longer before.
    """
    from hubbub.transparency import NotLoggedError, list_entry  # noqa: PLC0415 - hosts that pin no log need none

    try:
        found = unpack(data, "logged list")
        if not isinstance(found, list) or len(found) != 3 or found[0] != _MAGIC:
            raise ListRefusedError("unlogged", f"list must be an array of three that begins with {_MAGIC!r}")
        _, listed, proof = found
        if not isinstance(listed, bytes) or not isinstance(proof, bytes):
            raise ListRefusedError("unlogged", "list must come as bytes, and so must its proof")
        witnessed = policy.proven(list_entry(listed).data, proof)
    except NotLoggedError as error:
        raise ListRefusedError(error.reason, str(error)) from None
    except ListError as error:
        raise ListRefusedError(error.reason, str(error)) from None
    except WireError as error:
        raise ListRefusedError("unlogged", str(error)) from None
    newest = sorted(witnessed.seen.values(), reverse=True)[: policy.quorum]
    if now_s is not None and newest and newest[-1] < now_s - MAX_AGE_S:
        raise ListRefusedError(
            "stale_checkpoint", f"log must be seen by {policy.quorum} witnesses this month"
        )
    if witnessed.checkpoint.size < size:
        raise ListRefusedError("log_rolled_back", f"log must have {size} entries, as it was seen to have")
    return listed, witnessed.checkpoint.size
