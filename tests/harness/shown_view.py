"""A view for tests of the API and the page: handmade documents in the shape of hubbub_aggregator.web.view."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Sequence
from typing import Any

from hubbub_aggregator.release.estimates import METHOD

TALLIES = ("accepted", "duplicate", "early", "late", "invalid", "over_quota")


class ShownView:
    """Shows the snapshot that was published last."""

    def __init__(self, snapshot: dict[str, Any] | None = None) -> None:
        self._version = 0
        self._snapshot = snapshot or snapshot_of()
        self.looks = 0

    def publish(self, snapshot: dict[str, Any]) -> None:
        self._snapshot = snapshot
        self._version += 1

    def version(self) -> int:
        return self._version

    def saved(self) -> dict[int, float]:
        return {number: time.time() - 20.0 * (number + 1) for number in range(4)}

    def blobs(self) -> dict[tuple[bytes, int], bytes]:
        return {}

    def snapshot(self) -> dict[str, Any]:
        self.looks += 1
        return self._snapshot


def accounting(**tallies: int) -> dict[str, int]:
    parts = {name: tallies.get(name, 0) for name in TALLIES}
    return {"attempts": sum(parts.values()), **parts}


def row(label: str, estimate: float, error: float, **more: Any) -> dict[str, Any]:
    half = 1.96 * error
    return {
        "label": label,
        **more,
        "estimate": estimate,
        "error": error,
        "low": estimate - half,
        "high": estimate + half,
        "simultaneous_low": estimate - 1.5 * half,
        "simultaneous_high": estimate + 1.5 * half,
        "crowd_low": estimate - half,
        "crowd_high": estimate + half,
        "crowd_simultaneous_low": estimate - 1.5 * half,
        "crowd_simultaneous_high": estimate + 1.5 * half,
    }


def _mean(estimate: float, error: float) -> dict[str, Any]:
    names = ("estimate", "error", "low", "high", "crowd_low", "crowd_high")
    return {name: row("", estimate, error)[name] for name in names}


def round_of(
    index: int = 0,
    *,
    shares: Sequence[tuple[str, str, float]] = (("0", "none", 0.4), ("1", "some", 0.35), ("2", "some", 0.25)),
    devices: int = 1000,
    sealed: bool = False,
    suppressed: bool = False,
    mean: float | None = None,
    noise: float = 1.0,
    seed: int = 1,
    tallies: dict[str, int] | None = None,
) -> dict[str, Any]:
    """One round, the first is of index 0; `shares` are (label, category, true share).

    Its errors fall with `devices`.
    """
    draw = random.Random(seed)  # noqa: S311 - pictures, not privacy
    error = noise / max(devices, 1) ** 0.5
    values = [
        row(label, share + draw.gauss(0, error), error, category=category)
        for label, category, share in shares
    ]
    names = list(dict.fromkeys(category for _, category, _ in shares))
    categories = [
        row(name, sum(v["estimate"] for v in values if v["category"] == name), error * 0.5) for name in names
    ]
    return {
        "method": METHOD,
        "round": index + 1,
        "start": f"2026-01-{index + 1:02}T00:00:00Z",
        "end": f"2026-01-{index + 2:02}T00:00:00Z",
        "sealed": sealed,
        "as_of": 0 if suppressed else devices,
        "cut": {"0": 12, "1": 11},
        "accounting": accounting(**(tallies or {"accepted": devices})),
        "epsilon": {"declared": 2.0, "certified": 1.9999999999854481},
        "devices": 0 if suppressed else devices,
        "level": 0.95,
        "values": [] if suppressed else values,
        "categories": [] if suppressed else categories,
        "mean": None if suppressed or mean is None else _mean(mean, error),
        "consistent": {"values": [], "categories": []},
        "suppressed": suppressed,
    }


def survey_of(
    name: str = "visits",
    *rounds: dict[str, Any],
    title: str = "Visits to a doctor",
    digest: str = "0123456789abcdef0123456789abcdef",
    minimum_cohort: int = 100,
    planned_devices: int = 20000,
) -> dict[str, Any]:
    facts = {"id": name, "version": 1, "digest": digest, "title": title}
    return {
        **facts,
        "attributes": [{"id": name, "kind": "static"}],
        "epsilon": {"declared": 2.0, "certified": 1.9999999999854481},
        "minimum_cohort": minimum_cohort,
        "planned_devices": planned_devices,
        "schedule": {"start": "2026-01-01T00:00:00Z", "round_s": 86400, "rounds": max(len(rounds), 1)},
        "rounds": [{"survey": dict(facts), **copy.deepcopy(document)} for document in rounds],
    }


def snapshot_of(*surveys: dict[str, Any], unknown: int = 0, lag: int = 0) -> dict[str, Any]:
    totals = accounting()
    for survey in surveys:
        for document in survey["rounds"]:
            for key, value in document["accounting"].items():
                totals[key] += value
    return {
        "log": "6f1c",
        "surveys": list(surveys),
        "accounting": totals,
        "unknown": unknown,
        "dead": 0,
        "partitions": [{"partition": p, "offset": 10, "end": 10 + lag, "lag": lag} for p in range(4)],
    }
