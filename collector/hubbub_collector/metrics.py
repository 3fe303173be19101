"""The metrics of a gateway and of an issuer for Prometheus; nothing in them tells one sender from another.

The numbers are plain integers, since requests and the writer's thread count at every batch; prometheus-client
asks for them when somebody reads, and writes the text. One registry a process: the client's
multiprocess mode, which keeps files, is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hubbub.wire import OUTCOMES, Outcome

Fate: TypeAlias = Literal["stored", "forgotten", "overdue"]


class Metrics:
    """The counters since the process began; reports count once they are durable."""

    def __init__(self) -> None:
        self.reports: Counter[Outcome] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.uploads: Counter[int] = Counter()
        self.upload_bytes = 0
        self.batches: Counter[str] = Counter(stored=0, forgotten=0, overdue=0)
        self.shed: Counter[str] = Counter(waited=0, gone=0)
        self.tokens: Counter[tuple[str, str]] = Counter()
        """(taken, issuer's name) and (refused, fault) -> how many."""
        self.rate_limited: Counter[str] = Counter()
        """Permit -> uploads turned away because it let in too many."""
        self.records = 0
        self.record_bytes = 0
        self.write_s = 0.0

    def tokens_of(self, what: str) -> dict[str, int]:
        """Return the number of tokens that were taken, by issuer, or refused, by fault."""
        return {name: n for (fate, name), n in sorted(self.tokens.items()) if fate == what}

    def batch_done(self, fate: Fate) -> None:
        """Count a batch that was appended, forgotten with a 503, or took too long, with a 503 too."""
        self.batches[fate] += 1

    def stored(self, records: int, size: int, seconds: float) -> None:
        """Count the records of one append, their bytes, and how long encoding and append took."""
        self.records += records
        self.record_bytes += size
        self.write_s += seconds


class GatewayCollector(Collector):
    """A collector of prometheus-client that reads a gateway's counters and gauges when it is asked.

    Args:
        metrics: The counters.
        held_bytes: Returns the bytes of uploads not yet answered.
        healthy: Returns whether the log takes batches.
        is_sealing: Returns whether due rounds are sealed; None where another process seals.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        held_bytes: Callable[[], int],
        healthy: Callable[[], bool],
        is_sealing: Callable[[], bool] | None,
    ) -> None:
        self._metrics, self._held_bytes, self._healthy = metrics, held_bytes, healthy
        self._is_sealing = is_sealing

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its numbers as of now."""
        of = self._metrics
        yield _by("reports", "Reports answered, by outcome.", "outcome", of.reports)
        yield _by("uploads", "Uploads answered, by HTTP status.", "status", dict(sorted(of.uploads.items())))
        yield _counter("upload_bytes", "Bytes of upload bodies read.", of.upload_bytes)
        yield _gauge("gateway_pending_bytes", "Bytes of uploads not yet answered.", self._held_bytes())
        text = "Batches appended to the log, forgotten, or overdue: too late to answer for."
        yield _by("batches", text, "fate", of.batches)
        text = "Uploads not written: they waited too long, or their senders had gone."
        yield _by("shed_uploads", text, "reason", of.shed)
        yield _by("tokens_taken", "Reports whose token was good, by issuer.", "issuer", of.tokens_of("taken"))
        text = "Reports refused for their token, which are not written."
        yield _by("tokens_refused", text, "fault", of.tokens_of("refused"))
        text = "Uploads turned away because their permit let in too many reports a second."
        yield _by("rate_limited_uploads", text, "permit", dict(sorted(of.rate_limited.items())))
        yield _counter("records", "Records appended.", of.records)
        yield _counter("record_bytes", "Bytes of records appended.", of.record_bytes)
        yield _counter("write_seconds", "Time to encode and append batches.", of.write_s)
        yield _gauge("gateway_healthy", "1 while the log takes batches.", self._healthy())
        if self._is_sealing is not None:
            text = "1 while due rounds are sealed, 0 while clocks differ."
            yield _gauge("sealing", text, self._is_sealing())


class IssuerMetrics:
    """The counters of an issuer since the process began; none tells one device from another."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.grants: Counter[str] = Counter(new=0, again=0, used=0)
        self.tokens = 0


class IssuerCollector(Collector):
    """A collector of prometheus-client that reads an issuer's counters and gauges when it is asked.

    Args:
        metrics: The counters.
        credentials: Returns how many credentials are known.
        faults: Returns what keeps the issuer from giving tokens; empty while nothing does.
    """

    def __init__(
        self,
        metrics: IssuerMetrics,
        *,
        credentials: Callable[[], int],
        faults: Callable[[], Mapping[str, str]],
    ) -> None:
        self._metrics, self._credentials, self._faults = metrics, credentials, faults

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its numbers as of now."""
        of = self._metrics
        requests = dict(sorted(of.requests.items()))
        yield _by("requests", "Token requests answered, by HTTP status.", "status", requests, "issuer")
        text = "Requests of known devices: the first of a period, the same again, another."
        yield _by("grants", text, "grant", of.grants, "issuer")
        yield _counter("tokens", "Tokens signed, those signed again included.", of.tokens, "issuer")
        yield _gauge("issuer_credentials", "Credentials of devices that are known.", self._credentials())
        yield _gauge("issuer_healthy", "1 while every known device can have its tokens.", not self._faults())


def _by(name: str, text: str, label: str, numbers: Mapping[Any, int], of: str = "gateway") -> Metric:
    family = CounterMetricFamily(f"hubbub_{of}_{name}", text, labels=[label])
    for value, number in numbers.items():
        family.add_metric([str(value)], number)
    return family


def _counter(name: str, text: str, value: float, of: str = "gateway") -> Metric:
    return CounterMetricFamily(f"hubbub_{of}_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"hubbub_{name}", text, value=value)
