"""KafkaLog on a real broker: the contract of every log, its tie to one topic, settings that are refused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_harness import bootstrap_or_skip, mortal_broker, new_topic_name
from log_contract import LogContract, Opener

from hubbub_topic.errors import LogError
from hubbub_topic.kafka import errors
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic, describe_topic

pytestmark = pytest.mark.integration

RIGHT = {
    "max.message.bytes": "2097152",
    "retention.ms": "-1",
    "message.timestamp.after.max.ms": "3600000",
}


@pytest.fixture(scope="module")
def bootstrap() -> str:
    return bootstrap_or_skip()


@pytest.fixture
def fresh(bootstrap: str) -> Iterator[Callable[..., KafkaLog]]:
    opened: list[KafkaLog] = []

    def fresh(partitions: int = 1, **options: Any) -> KafkaLog:
        name = new_topic_name()
        create_topic(bootstrap, name, partitions=partitions)
        opened.append(KafkaLog(bootstrap, name, partitions, **options))
        return opened[-1]

    yield fresh
    for log in opened:
        log.close()


class TestKafkaLogKeepsTheContract(LogContract):
    @pytest.fixture
    def opener(self, bootstrap: str) -> Opener:
        names: dict[str, str] = {}

        def open_log(name: str, partitions: int) -> KafkaLog:
            if name not in names:
                names[name] = new_topic_name()
                create_topic(bootstrap, names[name], partitions=partitions)
            return KafkaLog(bootstrap, names[name], partitions)

        return open_log


def test_another_number_of_partitions_is_refused(bootstrap: str) -> None:
    name = new_topic_name()
    create_topic(bootstrap, name, partitions=3)
    with pytest.raises(LogError, match="has 3 partitions, which never changes; got 4"):
        KafkaLog(bootstrap, name, 4)
    with KafkaLog(bootstrap, name) as log:
        assert log.partitions == 3


def test_topic_that_is_not_there_is_refused_and_not_made(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "UNKNOWN_S", 0.2)  # in a cluster of one, nobody hears of it later
    name = new_topic_name()
    for _ in range(2):
        with pytest.raises(LogError, match=name):
            KafkaLog(bootstrap, name, 1)


def test_topic_made_again_under_its_name_is_another_log(bootstrap: str) -> None:
    name = new_topic_name()
    before = create_topic(bootstrap, name, partitions=1)
    log = KafkaLog(bootstrap, name, 1, identity_s=0.0)
    log.append({0: [b"a"]})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics([name, f"{name}.announced"]).values():
        future.result(10)
    while True:
        try:
            after = create_topic(bootstrap, name, partitions=1)
        except LogError:
            time.sleep(0.1)
        else:
            break
    assert before.identity != after.identity
    assert describe_topic(bootstrap, name) == after
    # Who has it open notices, and writes nothing into the other one.
    for use in (lambda: log.append({0: [b"b"]}), lambda: log.end(0), lambda: log.read(0, 0, 1)):
        with pytest.raises(
            LogError, match=f"must be {re.escape(before.identity)} .* got {re.escape(after.identity)}"
        ):
            use()
    log.close()
    with KafkaLog(bootstrap, name, 1) as log:
        assert log.end(0) == 0


def _make(bootstrap: str, name: str, settings: dict[str, str]) -> None:
    """Makes a topic; a broker that was just told of it may still not know it for a moment."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1, config=settings)]).values():
        future.result(10)
    deadline = time.monotonic() + 120
    while True:
        try:
            describe_topic(bootstrap, name)
        except LogError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("retention.bytes", "1000000"),
        ("retention.ms", "3600000"),
        ("unclean.leader.election.enable", "true"),
        ("message.timestamp.type", "LogAppendTime"),
        ("message.timestamp.after.max.ms", "3600001"),
        ("message.timestamp.after.max.ms", "0"),
        ("max.message.bytes", "1000"),
    ],
)
def test_settings_that_lose_records_are_refused_by_name(bootstrap: str, key: str, value: str) -> None:
    name = new_topic_name()
    _make(bootstrap, name, RIGHT | {key: value})
    with pytest.raises(LogError, match=f"{re.escape(key)} must be .*, got {re.escape(value)}"):
        KafkaLog(bootstrap, name, 1)


