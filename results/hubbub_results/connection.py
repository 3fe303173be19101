"""A connection to a server, its surveys and their rounds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from hubbub.html_table import html_table
from hubbub_results.errors import reading
from hubbub_results.tables import Comparison, Kind, Table, comparison_of
from hubbub_results.transport import PlainHttp, ResultsTransport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


_SHOWN: Final = 40
"""Rows of a round that a notebook shows."""


@dataclass(frozen=True, slots=True)
class RoundResults:
    """A round as it was read: sealed, which is final, or still open.

    Attributes:
        document: All that the server says of it; see docs/api.md.
        table: Its estimates, a row per view and cell.
    """

    document: Mapping[str, Any]
    table: Table

    def __post_init__(self) -> None:
        with reading("a round"):
            _ = (
                self.round,
                self.title,
                self.digest,
                self.devices,
                self.is_sealed,
                self.is_suppressed,
                self.mean,
            )

    @property
    def round(self) -> int:
        """The round's number, from 1."""
        return int(self.document["round"])

    @property
    def title(self) -> str:
        """The survey's title."""
        return str(self.document["survey"]["title"])

    @property
    def digest(self) -> str:
        """The survey's digest."""
        return str(self.document["survey"]["digest"])

    @property
    def devices(self) -> int:
        """Reports behind the estimates."""
        return int(self.document["devices"])

    @property
    def is_sealed(self) -> bool:
        """True if it is final."""
        return bool(self.document["sealed"])

    @property
    def is_suppressed(self) -> bool:
        """True if it has too few devices for estimates: the table is empty."""
        return bool(self.document["suppressed"])

    @property
    def mean(self) -> Mapping[str, Any] | None:
        """The mean with its interval; None where the survey has none."""
        found: Mapping[str, Any] | None = self.document["mean"]
        return found

    @property
    def effective_sample_size(self) -> Mapping[str, float | None]:
        """The devices that would know values, categories, cumulative as well without noise; None: unknown."""
        found: Mapping[str, float | None] = self.document.get("effective_sample_size", {})
        return found

    @property
    def after_shuffling(self) -> Mapping[str, Any] | None:
        """The epsilon for readers of this release alone, with its assumption; None where nothing is stated.

        A statement and no promise: the members are delta, reports and epsilon, watched_reports and
        watched_epsilon (for readers who watched the round while it was open), and assumption.
        """
        found: Mapping[str, Any] | None = self.document.get("after_shuffling")
        return found

    @property
    def absent(self) -> float | None:
        """The share of the devices asked that is not in the round; None where nobody stated it."""
        found: float | None = (self.document.get("enrolment") or {}).get("absent")
        return found

    @property
    def unsent(self) -> str:
        """A sentence on how far items' true shares may be above their estimates; "" where nothing is asked.

        Of a survey of sets that asks who has more items than count: such devices sent some of them alone.
        """
        values: Sequence[Mapping[str, Any]] = self.document["values"]
        row: Mapping[str, Any] = values[-2] if len(values) > 2 else {"label": ""}
        if self.document["categories"] or not re.fullmatch("more than [0-9]+", row["label"]):
            return ""
        most, noisy = (100.0 * max(row[name] or 0.0, 0.0) for name in ("estimate", "high"))
        return (
            f"Devices with {row['label']} items sent some of them: an item's true share is between its "
            f"estimate and {most:.1f} points more ({noisy:.1f} with noise)."
        )

    def frame(self) -> DataFrame:
        """Return the table as a frame of pandas; see `Table.frame`."""
        return self.table.frame()

    def plot(self, axes: Axes | None = None) -> Axes:
        """Return axes with the estimates of values and their intervals; see `Table.plot`."""
        kinds = {row["kind"] for row in self.table}
        return (self.table.where(kind="value") if "value" in kinds else self.table).plot(axes)

    def __repr__(self) -> str:
        stage = "sealed" if self.is_sealed else "open"
        return f"<Release of {self.title!r}, round={self.round}, {stage}, {self.devices} devices>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the first estimates with their intervals."""
        raw = [row for row in self.table if row["view"] == "raw"]
        rows = [
            [
                str(row["kind"]),
                str(row["label"]),
                *(_digits(row[name]) for name in ("estimate", "low", "high")),
            ]
            for row in raw[:_SHOWN]
        ]
        more = [(f"{len(raw) - _SHOWN} more", "", "", "", "")] if len(raw) > _SHOWN else []
        more += [(self.unsent, "", "", "", "")] if self.unsent else []
        return html_table(
            (self.title, f"{self.devices:,} devices", "estimate", "low", "high"), [*rows, *more]
        )


