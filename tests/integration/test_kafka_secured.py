"""Kafka by TLS, SCRAM, certificates and access lists, on a real broker: what each kind of process may do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from kafka_harness import bootstrap_or_skip, new_topic_name
from secure_broker import PASSWORD, SecureBroker
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SurveyRecord, encode_record
from hubbub_aggregator.runners.faust_runner import _credentials
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.brokers import Brokers, BrokerSecurity, aiokafka_options
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("secured")]

SURVEY = Survey.parse(LABELS)
RECORD = encode_record(SurveyRecord(SURVEY.canonical))
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ANY_GROUP = (GROUP, "hubbub", AclOperation.READ)
READER = (
    (TOPIC, "reports", AclOperation.READ),
    (TOPIC, "reports", AclOperation.DESCRIBE_CONFIGS),
    ANY_GROUP,
)
WRITER = (*READER, (TOPIC, "reports", AclOperation.WRITE))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    bootstrap_or_skip()  # where there is no broker at all
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        for name, rights in (("collector", WRITER), ("aggregator", READER), ("stranger", ())):
            broker.user(name)
            if rights:
                broker.allow(name, *rights)
        broker.allow("CN=collector-by-certificate", *WRITER)
        yield broker


@pytest.fixture
def topic(broker: SecureBroker) -> str:
    name = new_topic_name()
    create_topic(broker.open, name, partitions=2)
    return name


def brokers(broker: SecureBroker, user: str | None, password: str = PASSWORD, *, tls: bool = True) -> Brokers:
    ca = broker.authority.file if tls else None
    return Brokers(
        broker.secure, BrokerSecurity(ca=ca, user=user, password=None if user is None else password)
    )


def appended(bootstrap: str, topic: str) -> list[bytes]:
    with KafkaLog(bootstrap, topic, 2) as log:
        log.append({1: [RECORD]})
        return [body for _, body in log.read(1, 0, 10)]


def test_a_collector_writes_by_password_over_tls(broker: SecureBroker, topic: str) -> None:
    assert appended(brokers(broker, "collector"), topic) == [RECORD]
    assert appended(broker.open, topic) == [RECORD, RECORD]


def test_a_collector_writes_by_its_certificate(broker: SecureBroker, topic: str) -> None:
    mine = broker.authority.sign("collector-by-certificate")
    asked = BrokerSecurity(ca=broker.authority.file, certificate=mine.certificate, key=mine.key)
    assert appended(Brokers(broker.mutual, asked), topic) == [RECORD]


def test_who_may_not_write_is_refused_and_nothing_is_there(broker: SecureBroker, topic: str) -> None:
    log = KafkaLog(brokers(broker, "aggregator"), topic, 2, delivery_timeout_s=2.0)
    with log, pytest.raises(LogError, match="not known to be stored"):
        log.append({1: [RECORD]})
    with KafkaLog(broker.open, topic, 2) as log:
        assert log.end(1) == 0


def test_strangers_get_no_log(broker: SecureBroker, topic: str) -> None:
    strangers = {
        "wrong password": brokers(broker, "collector", "not-the-password"),
        "no TLS": brokers(broker, "collector", tls=False),
        "no name": brokers(broker, None),
        "no certificate": Brokers(broker.mutual, BrokerSecurity(ca=broker.authority.file)),
        "no rights": brokers(broker, "stranger"),
    }

    def refused(bootstrap: Brokers) -> str:
        with pytest.raises(LogError) as caught:
            KafkaLog(bootstrap, topic, 2).close()
        return str(caught.value)

    with ThreadPoolExecutor(len(strangers)) as pool:
        said = dict(zip(strangers, pool.map(refused, strangers.values()), strict=True))
    assert all(topic in text for text in said.values()), said
    assert not any(word in text for text in said.values() for word in (PASSWORD, "not-the-password"))


def test_an_aggregator_reads_by_both_of_its_clients(broker: SecureBroker, topic: str) -> None:
    appended(broker.open, topic)
    bootstrap = brokers(broker, "aggregator")

    async def read() -> bytes | None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(**aiokafka_options(bootstrap), auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, 1)])
            value: bytes | None = (await asyncio.wait_for(consumer.getone(), 60)).value
            return value
        finally:
            await consumer.stop()

    assert asyncio.run(read()) == RECORD
    # Faust hands the same to aiokafka.
    from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

    mine = dict(credentials_to_aiokafka_auth(_credentials(bootstrap)))
    wanted = aiokafka_options(bootstrap)
    assert mine.pop("ssl_context").get_ca_certs() == wanted["ssl_context"].get_ca_certs()
    assert mine == {name: wanted[name] for name in mine}
    assert mine["security_protocol"] == "SASL_SSL"


def test_what_belongs_together_is_given_together(tmp_path: Path) -> None:
    here = tmp_path / "ca.pem"
    here.write_text("no certificate")
    for given, text in (
        ({"user": "me"}, "user and password"),
        ({"certificate": here, "ca": here}, "certificate and key"),
        ({"certificate": here, "key": here}, "authorities"),
        ({"user": "me", "password": "p", "mechanism": "PLAIN"}, "PLAIN must come with TLS"),
        ({"mechanism": "NTLM"}, "must be one of SCRAM-SHA-512"),
        ({"ca": tmp_path / "none"}, "must be a file in PEM, got none"),
    ):
        with pytest.raises(LogError, match=text):
            BrokerSecurity(**given)  # type: ignore[arg-type]
    with pytest.raises(LogError, match="must be in PEM: SSLError"):
        aiokafka_options(Brokers("127.0.0.1:9", BrokerSecurity(ca=here)))
    assert "se/cret" not in repr(BrokerSecurity(user="me", password="se/cret"))  # noqa: S106 - not one
    with closing(asyncio.new_event_loop()):
        assert aiokafka_options("a:1,b:2")["bootstrap_servers"] == ["a:1", "b:2"]
