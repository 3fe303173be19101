"""The documents of the API: JSON and CSV rendered from one snapshot, without I/O.

The snapshot's shape is that of `view`. Everything in it travels through untouched, but for one thing: a
suppressed round is stripped here once more, so that no estimate of too small a cohort leaves here, whatever a
view holds.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hubbub_aggregator.export import csv_pieces, tidy_rows
from hubbub_aggregator.release import NOTHING_SO_FAR, no_estimates

Document = Mapping[str, Any]

LIVE_VALUES = 2000
"""Most values of one round in the live document (about 300 kB); the page fetches larger rounds by name."""

LIVE_ROUNDS = 100
"""Most rounds of one survey that the live document lists (about 30 kB), the newest; /api/surveys has all."""

LIVE_ALERTS = 10
"""Most rounds with alerts of one survey in the live document, the newest (about 30 kB at most)."""

_NOT_JUDGED: Document = {"rate": None, "margin_share": None, "rounds": []}
"""The findings in a snapshot of a process that judges nothing."""

_APART = ("rounds", "alerts", "so_far", "recounts")
"""Parts of a survey in a snapshot that are no facts about it: each has addresses of its own."""

RENDERED = 64
"""Most rendered bodies that an edition keeps: those of the rounds that many readers look at."""

_CSV_COLUMNS = (
    "survey",
    "version",
    "digest",
    "round",
    "sealed",
    "devices",
    "kind",
    "label",
    "category",
    "estimate",
    "standard_error",
    "low",
    "high",
    "level",
    "bias_bound",
)


def to_json(document: object) -> bytes:
    """Return a document as one line of UTF-8 JSON, its keys sorted: equal documents are equal bytes.

    A release that was read back from the archive has its keys in another order, and keeps its entity tag.

    Raises:
        ValueError: The document holds NaN or an infinity, which JSON cannot say.
    """
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def etag(body: bytes) -> str:
    """Return the strong entity tag of a body: equal tags mean equal bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def without_suppressed(round_document: Document) -> dict[str, Any]:
    """Return the round, its estimates removed when its cohort is too small to show them."""
    document = dict(round_document)
    if document.get("suppressed"):
        document |= no_estimates()
        if "cumulative" in document:
            document |= {"cumulative": None, "quantiles": []}
        if "after_shuffling" in document:
            document["after_shuffling"] = None
        if document.get("enrolment"):
            document["enrolment"] = {**document["enrolment"], "bias": None}
    return document


def to_csv(round_document: Document) -> bytes:
    """Return the raw view of one round as CSV: a row per value, per category, and one for the mean.

    The columns are those of `/api/surveys`, which stay as they are; `/api/v1` has all of the export's.
    Frequencies are raw and unclamped, as fractions of 1; the mean is in the attribute's own unit. The bias
    bound is that of the round's enrolment, empty where none is known. A
    suppressed round has a header and no rows. A label that a spreadsheet would take for a formula gets a
    leading apostrophe.
    """
    rows = tidy_rows([without_suppressed(round_document)], views=["raw"])
    return b"".join(csv_pieces(rows, columns=_CSV_COLUMNS))


def with_standard_errors(round_document: Document) -> dict[str, Any]:
    """Return the round with `standard_error` in every cell, the name of tables, beside the older `error`."""

    def named(cell: Document) -> dict[str, Any]:
        return {**cell, "standard_error": cell.get("error")}

    found = dict(round_document)
    for kind in ("values", "categories"):
        found[kind] = [named(cell) for cell in found.get(kind) or ()]
    if found.get("mean"):
        found["mean"] = named(found["mean"])
    return found


def survey_summary(survey: Document) -> dict[str, Any]:
    """Return a survey's facts with how many rounds it has by now, in place of a line for each."""
    lines = survey["rounds"]
    return {
        **survey,
        "rounds": {
            "answered": len(lines),
            "sealed": sum(1 for line in lines if line["sealed"]),
            "newest": lines[-1]["round"] if lines else None,
        },
    }


def file_name(round_document: Document) -> str:
    """Return a name of a round's survey that is safe in a header and on every file system."""
    survey = round_document.get("survey", {})
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(survey.get("id", "survey"))).strip(".-") or "survey"
    return f"{name[:80]}-v{int(survey.get('version', 0))}"


def csv_name(round_document: Document) -> str:
    """Return the file name of a round's CSV below `/api/surveys`."""
    return f"{file_name(round_document)}-round-{int(round_document.get('round', 0))}.csv"


def table_name(round_document: Document, rounds: int) -> str:
    """Return the file name of a round's table, without its ending: `visits-v1-round-2-of-5`.

    Args:
        round_document: The round.
        rounds: How many its survey has.
    """
    return f"{file_name(round_document)}-round-{int(round_document['round'])}-of-{rounds}"


