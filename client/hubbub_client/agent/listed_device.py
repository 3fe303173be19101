"""A device that takes signed lists of surveys: what they cancel is cancelled for good, on disk, first."""

from __future__ import annotations

from hubbub_client.agent.device import Device
from hubbub_client.errors import ListRefused
from hubbub_client.surveys.schedule import trusted
from hubbub_client.surveys.stored_list import StoredList
from hubbub_client.surveys.survey_lists import list_refusal, newest, opened


class ListedDevice(Device):
    """A device that takes signed lists of surveys; `survey_lists` decides which lists are good."""

    def _take_list(self, data: bytes, keys: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return the canonical bytes of a signed list, once what it cancels is cancelled on disk.

        Raises:
            ListRefused: The list is not one to take. One that has expired is remembered, so that a clock that
                is set back does not make it good.
        """
        now_s = trusted(self._clock())
        if now_s is None:
            raise ListRefused("clock_not_trusted", "a list of surveys must be judged by a trusted clock")
        found = opened(data, keys)
        known = newest(self._lists, keys)
        seen_s = max(
            (
                self._surveys[digest].round_start_s(number)
                for digest, stored in self._enrolments.items()
                for number in (stored.high_water, *self._answered[digest])
            ),
            default=0,
        )
        reason = list_refusal(found, known, now_s=now_s, seen_s=seen_s)
        if reason == "rolled_back":
            raise ListRefused(reason, f"list {found.listed.sequence} must be the newest that was seen")
        if reason == "clock_not_trusted":
            raise ListRefused(reason, f"list {found.listed.sequence} must not live for over a year from now")
        judged_s = max(
            [float(now_s), *(each.judged_s for each in self._lists if each.digest == found.digest)]
        )
        stored = StoredList(found.key, found.listed.sequence, found.digest, judged_s)
        ends = [] if reason else [each for each in found.listed.cancelled if each not in self._cancelled]
        given_back = [row for digest in ends for row in self._filter_state.unanswered(digest)]
        self._ledger.take_list(stored, cancelled=ends, given_back=given_back)
        for row in given_back:
            self._filter_state.cancel(row)
        self._lists, self._cancelled = self._ledger.lists(), self._cancelled.union(ends)
        if ends:
            self._enrolments = {each.digest: each for each in self._ledger.enrolments()}
            self._drop_unwaited(now_s)
        if reason:
            raise ListRefused(reason, f"list {found.listed.sequence} must not have expired")
        return found.listed.surveys

    def _drop_unwaited(self, now_s: float) -> None:
        """Delete kept values that no round waits for any more."""
        for attribute_id in [each for each in self._kept if not self._due(now_s, each)]:
            self._ledger.drop_value(attribute_id)
            del self._kept[attribute_id]
