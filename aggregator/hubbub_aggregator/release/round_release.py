"""From the counts of a sealed round to what is published: pure, the same bytes from the same counts.

A release holds the raw unbiased estimates with errors and intervals, a consistent view, the exact epsilon,
the cut (the seal's offset in every partition), the accounting up to it, and what is lost for good. Below the
survey's minimum cohort it holds no estimates.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation import Estimate
from hubbub.survey import AnyEstimator, Survey
from hubbub_aggregator.counting.partition import PartitionState, RoundKey
from hubbub_aggregator.counting.skip_offsets import lost_of
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts
from hubbub_aggregator.errors import AccountingError
from hubbub_aggregator.release.enrolment import RoundEnrolment
from hubbub_aggregator.release.provisional import AcceptedCounts

LEVEL: Final = 0.95
Document: TypeAlias = dict[str, Any]

_SAME: Final = 1e-9
"""Estimates closer than this are the same: one report among 10^8 moves an estimate by more."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The facts that may be published about one round.

    Attributes:
        survey: The survey.
        round: The round.
        stage: Whether the round is sealed: "sealed" releases are final.
        tally: The counts that the estimates come from, and their cut.
        verdicts: What became of every attempt that was read.
        lost: Offsets that the round may have lost, by an operator's word; see `skip_offsets`.
        enrolment: How many of the devices asked are in it; None while it is open.
    """

    survey: Survey
    round: int
    stage: Literal["sealed", "provisional"]
    tally: AcceptedCounts
    verdicts: VerdictCounts
    lost: list[dict[str, int]] = field(default_factory=list)
    enrolment: RoundEnrolment | None = None

    @property
    def is_suppressed(self) -> bool:
        """True if there are too few devices to publish anything but the accounting."""
        return self.tally.n < max(self.survey.minimum_cohort, 1)

    def document(self, estimator: AnyEstimator | None = None) -> Document:
        """Return the release as JSON types, in the shape that `view` describes (without as_of).

        Args:
            estimator: The survey's estimator, where it is at hand: building it may cost more than using it.
        """
        survey = self.survey
        document: Document = {
            "survey": {
                "id": survey.id,
                "version": survey.version,
                "digest": survey.digest.hex(),
                "title": survey.title,
            },
            "round": self.round,
            "start": timestamp(survey.round_start_s(self.round)),
            "end": timestamp(survey.round_end_s(self.round)),
            "sealed": self.stage == "sealed",
            "cut": {str(partition): offset for partition, offset in sorted(self.tally.cut.items())},
            "accounting": self.verdicts.as_dict(),
            "lost": self.lost,
            "epsilon": {"declared": survey.epsilon, "certified": survey.channel.epsilon},
            "devices": self.tally.n,
            "level": LEVEL,
            **no_estimates(),
            "suppressed": self.is_suppressed,
            "enrolment": None,
        }
        if not self.is_suppressed:
            document.update(_estimates(survey, self.tally, estimator or survey.estimator()))
        if self.enrolment is not None:
            document["enrolment"] = self.enrolment.document(document["values"], document["categories"])
        return document


def gather(
    key: RoundKey, states: Mapping[int, PartitionState]
) -> tuple[AcceptedCounts, VerdictCounts] | None:
    """Return the counts of a round at its seals, or None while a partition has yet to apply one.

    None, too, for a round whose counts were let go of: its release lies in an archive.

    Args:
        key: The (digest, round).
        states: Every partition of the log.

    Raises:
        AccountingError: If in any partition attempts are not the sum of the verdicts, or accepted reports
            are not the number counted.
    """
    cut, columns, total = {}, [], NOTHING
    for partition, state in states.items():
        known = state.rounds.get(key)
        if known is None or known.sealed_at is None or known.is_archived:
            return None
        if not known.verdicts.holds or not state.counted(key):
            raise AccountingError(
                f"survey {key[0].hex()}, round {key[1]}, partition {partition}: attempts must be the sum of "
                f"the verdicts and accepted the number counted, got {known.verdicts}"
            )
        cut[partition] = known.sealed_at
        columns.append(known.counts)
        total += known.verdicts
    return AcceptedCounts(cut, sum_counts(columns), total.accepted), total


def release(survey: Survey, number: int, states: Mapping[int, PartitionState]) -> Release | None:
    """Return the release of a round that every partition has sealed, or None while one has not.

    Raises:
        AccountingError: If the accounting does not hold at the cut.
    """
    gathered = gather((survey.digest, number), states)
    if gathered is None:
        return None
    return Release(survey, number, "sealed", *gathered, lost_of(survey, number, states))


def same_facts(one: Document, other: Document) -> bool:
    """Return whether two releases of a round say the same, however each is rendered.

    The facts are what was counted up to which cut, and the estimates that follow. An older release may lack
    keys that came later, or state another fleet; the last digits of a float may be those of another build.
    """
    keys = ("round", "cut", "accounting", "devices", "suppressed", "epsilon")
    return (
        all(one.get(key) == other.get(key) for key in keys)
        and one["survey"]["digest"] == other["survey"]["digest"]
        and all(_same_cells(one[kind], other[kind]) for kind in ("values", "categories"))
    )


def _same_cells(one: list[Document], other: list[Document]) -> bool:
    return [cell["label"] for cell in one] == [cell["label"] for cell in other] and all(
        a["estimate"] == b["estimate"]
        or (
            None not in (a["estimate"], b["estimate"])
            and math.isclose(a["estimate"], b["estimate"], rel_tol=_SAME, abs_tol=_SAME)
        )
        for a, b in zip(one, other, strict=True)
    )


def no_estimates() -> Document:
    """Return the estimates of a round that shows none: the keys that `_estimates` fills, each empty."""
    return {
        "values": [],
        "categories": [],
        "mean": None,
        "consistent": {"values": [], "categories": []},
        "poison_margin": None,
    }


def canonical_bytes(document: Document) -> bytes:
    """Return the one encoding of a document: sorted keys, shortest exact floats, UTF-8, no spaces."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def sum_counts(columns: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the sum of counts, shape (M,), of which some may be empty: nothing was accepted there."""
    total = np.zeros(0, dtype=np.int64)
    for column in columns:
        if len(column):
            total = total + column if len(total) else column
    return total


