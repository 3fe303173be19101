"""The log's contract and the counting on librdkafka's mock cluster, for machines without Java.

The mock speaks the protocol, keeps what it is given, and knows neither settings nor identities nor how many
partitions were asked for: a topic has four. What it cannot say is said for it here. A real broker is the bar:
the same contract runs there, in test_kafka_log.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import Producer
from counting_logs import MemoryStore, announcement, batch, counted, report_id, segment
from kafka_harness import new_topic_name
from log_contract import LogContract, Opener
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap, TopicPeriod
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.runners import aiokafka_runner
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.growing_log import GrowingLog
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import Topic, metadata_topic

pytestmark = pytest.mark.integration

HEALTH = Survey.parse(LABELS)


class Mock:
    """A mock cluster, which lives as long as the producer that carries it."""

    def __init__(self) -> None:
        self._carrier = Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
        brokers = self._carrier.list_topics(timeout=10).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def log(self, topic: str, partitions: int) -> KafkaLog:
        """A log in the first of the four partitions."""
        return KafkaLog(self.bootstrap, topic, partitions, **self._options(topic, partitions))

    def growing_log(self, topic: str, partitions: int) -> GrowingLog:
        """The same as the first topic of a log that may grow, as processes of a cluster have it."""
        return GrowingLog(self.bootstrap, topic, **self._options(topic, partitions))

    def _options(self, topic: str, partitions: int) -> dict[str, Any]:
        """What stands in for questions that a mock does not answer; asking for a topic makes it."""
        for name in (topic, metadata_topic(topic)):
            self._carrier.list_topics(name, timeout=10)
        return {
            "check": "identity",
            "describe": lambda _, name: Topic(f"mock-{name}", partitions, 1),
        }


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    yield Mock()


class TestKafkaLogOnTheMockKeepsTheContract(LogContract):
    @pytest.fixture
    def opener(self, mock: Mock) -> Opener:
        names: dict[str, str] = {}

        def open_log(name: str, partitions: int) -> KafkaLog:
            return mock.log(names.setdefault(name, new_topic_name()), partitions)

        return open_log


class TestGrowingLogOnTheMockKeepsTheContract(LogContract):
    @pytest.fixture
    def opener(self, mock: Mock) -> Opener:
        names: dict[str, str] = {}

        def open_log(name: str, partitions: int) -> GrowingLog:
            return mock.growing_log(names.setdefault(name, new_topic_name()), partitions)

        return open_log


def test_log_that_is_another_than_it_was_is_refused(mock: Mock) -> None:
    topic = new_topic_name()
    mock.log(topic, 1).close()
    said = [Topic("one", 1, 1)]
    with KafkaLog(
        mock.bootstrap, topic, 1, check="identity", describe=lambda *_: said[-1], identity_s=0.0
    ) as log:
        log.append({0: [b"a"]})
        said.append(Topic("another", 1, 1))
        with pytest.raises(LogError, match=r"must be one .* got another"):
            log.append({0: [b"b"]})


def test_plain_consumer_counts_what_the_producer_wrote(mock: Mock) -> None:
    topic = new_topic_name()
    records = [announcement(HEALTH)]
    records += [batch(segment(HEALTH, 0, [(report_id(i // 2), i // 2 % 5)])) for i in range(60)]
    with mock.log(topic, 4) as log:
        log.append(dict.fromkeys(range(4), records))
        store = MemoryStore()

        async def count() -> None:
            stop = asyncio.Event()
            stop.set()
            assignment = Assignment(store, begin=log.begin, end=log.end, clock=monotonic)
            layout = PartitionMap((TopicPeriod(0, topic, 4, log.identity),))
            await aiokafka_runner.count(assignment, bootstrap=mock.bootstrap, partition_map=layout, stop=stop)

        asyncio.run(count())
    expected = PartitionState()
    expected.commit(apply_many(expected, enumerate(records)))
    for partition in range(4):
        assert counted(store.load(partition)) == counted(expected)
    assert expected.rounds[HEALTH.digest, 0].verdicts.duplicate == 30
