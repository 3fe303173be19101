"""One log in three settings - embedded, through Kafka, offline - releases the same bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from counting_logs import MINUTE, announcement
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.transparency import Entry
from hubbub.wire.record import ReportsRecord, SealRecord, Segment, encode_record
from hubbub_aggregator.runners import RoundReports
from hubbub_aggregator.runners.publisher import Publisher, Worker
from hubbub_aggregator.stores import TRANSPARENCY_FILE, TransparencyLog
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.node import ARCHIVE_FILE, LOG_FILE, STORE_FILE
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.sqlite import SqliteLog

pytestmark = pytest.mark.integration

# Of some 1,670 reports of the first one's rounds 1,000 count: each setting must refuse the same ones.
QUOTA = 1000
SURVEYS = (
    Survey.parse(LABELS.replace("version = 1", f"version = 1\nquota = {QUOTA}")),
    Survey.parse(VISITS),
)
PARTITIONS, DAY = 3, 1440
PROCESS = Path(__file__).parents[1] / "harness" / "aggregator_process.py"
PATIENCE_S = 120.0


def hubbub(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hubbub_deploy.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def releases(archive: SqliteArchive) -> dict[tuple[bytes, int], bytes]:
    return {key: archive.get(key) or b"" for key in archive.rounds()}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a node that has counted and released two rounds of two surveys, and stopped."""
    folder, rng = tmp_path_factory.mktemp("node"), np.random.default_rng(11)
    with (
        SqliteLog(folder / LOG_FILE, partitions=PARTITIONS) as log,
        contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive,
    ):
        store = SqliteStore(folder / STORE_FILE, log_identity=log.identity, partitions=PARTITIONS)
        for survey in SURVEYS:
            log.publish_survey(survey.digest, announcement(survey))
        for number in range(2):
            for place in range(40):
                segments = []
                for survey in SURVEYS:
                    symbols = rng.integers(0, survey.channel.outputs + 1, 50).astype(np.uint8)
                    column = rng.bytes(16 * 50)
                    segments.append(Segment(survey.digest, number, column, symbols, 51, {"late": 1}))
                record = encode_record(ReportsRecord(MINUTE + number * DAY, tuple(segments), 1))
                # Every seventh is there twice: its reports are duplicates.
                log.append({place % PARTITIONS: [record] * (2 if place % 7 == 0 else 1)})
            seals = [encode_record(SealRecord(survey.digest, number)) for survey in SURVEYS]
            log.append(dict.fromkeys(range(PARTITIONS), seals))
        log.append({0: [b"nobody's"]})
        worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: 0.0)
        while worker.step():
            pass
        store.close()
        assert len(archive.rounds()) == 4
        for number in range(2):
            found = json.loads(archive.get((SURVEYS[0].digest, number)) or b"")["accounting"]
            assert found["accepted"] == QUOTA
            assert found["over_quota"] > 500
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[tuple[Path, str, str, str]]:
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis:
        path = tmp_path / "cluster.toml"
        path.write_text(f"kafka = '{kafka}'\nredis = '{redis.url}'\ntopic = '{topic}'\n")
        yield path, kafka, topic, redis.url


@needs_redis
def test_embedded_log_through_kafka_and_topic_offline_release_the_same_bytes(
    node: Path, settings: tuple[Path, str, str, str], tmp_path: Path
) -> None:
    path, kafka, topic, redis_url = settings
    moved = hubbub("topic", path, "--from", node)
    assert moved.returncode == 0, moved.stderr
    with contextlib.closing(SqliteArchive(node / ARCHIVE_FILE)) as archive:
        embedded = releases(archive)

    worker = subprocess.Popen([sys.executable, str(PROCESS), "faust", kafka, topic, redis_url])
    try:
        with (
            KafkaLog(kafka, topic) as log,
            contextlib.closing(SqliteArchive(":memory:")) as archive,
            contextlib.closing(
                RedisStore.connect(redis_url, log_identity=log.identity, partitions=PARTITIONS)
            ) as store,
        ):
            watcher = Publisher(log, store, archive=archive, view=LiveView(), clock=lambda: 0.0)
            deadline = monotonic() + PATIENCE_S
            while len(archive.rounds()) < len(embedded):
                assert monotonic() < deadline
                assert worker.poll() is None
                watcher.step()
                sleep(0.05)
            assert releases(archive) == embedded
    finally:
        worker.terminate()
        assert worker.wait(120) == 0

    out = tmp_path / "out"
    source = f"kafka://{kafka}/{topic}"
    offline = hubbub("replay", source, "--archive", node, "--out", out, "--json")
    assert offline.returncode == 0, offline.stderr
    assert sorted(file.read_bytes() for file in out.glob("*.json")) == sorted(embedded.values())
    assert [json.dumps(found, sort_keys=True) for found in json.loads(offline.stdout)] == [
        json.dumps(json.loads(data), sort_keys=True) for data in embedded.values()
    ]


def test_replay_of_a_folder_notices_an_archive_that_differs(node: Path, tmp_path: Path) -> None:
    same = hubbub("replay", node)
    assert same.returncode == 0, same.stderr
    assert same.stdout.count("the same bytes") == 4
    copy = tmp_path / ARCHIVE_FILE
    copy.write_bytes((node / ARCHIVE_FILE).read_bytes())
    with contextlib.closing(sqlite3.connect(copy)) as db:
        rows = db.execute("SELECT digest, round, document FROM release ORDER BY round").fetchall()
        for digest, number, document in rows:
            edited = document.replace(b'"round":2', b'"round":3')
            checksum = hashlib.sha256(digest + number.to_bytes(8, "big") + edited).digest()
            db.execute(
                "UPDATE release SET document = ?, checksum = ? WHERE digest = ? AND round = ?",
                (edited, checksum, digest, number),
            )
        db.execute("UPDATE release SET document = document || x'20' WHERE round = 0")
        db.commit()
    other = hubbub("replay", node, "--archive", tmp_path)
    assert other.returncode == 1
    assert (other.stdout.count("differs"), other.stdout.count("damaged")) == (2, 2)
    assert other.stderr.count("the archive holds another release") == 2
    assert other.stderr.count("the archive holds a damaged release") == 2


def test_a_replay_names_a_round_of_which_other_answers_are_listed(node: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(node, tmp_path / "copy")
    with (
        SqliteLog(folder / LOG_FILE, partitions=None) as log,
        contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive,
        contextlib.closing(TransparencyLog(folder / TRANSPARENCY_FILE)) as entries,
    ):
        reports = RoundReports(lambda: contextlib.nullcontext(log))
        for place, key in enumerate(archive.rounds()):
            made = reports.counted(json.loads(archive.get(key) or b""))
            assert made is not None
            digest, number, n, bits, root, over = made.entry.fields
            root = root if place else bytes(32)
            entries.append([Entry("counted", (digest, number, n, bits, root, over))])
    done = hubbub("replay", folder)
    assert done.returncode == 1
    assert done.stderr.count("lists other answers") == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("kafka://127.0.0.1:1", "must be given as kafka://host:port/topic"),
        (".", "must exist, got none"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(source: str, said: str, tmp_path: Path) -> None:
    run = hubbub("replay", tmp_path if source == "." else source)
    assert run.returncode == 1
    assert said in run.stderr
    assert len(run.stderr.splitlines()) == 1
