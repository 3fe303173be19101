"""The gateway's metrics, as Prometheus text; nothing in them tells one sender from another."""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias

from hubbub.wire import OUTCOMES, Outcome

Fate: TypeAlias = Literal["stored", "forgotten", "overdue"]


class Metrics:
    """The counters since the process began; reports count once they are durable."""

    def __init__(self) -> None:
        self.reports: Counter[Outcome] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.uploads: Counter[int] = Counter()
        self.upload_bytes = 0
        self.batches: Counter[str] = Counter(stored=0, forgotten=0, overdue=0)
        self.records = 0
        self.record_bytes = 0
        self.write_s = 0.0

    def batch_done(self, fate: Fate) -> None:
        """Count a batch that was appended, forgotten with a 503, or took too long, with a 503 too."""
        self.batches[fate] += 1

    def stored(self, records: int, size: int, seconds: float) -> None:
        """Count the records of one append, their bytes, and how long encoding and append took."""
        self.records += records
        self.record_bytes += size
        self.write_s += seconds

    def render(self, *, held_bytes: int, healthy: bool) -> str:
        """Return all counters in Prometheus' text format, version 0.0.4."""
        lines: list[str] = []

        def family(name: str, kind: str, text: str, samples: dict[str, float]) -> None:
            lines.append(f"# HELP hubbub_gateway_{name} {text}")
            lines.append(f"# TYPE hubbub_gateway_{name} {kind}")
            lines.extend(f"hubbub_gateway_{name}{labels} {value}" for labels, value in samples.items())

        family(
            "reports_total",
            "counter",
            "Reports answered, by outcome.",
            {f'{{outcome="{outcome}"}}': count for outcome, count in self.reports.items()},
        )
        family(
            "uploads_total",
            "counter",
            "Uploads answered, by HTTP status.",
            {f'{{status="{status}"}}': count for status, count in sorted(self.uploads.items())},
        )
        family("upload_bytes_total", "counter", "Bytes of upload bodies read.", {"": self.upload_bytes})
        family("pending_bytes", "gauge", "Bytes of uploads not yet answered.", {"": held_bytes})
        family(
            "batches_total",
            "counter",
            "Batches appended to the log, forgotten, or overdue: too late to answer for.",
            {f'{{fate="{fate}"}}': count for fate, count in self.batches.items()},
        )
        family("records_total", "counter", "Records appended.", {"": self.records})
        family("record_bytes_total", "counter", "Bytes of records appended.", {"": self.record_bytes})
        family("write_seconds_total", "counter", "Time to encode and append batches.", {"": self.write_s})
        family("healthy", "gauge", "1 while the log takes batches.", {"": int(healthy)})
        return "\n".join(lines) + "\n"


def sealing_metric(*, is_sealing: bool) -> str:
    """Return the line of a process that seals rounds: 0 while it does not, because of its clock."""
    return (
        "# HELP hubbub_sealing 1 while due rounds are sealed, 0 while clocks differ.\n"
        "# TYPE hubbub_sealing gauge\n"
        f"hubbub_sealing {int(is_sealing)}\n"
    )