@dataclass(frozen=True)
class RenderedSnapshot:
    """A snapshot with its rendered documents, which hold while the view stays at one version.

    Attributes:
        token: Names this edition; changes with every version and every start of the process.
        snapshot: What the view gave.
    """

    token: str
    snapshot: Document
    _bodies: OrderedDict[Hashable, bytes] = field(default_factory=OrderedDict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def known_body(self, key: Hashable) -> bytes | None:
        """Return the body of a key if it is rendered already: no thread is needed for it."""
        with self._lock:
            if key in self._bodies:
                self._bodies.move_to_end(key)
            return self._bodies.get(key)

    def body(self, key: Hashable, render: Callable[[], bytes]) -> bytes:
        """Return the body of a key, rendered once; the RENDERED bodies used last are kept."""
        known = self.known_body(key)
        if known is not None:
            return known
        made = render()
        with self._lock:
            self._bodies[key] = made
            while len(self._bodies) > RENDERED:
                self._bodies.popitem(last=False)
        return made

    @cached_property
    def digests(self) -> dict[str, dict[str, Any]]:
        """Every survey's facts by digest."""
        return {str(survey["digest"]).lower(): survey for survey in self.surveys}

    @cached_property
    def rounds(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Every round by (digest, round)."""
        return {
            key: without_suppressed(document) | self._recounted(key)
            for survey in self.snapshot.get("surveys", ())
            for document in survey.get("rounds", ())
            for key in [(str(survey["digest"]).lower(), int(document["round"]))]
        }

    @cached_property
    def recounts(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """The recounts of every release that has any, by (digest, round); never one of an open round."""
        found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for survey in self.snapshot.get("surveys", ()):
            digest = str(survey["digest"]).lower()
            sealed = {int(document["round"]) for document in survey.get("rounds", ()) if document["sealed"]}
            for document in survey.get("recounts", ()):
                if document["round"] in sealed:
                    shown = without_suppressed(document)
                    shown["as_of"] = 0 if shown["suppressed"] else shown["devices"]
                    found.setdefault((digest, shown["round"]), []).append(shown)
        return found

    def _recounted(self, key: tuple[str, int]) -> dict[str, Any]:
        """Return what is said of a round's recounts beside it: whom each leaves out; nothing without any."""
        lines = [
            {**document["recount"], "devices": document["devices"], "suppressed": document["suppressed"]}
            for document in self.recounts.get(key, ())
        ]
        return {"recounts": lines} if lines else {}

    @cached_property
    def surveys(self) -> list[dict[str, Any]]:
        """Every survey's facts with a line per round and where to fetch it."""
        return [
            {
                **{key: value for key, value in survey.items() if key not in _APART},
                "rounds": [
                    _line(survey, document)
                    | self._recounted((str(survey["digest"]).lower(), int(document["round"])))
                    for document in survey.get("rounds", ())
                ],
            }
            for survey in self.snapshot.get("surveys", ())
        ]

    @cached_property
    def alerts(self) -> dict[str, dict[str, Any]]:
        """The findings about every survey's newest releases, by digest."""
        return {
            str(survey["digest"]).lower(): survey.get("alerts", _NOT_JUDGED)
            for survey in self.snapshot.get("surveys", ())
        }

    @cached_property
    def so_far(self) -> dict[str, dict[str, Any]]:
        """The bands over all rounds of every survey so far, by digest."""
        return {
            str(survey["digest"]).lower(): survey.get("so_far", NOTHING_SO_FAR)
            for survey in self.snapshot.get("surveys", ())
        }

    @cached_property
    def event(self) -> bytes:
        """The live document as an event of the stream, its id the edition's."""
        return b"id: %s\nevent: live\ndata: %s\n\n" % (self.token.encode(), self.live)

    @cached_property
    def live(self) -> bytes:
        """The page's whole content: all surveys, their newest rounds as lines, one round in full, totals.

        Beyond LIVE_ROUNDS rounds of a survey, `rounds_omitted` says how many older ones are left out. The
        round shown is the newest that has estimates; before there is one, the newest. Beyond LIVE_VALUES
        values the round comes with `values` null and `values_omitted` saying how many there are.
        """
        shown = []
        for facts, survey in zip(self.surveys, self.snapshot.get("surveys", ()), strict=True):
            digest = str(survey["digest"]).lower()
            number = _newest(survey.get("rounds", ()))
            document = None if number is None else dict(self.rounds[digest, number])
            if document is not None:
                document.pop("consistent", None)
                document.pop("poison_margin", None)
                _only_largest(document)
                if len(document.get("values") or ()) > LIVE_VALUES:
                    document["values_omitted"] = len(document["values"])
                    document["values"] = None
                    document.pop("cumulative", None)
            lines = [
                line
                for i, line in enumerate(facts["rounds"], LIVE_ROUNDS - len(facts["rounds"]))
                if i >= 0 or line["round"] == number
            ]
            omitted = len(facts["rounds"]) - len(lines)
            alerts = _latest_alerts(self.alerts[digest])
            shown.append(
                {**facts, "rounds": lines, "rounds_omitted": omitted, "shown": document, "alerts": alerts}
            )
        rest = {key: value for key, value in self.snapshot.items() if key != "surveys"}
        return to_json({**rest, "edition": self.token, "surveys": shown})


def _latest_alerts(alerts: Document) -> dict[str, Any]:
    """Return the newest findings: the last release's, and before it rounds that have alerts."""
    last = alerts["rounds"][-1:]
    raised = [found for found in alerts["rounds"][:-1] if found["alerts"]]
    return {**alerts, "rounds": [*raised[1 - LIVE_ALERTS :], *last]}


def _only_largest(document: dict[str, Any]) -> None:
    """Put the largest bias bound in the place of all of them: the page says one number."""
    enrolment = document.get("enrolment")
    if enrolment and enrolment.get("bias"):
        largest = max(bound for bounds in enrolment["bias"].values() for bound in bounds)
        document["enrolment"] = {**enrolment, "bias": {"largest": largest}}


def _line(survey: Document, document: Document) -> dict[str, Any]:
    href = f"api/surveys/{str(survey['digest']).lower()}/rounds/{int(document['round'])}"
    keys = ("round", "start", "end", "sealed", "suppressed", "devices", "as_of")
    line = {key: document[key] for key in keys if key in document}
    accepted = document.get("accounting", {}).get("accepted", 0)
    return {**line, "accepted": accepted, "json": href, "csv": href + ".csv"}


def _newest(rounds: Sequence[Document]) -> int | None:
    if not rounds:
        return None
    with_estimates = [int(document["round"]) for document in rounds if not document.get("suppressed")]
    return max(with_estimates or [int(document["round"]) for document in rounds])
