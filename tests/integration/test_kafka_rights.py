"""Each right, secret and certificate taken from each process of a secured cluster: refused, in a clear line.

It prints a row for each, which `make evidence NAME=secured` shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from threading import Event
from time import monotonic, time
from typing import Any

import pytest
import urllib3
from confluent_kafka.admin import AclOperation, ResourceType
from counting_logs import MINUTE, announcement, batch, report_id, segment
from kafka_harness import bootstrap_or_skip
from redis_harness import Door, needs_tls, running
from secure_broker import PASSWORD, Authority, SecureBroker
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.report import Report, encode_report, encode_upload
from hubbub_deploy.cli import main
from hubbub_topic.kafka.log import KafkaLog

pytestmark = [
    pytest.mark.integration,
    pytest.mark.xdist_group("secured"),
    needs_tls,
    pytest.mark.skipif("HUBBUB_TEST_LONG" not in os.environ, reason="minutes: make evidence NAME=secured"),
]

TOPIC = "reports-rights"
PAST = Survey.parse(LABELS)
ENDS_S = 60.0
Right = tuple[ResourceType, str, AclOperation]
READ: Right = (ResourceType.TOPIC, TOPIC, AclOperation.READ)
WRITE: Right = (ResourceType.TOPIC, TOPIC, AclOperation.WRITE)
CONFIGS: Right = (ResourceType.TOPIC, TOPIC, AclOperation.DESCRIBE_CONFIGS)
GROUP: Right = (ResourceType.GROUP, "hubbub", AclOperation.READ)
DEAD: Right = (ResourceType.TOPIC, f"{TOPIC}.dead", AclOperation.WRITE)
RIGHTS: dict[str, tuple[Right, ...]] = {
    "collector": (READ, WRITE, CONFIGS, GROUP),
    "aggregator": (READ, CONFIGS, GROUP, DEAD),
    "dashboard": (READ, WRITE, CONFIGS, GROUP, DEAD),
}
NAMES = {
    READ: "Read",
    WRITE: "Write",
    CONFIGS: "DescribeConfigs",
    GROUP: "Read of groups",
    DEAD: "Write on dead",
}


# What the line must say, by what is lacking.
CLEAR = {
    name: re.compile(rf"must grant this user the right {name.split(' ')[0]} .*got \w+_AUTHORIZATION_FAILED")
    for name in NAMES.values()
} | {
    "Kafka's password": re.compile("(?i)authentication"),
    "TLS to Kafka": re.compile("ask for TLS"),
    "Kafka's authority": re.compile("(?i)certificate|SSL"),
    "Redis' password": re.compile("(?i)password"),
    "TLS to Redis": re.compile("(?i)connection"),
    "Redis' authority": re.compile("(?i)certificate"),
}


@dataclass
class Case:
    """A process without one thing.

    Attributes:
        process: Which.
        lacks: What it lacks, as the row says it.
        rights: What it may do.
        settings: Settings in place of the right ones; None leaves one out.
    """

    process: str
    lacks: str
    rights: tuple[Right, ...]
    settings: dict[str, str | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return re.sub("[^a-z]+", "-", f"{self.process}-{self.lacks}".lower())


@dataclass
class Site:
    folder: Path
    broker: SecureBroker
    settings: dict[str, str]
    foreign: Path

    def cases(self) -> Iterator[Case]:
        redis = self.settings["redis"]
        for process, rights in RIGHTS.items():
            for right in rights:
                yield Case(process, NAMES[right], tuple(each for each in rights if each != right))
            yield Case(process, "Kafka's password", rights, {"kafka_password_file": str(self.wrong())})
            yield Case(process, "TLS to Kafka", rights, {"kafka_ca": None})
            yield Case(process, "Kafka's authority", rights, {"kafka_ca": str(self.foreign)})
            if process == "collector":
                continue  # it never asks Redis
            wrong = redis.replace(PASSWORD, "not-the-password")
            yield Case(process, "Redis' password", rights, {"redis": wrong})
            bare = redis.replace("rediss", "redis").partition("?")[0]
            yield Case(process, "TLS to Redis", rights, {"redis": bare})
            yield Case(process, "Redis' authority", rights, {"redis": redis.partition("?")[0]})

    def wrong(self) -> Path:
        path = self.folder / "wrong"
        path.write_text("not-the-password")
        return path

    def file(self, name: str, changed: dict[str, str | None]) -> Path:
        lines = self.settings | {"kafka_user": name, "group": f"hubbub-{name}"} | changed
        path = self.folder / f"{name}.toml"
        path.write_text("".join(f"{key} = '{value}'\n" for key, value in lines.items() if value is not None))
        with path.open("a") as more:
            more.write("grace_s = 10\nsession_s = 2\n")
        return path

    def words(self, case: Case) -> list[str]:
        return {
            "collector": [str(self.folder / "now.toml"), "--port", "0"],
            "aggregator": ["--port", "0"],
            "dashboard": ["--data", str(self.folder / case.name), "--port", "0"],
        }[case.process]

    def started(self, case: Case, log: Path) -> subprocess.Popen[str]:
        self.broker.user(case.name)
        if case.rights:
            self.broker.allow(case.name, *case.rights)
        changed = case.settings
        if case.process == "aggregator":
            changed = changed | {"namespace": f"mine-{case.name}"}
        path = self.file(case.name, changed)
        with log.open("w") as said:
            command = [sys.executable, "-m", "hubbub_deploy.cli", case.process, str(path), *self.words(case)]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)

    def seen(self, case: Case) -> tuple[str, str]:
        """Return how it went, "ended" or another way to show the lack, and what was said of it."""
        log = self.folder / f"{case.name}.log"
        process = self.started(case, log)
        try:
            return self._seen(case, process, log)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def _seen(self, case: Case, process: subprocess.Popen[str], log: Path) -> tuple[str, str]:
        assert process.stdout is not None
        line = process.stdout.readline()  # its address, or nothing once it has ended
        url = line.split(": ", 1)[1].strip() if ": http://" in line else ""
        deadline, waiting = monotonic() + ENDS_S, Event()
        while process.poll() is None and monotonic() < deadline:
            with suppress(urllib3.exceptions.HTTPError):  # it may end while it is asked
                if url and (lack := self._lack(case, url)):
                    return lack[0], lack[1] + self._last(log)
            waiting.wait(0.5)
        last = self._last(log)
        if process.poll() is None:
            return "works", last
        return ("ended" if process.returncode else "ended with 0"), last

    @staticmethod
    def _last(log: Path) -> str:
        lines = [each for each in log.read_text().splitlines() if each.strip()]
        # No traceback above the last line either.
        return next((each for each in lines if "Traceback" in each), lines[-1] if lines else "")

    def _lack(self, case: Case, url: str) -> tuple[str, str] | None:
        if case.process == "collector":
            number = max(0, self.now.round_at(time()) or 0)
            body = encode_upload([encode_report(Report(self.now.digest, number, report_id(1), 1))])
            answer = urllib3.request("POST", f"{url}/v1/reports", body=body, retries=False, timeout=30.0)
            return f"answers {answer.status}", ""
        if case.process == "dashboard":
            found: dict[str, Any] = urllib3.request("GET", f"{url}/api/live", timeout=30.0).json()
            if stale := found.get("stale"):
                return "stands still", f"page: {stale['why']}; log: "
            if any(line["sealed"] for each in found["surveys"] for line in each["rounds"]):
                return "releases", ""
        return None

    @property
    def now(self) -> Survey:
        return Survey.load(self.folder / "now.toml")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    bootstrap_or_skip()
    (tmp_path / "broker").mkdir()
    (tmp_path / "redis").mkdir()
    with SecureBroker(tmp_path / "broker") as broker:
        mine = broker.authority.sign("redis")
        door = Door(broker.authority.file, mine.certificate, mine.key, PASSWORD)
        (tmp_path / "password").write_text(PASSWORD)
        (tmp_path / "other").mkdir()
        with running(tmp_path / "redis", "--maxmemory-policy", "noeviction", door=door) as redis:
            settings = {
                "kafka": broker.secure,
                "kafka_ca": str(broker.authority.file),
                "kafka_password_file": str(tmp_path / "password"),
                "topic": TOPIC,
                "redis": redis.url,
            }
            (tmp_path / "now.toml").write_text(
                LABELS.replace("2026-01-01", "2026-11-01").replace("rounds = 3", "rounds = 99")
            )
            operator = tmp_path / "operator.toml"
            operator.write_text(f"kafka = '{broker.open}'\nredis = '{redis.url}'\ntopic = '{TOPIC}'\n")
            with redirect_stdout(StringIO()):
                assert main(["topic", str(operator), "--partitions", "2"]) == 0
            # A round that is over, with reports, and a dead letter: everybody has something to write.
            pairs = [(report_id(i), i % 4) for i in range(200)]
            with KafkaLog(broker.open, TOPIC, 2) as log:
                for partition in range(2):
                    mine_here = [pair for pair in pairs if pair[0][-1] % 2 == partition]
                    record = batch(segment(PAST, 0, mine_here), minute=MINUTE)
                    log.append({partition: [announcement(PAST), record, b"no record"]})
            yield Site(tmp_path, broker, settings, Authority(tmp_path / "other", "foreign").file)


def test_each_right_taken_away_from_each_process_is_refused_in_a_clear_line(site: Site) -> None:
    # A control each, with everything: and the aggregator counts what the dashboards will seal.
    full = {process: Case(process, "nothing", rights) for process, rights in RIGHTS.items()}
    counting = site.started(full["aggregator"], site.folder / "counting.log")
    site.file("counted", {})
    try:
        cases = list(site.cases())
        assert len(cases) > 20
        # Those that publish have one lease: one after the other.
        later = [case for case in cases if case.process == "dashboard" and case.lacks.startswith("Write")]
        beside = [case for case in [full["collector"], *cases] if case not in later]
        with ThreadPoolExecutor(3) as pool:
            found = dict(zip((case.name for case in beside), pool.map(site.seen, beside), strict=True))
        site.settings["namespace"] = f"mine-{full['aggregator'].name}"
        found |= {case.name: site.seen(case) for case in later}
    finally:
        counting.kill()
        counting.wait()
        assert counting.stdout is not None
        counting.stdout.close()
    for case in [*full.values(), *cases]:
        if case.name in found:
            how, said = found[case.name]
            said = re.sub(r"127\.0\.0\.1:\d+|/\S*/", lambda hit: "HOST" if ":" in hit[0] else "", said)
            print(f"ROW | {case.process} | {case.lacks} | {how} | {said[:230].replace('|', '/')} |")
    assert found[full["collector"].name][0] == "answers 200"
    for case in cases:
        how, said = found[case.name]
        if (case.process, case.lacks) == ("dashboard", "Write on dead"):
            # The control: it never writes a letter. Here it seals and releases.
            assert how == "releases"
            continue
        if (case.process, how) == ("collector", "answers 200") and case.lacks == NAMES[GROUP]:
            continue  # the client asks for its group's coordinator now and then; a collector commits nothing
        assert how not in ("works", "ended with 0", "releases", "answers 200"), (case.name, how, said)
        assert PASSWORD not in said
        assert CLEAR[case.lacks].search(said), (case.name, said)
        assert "Traceback" not in said
