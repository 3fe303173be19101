"""From the counts of a sealed round to what is published: pure, the same bytes from the same counts.

A release holds the raw unbiased estimates with errors and intervals, a consistent view, the exact epsilon,
the cut (the seal's offset in every partition of the round), the accounting up to it, and what is lost for
good. Below the survey's minimum cohort it holds no estimates. Its `method` says how its intervals were made
(see `estimates`); a release of another is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.survey import AnyEstimator, Survey, number_of_round
from hubbub.wire import PublicCounts
from hubbub_aggregator.counting.issuers import IssuerTally
from hubbub_aggregator.counting.partition import PartitionState, RoundKey
from hubbub_aggregator.counting.skip_offsets import lost_of
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts
from hubbub_aggregator.errors import AccountingError, ArchiveError
from hubbub_aggregator.release.disclosure import AcceptedSizes, Shown, cohort_of, compared_issuers
from hubbub_aggregator.release.enrolment import RoundEnrolment
from hubbub_aggregator.release.estimates import METHOD, curve, estimates, no_curve, no_estimates
from hubbub_aggregator.release.issuers import accepted_by, issuer_lines, issuers_of
from hubbub_aggregator.release.parts import part_lines
from hubbub_aggregator.release.provisional import AcceptedCounts

LEVEL: Final = 0.95
Document: TypeAlias = dict[str, Any]

_BESIDE: Final = ("as_of", "after_shuffling", "recounts")
"""The keys that the page is told beside those of a release."""

_SAME: Final = 1e-9
"""Estimates closer than this are the same: one report among 10^8 moves an estimate by more."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The facts that may be published about one round.

    Attributes:
        survey: The survey.
        round: The round's index.
        stage: "sealed" for a release, which is final; "provisional" for a view of an open round.
        tally: The counts that the estimates come from, and their cut.
        verdicts: What became of every attempt that was read.
        lost: Offsets that the round may have lost, by an operator's word; see `skip_offsets`.
        enrolment: How many of the devices asked are in it; None while it is open.
        issuers: The tallies of the issuers that vouched for its reports, by name.
        compared: Those of them whose reports are compared with all others'; see `disclosure`.
    """

    survey: Survey
    round: int
    stage: Literal["sealed", "provisional"]
    tally: AcceptedCounts
    verdicts: VerdictCounts
    lost: list[dict[str, int]] = field(default_factory=list)
    enrolment: RoundEnrolment | None = None
    issuers: Mapping[str, IssuerTally] = field(default_factory=dict)
    compared: frozenset[str] = frozenset()

    @property
    def sealed(self) -> AcceptedSizes:
        """The sizes of its reports."""
        return AcceptedSizes(self.tally.n, self.tally.cut, accepted_by(self.issuers))

    def beside(self, shown: Shown) -> Self:
        """Return this with the comparisons that may stand beside what was shown of the round."""
        cohort = cohort_of(self.survey)
        return replace(self, compared=compared_issuers(shown, self.sealed, cohort=cohort))

    @property
    def is_suppressed(self) -> bool:
        """True if there are too few devices to publish anything but the accounting."""
        return self.tally.n < cohort_of(self.survey)

    def public_counts(self) -> PublicCounts | None:
        """Return the counts that the numbers are functions of; None of a round that is open or suppressed."""
        if self.stage != "sealed" or self.is_suppressed:
            return None
        kind, cells = self.survey.channel.public_counts(self.tally.counts, self.survey.category_of)
        return PublicCounts(self.survey.digest, self.round, kind, self.tally.n, cells)

    def document(self, estimator: AnyEstimator | None = None) -> Document:
        """Return the release as JSON types, in the shape that `view` describes (without as_of).

        Args:
            estimator: The survey's estimator, where it is at hand: building it may cost more than using it.
        """
        survey, public = self.survey, self.public_counts()
        document: Document = {
            "method": METHOD,
            "survey": {
                "id": survey.id,
                "version": survey.version,
                "digest": survey.digest.hex(),
                "title": survey.title,
            },
            "round": number_of_round(self.round),
            "start": timestamp(survey.round_start_s(self.round)),
            "end": timestamp(survey.round_end_s(self.round)),
            "sealed": self.stage == "sealed",
            "cut": {str(partition): offset for partition, offset in sorted(self.tally.cut.items())},
            "accounting": self.verdicts.as_dict(),
            "lost": self.lost,
            "epsilon": {"declared": survey.epsilon, "certified": survey.channel.epsilon},
            "devices": self.tally.n,
            "counts": None if public is None else public.statement(),
            "level": LEVEL,
            **no_estimates(),
            **no_curve(survey),
            "suppressed": self.is_suppressed,
            "enrolment": None,
        }
        if self.issuers:
            # Too few devices: then nothing is said of what they sent.
            tally = None if self.is_suppressed else self.tally
            document["issuers"] = issuer_lines(self.issuers, tally, self.compared)
        if survey.form.samples_parts:
            document["parts"] = part_lines(survey, None if self.is_suppressed else self.tally.counts)
        if not self.is_suppressed:
            estimate = (estimator or survey.estimator())(self.tally.counts, self.tally.n)
            asked = None if self.enrolment is None else self.enrolment.asked
            document.update(curve(survey, estimate, LEVEL, asked=asked))
            document.update(estimates(survey, estimate, level=LEVEL, asked=asked))
        if self.enrolment is not None:
            document["enrolment"] = self.enrolment.document(document["values"], document["categories"])
        return document


def gather(
    key: RoundKey, states: Mapping[int, PartitionState]
) -> tuple[AcceptedCounts, VerdictCounts] | None:
    """Return the counts of a round at its seals, or None while a partition has yet to apply one.

    It is None, too, for a round whose counts were freed: its release lies in an archive.

    Args:
        key: The (digest, round).
        states: Every partition that the round's reports lie in.

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
                f"survey {key[0].hex()}, round {number_of_round(key[1])}, partition {partition}: attempts "
                f"must be the sum of the verdicts and accepted the number counted, got {known.verdicts}"
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
    issuers = issuers_of(state.rounds[survey.digest, number] for state in states.values())
    return Release(survey, number, "sealed", *gathered, lost_of(survey, number, states), issuers=issuers)