def _digits(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"


TOKEN_VARIABLE: Final = "HUBBUB_READ_TOKEN"  # noqa: S105 - the variable's name
TIMEOUT_S: Final = 30.0


def connect(
    url: str,
    *,
    token: str | None = None,
    timeout_s: float = TIMEOUT_S,
    plain_http: PlainHttp = "local",
) -> ResultsConnection:
    """Return a connection to a node or a dashboard; nothing is asked before a survey is.

    Args:
        url: The server's address, such as "https://results.example.org".
        token: The read token of a server that asks for one; by default the value of HUBBUB_READ_TOKEN.
        timeout_s: Seconds in which a connection, and each piece of an answer, must come.
        plain_http: Where a token may go by http, which everybody on the way reads: "local", to this machine
            alone, or "anywhere", such as in a network of your own.

    Raises:
        ValueError: If the address is no http or https address, or would show a token to everybody.

    Examples:
        >>> connect("http://127.0.0.1:8780")
        <Connection to http://127.0.0.1:8780>
    """
    known = token or os.environ.get(TOKEN_VARIABLE) or None
    return ResultsConnection(ResultsTransport(url, token=known, timeout_s=timeout_s, plain_http=plain_http))


class ResultsConnection:
    """A reader of one server; answers are kept and fetched again only if they changed.

    Every method raises a `ResultsError` if the server cannot be reached, refuses or answers nonsense.

    Args:
        transport: The way to the server.
    """

    def __init__(self, transport: ResultsTransport) -> None:
        self._transport = transport

    def surveys(self) -> list[SurveyResults]:
        """Return every survey, by id, version and digest."""
        return [
            SurveyResults(facts, self._transport) for facts in self._transport.pages("surveys", "surveys")
        ]

    def survey(self, name: str) -> SurveyResults:
        """Return one survey.

        Args:
            name: Its digest, or its id for the newest version.

        Raises:
            NotFoundError: If there is none.
        """
        return SurveyResults(self._transport.get("surveys", name), self._transport)

    def __repr__(self) -> str:
        return f"<Connection to {self._transport.url}>"


@dataclass(frozen=True, slots=True)
class SurveyResults:
    """A survey as the server knew it when it was read; its rounds are read anew at every call.

    Attributes:
        facts: All that the server says of it; see docs/api.md.
    """

    facts: Mapping[str, Any]
    _transport: ResultsTransport = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        with reading("a survey"):
            _ = self.id, self.version, self.digest, self.title, self.epsilon

    @property
    def id(self) -> str:
        """The survey's id."""
        return str(self.facts["id"])

    @property
    def version(self) -> int:
        """The survey's version."""
        return int(self.facts["version"])

    @property
    def digest(self) -> str:
        """The survey's digest, 32 hexadecimal digits."""
        return str(self.facts["digest"])

    @property
    def title(self) -> str:
        """The question in words."""
        return str(self.facts["title"])

    @property
    def epsilon(self) -> float:
        """The certified epsilon of one report."""
        return float(self.facts["epsilon"]["certified"])

    def rounds(self) -> list[dict[str, Any]]:
        """Return a line for every round that has reports: round, start, end, sealed, suppressed, devices."""
        found = list(self._transport.pages("rounds", "surveys", self.digest, "rounds"))
        with reading("rounds"):
            _ = [(int(line["round"]), line["sealed"]) for line in found]
        return found

    def release(self, round: int | Literal["latest"] = "latest") -> RoundResults:  # noqa: A002 - the API's word
        """Return one round by its number, from 1; by default the newest release.

        Raises:
            NotFoundError: If there is none.
        """
        path = ("surveys", self.digest, "rounds")
        document = self._transport.get(*path, str(round))
        with reading("a round"):
            number = int(document["round"])
        rows = self._transport.rows(*path, f"{number}.ndjson")

        def ask(**asked: str | float) -> list[dict[str, Any]]:
            found = self._transport.get(*path, str(number), "statistics", **asked)
            with reading("statistics"):
                return list(found["rows"])

        return RoundResults(document, Table(rows, f"{self.title}: round {number}", ask))

    def document(self, round: int) -> dict[str, Any]:  # noqa: A002 - see above
        """Return one round whole, as the server gives it.

        Raises:
            NotFoundError: If there is none.
        """
        return self._transport.get("surveys", self.digest, "rounds", str(round))

    def counts(self, round: int) -> bytes:  # noqa: A002 - see above
        """Return the public counts of one release, whose SHA-256 it states; `hubbub verify` reads them.

        Raises:
            NotFoundError: If there is no such round, it is open, or it has too few devices for estimates.
        """
        return self._transport.blob("surveys", self.digest, "rounds", str(round), "counts")

    def sealed(self, round: int) -> bytes:  # noqa: A002 - see above
        """Return the bytes of one release, whose SHA-256 the server's log has.

        Raises:
            NotFoundError: If there is no such round, or it is open.
        """
        return self._transport.blob("surveys", self.digest, "rounds", str(round), "sealed")

    def canonical(self) -> bytes:
        """Return the survey's canonical bytes, of which its digest is a hash."""
        return self._transport.blob("surveys", self.digest, "canonical")

    def recounts(self, round: int | Literal["latest"] = "latest") -> list[dict[str, Any]]:  # noqa: A002 - see above
        """Return the recounts beside one release, whole documents; see docs/api.md.

        Each says in `recount` which issuers of tokens it leaves out. None takes the release's place, and
        mostly there is none.

        Raises:
            NotFoundError: If there is no such round.
        """
        found = self._transport.get("surveys", self.digest, "rounds", str(round), "recounts")
        with reading("recounts"):
            return list(found["recounts"])

    def table(self, *, stage: Literal["sealed", "all"] = "sealed") -> Table:
        """Return the estimates of all releases; of open rounds, too, if `stage` is "all"."""
        rows = self._transport.rows("surveys", self.digest, "releases.ndjson", stage=stage)
        return Table(rows, self.title)

    def history(self, labels: Sequence[str] | None = None, *, kind: Kind = "value") -> Table:
        """Return the raw estimates of some cells over all releases, without the trend of the API's history.

        Args:
            labels: The cells' labels; all of the kind if absent.
            kind: Values, categories, or the mean.

        Raises:
            NotFoundError: If there is no such cell.
        """
        found = self.table().where(kind=kind, view="raw")
        if labels is None:
            return found
        rows = [row for label in labels for row in found.where(label=label)]
        return Table(rows, found.title)

    def so_far(self, *, kind: Literal["value", "category", "mean"] = "value") -> Table:
        """Return the estimates of all reports so far, after each of the newest releases.

        A row has round, devices, kind, label, estimate, and always_low and always_high, which hold at every
        look. Memoised answers have none.

        Args:
            kind: Values, categories, or the mean.

        Raises:
            NotFoundError: If there is none of the kind.
        """
        document = self._transport.get("surveys", self.digest, "history")
        names = "estimate", "always_low", "always_high"
        with reading("a history"):
            found = document["so_far"]
            cells = {"value": found["values"], "category": found["categories"], "mean": [found["mean"]]}
            rows = [
                {"round": number, "devices": devices, "kind": kind, "label": cell.get("label")}
                | dict(zip(names, ends, strict=True))
                for cell in cells[kind]
                if cell is not None
                for number, devices, *ends in zip(
                    *(found["rounds"], found["devices"], cell["estimate"], cell["low"], cell["high"]),
                    strict=True,
                )
            ]
        return Table(rows, f"{self.title}: all rounds so far").where(kind=kind)

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts of the newest releases, a row each, the oldest first; see docs/poisoning.md.

        A row has round, devices and since (the round before), and kind, family, label, statistic, threshold
        and rate of the alert; of a change also window and against, how many rounds were pooled on both sides.
        """
        found = self._transport.get("surveys", self.digest, "alerts")
        with reading("alerts"):
            return [
                {name: line[name] for name in ("round", "devices", "since")} | alert
                for line in found["rounds"]
                for alert in line["alerts"]
            ]

    def compare(self, before: int, after: int, *, earlier: SurveyResults | None = None) -> Comparison:
        """Return the change from one round to another, with intervals that hold; see `Comparison`.

        Args:
            before: The number of the earlier round, from 1.
            after: That of the later one, of this survey.
            earlier: The survey of the earlier round, if it is another one that reads the same attributes.

        Raises:
            NotFoundError: If there is no such round.
            NotComparableError: If the difference would mean nothing, such as where one has no estimates.
        """
        origin = {} if earlier is None else {"from": earlier.digest}
        document = self._transport.get("surveys", self.digest, "change", before=before, after=after, **origin)
        since = "" if earlier is None else f" of {earlier.title}"
        with reading("a change"):
            return comparison_of(document, f"{self.title}: round {before}{since} to {after}")

    def __repr__(self) -> str:
        return f"<Survey {self.id} version {self.version}: {self.title!r}>"
