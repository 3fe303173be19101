"""Every page and state of the dashboard, as documents: for the accessibility check and screenshots."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from page_site import on
from shown_view import round_of, snapshot_of, survey_of
from surveys import LABELS

from hubbub.survey import Survey
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, Release
from hubbub_aggregator.release.after_shuffling import ShufflingStatements

DAY_S = 86400
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
VISITS, HEALTH, SOON, OPEN, SILENT, HELD, AGE, SCORE, TABLE, PANEL, TREE = (
    f"{k:x}" * 32 for k in range(1, 12)
)


TREE_OF_AGES = '[mechanism]\nname = "tree"\n'


@dataclass(frozen=True)
class Place:
    """A place of the page.

    Attributes:
        where: Its address, behind the site's.
        shows: A selector of what stands there once it is drawn.
        press: Buttons to press then.
        says: What is to be seen, for the docs.
    """

    where: str
    shows: str
    press: tuple[str, ...] = ()
    says: str = ""


PLACES = {
    "surveys": Place("", ".brief .bar", says="all surveys, in every state"),
    "distribution": Place(on(HEALTH, round=4), ".values .bar", says="one survey, a sealed round"),
    "categories": Place(on(VISITS, category="3 to 5"), ".back", says="a category opened into its values"),
    "cumulative": Place(on(AGE), ".profile .curve", says="a long number, cumulative first"),
    "curve": Place(
        on(TREE), ".profile .curve", says="a tree of ranges: the curve with its band, median and quartiles"
    ),
    "raw": Place(on(AGE, show="raw"), ".profile .bars", says="the same number, raw"),
    "at-once": Place(
        on(AGE, show="simultaneous"), ".profile .bars", says="intervals that hold for all values at once"
    ),
    "table": Place(on(HEALTH), ".values .bar", (".values .toggle",), "the values as a table"),
    "cross-table": Place(on(TABLE), ".categories .bar", says="several attributes, a margin each"),
    "score": Place(on(SCORE), ".facts .main", says="a score: a mean and no shares"),
    "history": Place(
        on(HEALTH, view="history"),
        ".history .legend:not([hidden])",
        says="one number over rounds, smoothed too",
    ),
    "comparison": Place(on(HEALTH, view="comparison"), ".comparison .bar", says="two rounds compared"),
    "two-surveys": Place(
        on(PANEL, view="comparison", **{"from": HEALTH}), ".comparison .bar", says="two surveys compared"
    ),
    "refused": Place(
        on(HEALTH, view="comparison", **{"from": VISITS}),
        ".verdict-words",
        says="a comparison that is refused",
    ),
    "begins": Place(on(SOON), ".moment", says="a survey that has not begun"),
    "waiting": Place(on(OPEN), ".moment", says="a survey that waits for its first devices"),
    "nobody": Place(on(SILENT), ".moment", says="a survey that nobody answered"),
    "withheld": Place(on(HELD), ".withheld p", says="a round with too few devices"),
    "operations": Place("?page=operations", ".operations table", says="operations"),
    "person": Place("?page=person", ".persons section", says="what one person gives up"),
    "unknown": Place(on("f" * 32), ".page .empty", says="an address of no survey here"),
}
"""Every page and state by name."""


def gallery() -> dict[str, Any]:
    """A snapshot with a survey in every state."""
    now = time.time()
    return snapshot_of(
        _survey("visits", "Visits to a doctor", VISITS, now - DAY_S / 2, [_visits()], of=1),
        _survey("health", "Self-rated health", HEALTH, now - 4.5 * DAY_S, _health(), of=7),
        _survey("panel", "Self-rated health, of another panel", PANEL, now - 9 * DAY_S, _panel(), of=1),
        _survey("sleep", "Hours of sleep", SOON, now + 3 * 3600 + 60, [], of=7),
        _survey("steps", "Steps per day", OPEN, now - 600, [], of=7),
        _survey("commute", "Way to work", SILENT, now - 20 * DAY_S, [], of=3),
        _survey("diet", "Diet", HELD, now - 9 * DAY_S, [_withheld()], of=1),
        _survey("age", "Age", AGE, now - 5 * DAY_S, [_age()], of=1),
        _survey("age-tree", "Age, by a tree of ranges", TREE, now - 5 * DAY_S, [_age(TREE_OF_AGES)], of=1),
        _survey("activity", "Activity", SCORE, now - 5 * DAY_S, [_score()], of=1),
        _survey(
            "age-by-sex", "Age by sex", TABLE, now - 5 * DAY_S, [_table()], of=1, attributes=("age", "sex")
        ),
        lag=1,
    )


def _survey(
    name: str,
    title: str,
    digest: str,
    start_s: float,
    rounds: list[dict[str, Any]],
    *,
    of: int,
    attributes: tuple[str, ...] = (),
) -> dict[str, Any]:
    def stamp(at_s: float) -> str:
        return datetime.fromtimestamp(int(at_s), UTC).isoformat().replace("+00:00", "Z")

    for document in rounds:
        begin = start_s + DAY_S * document["round"]
        document.update(start=stamp(begin), end=stamp(begin + DAY_S))
    survey = survey_of(name, *rounds, title=title, digest=digest)
    survey["schedule"] = {"start": stamp(start_s), "round_s": DAY_S, "rounds": of, "lateness_s": 3600}
    read = attributes or ("health" if name == "panel" else name,)
    survey["attributes"] = [{"id": each, "kind": "evolving"} for each in read]
    survey["quota"] = 3 * survey["planned_devices"] if of > 1 else None
    return survey


def _visits() -> dict[str, Any]:
    groups = [("none", 1), ("1 or 2", 2), ("3 to 5", 3), ("6 to 10", 5), ("11 to 20", 10), ("more", 20)]
    names = [name for name, width in groups for _ in range(width)]
    weights = [0.35 * math.exp(-k / 4) + 0.004 for k in range(len(names))]
    scale = 0.96 / sum(weights)
    shares = [(str(k), name, scale * w) for k, (name, w) in enumerate(zip(names, weights, strict=True))]
    tallies = {"accepted": 12400, "duplicate": 31, "late": 12, "invalid": 3}
    return round_of(
        shares=[*shares, ("missing", "missing", 0.04)], devices=12400, mean=3.62, tallies=tallies, noise=0.7
    )


def _health() -> list[dict[str, Any]]:
    names = ("excellent", "good", "fair", "poor", "missing")
    rounds = []
    for number in range(5):
        good = 0.40 + 0.02 * number
        shares = (0.22, good, 0.30 - 0.02 * number, 0.04, 0.04)
        told = [
            (n, "missing" if n == "missing" else "answered", s) for n, s in zip(names, shares, strict=True)
        ]
        rounds.append(
            round_of(
                number, shares=told, devices=5000 + 40 * number, sealed=number < 4, seed=number, noise=0.6
            )
        )
    asked = Survey.parse(LABELS.replace("epsilon = 1.0", "epsilon = 2.0"))
    return [_stated(asked, document) for document in rounds]


def _panel() -> list[dict[str, Any]]:
    names = ("excellent", "good", "fair", "poor", "missing")
    told = [
        (name, "missing" if name == "missing" else "answered", share)
        for name, share in zip(names, (0.15, 0.38, 0.34, 0.09, 0.04), strict=True)
    ]
    return [round_of(shares=told, devices=6000, sealed=True, seed=11, noise=0.6)]


def _withheld() -> dict[str, Any]:
    return round_of(sealed=True, suppressed=True, tallies={"accepted": 37})


def _age(mechanism: str | None = None) -> dict[str, Any]:
    """A release of 20,000 simulated devices, by the example's mechanism or another."""
    text = (EXAMPLES / "age.toml").read_text(encoding="utf-8")
    if mechanism is not None:
        text = text.partition("[mechanism]")[0] + mechanism
    survey = Survey.parse(text)
    inputs = np.arange(survey.channel.inputs)
    shares = np.exp(-(((inputs - 28) / 24.0) ** 2))
    shares[-1] = 0.02 * shares.sum()
    told = np.random.default_rng(5).choice(inputs, 20000, p=shares / shares.sum())
    counts = survey.channel.tally(survey.channel.perturb(told, source=seeded(5)))
    tally = AcceptedCounts({0: 9}, counts, 20000)
    released = Release(survey, 0, "sealed", tally, VerdictCounts(attempts=20000, accepted=20000))
    return _stated(survey, released.document())


def _stated(survey: Survey, document: dict[str, Any]) -> dict[str, Any]:
    """The document with what a server says of readers of a sealed round."""
    found = ShufflingStatements().of(survey, document) if document["sealed"] else None
    return {**document, "after_shuffling": found}


def _score() -> dict[str, Any]:
    return round_of(shares=(), devices=900, sealed=True, mean=0.62)


def _table() -> dict[str, Any]:
    ages, sexes = ("under 30", "30 to 64", "65 or older"), ("Female", "Male")
    cells = [(f"{age} / {sex}", "x", 1 / 6) for age in ages for sex in sexes]
    document = round_of(shares=cells, devices=4000, sealed=True)
    margins = [(f"age: {age}", "x", 1 / 3) for age in ages] + [(f"sex: {sex}", "x", 1 / 2) for sex in sexes]
    document["categories"] = round_of(shares=margins, devices=4000)["values"]
    for row in document["values"] + document["categories"]:
        row["category"] = None
    return document
