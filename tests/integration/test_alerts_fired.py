"""Alerts fired on purpose: promtool evaluates every rule over what real processes say at /metrics.

Each state below is made with processes of their own, scraped once or twice. What was scraped is held, or goes
on at the pace between the two scrapes, for ninety minutes; the alerts that fire after sixty are compared
exactly, so that each state is the control of all other rules.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import resource
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from counting_logs import announcement, batch, report_id, segment
from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response
from starlette.routing import Route
from surveys import LABELS

from hubbub import Survey
from hubbub.estimation import AlertRules
from hubbub.wire import Report, Voucher, decode_response, encode_report, encode_upload
from hubbub_aggregator.runners import Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web import LiveView, ViewCollector
from hubbub_collector import GatewaySettings, Grants, IssuerSettings, create_issuer_app, create_server
from hubbub_deploy import NodeSettings, serve
from hubbub_deploy.http_server import PageServer, listen
from hubbub_topic import SqliteLog

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        shutil.which("promtool") is None,
        reason="promtool is not installed (Debian: apt-get install prometheus)",
    ),
]

RULES = sorted((Path(__file__).parents[2] / "deploy" / "prometheus").glob("*.rules.yml"))
HEALTH = Survey.parse(LABELS)
Scrape = dict[str, float]
Ready = Callable[[str], None]
_DIE_WITH_PARENT = 1
_FIRING = 'count(ALERTS{{alertname="{}",alertstate="firing"}}) > bool 0 or vector(0)'


class Clock:
    """A clock of another process, which the test turns."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 16)
        self.turn(HEALTH.start_s + 7200.0)

    def turn(self, now_s: float, boot_s: float | None = None) -> None:
        struct.pack_into("<dd", self._shared, 0, now_s, now_s if boot_s is None else boot_s)

    def now_s(self) -> float:
        return struct.unpack_from("<d", self._shared)[0]

    def boot_s(self) -> float:
        return struct.unpack_from("<d", self._shared, 8)[0]


