"""The topic that reports lie in: how it is made, which of its settings would lose counts, how it goes.

Beside the topic of reports lie, with one partition each, `<topic>.announced`, which surveys were put into the
reports already, and `<topic>.dead`, what could not be counted. Where brokers keep three copies, nothing is
acknowledged before two of them have it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import confluent_kafka.admin
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from hubbub_topic.errors import LogError
from hubbub_topic.kafka.brokers import librdkafka_options
from hubbub_topic.kafka.errors import POLL_S, TRANSIENT, ask, code_of, in_words

# A linger of 32,768 reports that all fall into one partition stays below 1 MiB; the rest is room to grow.
MAX_RECORD_BYTES: Final = 2 * 2**20
# A dead letter may hold a whole record in base64.
_MAX_LETTER_BYTES: Final = 3 * 2**20
# Two weeks: a store that was lost on a Friday is rebuilt from the topic with time to spare.
DEFAULT_RETENTION_S: Final = 14 * 86_400
# Clocks that keep time differ by far less than five minutes. A collector that is further ahead would call
# reports of the open round late, which devices believe: brokers take no record of it.
MOST_AHEAD_MS: Final = 300_000
# A record bears its minute: a bound below that would refuse records of clocks that are right. Above an hour,
# the default of Kafka 4, it would find few that are wrong.
_AHEAD_MS: Final = (60_000, 3_600_000)
# Brokers that have just started join their cluster within seconds, and hear of a topic within one.
CREATION_S: Final = 20.0
_ATTEMPT_S: Final = 10.0
# Documented there, but not marked as exported.
_ADMIN: Final[Any] = confluent_kafka.admin


@dataclass(frozen=True, slots=True)
class Topic:
    """The broker's description of a topic.

    Attributes:
        identity: Its id, drawn by the broker when it was made: a topic that was deleted and made again under
            the same name has another.
        partitions: How many it has.
        replication: Copies of every partition.
    """

    identity: str
    partitions: int
    replication: int


def create_topic(
    bootstrap: str,
    name: str,
    *,
    partitions: int,
    replication: int = 1,
    retention_s: int = DEFAULT_RETENTION_S,
) -> Topic:
    """Make the topic of reports and those beside it, with the settings that `check_topic` asks for.

    Args:
        bootstrap: Brokers, as host:port,host:port.
        name: The topic's name.
        partitions: How many; it never changes on a topic.
        replication: Copies of every partition.
        retention_s: Seconds that records stay: the time there is to rebuild a lost store from them.

    Returns:
        The topic, once every broker of the cluster knows it.

    Raises:
        LogError: If a broker rejects the request, the topic exists already, or a transient error outlasts
            CREATION_S.
    """
    settings = {
        "cleanup.policy": "delete",
        "retention.ms": str(1000 * retention_s),
        "retention.bytes": "-1",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2" if replication >= 3 else "1",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(MOST_AHEAD_MS),
        "max.message.bytes": str(MAX_RECORD_BYTES),
    }
    make = [
        _ADMIN.NewTopic(topic, num_partitions=count, replication_factor=replication, config=config)
        for topic, count, config in (
            (metadata_topic(name), 1, settings | {"retention.ms": "-1"}),
            (dead_topic(name), 1, settings | {"max.message.bytes": str(_MAX_LETTER_BYTES)}),
            (name, partitions, settings),
        )
    ]
    client, deadline = _client(bootstrap), time.monotonic() + CREATION_S
    # Nothing is made beside a topic that is there; and what an attempt without an answer made is ours.
    _create(client, make[-1], deadline, is_trial=True)
    # The topic of reports last: where it is there, the others are, and what failed half-way can be repeated.
    for topic in make:
        _create(client, topic, deadline, may_exist=topic.topic != name)
    _wait_known(client, name, deadline)
    return describe_topic(bootstrap, name)


def _create(
    client: confluent_kafka.admin.AdminClient,
    topic: Any,  # noqa: ANN401 - see _ADMIN
    deadline: float,
    *,
    may_exist: bool = False,
    is_trial: bool = False,
) -> None:
    """Make a topic, or only validate the request; retry while errors are transient."""
    while True:
        try:
            asked = client.create_topics(
                [topic], operation_timeout=_ATTEMPT_S, request_timeout=_ATTEMPT_S, validate_only=is_trial
            )
            asked[topic.topic].result(_ATTEMPT_S + 1)
        except (KafkaException, TimeoutError) as error:
            code = code_of(error) if isinstance(error, KafkaException) else KafkaError._TIMED_OUT
            if code == KafkaError.TOPIC_ALREADY_EXISTS and may_exist:
                return
            # Too few brokers for its copies: others may be about to join.
            may_pass = code in TRANSIENT or code == KafkaError.INVALID_REPLICATION_FACTOR
            if not may_pass or time.monotonic() > deadline:
                raise LogError(f"topic {topic.topic} could not be made: {error}") from error
            may_exist = not is_trial
            time.sleep(POLL_S)
        else:
            return


def _wait_known(client: confluent_kafka.admin.AdminClient, name: str, deadline: float) -> None:
    """Wait until every broker of the cluster knows a topic that was made.

    They learn of topics one after another, each of all topics in the same order; a client that asks one that
    has not heard yet would be told that there is no such topic.

    Raises:
        LogError: If one does not before the deadline.
    """
    resource = _ADMIN.ConfigResource(_ADMIN.ResourceType.TOPIC, name)
    said = "no broker said who else there is"
    while True:
        try:
            nodes = client.describe_cluster(request_timeout=_ATTEMPT_S).result(_ATTEMPT_S + 1).nodes
            for node in nodes:
                said = f"broker {node.id} does not know it"
                # `broker` asks that one and no other; the topic's description could only be had from any.
                found = client.describe_configs([resource], request_timeout=_ATTEMPT_S, broker=node.id)
                found[resource].result(_ATTEMPT_S + 1)
        except (KafkaException, TimeoutError) as error:
            may_pass = not isinstance(error, KafkaException) or (
                code_of(error) in TRANSIENT | {KafkaError.UNKNOWN_TOPIC_OR_PART}
            )
            if not may_pass or time.monotonic() > deadline:
                raise LogError(f"topic {name} was made, but {said}: {error}") from error
            time.sleep(POLL_S)
        else:
            return


def metadata_topic(name: str) -> str:
    """Return the name of the topic that remembers which surveys were published."""
    return f"{name}.announced"


def dead_topic(name: str) -> str:
    """Return the name of the topic of dead letters: records that could not be counted."""
    return f"{name}.dead"


def describe_topic(bootstrap: str, name: str) -> Topic:
    """Return the broker's description of a topic.

    Raises:
        LogError: If there is no such topic, or no broker answers.
    """
    # Named, because the answer does not come once the client is gone.
    heard: list[str] = []
    client = _client(bootstrap, heard)

    def describe(timeout_s: float) -> Any:  # noqa: ANN401 - see _ADMIN
        found = client.describe_topics(TopicCollection([name]), request_timeout=timeout_s)
        return found[name].result(timeout_s + 1)

    def said() -> str:
        client.poll(POLL_S)
        return f" ({heard[-1]})" if heard else " (no broker answered: is it there, and does it ask for TLS?)"

    description = ask(
        f"topic {name} at {bootstrap} could not be described",
        describe,
        said,
        partial(in_words, topic=name, right="Read"),
    )
    replication = min((len(partition.replicas) for partition in description.partitions), default=0)
    return Topic(str(description.topic_id), len(description.partitions), replication)


def check_topic(bootstrap: str, name: str, *, rebuild_s: int) -> Topic:
    """Return the topic's description, if its settings lose nothing that is still needed.

    Args:
        bootstrap: Brokers.
        name: The topic.
        rebuild_s: Seconds of records that must be there to count open rounds anew.

    Raises:
        LogError: If a setting would lose, drop or change records; the message names it.
    """
    topic = describe_topic(bootstrap, name)
    resource = _ADMIN.ConfigResource(_ADMIN.ResourceType.TOPIC, name)
    client = _client(bootstrap)

    def settings(timeout_s: float) -> Mapping[str, Any]:
        asked = client.describe_configs([resource], request_timeout=timeout_s)
        return asked[resource].result(timeout_s + 1)  # type: ignore[no-any-return]  # see _ADMIN

    entries = ask(
        f"the settings of topic {name} could not be read",
        settings,
        words=partial(in_words, topic=name, right="DescribeConfigs"),
    )
    check_settings(name, {key: str(entry.value) for key, entry in entries.items()}, topic, rebuild_s)
    return topic


def check_settings(name: str, settings: Mapping[str, str], topic: Topic, rebuild_s: int) -> None:
    """Refuse settings of a topic of reports that would lose counts; no I/O.

    Raises:
        LogError: If a setting would lose counts; the message names the first one.
    """

    def must(key: str, rule: str, *, holds: bool) -> None:
        if not holds:
            raise LogError(f"topic {name}: {key} must be {rule}, got {settings.get(key)}")

    def number(key: str) -> int:
        return int(settings.get(key, "0"))

    must("cleanup.policy", "delete", holds=settings.get("cleanup.policy") == "delete")
    must("retention.bytes", "-1: age alone ends a record", holds=number("retention.bytes") == -1)
    retention_ms = number("retention.ms")
    must(
        "retention.ms",
        f"-1 or at least {1000 * rebuild_s}, the time to rebuild from",
        holds=retention_ms == -1 or retention_ms >= 1000 * rebuild_s,
    )
    must(
        "unclean.leader.election.enable",
        "false",
        holds=settings.get("unclean.leader.election.enable") == "false",
    )
    must(
        "message.timestamp.type",
        "CreateTime: the minute, not the moment",
        holds=settings.get("message.timestamp.type") == "CreateTime",
    )
    least, most = _AHEAD_MS
    must(
        "message.timestamp.after.max.ms",
        f"from {least} to {most}, so that no collector's clock is far ahead in silence",
        holds=least <= number("message.timestamp.after.max.ms") <= most,
    )
    must(
        "max.message.bytes",
        f"at least {MAX_RECORD_BYTES}",
        holds=number("max.message.bytes") >= MAX_RECORD_BYTES,
    )
    must(
        "min.insync.replicas",
        "at least 2 where there are three copies",
        holds=topic.replication < 3 or number("min.insync.replicas") >= 2,
    )


def _client(bootstrap: str, heard: list[str] | None = None) -> confluent_kafka.admin.AdminClient:
    """Return a client; what it says of its connections, such as a refused password, goes into `heard`."""

    def hear(error: KafkaError) -> None:
        if heard is not None and error.code() != KafkaError._ALL_BROKERS_DOWN:
            heard.append(error.str())

    # Log lines of the library would come from a thread of its own, past logging; errors are raised instead.
    options = librdkafka_options(bootstrap) | {"log_level": 0, "error_cb": hear}
    return confluent_kafka.admin.AdminClient(options)


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
