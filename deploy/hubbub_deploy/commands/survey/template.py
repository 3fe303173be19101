"""A survey file to begin with: every key with a word on it, and it compiles as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from hubbub import Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The draft of a new survey.

    Attributes:
        id: Its id.
        title: What people read.
        epsilon: Of one report.
        attribute: Id of the attribute that it asks for.
        kind: "static" or "evolving".
        labels: The attribute's labels, for a choice; () for a number.
        low: Its smallest value.
        high: Its largest.
        type: "label", "integer" or "number".
        devices: How many are expected to answer.
        rounds: How many rounds.
        start_s: When the first begins, seconds since 1970.
    """

    id: str
    title: str
    epsilon: float
    attribute: str
    kind: str
    type: str
    labels: tuple[str, ...] = ()
    low: float = 0
    high: float = 100
    devices: int = 10_000
    rounds: int = 1
    start_s: int


def template(draft: Draft) -> str:
    """Return the text of a survey file.

    Raises:
        SurveyError: What was asked for is no valid survey; the message says which key and why.
    """
    start = datetime.fromtimestamp(draft.start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [
        "# Every key: docs/surveys.md. Whether it compiles: hubbub survey check FILE.",
        f"id = {_text(draft.id)}",
        _line("version = 1", "raise it with every change: devices and servers agree on exact terms"),
        f"title = {_text(draft.title)}",
        _line(f"epsilon = {draft.epsilon!r}", "of one report, at most: less is more private, and less exact"),
        _line("minimum_cohort = 100", "a round with fewer accepted reports releases nothing"),
        _line(f"planned_devices = {draft.devices}", "what the design counts on"),
        "",
        "[schedule]",
        f"start = {start}",
        _line('round = "1d"', '"90s", "15m", "24h", "7d"'),
        _line(f"rounds = {draft.rounds}", "a device that joins sets aside the budget of all of them"),
        _line('lateness = "1h"', "how long after its round a report is still taken"),
        _line('skew = "5m"', "how far a device's clock may be ahead"),
        "",
        _line("[attribute]", "exactly as the host application registers it on the device"),
        f"id = {_text(draft.attribute)}",
        _line(f"kind = {_text(draft.kind)}", '"static": answered once; "evolving": anew every round'),
        f"type = {_text(draft.type)}",
        *_domain(draft),
        "",
        "[mechanism]",
        _line(
            'name = "auto"', "the least error; settle it before launch: hubbub survey design FILE --write OUT"
        ),
        *(["points = 33"] if draft.type == "number" else []),
        "",
        "# Categories partition the domain of labels and integers, missing left out.",
        "# [[category]]",
        '# name = "some"',
        _line("# values = []", "or, of integers, range = [low, high]"),
        "",
    ]
    text = "\n".join(lines)
    Survey.parse(text, file=f"{draft.id}.toml")
    return text


def _domain(draft: Draft) -> list[str]:
    if draft.type == "label":
        return [f"labels = [{', '.join(map(_text, draft.labels))}]"]
    return [
        _line(f"low = {draft.low!r}", 'what is outside, or no value at all, is answered as "missing"'),
        f"high = {draft.high!r}",
    ]


def _line(code: str, comment: str) -> str:
    return f"{code:<29} # {comment}"


def _text(value: str) -> str:
    """Return a TOML basic string: JSON's escapes are among TOML's."""
    return json.dumps(value, ensure_ascii=False)
