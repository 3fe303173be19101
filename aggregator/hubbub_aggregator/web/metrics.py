"""The dashboard's metrics for Prometheus: whether it seals, and whether it follows the counting."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hubbub_aggregator.web.view import View


class ViewCollector(Collector):
    """A collector of prometheus-client that reads the newest snapshot of a view when it is asked.

    Args:
        view: What readers look at.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """Yield both gauges as of now."""
        snapshot = self._view.snapshot()
        text = "1 while due rounds are sealed, 0 while clocks differ."
        yield GaugeMetricFamily("hubbub_sealing", text, value="unsealed" not in snapshot)
        text = "1 while the page follows the counting, 0 while it stands still."
        yield GaugeMetricFamily("hubbub_following", text, value="stale" not in snapshot)