def timestamp(seconds: int) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _estimates(survey: Survey, tally: AcceptedCounts, estimator: AnyEstimator) -> Document:
    estimate = estimator(tally.counts, tally.n)
    spans, consistent = estimate.normal_intervals(LEVEL), estimate.consistent()
    names = survey.category_names
    # A score has a mean alone: what its two inputs stand for is nobody's value.
    labels = survey.input_labels if estimate.values.size else ()
    values = _cells(labels, estimate.values, estimate.value_errors, spans.values_low, spans.values_high)
    if survey.category_of.ndim == 1:
        for cell, category in zip(values, survey.category_of.tolist(), strict=True):
            cell["category"] = names[category]
    else:  # in a cross table a cell is in a category of every attribute: its own label says which
        for cell in values:
            cell["category"] = None
    mean = None
    if estimate.mean is not None and math.isfinite(estimate.mean):
        parts = (estimate.mean, estimate.mean_error, spans.mean_low, spans.mean_high)
        mean = dict(zip(("estimate", "error", "low", "high"), map(_number, parts), strict=True))
    return {
        "values": values,
        "categories": _cells(
            names,
            estimate.categories,
            estimate.category_errors,
            spans.categories_low,
            spans.categories_high,
        ),
        "mean": mean,
        "consistent": {
            "values": [_number(value) for value in consistent.values.tolist()],
            "categories": [_number(value) for value in consistent.categories.tolist()],
        },
        "poison_margin": _poison_margin(estimate),
    }


def _poison_margin(estimate: Estimate) -> Document | None:
    """Return the forged reports that move each cell out of its interval; None where that is unknown."""
    try:
        margin = estimate.normal_poison_margin(LEVEL)
    except ParameterError:
        return None
    return {
        "values": [_number(count) for count in margin.values.tolist()],
        "categories": [_number(count) for count in margin.categories.tolist()],
    }


def _cells(labels: Iterable[str], *columns: NDArray[np.float64]) -> list[Document]:
    """Return one cell per label: estimate, error, low, high."""
    return [
        {
            "label": label,
            "estimate": _number(estimate),
            "error": _number(error),
            "low": _number(low),
            "high": _number(high),
        }
        for label, estimate, error, low, high in zip(
            labels, *(column.tolist() for column in columns), strict=True
        )
    ]


def _number(value: float | None) -> float | None:
    """Return the number, or None for what JSON has no word for: nan and infinity mean not identifiable."""
    return float(value) if value is not None and math.isfinite(value) else None
