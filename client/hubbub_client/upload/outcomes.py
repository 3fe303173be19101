"""The results that the agent tells its host: answers, uploads, the state of the budget; never a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hubbub import wire
from hubbub.channels import Symbol
from hubbub_client.surveys.schedule import Refusal

CheckResult: TypeAlias = Literal["counted", "over quota", "missing", "not known"]
"""The result of a check for an answer: it was counted; a quota refused it; the collector accepted it, and it
was neither; or nobody can tell, as where the collector's answer was lost."""


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """A check that was made of one answer among those that were counted; it says nothing of the answer.

    Attributes:
        survey_id: Survey.
        digest: Its digest, 16 bytes.
        round: Round.
        found: What came of it.
    """

    survey_id: str
    digest: bytes
    round: int
    found: CheckResult


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that was made: now in the ledger and in the outbox.

    Attributes:
        survey_id: Survey.
        digest: Its digest, 16 bytes.
        round: Round.
        id: Report id, 16 bytes.
    """

    survey_id: str
    digest: bytes
    round: int
    id: bytes


@dataclass(frozen=True, slots=True)
class UploadOutcome:
    """The result of emptying the outbox.

    Attributes:
        settled: Report id to the collector's outcome for it, see `SentReport`; these left the outbox.
        waiting: Reports still in the outbox, to be sent again as they are.
        wait_s: Seconds until the next attempt is allowed, None if nothing waits.
        failure: Why the last attempt failed, None if it did not.
    """

    settled: Mapping[bytes, wire.Outcome]
    waiting: int
    wait_s: float | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class EnrolmentStatus:
    """One survey that the device takes part in.

    Attributes:
        survey_id: Its id.
        version: Its version.
        digest: Its digest, 16 bytes.
        rounds: Rounds of its schedule.
        high_water: The highest round answered, or gone by at enrolment; -1 for none. It never falls.
        answered: Rounds answered since the last `forget`.
        state: "active"; "left", by the owner (what is reserved for it stays reserved), by `forget`, or
            because it was found not to fit the budget; "cancelled" for good by a signed list.
    """

    survey_id: str
    version: int
    digest: bytes
    rounds: int
    high_water: int
    answered: int
    state: Literal["active", "left", "cancelled"]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an agent that its owner may see at any time; it holds no value and no answer.

    Attributes:
        budget: Lifetime epsilon.
        loss: Realised loss of everything answered, at most `committed`.
        committed: Loss with all that is reserved at its worst; above `budget` only where an earlier version
            granted too much.
        enrolments: Surveys, in the order of enrolment.
        answers: Answers made since the last `forget`, re-sent memos included.
        waiting: Reports in the outbox.
        background_errors: Errors that the background thread swallowed.
        last_error: The kind of the last of them.
        paused: Whether the owner paused it: nothing is answered, nothing sent.
        survey_lists: "signed", only lists that a pinned key signed are taken; "unverified", the collector is
            trusted to choose surveys within budget and policy, and cancels none.
    """

    budget: float
    loss: float
    committed: float
    enrolments: tuple[EnrolmentStatus, ...]
    answers: int
    waiting: int
    background_errors: int
    last_error: str | None
    paused: bool
    survey_lists: Literal["signed", "unverified"]


@dataclass(frozen=True, slots=True)
class Correction:
    """The result of correcting a static value.

    Attributes:
        attribute_id: Which attribute.
        status: "corrected"; "unchanged", it was that value already; or "refused", and the earlier one stands.
        reason: Why it was refused: over_budget or clock_not_trusted.
    """

    attribute_id: str
    status: Literal["corrected", "unchanged", "refused"]
    reason: Refusal | None = None


@dataclass(frozen=True, slots=True)
class SentReport:
    """One report that the collector has: shown only now, so that nobody can select by looking.

    Attributes:
        survey_id: Survey.
        digest: Its digest, 16 bytes.
        round: Round.
        id: Report id, 16 bytes.
        data: Exactly the bytes that were sent.
        outcome: What the collector said of the copy that it answered. If it is not "accepted" and an answer
            to an earlier copy was lost, whether the report was counted is not known.
        loss: Realised loss of this answer by itself, nats; 0 where a memoised one was sent again.
    """

    survey_id: str
    digest: bytes
    round: int
    id: bytes
    data: bytes
    outcome: wire.Outcome
    loss: float

    @property
    def symbol(self) -> Symbol:
        """The symbol of the report."""
        return wire.decode_report(self.data).symbol