class Process:
    """A process that serves until the block ends.

    Args:
        work: What it does; it is given what to call with its URL.
    """

    def __init__(self, work: Callable[[Ready], object]) -> None:
        hears, says = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
                work(lambda url: os.write(says, url.encode()) and None)
            finally:
                os._exit(0)
        os.close(says)
        self.url = os.read(hears, 1000).decode()
        os.close(hears)
        assert self.url

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def scrape(self) -> Scrape:
        """Return series -> value, and `up` as Prometheus would set it."""
        try:
            text = urllib3.request("GET", f"{self.url}/metrics", retries=False, timeout=20.0).data.decode()
        except urllib3.exceptions.HTTPError:
            return {_named("up", {}): 0.0}
        found = {
            _named(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        return found | {_named("up", {}): 1.0}

    def upload(self, reports: int, number: int = 0, symbol: int | None = None) -> int:
        """Send that many reports of one round, in one upload, and return the answer's status."""
        body = encode_upload(
            [
                encode_report(
                    Report(
                        HEALTH.digest, number, secrets.token_bytes(16), i % 5 if symbol is None else symbol
                    )
                )
                for i in range(reports)
            ]
        )
        answer = urllib3.request("POST", f"{self.url}/v1/reports", body=body, retries=False)
        assert answer.status != 200 or len(decode_response(answer.data)) == reports
        return answer.status

    def until(self, series: str, value: float) -> None:
        """Wait until a series has a value."""
        waiting = threading.Event()
        for _ in range(2000):
            if self.scrape().get(series) == value:
                return
            waiting.wait(0.01)
        raise AssertionError(f"{series} must be {value}, got {self.scrape().get(series)}")


def _named(name: str, labels: dict[str, str]) -> str:
    pairs = {**labels, "job": "hubbub-test", "instance": "one"}
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(pairs.items())) + "}"


def firing(folder: Path, before: Scrape, after: Scrape) -> set[str]:
    """Return the alerts that fire after an hour, by promtool."""
    series = [
        {"series": name, "values": f"{before.get(name, value):g}{value - before.get(name, value):+g}x90"}
        if name.split("{")[0].endswith("_total")
        else {"series": name, "values": f"{value:g}+0x90"}
        for name, value in after.items()
    ]
    names = [rule["alert"] for path in RULES for rule in _rules(path)]
    test = {
        "rule_files": [str(path) for path in RULES],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": [
                    {
                        "expr": _FIRING.format(name),
                        "eval_time": "60m",
                        "exp_samples": [{"labels": "{}", "value": 0}],
                    }
                    for name in names
                ],
            }
        ],
    }
    path = folder / "alerts.yml"
    path.write_text(yaml.safe_dump(test))
    run = subprocess.run(
        ["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    said = run.stdout + run.stderr
    fired = set(re.findall(r'alertname=\\"(\w+)', said))
    assert run.returncode == bool(fired), said
    return fired


def _rules(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def node(folder: Path, clock: Clock, **settings: Any) -> Process:
    settings.setdefault("gateway", GatewaySettings(metrics_s=0))
    chosen = NodeSettings(
        surveys=(HEALTH,),
        data_dir=folder,
        clock=clock.now_s,
        boot_clock=clock.boot_s,
        partitions=1,
        **settings,
    )

    def run(ready: Ready) -> None:
        with (folder / "stderr").open("a", buffering=1) as sys.stderr:
            serve(chosen, ready=ready)

    return Process(run)


def test_the_rules_are_sound_to_promtool() -> None:
    run = subprocess.run(
        ["promtool", "check", "rules", *map(str, RULES)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0 and run.stdout.count("SUCCESS") == len(RULES) == 2, run.stdout + run.stderr


def test_a_node_at_work_raises_none_and_one_that_is_gone_raises_down(tmp_path: Path) -> None:
    with node(tmp_path, Clock()) as at_work:
        before = at_work.scrape()
        assert at_work.upload(200) == 200
        after = at_work.scrape()
        assert after[_named("hubbub_gateway_healthy", {})] == 1.0
        assert firing(tmp_path, before, after) == set()
    assert firing(tmp_path, after, at_work.scrape()) == {"HubbubDown"}


def test_a_log_that_takes_nothing(tmp_path: Path) -> None:
    with node(tmp_path, Clock(), log_max_bytes=1) as refusing:
        assert refusing.upload(1) == 503
        before = refusing.scrape()
        assert refusing.upload(1) == 503
        assert firing(tmp_path, before, refusing.scrape()) == {"HubbubRefusesUploads", "HubbubOverloaded"}


def test_a_permit_that_lets_in_too_much(tmp_path: Path) -> None:
    with node(tmp_path, Clock(), gateway=GatewaySettings(permit_rate=1.0, metrics_s=0)) as limited:
        assert [limited.upload(11), limited.upload(1)] == [200, 429]
        before = limited.scrape()
        assert limited.upload(1) == 429
        assert firing(tmp_path, before, limited.scrape()) == {"HubbubRateLimited", "HubbubOverloaded"}


def test_devices_whose_clocks_are_ahead(tmp_path: Path) -> None:
    with node(tmp_path, Clock()) as early:
        assert early.upload(4) == 200
        before = early.scrape()
        assert [early.upload(4), early.upload(1, number=2)] == [200, 200]
        assert firing(tmp_path, before, early.scrape()) == {"HubbubDevicesOffTime"}


def test_clocks_that_differ(tmp_path: Path) -> None:
    clock = Clock()
    with node(tmp_path, clock) as doubting:
        assert doubting.upload(4) == 200
        before = doubting.scrape()
        clock.turn(clock.now_s() + 600.0, clock.boot_s())
        doubting.until(_named("hubbub_sealing", {}), 0.0)
        assert firing(tmp_path, before, doubting.scrape()) == {"HubbubNotSealing"}


def test_a_page_that_stands_still(tmp_path: Path) -> None:
    """The node's disk takes nothing when a round is due, not even its stderr's file."""
    clock = Clock()
    with node(tmp_path, clock) as full:
        assert full.upload(200) == 200
        full.until(_named("hubbub_counted_reports_total", {"verdict": "accepted"}), 200.0)
        before = full.scrape()
        resource.prlimit(full.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        clock.turn(HEALTH.round_end_s(0) + HEALTH.lateness_s + 60.0)
        full.until(_named("hubbub_following", {}), 0.0)
        fired = firing(tmp_path, before, full.scrape())
        # A node that stands still seals nothing either.
        assert fired == {"HubbubNobodyPublishes", "HubbubNotSealing"}


def test_records_that_cannot_be_decoded(tmp_path: Path) -> None:
    with node(tmp_path, Clock()) as sound:
        before = sound.scrape()
    with SqliteLog(tmp_path / "log.sqlite", 1) as log:
        log.append({0: [b"no record"]})
    with node(tmp_path, Clock()) as dead:
        assert firing(tmp_path, before, dead.scrape()) == {"HubbubDeadRecords"}


def _counts_no_more(folder: Path, ready: Ready) -> None:
    """Count a log's first records, show that, and count no more."""
    view, registry = LiveView(), CollectorRegistry()
    registry.register(ViewCollector(view))
    with (
        SqliteLog(folder / "log.sqlite", 1) as log,
        closing(SqliteStore(folder / "store.sqlite", log_identity=log.identity, partitions=1)) as store,
        closing(SqliteArchive(folder / "archive.sqlite")) as archive,
        listen("127.0.0.1", 0) as listener,
    ):
        Worker(log, store, archive=archive, view=view, clock=lambda: HEALTH.start_s + 7200.0).step()
        PageServer(
            name="worker",
            view=view,
            work=lambda stop: stop.wait() and None,
            kept="the log",
            routes=[Route("/metrics", lambda _: Response(generate_latest(registry)))],
        ).serve(listener, host="127.0.0.1", announce=ready)


def test_a_partition_that_nobody_counts(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.sqlite", 1) as log:
        log.publish_survey(HEALTH.digest, announcement(HEALTH))
        log.append({0: [batch(segment(HEALTH, 0, [(report_id(i), 0)])) for i in range(1200)]})
    with Process(partial(_counts_no_more, tmp_path)) as behind:
        found = behind.scrape()
        assert found[_named("hubbub_partition_lag", {"partition": "0"})] == 1201 - 64
        assert firing(tmp_path, found, found) == {"HubbubLagGrows"}


def test_an_issuer_whose_credentials_cannot_be_read(tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (tmp_path / "credentials").write_text("00" * 32)
    settings = IssuerSettings(key=key, credentials=tmp_path / "credentials")

    def issue(ready: Ready) -> None:
        with closing(Grants(tmp_path / "grants.sqlite")) as grants, listen("127.0.0.1", 0) as listener:
            app = create_issuer_app(settings, grants, clock=lambda: 0.0)
            ready(f"http://127.0.0.1:{listener.getsockname()[1]}")
            create_server(app).run(sockets=[listener])

    with Process(issue) as issuer:
        before = issuer.scrape()
        assert firing(tmp_path, before, before) == set()
        (tmp_path / "credentials").unlink()
        assert firing(tmp_path, before, issuer.scrape()) == {"HubbubIssuerUnhealthy"}


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Scrape]:
    """Two releases: the second is of reports that all say one symbol, which no population gives."""
    clock = Clock()
    with node(tmp_path, clock, alerts=AlertRules(margin_share=0.9)) as alarmed:
        assert alarmed.upload(400) == 200
        clock.turn(HEALTH.round_end_s(0) + HEALTH.lateness_s + 60.0)
        series = partial(_named, "hubbub_rounds")
        labels = {"survey": HEALTH.id, "version": "1", "stage": "sealed"}
        alarmed.until(series(labels), 1.0)
        assert alarmed.upload(400, number=1, symbol=0) == 200
        clock.turn(HEALTH.round_end_s(1) + HEALTH.lateness_s + 60.0)
        alarmed.until(series(labels), 2.0)
        yield alarmed.scrape()


def test_releases_that_show_forged_reports(released: Scrape, tmp_path: Path) -> None:
    fired = firing(tmp_path, released, released)
    assert fired == {
        "HubbubImpossibleEstimate",
        "HubbubJointChange",
        "HubbubJump",
        "HubbubSmallPoisoningMargin",
    }


def test_an_issuer_whose_reports_are_unlike_all_others(tmp_path: Path) -> None:
    """Of one issuer's reports a fifth say each symbol; of the other's twice as many say the first."""
    with SqliteLog(tmp_path / "log.sqlite", 1) as log:
        log.publish_survey(HEALTH.digest, announcement(HEALTH))
        for number, name in enumerate(("a", "b")):
            symbols = [i % 5 if number == 0 or i % 4 else 0 for i in range(2000)]
            reports = [(report_id(10_000 * number + i), symbol) for i, symbol in enumerate(symbols)]
            vouched = segment(HEALTH, 0, reports)
            vouched.voucher = Voucher(name, None)
            log.append({0: [batch(vouched)]})
    clock = Clock()
    clock.turn(HEALTH.round_end_s(0) + HEALTH.lateness_s + 60.0)
    labels = {"survey": HEALTH.id, "version": "1", "stage": "sealed"}
    with node(tmp_path, clock) as unlike:
        unlike.until(_named("hubbub_rounds", labels), 1.0)
        found = unlike.scrape()
        assert firing(tmp_path, found, found) == {"HubbubIssuerOutOfLine"}


def test_every_rule_has_fired_in_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{rule["alert"]}"' in text for path in RULES for rule in _rules(path))
