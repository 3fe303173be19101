"""The snapshot that the page and the JSON API show, replaced as a whole.

The snapshot is a plain dictionary of JSON types, never changed after it was published. Its exact shape::

    {
      "log": "6f1c...",                          identity of the log behind the numbers
      "surveys": [                               ordered by id, version, digest
        {
          "id": "outpatient-visits", "version": 1, "title": "...",
          "digest": "32 hex digits",
          "attributes": [{"id": "visits", "kind": "static"}],    several: a cross table or a score of them
          "epsilon": {"declared": 2.0, "certified": 1.9999999999},
          "minimum_cohort": 100, "planned_devices": 20000,
          "step": 100,                               the fewest reports between two views of an open round
          "table": {"attributes": [{"id", "readings", "numbers"}], "tables": [[0, 1]], "noise": {...}},
                                                     only of a cross table: what `table_statistics` needs;
                                                     of a bundle with "channel" for "noise"
          "quota": 60000,                            the most reports that a round takes; null: no limit
          "schedule": {"start": "2026-01-01T00:00:00Z", "round_s": 86400, "rounds": 1,
                       "lateness_s": 3600},      how long after its end reports of a round are taken
          "rounds": [ROUND, ...],                ascending; rounds that anything was accepted of
          "alerts": {
            "rate": 0.001,                       probability of a false alarm in one round, all cells together
            "margin_share": 0.001,               a poisoning margin below it is an alert
            "rounds": [JUDGED, ...]              ascending; the newest releases with estimates
          },
          "so_far": {                            all rounds of fresh answers so far, after each of the newest:
            "rounds": [4, 5],                    bands that hold at every look, of everybody who could
            "devices": [2000, 2400],             have been asked (see `release/watched.py`)
            "values": [{"label": "0", "estimate": [0.3, 0.31], "low": [...], "high": [...]}, ...],
            "categories": [...], "mean": {...} or null
          },
          "recounts": [RECOUNT, ...]             only where an operator published any: releases counted again
                                                 without issuers, ROUNDs with ``{"recount":
                                                 {"without_issuers": ["..."]}}``, no ``as_of``
        }, ...
      ],
      "accounting": ACCOUNTING,                  summed over everything, reports after a seal included
      "unknown": 0,                              reports whose digest no survey record announced
      "dead": 0,                                 log records that could not be decoded
      "stale": {"since": "2026-01-01T00:00:00Z", "why": "the counts are out of reach"},
                                                 only while the numbers are not followed
      "unsealed": "the clock must not ...",      only while no round is sealed: why
      "partitions": [{"partition": 0, "offset": 17, "end": 17, "lag": 0}, ...]
                                                 next offset to apply, the log's end, end - offset
    }

JUDGED is what `release/judgement.py` finds: ``{"round", "devices", "since", "judged", "margin", "alerts",
"omitted"}``.

ACCOUNTING is ``{"attempts", "accepted", "duplicate", "early", "late", "invalid", "over_quota"}``, integers;
attempts is the sum of the other six.

ROUND has the keys of a release, sealed or not, and ``as_of``::

    {
      "survey": {"id", "version", "digest", "title"},
      "round": 1, "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z",
      "sealed": false,                           true: the archived release, final
      "as_of": 400,                              accepted reports behind the estimates; 0 while suppressed
      "cut": {"0": 12, "1": 11},                 partition -> offset up to which the estimates read;
                                                 of a sealed round: the offset of its seal
      "accounting": ACCOUNTING,                  sealed: at the cut; open: now (it moves between steps)
      "lost": [{"partition": 0, "from": 3, "until": 9}, ...],
                                                 offsets given up by an operator in which reports of this
                                                 round may have lain; empty: nothing is missing
      "epsilon": {"declared": 2.0, "certified": 1.9999999999},
      "devices": 400,                            n of the estimates (equal to as_of)
      "counts": {"kind": "bins", "cells": 12, "sha256": "..."} or null,
                                                 the public counts that the numbers are functions of; null:
                                                 open, or suppressed
      "method": 10,                              how intervals are made (see `release/estimates.py`)
      "level": 0.95,
      "values":     [{"label": "0", "category": "none" or null,
                      "estimate": 0.31, "error": 0.01, "low": 0.29, "high": 0.33,
                      "simultaneous_low": 0.28, "simultaneous_high": 0.35}, ...],
                                                 low, high: of this cell alone, within 0 to 1;
                                                 simultaneous: of all values at once; of the devices counted.
                                                 The same with crowd_ before it, and crowd_error: of everybody
                                                 who could have been asked, if those who answered are like a
                                                 random part of them. While a round is open
                                                 always_low, always_high and always_simultaneous_low, _high:
                                                 of the devices so far, holding at every look
      "categories": [{"label": "none", ...}, ...],   the same keys but category; all categories at once. In a
                                                 tree of labels those of all levels, coarsest first, with
                                                 category, what they are in, and tree_level, as values have it
      "mean": {"estimate": 2.8, "error": 0.1, "low": 2.6, "high": 3.0} or null,
      "cumulative": {                            only of a survey asked for its curve: the shares, of
        "level": 0.95,                           those with a value, that have at most each point, which need
        "points": [0.0, 1.0, ...],               not rise; standard errors; and a band that rises, is within
        "shares": [0.3, ...], "errors": [...],   0 to 1, and covers the whole curve with the level
        "low": [...], "high": [...]              The same with crowd_: of everybody who could have been asked
      } or null,                                 null: suppressed, nobody has a value, over 2,048 inputs
      "quantiles": [{"share": 0.25, "estimate": 3.0, "low": 2.0, "high": 5.0,
                     "crowd_low": 2.0, "crowd_high": 5.0}, ...],
                                                 with "cumulative": the quartiles, all of whose intervals
                                                 hold at once with the level
      "consistent": {"values": [0.31, ...], "categories": [0.31, ...]},
      "poison_margin": {"values": [67.0, null, ...], "categories": [...]} or null,
                                                 forged reports that would move a cell by its margin of error;
                                                 null: no number is enough, or not identifiable
      "enrolment": {                             null while the round is open
        "enrolled": 400,                         most reports in one round so far
        "asked": 500, "budget": 4.0,             devices it was offered to and their lifetime epsilon, as the
                                                 operator states them; null: not stated
        "absent": 0.2,                           share of those asked that is not in this round; null: unknown
        "bias": {"values": [0.02, ...], "categories": [...]} or null
                                                 by how much at most a cell's share among all asked differs
                                                 from that among those counted, if those absent were refused
                                                 within their budgets (see `enrolment`)
      } or null,
      "issuers": [{"issuer": "tokens.example.org", "accepted": 200, "duplicate": 1, "over_quota": 0,
                   "output": 3, "share": 0.2, "others_share": 0.1, "p_value": 0.3}, ...],
                                                 only where reports came with tokens; the last four: the
                                                 output in which the issuer's reports differ most from the
                                                 others' (see `judgement`); null while the round is open, and
                                                 where they could single out fewer reports than the minimum
                                                 cohort (see `release/disclosure.py`)
      "parts": [{"attributes": ["age", "sex"], "reports": 90, "expected": 89.0, "p_value": 0.5}, ..],
                                                 only of a bundle: reports about each part, what the public
                                                 coin gives it, and the chance of so many or more
      "after_shuffling": {                       no part of a release (see `release/after_shuffling`):
        "delta": 1e-06, "assumption": "...",     what must hold
        "reports": 20000, "epsilon": 0.04,       for readers of the release alone
        "watched_reports": 100, "watched_epsilon": 0.9
                                                 for readers who watched the round while it was open
      } or null,                                 null: nothing is stated
      "suppressed": false                        true: fewer than the minimum cohort; values, categories and
                                                 consistent are empty, mean is null
    }

Estimates are raw and unbiased: they may be negative or above one; ``consistent`` is a view beside them. A
number that is not identifiable is null. The last value (and its category) is "missing". Labels come from
survey authors: escape them.

The estimates of an open round move in steps of at least the minimum cohort, and no combination of what is
published of a round depends on fewer reports (see ``release/disclosure.py``, and ``release/provisional.py``
for what this does not cover).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from hubbub.survey import Survey, step_of
from hubbub_aggregator.counting.partition import PartitionState, RoundKey
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts
from hubbub_aggregator.release.disclosure import without_small
from hubbub_aggregator.release.round_release import Document, timestamp
from hubbub_aggregator.web.table_statistics import table_facts


class View(Protocol):
    """A source of snapshots for readers.

    Both methods are cheap, never block, and may be called from any thread.
    """

    def snapshot(self) -> dict[str, Any]:
        """Return the last published snapshot, in the shape of this module's docstring; do not change it."""
        ...

    def version(self) -> int:
        """Return a number that grows whenever the snapshot changes, and only then."""
        ...

    def saved(self) -> Mapping[int, float]:
        """Return the time at which a save was last seen, by partition, seconds since 1970."""
        ...

    def blobs(self) -> Mapping[RoundKey, bytes]:
        """Return the bytes of public counts by (digest, round), and of surveys by (digest, SURVEY_ROW)."""
        ...


