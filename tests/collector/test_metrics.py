"""The metrics of a gateway and of a dashboard: public names, read by Prometheus' own parser."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command import environment
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from shown_view import round_of, snapshot_of, survey_of

from hubbub.wire import OUTCOMES
from hubbub_aggregator.web import LiveView
from hubbub_aggregator.web.metrics import ViewCollector
from hubbub_collector.metrics import GatewayCollector, Metrics

Sample = tuple[str, tuple[tuple[str, str], ...]]

# Dashboards and alarms of operators name them: none may go, and none may change its kind.
GATEWAY = {
    "hubbub_gateway_reports_total": "counter",
    "hubbub_gateway_uploads_total": "counter",
    "hubbub_gateway_upload_bytes_total": "counter",
    "hubbub_gateway_pending_bytes": "gauge",
    "hubbub_gateway_batches_total": "counter",
    "hubbub_gateway_shed_uploads_total": "counter",
    "hubbub_gateway_rate_limited_uploads_total": "counter",
    "hubbub_gateway_records_total": "counter",
    "hubbub_gateway_record_bytes_total": "counter",
    "hubbub_gateway_write_seconds_total": "counter",
    "hubbub_gateway_healthy": "gauge",
}


def read(collector: Collector) -> tuple[dict[Sample, float], dict[str, str]]:
    """Every sample, and the kind of each name."""
    registry = CollectorRegistry()
    registry.register(collector)
    samples: dict[Sample, float] = {}
    kinds: dict[str, str] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples
            samples[key] = sample.value
            kinds[sample.name] = family.type
    return samples, kinds


@pytest.mark.parametrize("is_sealing", [None, True, False])
def test_gateway_shows_its_counters_under_their_public_names(is_sealing: bool | None) -> None:
    metrics = Metrics()
    metrics.reports.update({"accepted": 7, "late": 2})
    metrics.uploads.update({503: 1, 200: 3})
    metrics.upload_bytes = 2**40
    metrics.batch_done("stored")
    metrics.batch_done("overdue")
    metrics.shed.update(waited=5, gone=2)
    metrics.rate_limited["password"] = 3
    metrics.stored(4, 1000, 0.25)
    metrics.stored(1, 24, 0.5)
    sealing = None if is_sealing is None else lambda: is_sealing
    found, kinds = read(
        GatewayCollector(metrics, held_bytes=lambda: 37, healthy=lambda: False, is_sealing=sealing)
    )
    expected: dict[Sample, float] = {
        ("hubbub_gateway_reports_total", (("outcome", outcome),)): 0.0 for outcome in OUTCOMES
    }
    expected |= {
        ("hubbub_gateway_reports_total", (("outcome", "accepted"),)): 7.0,
        ("hubbub_gateway_reports_total", (("outcome", "late"),)): 2.0,
        ("hubbub_gateway_uploads_total", (("status", "200"),)): 3.0,
        ("hubbub_gateway_uploads_total", (("status", "503"),)): 1.0,
        ("hubbub_gateway_upload_bytes_total", ()): 1_099_511_627_776.0,
        ("hubbub_gateway_pending_bytes", ()): 37.0,
        ("hubbub_gateway_batches_total", (("fate", "stored"),)): 1.0,
        ("hubbub_gateway_batches_total", (("fate", "forgotten"),)): 0.0,
        ("hubbub_gateway_batches_total", (("fate", "overdue"),)): 1.0,
        ("hubbub_gateway_shed_uploads_total", (("reason", "waited"),)): 5.0,
        ("hubbub_gateway_shed_uploads_total", (("reason", "gone"),)): 2.0,
        ("hubbub_gateway_rate_limited_uploads_total", (("permit", "password"),)): 3.0,
        ("hubbub_gateway_records_total", ()): 5.0,
        ("hubbub_gateway_record_bytes_total", ()): 1024.0,
        ("hubbub_gateway_write_seconds_total", ()): 0.75,
        ("hubbub_gateway_healthy", ()): 0.0,
    }
    if is_sealing is not None:
        expected["hubbub_sealing", ()] = float(is_sealing)
    assert found == expected
    assert kinds == GATEWAY | ({} if is_sealing is None else {"hubbub_sealing": "gauge"})


def test_dashboard_shows_what_the_snapshot_holds() -> None:
    view = LiveView()
    found = read(ViewCollector(view))[0]
    assert (found["hubbub_sealing", ()], found["hubbub_following", ()]) == (1.0, 1.0)
    assert "hubbub_sealing" not in read(ViewCollector(view, without=["hubbub_sealing"]))[1]
    rounds = [round_of(0, sealed=True), round_of(1, sealed=True, suppressed=True), round_of(2)]
    view.publish(snapshot_of(survey_of("visits", *rounds), unknown=3, lag=7))
    found, kinds = read(ViewCollector(view))
    assert kinds == {
        "hubbub_sealing": "gauge",
        "hubbub_following": "gauge",
        "hubbub_partition_lag": "gauge",
        "hubbub_counted_reports_total": "counter",
        "hubbub_unknown_reports_total": "counter",
        "hubbub_dead_records_total": "counter",
        "hubbub_rounds": "gauge",
        "hubbub_release_devices": "gauge",
    }
    name = (("survey", "visits"), ("version", "1"))
    for stage in ("open", "sealed", "suppressed"):
        assert found["hubbub_rounds", (("stage", stage), *name)] == 1.0
    assert found["hubbub_release_devices", name] == 0.0
    assert found["hubbub_partition_lag", (("partition", "3"),)] == 7.0
    assert found["hubbub_counted_reports_total", (("verdict", "accepted"),)] == 3000.0
    assert found["hubbub_unknown_reports_total", ()] == 3.0
    view.unsealed = "clocks differ"
    view.publish({"log": "x", "surveys": []})
    view.stand_still(since="2026-01-01T00:00:00Z", why="away")
    found = read(ViewCollector(view))[0]
    assert (found["hubbub_sealing", ()], found["hubbub_following", ()]) == (0.0, 0.0)


def test_the_last_save_of_a_partition_is_when_its_offset_was_last_seen_to_move() -> None:
    now_s = [100.0]
    view = LiveView(clock=lambda: now_s[0])

    def publish(*offsets: int) -> dict[str, float]:
        snapshot = snapshot_of() | {
            "partitions": [
                {"partition": p, "offset": at, "end": 9, "lag": 9 - at} for p, at in enumerate(offsets)
            ]
        }
        view.publish(snapshot)
        name = "hubbub_partition_saved_timestamp_seconds"
        found = read(ViewCollector(view))[0]
        return {dict(labels)["partition"]: value for (each, labels), value in found.items() if each == name}

    assert publish(3, 4) == {}  # a process that has just begun does not know when they were reached
    now_s[0] = 107.0
    assert publish(3, 5) == {"1": 107.0}
    now_s[0] = 109.0
    assert publish(3, 5) == {"1": 107.0}
    assert publish(4, 5) == {"0": 109.0, "1": 107.0}


def test_no_files_of_a_multiprocess_mode_are_kept() -> None:
    code = (
        "import hubbub_collector.gateway, hubbub_aggregator.web.api, sys\n"
        "print([name for name in sys.modules if name == 'prometheus_client.multiprocess'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    assert found.stdout == "[]\n"
