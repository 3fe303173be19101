"""The surveys that a device takes part in: joined, refused, left, given up.

The decision to join a survey reads public facts, the owner's words and past outputs, never a value. The whole
schedule of a survey that is joined is reserved in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.survey import Survey
from hubbub_client.agent.device_state import DeviceState, decode_attribute
from hubbub_client.agent.policy import Policy, consent, subject_of
from hubbub_client.agent.rounds import rounds_fit
from hubbub_client.ledger.stored import StoredEnrolment, StoredRefusal
from hubbub_client.surveys.schedule import (
    Enrolment,
    Refusal,
    asks_for,
    check_eligibility,
    is_static,
    last_closed_round,
    scheduled_answers,
    scheduled_query,
)


class Enrolments:
    """The enrolments of one device; `Agent` says what each verb promises its host.

    Args:
        state: The device's state.
        policy: What surveys may ask.
    """

    def __init__(self, state: DeviceState, policy: Policy) -> None:
        self._state, self._policy = state, policy

    def enrol(self, survey: Survey, *, now_s: float | None) -> Enrolment:
        """Take part in a survey, or say why not; see `Agent.enrol`.

        Args:
            survey: The survey.
            now_s: Clock time, epoch seconds; None if it is not trusted.
        """
        state, filter_state = self._state, self._state.filter_state
        known = state.enrolments.get(survey.digest)
        if known is not None and known.state == "active":
            return Enrolment(survey.id, survey.version, survey.digest, "already_enrolled")
        refusal = self._refusal(survey, now_s)
        if now_s is None or refusal is not None:
            return self._refused(survey, refusal, now_s)
        last_closed = max(last_closed_round(survey, now_s), -1 if known is None else known.last_closed)
        pin_version = state.pin_version(survey)
        served = {
            slot
            for (digest, slot), pinned in filter_state.pin_versions.items()
            if digest == survey.digest and (pinned == pin_version or not is_static(survey))
        }
        wanted = [slot for slot in scheduled_answers(survey, last_closed) if slot not in served]
        refusal = self._unfit(survey, wanted, pin_version, before=len(served))
        if refusal is not None:
            return self._refused(survey, refusal, now_s)
        given_up = any((survey.digest, slot, pin_version) in filter_state.void for slot in wanted)
        rows = None if given_up else state.reserve([(survey, slot, pin_version) for slot in wanted])
        if rows is None:
            return self._refused(survey, "over_budget", now_s)
        high_water = last_closed if known is None else max(last_closed, known.high_water)
        stored = StoredEnrolment(survey.digest, survey.canonical, last_closed, high_water)
        state.ledger.add_enrolment(stored, rows)
        state.surveys[survey.digest], state.enrolments[survey.digest] = survey, stored
        state.answered.setdefault(survey.digest, set())
        filter_state.reserved(rows, state.surveys)
        state.refusals.pop(survey.digest, None)
        return Enrolment(survey.id, survey.version, survey.digest, "enrolled")

    def _unfit(
        self, survey: Survey, wanted: Sequence[int], pin_version: int, *, before: int
    ) -> Refusal | None:
        """Return why a schedule is refused before its queries are built, None if the filter decides.

        Args:
            survey: The survey.
            wanted: Slots that would be reserved.
            pin_version: Pin version of its attributes.
            before: How many slots of it were reserved before.
        """
        state = self._state
        canonicals = {digest: len(each.canonical) for digest, each in state.surveys.items()}
        canonicals[survey.digest] = len(survey.canonical)
        if not self._policy.holds(
            before + len(wanted),
            ledger_slots=state.filter_state.slots + len(wanted),
            ledger_bytes=sum(canonicals.values()),
            ledger_load=state.filter_state.load_with(survey, len(wanted)),
        ):
            return "too_large"
        if not wanted or is_static(survey):
            return None
        one = scheduled_query(survey, wanted[0], pin_version=pin_version)
        return None if rounds_fit(one, len(wanted), state.filter_state.filter.headroom) else "over_budget"

    def _refusal(self, survey: Survey, now_s: float | None) -> Refusal | None:
        """Return why a survey is refused before the budget is asked, None if it is not."""
        state = self._state
        if survey.digest in state.cancelled:
            return "cancelled"
        if now_s is None:
            return "clock_not_trusted"
        known = (state.attributes.get(attribute.id) for attribute in survey.attributes)
        registered = {stored.id: decode_attribute(stored) for stored in known if stored is not None}
        largest = self._policy.max_epsilon
        largest = state.ledger.budget if largest is None else largest
        return check_eligibility(survey, registered, max_epsilon=largest, now_s=now_s) or consent(
            survey, self._policy, state.ledger.consents()
        )

    def _refused(self, survey: Survey, reason: Refusal | None, now_s: float | None) -> Enrolment:
        """Record a refusal for the owner to see; the same refusal is written once."""
        known = self._state.refusals.get(survey.digest)
        if reason is not None and now_s is not None and (known is None or known.reason != reason):
            self._state.ledger.keep_refusal(self._told(survey, reason, now_s))
            self._state.refresh_refusals()
        return Enrolment(survey.id, survey.version, survey.digest, "refused", reason)

    def _told(self, survey: Survey, reason: Refusal, now_s: float) -> StoredRefusal:
        """Return a refusal as it is kept; what was left of the budget could tell an answer not yet seen."""
        ledger = self._state.ledger
        told = not ledger.has_unseen()
        headroom = max(0.0, ledger.budget - self._state.filter_state.committed) if told else None
        epsilon = survey.channel.epsilon
        return StoredRefusal(
            survey.digest, survey.id, survey.version, survey.title, epsilon, reason, headroom, now_s
        )

    def opt_in(self, asked: Survey | str) -> None:
        """Keep the owner's yes; see `Agent.opt_in`."""
        self._state.ledger.set_consents({subject_of(asked): True})

    def opt_out(self, asked: Survey | str) -> None:
        """Keep the owner's no, and leave what it concerns; see `Agent.opt_out`."""
        leave = [
            digest
            for digest, survey in self._state.surveys.items()
            if (survey == asked if isinstance(asked, Survey) else asks_for(survey, asked))
        ]
        self._state.ledger.set_consents({subject_of(asked): False}, leave=leave)
        self._state.refresh_enrolments()
