"""The metrics of the counting for Prometheus: sealing, following, lag, verdicts, rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hubbub_aggregator.web.view import View


class ViewCollector(Collector):
    """A collector of prometheus-client that reads the newest snapshot of a view when it is asked.

    Args:
        view: What readers look at.
        without: Metrics that another collector of the same process has.
    """

    def __init__(self, view: View, *, without: Collection[str] = ()) -> None:
        self._view, self._without = view, frozenset(without)

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its numbers as of now."""
        for family in (*_families(self._view.snapshot()), *_saves(self._view.saved())):
            if family.name not in self._without:
                yield family


def _saves(saved: Mapping[int, float]) -> Iterator[Metric]:
    if saved:
        text = "Time at which a save of the partition was last seen, seconds since 1970."
        name = "hubbub_partition_saved_timestamp_seconds"
        family = GaugeMetricFamily(name, text, labels=["partition"])
        for partition, at_s in sorted(saved.items()):
            family.add_metric([str(partition)], at_s)
        yield family


def _families(snapshot: Mapping[str, Any]) -> Iterator[Metric]:
    text = "1 while due rounds are sealed, 0 while clocks differ."
    yield GaugeMetricFamily("hubbub_sealing", text, value="unsealed" not in snapshot)
    text = "1 while the page follows the counting, 0 while it stands still."
    yield GaugeMetricFamily("hubbub_following", text, value="stale" not in snapshot)
    text = "Log records not counted yet, by partition."
    lag = GaugeMetricFamily("hubbub_partition_lag", text, labels=["partition"])
    for partition in snapshot.get("partitions", ()):
        lag.add_metric([str(partition["partition"])], partition["lag"])
    yield lag
    text = "Reports counted, by verdict, those after a seal included."
    counted = CounterMetricFamily("hubbub_counted_reports", text, labels=["verdict"])
    for verdict, number in snapshot.get("accounting", {}).items():
        if verdict != "attempts":
            counted.add_metric([verdict], number)
    yield counted
    text = "Reports of surveys that nobody announced."
    yield CounterMetricFamily("hubbub_unknown_reports", text, value=snapshot.get("unknown", 0))
    text = "Log records that could not be decoded."
    yield CounterMetricFamily("hubbub_dead_records", text, value=snapshot.get("dead", 0))
    text = "Rounds with reports, by survey and stage: open, sealed, or suppressed (sealed without estimates)."
    rounds = GaugeMetricFamily("hubbub_rounds", text, labels=["survey", "version", "stage"])
    text = "Devices of the newest release, by survey."
    devices = GaugeMetricFamily("hubbub_release_devices", text, labels=["survey", "version"])
    for survey in snapshot.get("surveys", ()):
        name = [survey["id"], str(survey["version"])]
        sealed = [each for each in survey["rounds"] if each["sealed"]]
        suppressed = sum(1 for each in sealed if each["suppressed"])
        stages = {"open": len(survey["rounds"]) - len(sealed), "sealed": len(sealed) - suppressed}
        for stage, number in (stages | {"suppressed": suppressed}).items():
            rounds.add_metric([*name, stage], number)
        if sealed:
            devices.add_metric(name, sealed[-1]["devices"])
    yield rounds
    yield devices
    yield from _issuers(snapshot)
    yield from _alerts(snapshot)


def _issuers(snapshot: Mapping[str, Any]) -> Iterator[Metric]:
    text = "Reports of the newest round, by survey, issuer and verdict."
    labels = ["survey", "version", "issuer", "verdict"]
    reports = GaugeMetricFamily("hubbub_issuer_reports", text, labels=labels)
    for survey in snapshot.get("surveys", ()):
        for line in survey["rounds"][-1].get("issuers", ()) if survey["rounds"] else ():
            name = [survey["id"], str(survey["version"]), line["issuer"] or "others"]
            for verdict in ("accepted", "duplicate", "over_quota"):
                reports.add_metric([*name, verdict], line[verdict])
    yield reports


def _alerts(snapshot: Mapping[str, Any]) -> Iterator[Metric]:
    text = "Alerts of the newest release, by survey and kind: impossible, jump, joint, margin, or issuer."
    alerts = GaugeMetricFamily("hubbub_alerts", text, labels=["survey", "version", "kind"])
    text = "Share of forged reports that moves the largest value of the newest release out of its interval."
    margin = GaugeMetricFamily("hubbub_poisoning_margin", text, labels=["survey", "version"])
    text = "Probability of a false alert in one honest round."
    rate = GaugeMetricFamily("hubbub_alert_false_alarm_rate", text, labels=["survey", "version"])
    for survey in snapshot.get("surveys", ()):
        name = [survey["id"], str(survey["version"])]
        judged = survey.get("alerts", {}).get("rounds")
        if not judged:
            continue
        newest = judged[-1]
        kinds = [alert["kind"] for alert in newest["alerts"]]
        for kind in ("impossible", "jump", "joint", "margin", "issuer", "part"):
            alerts.add_metric([*name, kind], kinds.count(kind) + newest["omitted"].get(kind, 0))
        if newest["margin"] is not None:
            margin.add_metric(name, newest["margin"])
        rate.add_metric(name, survey["alerts"]["rate"])
    yield alerts
    yield margin
    yield rate