def require_method(document: Document) -> None:
    """Raise where a release's method is not METHOD.

    Raises:
        ParameterError: If it is another, or the release states none.
    """
    if document.get("method") != METHOD:
        raise ParameterError(f"a release's method must be {METHOD}, got {document.get('method')!r}")


def archived_release(key: RoundKey, data: bytes) -> Document:
    """Return a release as an archive keeps it.

    Raises:
        ArchiveError: If its method is not METHOD.
    """
    document: Document = json.loads(data)
    try:
        require_method(document)
    except ParameterError as error:
        raise ArchiveError(f"survey {key[0].hex()}, round {number_of_round(key[1])}: {error}") from error
    return document


def same_facts(one: Document, other: Document) -> bool:
    """Return whether two releases of a round say the same, however each is rendered.

    The facts are the cut, the counts up to it, and the estimates that follow. An archived release
    may state another fleet; the last digits of a float may be those of another build.
    """
    keys = ("round", "cut", "accounting", "devices", "counts", "suppressed", "epsilon")
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


def canonical_bytes(document: Document) -> bytes:
    """Return the one encoding of a document: sorted keys, shortest exact floats, UTF-8, no spaces."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def sealed_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a release's bytes, without what the page is told beside it."""
    return canonical_bytes({name: part for name, part in document.items() if name not in _BESIDE})


def sealed_hash(document: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a release's bytes, 32 bytes: the log has it."""
    return hashlib.sha256(sealed_bytes(document)).digest()


def sum_counts(columns: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the sum of counts, shape (bins,), of which some may be empty: nothing was accepted there."""
    total = np.zeros(0, dtype=np.int64)
    for column in columns:
        if len(column):
            total = total + column if len(total) else column
    return total


def timestamp(seconds: int) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
