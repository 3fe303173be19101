"""A survey file to begin with: every key has a comment, and it compiles as it stands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from hubbub import Survey

_LONGEST_LATENESS_S: Final = 3_600
_LONGEST_SKEW_S: Final = 300
_CATEGORIES: Final = {
    "integer": ("values = []", "or range = [low, high], both ends included"),
    "label": ("values = []", "some of the labels"),
}


@dataclass(frozen=True, slots=True)
class DraftCategory:
    """A category of a draft: its name, and either values or both ends of a range."""

    name: str
    values: tuple[int | str, ...] = ()
    range: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftAttribute:
    """An attribute of a draft.

    Attributes:
        id: Its id.
        type: "label", "integer" or "number".
        labels: Its labels; () for numbers.
        low: Its smallest value.
        high: Its largest.
        categories: Named groups of its values; () for none.
    """

    id: str
    type: Literal["label", "integer", "number"]
    labels: tuple[str, ...] = ()
    low: float = 0
    high: float = 100
    categories: tuple[DraftCategory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The draft of a new survey.

    Attributes:
        id: Its id.
        title: What people read.
        epsilon: Of one report.
        attributes: What it asks for; two or more make a table of their combinations.
        tables: Which tables of them a bundle asks for; None for that one table.
        kind: "static" or "evolving".
        devices: How many are expected to answer.
        minimum_cohort: How many must have answered before anything is released; None for as many as its
            intervals need.
        rounds: How many rounds.
        round_s: How long each lasts.
        start_s: When the first begins, seconds since 1970.
    """

    id: str
    title: str
    epsilon: float
    attributes: tuple[DraftAttribute, ...]
    tables: Literal["pairs", "single"] | None = None
    kind: str
    devices: int = 10_000
    minimum_cohort: int | None = None
    rounds: int = 1
    round_s: int = 86_400
    start_s: int


def drafted(draft: Draft) -> tuple[str, Survey]:
    """Return the text of a survey file, and its survey.

    Raises:
        SurveyError: What was asked for is no valid survey; the message says which key and why.
    """
    start = datetime.fromtimestamp(draft.start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cohort = (
        _line(
            "# minimum_cohort = 100", "without it: the least at which intervals hold; `survey check` says it"
        )
        if draft.minimum_cohort is None
        else _line(
            f"minimum_cohort = {draft.minimum_cohort}", "a round with fewer accepted reports releases nothing"
        )
    )
    lines = [
        "# Every key: docs/surveys.md. Whether it compiles: hubbub survey check FILE.",
        f"id = {_text(draft.id)}",
        _line("version = 1", "raise it with every change: devices and servers agree on exact terms"),
        f"title = {_text(draft.title)}",
        _line(f"epsilon = {draft.epsilon!r}", "of one report, at most: less is more private, and less exact"),
        cohort,
        _line(f"planned_devices = {draft.devices}", "what the design counts on"),
        "",
        "[schedule]",
        _line(f"start = {start}", "when the first round begins"),
        _line(f'round = "{_duration(draft.round_s)}"', '"90s", "15m", "24h", "7d"'),
        _line(f"rounds = {draft.rounds}", "a device that joins sets aside the budget of all of them"),
        _line(
            f'lateness = "{_duration(min(_LONGEST_LATENESS_S, -(-draft.round_s // 4)))}"',
            "how long after its round a report is still taken; the release waits for it",
        ),
        _line(
            f'skew = "{_duration(min(_LONGEST_SKEW_S, -(-draft.round_s // 4)))}"',
            "how far a device's clock may be ahead",
        ),
    ]
    for attribute in draft.attributes:
        lines += _attribute(attribute, draft)
    lines += [
        "",
        "[mechanism]",
        _line(
            'name = "auto"', "the least error; settle it before launch: hubbub survey design FILE --write OUT"
        )
        if draft.tables is None
        else _line('name = "bundle"', "each device answers one part of what is asked, by a public coin"),
        *(_grid() if draft.attributes[0].type == "number" else []),
    ]
    if draft.tables is not None:
        lines += [
            "",
            "[bundle]",
            _line(f"tables = {_text(draft.tables)}", 'or a list: [["age", "sex"], ["sex"]]'),
        ]
        if draft.tables == "pairs":
            lines.append(_line('parts = "interactions"', "some tell how two go together, where it gains"))
    if len(draft.attributes) == 1:
        lines += _categories(draft.attributes[0])
    text = "\n".join(lines) + "\n"
    return text, Survey.parse(text, file="what is asked")


def _attribute(attribute: DraftAttribute, draft: Draft) -> list[str]:
    several = len(draft.attributes) > 1
    lines = [
        "",
        _line("[[attribute]]" if several else "[attribute]", "exactly as the host application registers it"),
        f"id = {_text(attribute.id)}",
        _line(f"kind = {_text(draft.kind)}", '"static": answered once; "evolving": anew every round'),
        f"type = {_text(attribute.type)}",
        *_domain(attribute),
    ]
    if several:
        for category in attribute.categories:
            lines += ["", "[[attribute.category]]", *_category(category)]
    return lines


def _grid() -> list[str]:
    return [
        _line('objective = "quantiles"', 'its curve, median and quartiles; "mean" for its mean alone'),
        "points = 33",
    ]


def _domain(attribute: DraftAttribute) -> list[str]:
    if attribute.type == "label":
        return [f"labels = [{', '.join(map(_text, attribute.labels))}]"]
    return [
        _line(f"low = {attribute.low!r}", 'what is outside, or no value at all, is answered as "missing"'),
        f"high = {attribute.high!r}",
    ]


def _categories(attribute: DraftAttribute) -> list[str]:
    """Return the categories, or a word on how to write them; numbers have none."""
    if attribute.categories:
        return [
            line for category in attribute.categories for line in ("", "[[category]]", *_category(category))
        ]
    if attribute.type == "number":
        return []
    return [
        "",
        "# Categories partition the domain, missing left out.",
        "# [[category]]",
        '# name = "some"',
        f"# {_line(*_CATEGORIES[attribute.type])}",
    ]


def _category(category: DraftCategory) -> list[str]:
    name = f"name = {_text(category.name)}"
    if category.range is not None:
        return [name, f"range = [{category.range[0]}, {category.range[1]}]"]
    return [name, f"values = {json.dumps(list(category.values), ensure_ascii=False)}"]


def _duration(seconds: int) -> str:
    """Return a length of time as survey files write it, in its largest whole unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _line(code: str, comment: str) -> str:
    return f"{code:<29} # {comment}"


def _text(value: str) -> str:
    """Return a TOML basic string: JSON's escapes are among TOML's."""
    return json.dumps(value, ensure_ascii=False)
