"""Making and describing topics by brokers that hesitate, as real ones do for a moment."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from hubbub_topic.errors import LogError
from hubbub_topic.kafka import errors
from hubbub_topic.kafka import topic as kafka_topic
from hubbub_topic.kafka.topic import create_topic, describe_topic

NODES = (1, 2, 3)
PASSING = KafkaError._DESTROY_BROKER


class Brokers:
    """Three that know of a topic after so many questions, and answer some requests with errors first.

    Attributes:
        topics: Those that were made.
        asked: How often each kind of question came.
    """

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.lag = dict.fromkeys(NODES, 0)
        self.errors: dict[str, list[int]] = {}
        self.makes_before_error = False

    def _answer(self, kind: str, value: object) -> Future[Any]:
        self.asked[kind] += 1
        future: Future[Any] = Future()
        if self.errors.get(kind):
            future.set_exception(KafkaException(KafkaError(self.errors[kind].pop(0))))
        else:
            future.set_result(value)
        return future

    def poll(self, _: float) -> int:
        return 0

    def create_topics(self, topics: list[Any], *, validate_only: bool, **_: Any) -> dict[str, Future[Any]]:
        (topic,) = topics
        if topic.topic in self.topics:
            self.errors["exists"] = [KafkaError.TOPIC_ALREADY_EXISTS]
            return {topic.topic: self._answer("exists", None)}
        answer = self._answer("validate" if validate_only else "create", None)
        if not validate_only and (answer.exception() is None or self.makes_before_error):
            self.topics.add(topic.topic)
        return {topic.topic: answer}

    def describe_cluster(self, **_: Any) -> Future[Any]:
        return self._answer("cluster", SimpleNamespace(nodes=[SimpleNamespace(id=node) for node in NODES]))

    def describe_configs(self, resources: list[Any], *, broker: int, **_: Any) -> dict[Any, Future[Any]]:
        if self.lag[broker] > 0:
            self.lag[broker] -= 1
            self.errors["knows"] = [KafkaError.UNKNOWN_TOPIC_OR_PART]
        return {resources[0]: self._answer("knows", {})}

    def describe_topics(self, names: Any, **_: Any) -> dict[str, Future[Any]]:
        (name,) = names.topic_names
        found = SimpleNamespace(topic_id="identity", partitions=[SimpleNamespace(replicas=[1, 2, 3])] * 4)
        return {name: self._answer("describe", found)}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    now = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    for module in (kafka_topic, errors):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(kafka_topic, "_client", lambda *_: made)
    return made


def test_a_topic_is_made_when_every_broker_knows_it(brokers: Brokers) -> None:
    brokers.lag |= {2: 3, 3: 7}
    assert create_topic("kafka", "reports", partitions=4, replication=3).partitions == 4
    assert brokers.lag == dict.fromkeys(NODES, 0)
    assert brokers.topics == {"reports", "reports.announced", "reports.dead"}


def test_a_broker_that_never_hears_of_a_topic_is_named(brokers: Brokers) -> None:
    brokers.lag[2] = 10**9
    with pytest.raises(LogError, match=r"topic reports was made, but broker 2 does not know it"):
        create_topic("kafka", "reports", partitions=4)


@pytest.mark.parametrize("is_made", [True, False])
def test_a_topic_whose_making_got_no_answer_is_made_once(brokers: Brokers, is_made: bool) -> None:
    brokers.errors = {"validate": [PASSING], "create": [PASSING], "cluster": [PASSING], "describe": [PASSING]}
    brokers.makes_before_error = is_made
    assert create_topic("kafka", "reports", partitions=4).identity == "identity"
    assert brokers.topics == {"reports", "reports.announced", "reports.dead"}


def test_a_topic_that_is_there_is_refused_before_anything_is_made(brokers: Brokers) -> None:
    brokers.topics.add("reports")
    with pytest.raises(LogError, match=r"topic reports could not be made: .*TOPIC_ALREADY_EXISTS"):
        create_topic("kafka", "reports", partitions=4)
    assert brokers.topics == {"reports"}


def test_brokers_that_have_not_joined_yet_are_waited_for(brokers: Brokers) -> None:
    brokers.errors["validate"] = [KafkaError.INVALID_REPLICATION_FACTOR] * 20
    assert create_topic("kafka", "reports", partitions=4, replication=3).replication == 3
    brokers.errors["validate"] = [KafkaError.INVALID_REPLICATION_FACTOR] * 10_000
    with pytest.raises(LogError, match="INVALID_REPLICATION_FACTOR"):
        create_topic("kafka", "others", partitions=4, replication=3)


def test_what_does_not_pass_is_said_at_once(brokers: Brokers) -> None:
    brokers.errors["describe"] = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    words = (
        "topic reports at kafka could not be described: topic reports must grant this user the right Read "
        "(docs/kafka-security.md), got TOPIC_AUTHORIZATION_FAILED"
    )
    with pytest.raises(LogError, match=f"^{re.escape(words)}$"):
        describe_topic("kafka", "reports")
    assert brokers.asked["describe"] == 1


@pytest.mark.parametrize(
    ("code", "patience_s"),
    [(PASSING, errors.PATIENCE_S), (KafkaError.UNKNOWN_TOPIC_OR_PART, errors.UNKNOWN_S)],
)
def test_what_passes_is_asked_again_for_so_long_and_no_longer(
    brokers: Brokers, code: int, patience_s: float
) -> None:
    brokers.errors["describe"] = [code] * 10
    assert describe_topic("kafka", "reports").partitions == 4
    brokers.errors["describe"] = [code] * 10_000
    brokers.asked.clear()
    with pytest.raises(LogError, match="topic reports at kafka could not be described"):
        describe_topic("kafka", "reports")
    assert abs(brokers.asked["describe"] - patience_s / errors.POLL_S) < 3