def test_settings_that_keep_more_than_is_asked_for_are_taken(bootstrap: str) -> None:
    name = new_topic_name()
    _make(bootstrap, name, RIGHT | {"max.message.bytes": "10000000"})
    KafkaLog(bootstrap, name, 1).close()


def test_records_bear_the_minute_and_not_the_moment(fresh: Callable[..., KafkaLog], bootstrap: str) -> None:
    log = fresh(clock=lambda: 1_750_000_019.75)
    log.append({0: [b"a"]})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(log._topic, 0, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert (message.value(), message.timestamp()[1]) == (b"a", 1_749_999_960_000)


def test_a_record_of_a_clock_that_is_ahead_is_refused_and_the_clock_named(
    fresh: Callable[..., KafkaLog],
) -> None:
    ahead_s = [0.0]
    log = fresh(partitions=2, clock=lambda: time.time() + ahead_s[0])
    log.append({0: [b"a"]})
    ahead_s[0] = 240.0
    log.append({0: [b"b"]})
    ahead_s[0] = 420.0
    with pytest.raises(LogError, match=r"^records are refused: this machine's clock .*INVALID_TIMESTAMP"):
        log.append({0: [b"c"], 1: [b"d"]})
    assert (log.end(0), log.end(1)) == (2, 0)
    ahead_s[0] = 0.0
    assert log.append({0: [b"e"], 1: [b"f"]}) == {0: 2, 1: 0}
    assert [body for _, body in log.read(0, 0, 9)] == [b"a", b"b", b"e"]


def test_records_that_retention_took_are_an_error_and_no_silence(
    fresh: Callable[..., KafkaLog], bootstrap: str
) -> None:
    log = fresh()
    log.append({0: [b"a", b"b", b"c"]})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(log._topic, 0, 2)]).values():
        future.result(10)
    assert log.end(0) == 3
    with pytest.raises(LogError):
        log.read(0, 0, 10)
    assert log.read(0, 2, 10) == [(2, b"c")]


def test_transaction_that_somebody_leaves_open_hides_nothing(
    fresh: Callable[..., KafkaLog], bootstrap: str
) -> None:
    log = fresh()
    stranger = Producer({"bootstrap.servers": bootstrap, "transactional.id": log._topic, "log_level": 0})
    stranger.init_transactions(30)
    stranger.begin_transaction()
    stranger.produce(log._topic, value=b"a", partition=0)
    assert stranger.flush(10) == 0
    assert log.append({0: [b"b"]}) == {0: 1}
    assert log.end(0) == 2
    assert log.read(0, 0, 10) == [(0, b"a"), (1, b"b")]
    stranger.abort_transaction(30)
    assert log.read(0, 0, 2) == [(0, b"a"), (1, b"b")]  # aborted or not, as it is for every reader


def test_record_too_large_for_the_topic_is_refused(fresh: Callable[..., KafkaLog]) -> None:
    log = fresh()
    with pytest.raises(LogError, match="produced"):
        log.append({0: [bytes(3 * 2**20)]})
    assert log.append({0: [b"a"]}) == {0: 0}


def test_broker_that_is_gone_fails_the_append_and_its_return_heals_the_log() -> None:
    bootstrap_or_skip()
    broker, name = mortal_broker(), new_topic_name()
    create_topic(broker.bootstrap, name, partitions=2)

    def append_at_last(log: KafkaLog, records: dict[int, list[bytes]]) -> None:
        """Append until it is known to be stored: one that was not may have been, too, on a busy machine."""
        deadline = time.monotonic() + 120
        while True:
            try:
                log.append(records)
            except LogError:
                assert time.monotonic() < deadline
            else:
                return

    with KafkaLog(broker.bootstrap, name, 2, delivery_timeout_s=3.0) as log:
        append_at_last(log, {0: [b"a"], 1: [b"b"]})
        broker.kill_node()
        try:
            with pytest.raises(LogError, match="not known to be stored"):
                log.append({0: [b"lost"]})
        finally:
            broker.stop()
            broker.start()
        append_at_last(log, {0: [b"c"]})
        # The record that failed was given up: it does not come later.
        found = [record for _, record in log.read(0, 0, 10)]
        assert (found[0], found[-1], set(found)) == (b"a", b"c", {b"a", b"c"})
        assert {record for _, record in log.read(1, 0, 10)} == {b"b"}
