"""Errors of brokers: those that pass while they start, end or hand partitions on, and rights that lack."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from hubbub_topic.errors import LogError

# As long as a device waits for its answer.
PATIENCE_S: Final = 10.0
# A broker that has just started hears of its topics within a second. Whoever named a topic that is not there
# should not wait much longer to learn so.
UNKNOWN_S: Final = 3.0
POLL_S: Final = 0.1
# One broker that does not answer must leave time to ask another.
_ATTEMPT_S: Final = 5.0
TRANSIENT: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._ALL_BROKERS_DOWN,
        # The client let go of a connection, because the broker's address is known by another now.
        KafkaError._DESTROY_BROKER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NETWORK_EXCEPTION,
    }
)

_REFUSED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        # An idempotent producer hears it that may write to no topic at all.
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)

# A broker has looked at the record, and will not take it: it is stored nowhere.
_TURNED_AWAY: Final = frozenset(
    {
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.POLICY_VIOLATION,
    }
)

T = TypeVar("T")


def code_of(error: KafkaException) -> int:
    """Return the code of an error."""
    code: int = error.args[0].code()
    return code


def is_refused(error: object) -> bool:
    """Return whether an error is of a right that this process's user lacks."""
    found = error.args[0] if isinstance(error, KafkaException) else error
    return isinstance(found, KafkaError) and found.code() in _REFUSED


def is_turned_away(error: object) -> bool:
    """Return whether an error of the producer says that a record is known to be stored nowhere."""
    return isinstance(error, KafkaError) and error.code() in _TURNED_AWAY


def in_words(error: object, *, topic: str, right: str) -> str:
    """Return what an error says; of a right that lacks, who must grant it; of a clock, which is wrong.

    Args:
        error: Of the client.
        topic: The topic that was asked.
        right: The right that was needed, as `kafka-acls` names it.
    """
    if isinstance(error, KafkaError) and error.code() == KafkaError.INVALID_TIMESTAMP:
        return (
            f"this machine's clock must be right, or not further ahead of the brokers' than "
            f"message.timestamp.after.max.ms of topic {topic} (docs/kafka.md), got {error.name()}"
        )
    if not is_refused(error):
        return str(error)
    found = error.args[0] if isinstance(error, KafkaException) else error
    assert isinstance(found, KafkaError)  # noqa: S101 - is_refused looked
    subject = f"topic {topic}"
    if found.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        subject, right = "consumer groups that begin with hubbub", "Read"
    return f"{subject} must grant this user the right {right} (docs/kafka-security.md), got {found.name()}"


def ask(
    what: str,
    question: Callable[[float], T],
    said: Callable[[], str] = lambda: "",
    words: Callable[[Exception], str] = str,
) -> T:
    """Return the result of a request, repeated for PATIENCE_S while its errors are transient.

    Args:
        what: What has failed if there is no answer, for the message.
        question: Ask once; its argument is the most seconds that it may take.
        said: Return what else is known of the failure: a refused password is but a timeout to who asks.
        words: Return what an error says.

    Raises:
        LogError: If no answer came in that time; the message quotes the last error. An unknown topic is asked
            for only during UNKNOWN_S.
    """
    began = time.monotonic()
    while True:
        left = PATIENCE_S - (time.monotonic() - began)
        try:
            return question(max(POLL_S, min(left, _ATTEMPT_S)))
        except (KafkaException, TimeoutError) as error:
            passed = time.monotonic() - began
            if not isinstance(error, KafkaException) or code_of(error) in TRANSIENT:
                goes_on = passed < PATIENCE_S
            else:
                goes_on = code_of(error) == KafkaError.UNKNOWN_TOPIC_OR_PART and passed < UNKNOWN_S
            if not goes_on:
                more = "" if is_refused(error) else said()
                raise LogError(f"{what}: {words(error)}{more}") from error
        time.sleep(POLL_S)
