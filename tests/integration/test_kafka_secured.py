"""Kafka by TLS, SCRAM, certificates and access lists, on a real broker: what each kind of process may do."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import pytest
import urllib3
from confluent_kafka.admin import AclOperation, ResourceType
from counting_logs import report_id
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import Door, needs_tls, running
from secure_broker import PASSWORD, SecureBroker
from secured_cluster import SecuredCluster
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, SurveyRecord, encode_record
from hubbub.wire.report import Report, decode_response, encode_report, encode_upload
from hubbub_aggregator.runners.faust_runner import _credentials
from hubbub_deploy.cli import main
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.brokers import Brokers, BrokerSecurity, aiokafka_options
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("secured")]

SURVEY = Survey.parse(LABELS)
RECORD = encode_record(SurveyRecord(SURVEY.canonical))
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
PATIENCE_S, ROUNDS = 90.0, 20
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
    assert "SASL authentication error" in said["wrong password"], said
    assert "ask for TLS" in said["no TLS"], said


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


@dataclass
class World:
    """A cluster on the secured broker and a secured Redis, as docs/kafka.md makes it."""

    cluster: SecuredCluster
    topic: str
    survey: Survey
    path: Path

    def page(self, url: str) -> dict[str, Any]:
        found: dict[str, Any] = urllib3.request("GET", f"{url}/api/live").json()
        return found

    def wait(self, url: str, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = monotonic() + PATIENCE_S
        while not what(live := self.page(url)):
            assert monotonic() < deadline, (live, self.cluster.log())
            sleep(0.2)
        return live


@pytest.fixture
def world(broker: SecureBroker, tmp_path: Path) -> Iterator[World]:
    topic = new_topic_name()
    dead = (TOPIC, f"{topic}.dead", AclOperation.WRITE)
    for name, rights in (("mine.aggregator", (*READER, dead)), ("mine.dashboard", (*WRITER, dead))):
        broker.user(name)
        broker.allow(name, *rights)
    certificate = broker.authority.sign("redis")
    door = Door(broker.authority.file, certificate.certificate, certificate.key, PASSWORD)
    (tmp_path / "redis").mkdir()
    (tmp_path / "password").write_text(PASSWORD)
    with running(tmp_path / "redis", door=door) as redis:
        common = (
            f"kafka = '{broker.secure}'\nkafka_ca = '{broker.authority.file}'\ntopic = '{topic}'\n"
            f"kafka_password_file = '{tmp_path / 'password'}'\nredis = '{redis.url}'\n"
            f"group = 'hubbub-{topic}'\ngrace_s = 10\nsession_s = 2\n"
        )
        with redirect_stdout(StringIO()) as said:
            assert main(["survey", "keygen", "--out", str(tmp_path / "seal.pem")]) == 0
        common += f"seal_keys = '{said.getvalue().strip()}'\n"
        users = {
            "collector": "",
            "mine.aggregator": "",
            "mine.dashboard": f"seal_key_file = '{tmp_path / 'seal.pem'}'\n",
            "stranger": f"seal_key_file = '{tmp_path / 'seal.pem'}'\n",
        }
        path = tmp_path / "health.toml"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        short = LABELS.replace("2026-01-01T00:00:00Z", now).replace('"1d"', '"15s"').replace('"1h"', '"5s"')
        path.write_text(short.replace("rounds = 3", f"rounds = {ROUNDS}"))
        operator = tmp_path / "operator.toml"
        operator.write_text(f"kafka = '{broker.open}'\nredis = '{redis.url}'\ntopic = '{topic}'\n")
        assert main(["topic", str(operator), "--partitions", "2"]) == 0
        with SecuredCluster(tmp_path, common, users) as cluster:
            yield World(cluster, topic, Survey.load(path), path)


@needs_tls
@pytest.mark.skipif("HUBBUB_TEST_LONG" not in os.environ, reason="half a minute: make evidence NAME=secured")
def test_a_cluster_that_asks_everybody_counts_seals_and_releases(
    broker: SecureBroker, world: World, tmp_path: Path
) -> None:
    """From upload to release by TLS, SCRAM, access lists and a password; what is forged changes nothing."""
    cluster, survey = world.cluster, world.survey
    gateway = cluster.start("collector", "collector", str(world.path), "--port", "0")
    watching = cluster.start("mine.dashboard", "dashboard", "--data", str(tmp_path / "data"), "--port", "0")
    cluster.start("mine.aggregator", "aggregator")
    collector, page = cluster.url(gateway), cluster.url(watching)
    # By the collector's own name: seals of every round, an unreadable record, surveys, of which one compiles.
    seals = [(number, signature) for number in range(ROUNDS) for signature in (b"", bytes(64))]
    forged = [encode_record(SealRecord(survey.digest, *each)) for each in seals]
    forged += [b"no record", encode_record(SurveyRecord(b"no survey")), RECORD]
    with KafkaLog(brokers(broker, "collector"), world.topic, 2) as log:
        log.append({0: forged, 1: forged})
    # Who only counts writes nothing.
    reader = KafkaLog(brokers(broker, "mine.aggregator"), world.topic, 2, delivery_timeout_s=2.0)
    with reader, pytest.raises(LogError, match="not known to be stored"):
        reader.append({0: forged})
    number = survey.round_at(time())
    assert number is not None
    reports = [encode_report(Report(survey.digest, number, report_id(i), i % 2)) for i in range(200)]
    answer = urllib3.request("POST", f"{collector}/v1/reports", body=encode_upload(reports))
    assert decode_response(answer.data) == ["accepted"] * 200
    none = dict.fromkeys(("duplicate", "early", "late", "invalid", "over_quota"), 0)
    counted = none | {"attempts": 200, "accepted": 200}
    live = world.wait(page, lambda found: found["accounting"]["attempts"] == 200)
    assert (live["accounting"], live["dead"]) == (counted, 2 * len(forged) - 2)
    code, said, _ = cluster.run("mine.dashboard", "dead-letters")
    letters = Counter(json.loads(line)["reason"] for line in said.splitlines())
    assert (code, letters) == (0, {"forged seal": 4 * ROUNDS, "no record": 2, "no survey": 2}), said

    def released(found: dict[str, Any]) -> list[int]:
        mine = next(each for each in found["surveys"] if each["digest"] == survey.digest.hex())
        return [line["devices"] for line in mine["rounds"] if line["sealed"]]

    assert released(world.wait(page, lambda found: bool(released(found)))) == [200]
    refused = {
        "collector": (str(world.path), "--port", "0"),
        "aggregator": (),
        "dashboard": ("--data", str(tmp_path / "other"), "--port", "0"),
        "dead-letters": (),
    }
    for command, arguments in refused.items():
        code, _, said = cluster.run("stranger", command, *arguments)
        assert code != 0, (command, said)
        assert world.topic in said, (command, said)
        assert PASSWORD not in said


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
