"""The surveys that a device takes part in: joined, refused, left, given up.

The decision to join a survey reads public facts, the owner's words and past outputs, never a value, and never
the slots that a rotating survey draws. The whole schedule of a survey that is joined is reserved in one
transaction, after a quick test: what is left holds so many times the cost of one round.
"""

from __future__ import annotations

import os

from hubbub.channels import UNITS_PER_NAT
from hubbub.filter import MAX_BUDGET, BayesianFilter, Query, Regression
from hubbub.survey import Survey
from hubbub_client.agent.device_state import DeviceState, decode_attribute
from hubbub_client.agent.policy import Policy, consent, subject_of
from hubbub_client.ledger.stored import StoredEnrolment, StoredRefusal
from hubbub_client.surveys.rotation import SEED_BYTES
from hubbub_client.surveys.schedule import (
    Enrolment,
    Refusal,
    asks_for,
    check_eligibility,
    draws,
    is_static,
    last_closed_round,
    most_answers,
    scheduled_answers,
    scheduled_query,
)


def rounds_fit(query: Query, count: int, headroom: float, *, rotation: int = 1) -> bool:
    """Return whether the filter would reserve `count` queries like `query`, each on a fresh coordinate.

    A score's rounds are left to the filter: it may prove that some answer costs less than its epsilon. Not
    those of a rotating survey, of which the filter is asked for the drawn ones alone.

    Args:
        query: One of them.
        count: How many.
        headroom: What the filter has left, nats.
        rotation: The survey's.
    """
    if rotation == 1 and isinstance(query.channel, Regression):
        return True
    # Whole units below 2^52, which floats hold exactly.
    return count * round_units(query) <= int(headroom * UNITS_PER_NAT)


def round_units(query: Query) -> int:
    """Return what one round takes of the budget at its worst, units; more than any budget if none holds it.

    Args:
        query: On a fresh coordinate.
    """
    if isinstance(query.channel, Regression):
        return query.channel.worst + 1
    alone = BayesianFilter(MAX_BUDGET)
    if alone.reserve_all([query]) is None:
        return int(MAX_BUDGET * UNITS_PER_NAT) + 1
    return int(alone.committed * UNITS_PER_NAT)


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
        seed = None if known is None else known.slot_seed
        if known is None and draws(survey):
            seed = os.urandom(SEED_BYTES)
        wanted = [slot for slot in scheduled_answers(survey, last_closed, seed) if slot not in served]
        # A schedule that is reserved already needs no decision; any other is decided on for every seed alike.
        most = len(wanted) if served else most_answers(survey, last_closed)
        refusal = self._unfit(survey, most, last_closed, before=len(served))
        if refusal is not None:
            return self._refused(survey, refusal, now_s)
        given_up = any((survey.digest, slot, pin_version) in filter_state.void for slot in wanted)
        rows = None if given_up else state.reserve([(survey, slot, pin_version) for slot in wanted])
        if rows is None:
            return self._refused(survey, "over_budget", now_s)
        high_water = last_closed if known is None else max(last_closed, known.high_water)
        stored = StoredEnrolment(survey.digest, survey.canonical, last_closed, high_water, slot_seed=seed)
        state.ledger.add_enrolment(stored, rows)
        state.surveys[survey.digest], state.enrolments[survey.digest] = survey, stored
        state.answered.setdefault(survey.digest, set())
        filter_state.reserved(rows, state.surveys)
        state.refusals.pop(survey.digest, None)
        return Enrolment(survey.id, survey.version, survey.digest, "enrolled")

    def _unfit(self, survey: Survey, most: int, last_closed: int, *, before: int) -> Refusal | None:
        """Return why a schedule is refused before its queries are built, None if the filter decides.

        Args:
            survey: The survey.
            most: How many slots would be reserved, whatever the seed of a rotating survey.
            last_closed: The highest round that is over.
            before: How many slots of it were reserved before.
        """
        state = self._state
        canonicals = {digest: len(each.canonical) for digest, each in state.surveys.items()}
        canonicals[survey.digest] = len(survey.canonical)
        if not self._policy.holds(
            before + most,
            ledger_slots=state.filter_state.slots + most,
            ledger_bytes=sum(canonicals.values()),
            ledger_load=state.filter_state.load_with(survey, most),
        ):
            return "too_large"
        if not most or is_static(survey):
            return None
        one = scheduled_query(survey, last_closed + 1, pin_version=state.pin_version(survey))
        headroom = state.filter_state.filter.headroom
        return None if rounds_fit(one, most, headroom, rotation=survey.rotation) else "over_budget"

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
