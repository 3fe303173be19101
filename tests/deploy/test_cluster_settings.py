"""The one settings file of a cluster: what it may hold, and what is said about what it may not."""

from __future__ import annotations

import traceback
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.wire.record import SurveyRecord, encode_record
from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.stores.redis_connection import connected
from hubbub_deploy.announced import digests_of, refuse_changed
from hubbub_deploy.cli import main
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.errors import DeployError
from hubbub_topic.kafka import security_of

LEAST = {"kafka": "a:9092,b:9092", "redis": "redis://c:6379/0"}


def test_kafka_and_redis_are_enough() -> None:
    settings = ClusterSettings.from_mapping(LEAST)
    assert (settings.kafka, settings.topic, settings.namespace) == ("a:9092,b:9092", "reports", "hubbub")
    assert settings.grace_s > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kafak": "a:9092"}, "settings must be among kafka, .*, got kafak"),
        ({"topic": ""}, 'topic must be a text that is not empty, got ""'),
        ({"topic": 7}, "topic must be a text that is not empty, got 7"),
        ({"rebuild_s": 0}, "rebuild_s must be a whole number above 0, got 0"),
        ({"rebuild_s": 1.5}, "rebuild_s must be a whole number above 0, got 1.5"),
        ({"session_s": float("nan")}, "session_s must be a number above 0, got NaN"),
        ({"session_s": True}, "session_s must be a number above 0, got true"),
        (
            {"group": datetime(2026, 1, 1, tzinfo=UTC)},
            "group must be a text that is not empty, got .2026-01-01",
        ),
        ({"grace_s": 9.9}, "grace_s must be at least 10, got 9.9"),
        ({"dead_letter_payload": "some"}, "dead_letter_payload must be none or whole, got 'some'"),
        ({"id_table": "fast"}, "id_table must be auto or numpy or compiled, got 'fast'"),
        ({"event_loop": "fast"}, "event_loop must be asyncio or uvloop, got 'fast'"),
    ],
)
def test_setting_that_will_not_do_is_refused_by_name(change: dict[str, object], message: str) -> None:
    with pytest.raises(DeployError, match=message):
        ClusterSettings.from_mapping(LEAST | change)


@pytest.mark.parametrize(("grace_s", "delivery_s"), [(30.0, 10.0), (1000.0, 10.0), (14.0, 7.0)])
def test_a_collector_answers_for_no_batch_that_took_half_the_grace(grace_s: float, delivery_s: float) -> None:
    assert ClusterSettings.from_mapping(LEAST | {"grace_s": grace_s}).gateway.delivery_s == delivery_s


def test_missing_settings_are_named() -> None:
    with pytest.raises(DeployError, match="kafka and redis must be given"):
        ClusterSettings.from_mapping({})


def test_file_is_named_in_what_is_said_about_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    with pytest.raises(DeployError, match=r"cluster\.toml"):
        ClusterSettings.load(path)
    for text, message in (("kafka = ", "cluster.toml"), ("topic = 'x'", "cluster.toml: kafka and redis")):
        path.write_text(text)
        with pytest.raises(DeployError, match=message):
            ClusterSettings.load(path)
    path.write_text("kafka = 'a:1'\nredis = 'redis://b:1'\nsession_s = 8\n")
    assert ClusterSettings.load(path).session_s == 8


def test_environment_says_where_kafka_and_redis_are(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text("kafka = 'a:1'\nredis = 'redis://b:1'\n")
    settings = ClusterSettings.load(path, {"HUBBUB_KAFKA": "c:1", "HUBBUB_REDIS": ""})
    assert (settings.kafka, settings.redis, settings.topic) == ("c:1", "redis://b:1", "reports")
    path.write_text("topic = 'x'\n")
    both = {"HUBBUB_KAFKA": "c:1", "HUBBUB_REDIS": "redis://d:1"}
    assert ClusterSettings.load(path, both).redis == "redis://d:1"


@pytest.mark.parametrize("brokers", ["kafka://me:s3cret@k:1", "me:s3cret@k:1", "k:1,me:s3cret@k2:1"])
def test_a_password_among_the_brokers_is_refused_and_not_repeated(brokers: str) -> None:
    with pytest.raises(DeployError, match="without a user or a password") as refused:
        ClusterSettings.from_mapping(LEAST | {"kafka": brokers})
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["redis://me:s3cret@c:port/0", "redis://:s3c/ret@c:1", "http://c/?password=s3cret"]
)
def test_no_password_stands_in_an_error(url: str) -> None:
    with pytest.raises(StoreError, match="Redis must be given as") as refused:
        connected(url + "x:x")
    assert "s3c" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(
        DeployError, match="redis must be a text that is not empty, got something else"
    ) as refused_settings:
        ClusterSettings.from_mapping(LEAST | {"redis": [url]})
    assert "s3c" not in str(refused_settings.value)


