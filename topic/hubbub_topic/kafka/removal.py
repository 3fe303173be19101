"""The removal of a cluster's topics for good, and who still reads them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from hubbub_topic.errors import LogError
from hubbub_topic.kafka.brokers import librdkafka_options
from hubbub_topic.kafka.errors import POLL_S

_ANSWER_S = 20.0


def topics_of(bootstrap: str, name: str) -> list[str]:
    """Return the topics of a log that are there: of reports, however many, and those beside them.

    Raises:
        LogError: If no broker answers.
    """
    pattern = re.compile(rf"{re.escape(name)}(\.[0-9]+)?(\.announced|\.dead)?")
    try:
        found = _client(bootstrap).list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        raise LogError(f"topics of {name} could not be listed: {error}") from error
    return sorted(topic for topic in found if pattern.fullmatch(topic))


def readers_of(bootstrap: str, group: str) -> int:
    """Return how many processes of a consumer group are at work.

    Raises:
        LogError: If no broker answers.
    """
    client = _client(bootstrap)
    try:
        known = client.list_consumer_groups(request_timeout=_ANSWER_S).result(_ANSWER_S)
        if group not in {each.group_id for each in known.valid}:
            return 0  # to describe it, brokers would first have to find a place for it
        found = client.describe_consumer_groups([group], request_timeout=_ANSWER_S)[group].result(_ANSWER_S)
    except (KafkaException, TimeoutError) as error:
        raise LogError(f"group {group} could not be described: {error!r}") from error
    return len(found.members)


def delete_topics(bootstrap: str, names: Iterable[str]) -> None:
    """Delete topics with all that they hold.

    Raises:
        LogError: If a broker refuses; what is deleted by then stays so.
    """
    listed = list(names)
    if not listed:
        return
    # Kept until all is answered: what a client has asked ends with it.
    client, deadline = _client(bootstrap), time.monotonic() + _ANSWER_S
    try:
        for asked in client.delete_topics(listed, operation_timeout=_ANSWER_S).values():
            asked.result(_ANSWER_S)
        # A broker hears of it a moment after the one that was asked.
        while left := sorted(set(listed) & client.list_topics(timeout=_ANSWER_S).topics.keys()):
            if time.monotonic() > deadline:
                raise LogError(f"topics {', '.join(left)} must be gone, a broker still lists them")
            time.sleep(POLL_S)
    except (KafkaException, TimeoutError) as error:
        raise LogError(f"topics {', '.join(listed)} could not all be deleted: {error!r}") from error


def _client(bootstrap: str) -> AdminClient:
    return AdminClient(librdkafka_options(bootstrap) | {"log_level": 0})