class LiveView:
    """The view that a worker or a publisher publishes to: the snapshot now, and its version.

    Args:
        clock: Seconds since 1970, for the times at which saves were seen.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._saved: dict[int, float] = {}
        self._published: tuple[int, dict[str, Any]] = (
            0,
            {
                "log": "",
                "surveys": [],
                "accounting": NOTHING.as_dict(),
                "unknown": 0,
                "dead": 0,
                "partitions": [],
            },
        )

        self._blobs: Mapping[RoundKey, bytes] = {}
        self._unsealed: str | None = None
        self._recounts: Mapping[str, list[Document]] = {}
        # The counting publishes in one thread, and the look for recounts in another.
        self._publishing = threading.RLock()

    @property
    def recounts(self) -> Mapping[str, list[Document]]:
        """The recounts beside releases, by the digest of their survey in hexadecimal."""
        return self._recounts

    @recounts.setter
    def recounts(self, found: Mapping[str, list[Document]]) -> None:
        with self._publishing:
            self._recounts = {
                digest: [without_small(each, None) for each in recounts] for digest, recounts in found.items()
            }
            self.publish(self._published[1])

    @property
    def unsealed(self) -> str | None:
        """The reason why no round is sealed just now, without names or addresses; None while rounds are."""
        return self._unsealed

    @unsealed.setter
    def unsealed(self, why: str | None) -> None:
        with self._publishing:
            self._unsealed = why
            self.publish({key: found for key, found in self._published[1].items() if key != "unsealed"})

    def snapshot(self) -> dict[str, Any]:
        """Return the last published snapshot; do not change it."""
        return self._published[1]

    def version(self) -> int:
        """Return a number that grows whenever the snapshot changes, and only then."""
        return self._published[0]

    def saved(self) -> Mapping[int, float]:
        """Return the time at which a save was last seen, by partition, seconds since 1970."""
        return self._saved

    def blobs(self) -> Mapping[RoundKey, bytes]:
        """Return the bytes of public counts by (digest, round), and of surveys by (digest, SURVEY_ROW)."""
        return self._blobs

    def show_blobs(self, blobs: Mapping[RoundKey, bytes]) -> None:
        """Replace the bytes that lie beside the snapshot, before it is published."""
        self._blobs = blobs

    @property
    def stands_still(self) -> str | None:
        """The reason why nothing moves, None while it does."""
        stale = self._published[1].get("stale")
        return None if stale is None else str(stale["why"])

    def stand_still(self, *, since: str, why: str) -> None:
        """Mark the numbers as stale until something is published again.

        Args:
            since: When that began, ISO 8601.
            why: A sentence without names or addresses.
        """
        with self._publishing:
            self.publish(self._published[1] | {"stale": {"since": since, "why": why}})

    def publish(self, snapshot: dict[str, Any]) -> None:
        """Replace the snapshot; readers see the old one or the new one whole."""
        with self._publishing:
            version, known = self._published
            if self._unsealed is not None:
                snapshot = snapshot | {"unsealed": self._unsealed}
            snapshot = _with_recounts(snapshot, self._recounts)
            if snapshot != known:
                self._saved = self._saved | dict.fromkeys(_moved(known, snapshot), self._clock())
                self._published = (version + 1, snapshot)


def _with_recounts(snapshot: dict[str, Any], recounts: Mapping[str, list[Document]]) -> dict[str, Any]:
    """Return the snapshot with these recounts beside its surveys, and no others."""
    if not recounts and not any("recounts" in survey for survey in snapshot["surveys"]):
        return snapshot
    surveys = [
        {key: value for key, value in survey.items() if key != "recounts"}
        | ({"recounts": recounts[survey["digest"]]} if survey["digest"] in recounts else {})
        for survey in snapshot["surveys"]
    ]
    return snapshot | {"surveys": surveys}


def _moved(before: dict[str, Any], after: dict[str, Any]) -> list[int]:
    """Return the partitions whose offset is another one than before; new ones were not seen to move."""
    offsets = {each["partition"]: each["offset"] for each in before.get("partitions", ())}
    return [
        each["partition"]
        for each in after.get("partitions", ())
        if offsets.get(each["partition"], each["offset"]) != each["offset"]
    ]


def total_of(states: Iterable[PartitionState]) -> VerdictCounts:
    """Return the accounting of everything, reports after a seal included."""
    total = NOTHING
    for state in states:
        total = sum(
            (known.verdicts + known.after_seal for known in state.rounds.values()), total + state.past
        )
    return total


def compose(
    log_identity: str,
    states: Mapping[int, PartitionState],
    ends: Mapping[int, int],
    rounds: Mapping[RoundKey, Document],
    total: VerdictCounts,
    *,
    alerts: Mapping[bytes, dict[str, Any]],
    so_far: Mapping[bytes, Document],
) -> dict[str, Any]:
    """Return the snapshot of some partitions' states.

    Args:
        log_identity: Which log.
        states: By partition.
        ends: The log's end by partition.
        rounds: The ROUND documents to show.
        total: What `total_of` gives for the states.
        alerts: Of every survey, by digest, as `SurveyAlerts` gives them.
        so_far: Of every survey, by digest, as `SoFar` gives it.
    """
    shown: dict[bytes, list[Document]] = {}
    for digest, number in sorted(rounds):
        shown.setdefault(digest, []).append(rounds[digest, number])
    surveys = {digest: survey for state in states.values() for digest, survey in state.surveys.items()}
    ordered = sorted(surveys.values(), key=lambda survey: (survey.id, survey.version, survey.digest))
    return {
        "log": log_identity,
        "surveys": [
            _describe(survey, shown.get(survey.digest, []))
            | {"alerts": alerts[survey.digest], "so_far": so_far[survey.digest]}
            for survey in ordered
        ],
        "accounting": total.as_dict(),
        "unknown": sum(state.unknown for state in states.values()),
        "dead": sum(state.dead for state in states.values()),
        "partitions": [
            {
                "partition": partition,
                "offset": state.offset,
                "end": ends[partition],
                "lag": ends[partition] - state.offset,
            }
            for partition, state in sorted(states.items())
        ],
    }


def _describe(survey: Survey, rounds: list[Document]) -> dict[str, Any]:
    table = table_facts(survey)
    return {
        **({} if table is None else {"table": table}),
        "id": survey.id,
        "version": survey.version,
        "title": survey.title,
        "digest": survey.digest.hex(),
        "attributes": [{"id": attribute.id, "kind": attribute.kind} for attribute in survey.attributes],
        "epsilon": {"declared": survey.epsilon, "certified": survey.channel.epsilon},
        "minimum_cohort": survey.minimum_cohort,
        "planned_devices": survey.planned_devices,
        "step": step_of(survey),
        "quota": survey.quota,
        "schedule": {
            "start": timestamp(survey.start_s),
            "round_s": survey.round_s,
            "rounds": survey.rounds,
            "rotation": survey.rotation,
            "lateness_s": survey.lateness_s,
        },
        "rounds": rounds,
    }