def test_a_changed_survey_needs_a_new_version() -> None:
    old, new = (
        Survey.parse(LABELS.replace("Self-rated health", title)) for title in ("Self-rated health", "Other")
    )
    assert old.digest != new.digest
    records = [encode_record(SurveyRecord(survey.canonical)) for survey in (old, Survey.parse(VISITS))]
    refuse_changed([old, Survey.parse(VISITS)], digests_of(records))
    with pytest.raises(DeployError, match="must have a new version when it changes"):
        refuse_changed([new], digests_of(records))


def test_what_brokers_ask_for_comes_from_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text("-")
    (tmp_path / "password").write_text("se/cret\n")
    base = {"kafka": "k:1", "redis": "redis://r", "kafka_user": "me"}
    asked = security_of(
        ClusterSettings.from_mapping(
            {
                **base,
                "kafka_ca": str(tmp_path / "ca.pem"),
                "kafka_password_file": str(tmp_path / "password"),
                "kafka_mechanism": "SCRAM-SHA-256",
            }
        ).brokers
    )
    assert (asked.protocol, asked.user, asked.password) == ("SASL_SSL", "me", "se/cret")
    assert asked.mechanism == "SCRAM-SHA-256"
    monkeypatch.setenv("HUBBUB_KAFKA_PASSWORD", "another")
    found = ClusterSettings.from_mapping(base).brokers
    assert (str(found), security_of(found).password) == ("k:1", "another")
    assert "another" not in repr(found) + repr(security_of(found))
    monkeypatch.delenv("HUBBUB_KAFKA_PASSWORD")
    for extra, text in (
        ({}, "user and password must be given together"),
        ({"kafka_password_file": str(tmp_path / "none")}, "cannot be read: No such file or directory"),
        ({"kafka_mechanism": "NTLM"}, "kafka_mechanism must be "),
        ({"kafka_certificate": "c.pem"}, "certificate and key"),
    ):
        with pytest.raises(DeployError, match=text):
            _ = ClusterSettings.from_mapping({**base, **extra}).brokers
    plain = ClusterSettings.from_mapping({"kafka": "k:1", "redis": "redis://r"}).brokers
    assert security_of(plain).protocol == "PLAINTEXT"


def test_keys_of_seals_belong_together(tmp_path: Path) -> None:
    secret, other = tmp_path / "seal.pem", tmp_path / "other.pem"
    said = []
    for path in (secret, other):
        with redirect_stdout(StringIO()) as text:
            assert main(["survey", "keygen", "--out", str(path)]) == 0
        said.append(text.getvalue().strip())
    given = {"kafka": "k:1", "redis": "redis://r"}
    assert ClusterSettings.from_mapping(given).seal_rules is None
    assert ClusterSettings.from_mapping(given).seal_signer is None
    mine = given | {"seal_keys": f"{said[0]}, {said[1]}", "seals_signed_since": "2026-01-01T00:00:00Z"}
    rules = ClusterSettings.from_mapping(mine).seal_rules
    assert rules is not None
    assert (len(rules.keys), rules.since_s) == (2, 1_767_225_600)
    assert ClusterSettings.from_mapping(mine | {"seal_key_file": str(secret)}).seal_signer is not None
    for values, text in (
        (mine, "seal_key_file must be given"),
        (given | {"seal_keys": said[0], "seal_key_file": str(other)}, "must have the public key"),
        (given | {"seal_key_file": str(secret)}, "must have the public key"),
        (given | {"seals_signed_since": "2026-01-01T00:00:00Z"}, "must come with seal_keys"),
        (mine | {"seals_signed_since": "yesterday"}, "must be a time"),
        (mine | {"seals_signed_since": "2026-01-01T00:00:00"}, "must be a time"),
        (given | {"seal_keys": "00"}, "seal_keys: a survey key must be the 64"),
    ):
        with pytest.raises(DeployError, match=text):
            assert ClusterSettings.from_mapping(values).seal_signer
