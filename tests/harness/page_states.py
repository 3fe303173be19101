"""Every page and state of the dashboard, as documents: for the accessibility check and screenshots."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from page_site import on
from shown_view import accounting, round_of, snapshot_of, survey_of
from surveys import LABELS
from surveys import VISITS as VISITS_OF_A_YEAR

from hubbub.survey import Survey
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, Release
from hubbub_aggregator.release.after_shuffling import ShufflingStatements
from hubbub_aggregator.release.enrolment import FleetStatement

DAY_S = 86400
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
VISITS, HEALTH, SOON, OPEN, SILENT, HELD, AGE, SCORE, TABLE, PANEL, TREE, HOURS, YEAR = (
    f"{k:x}" * 32 for k in range(1, 14)
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
    "mean": Place(on(HOURS), ".values .dot", says="a survey of a mean: the mean first"),
    "curve": Place(
        on(TREE), ".profile .curve", says="a tree of ranges: the curve with its band, median and quartiles"
    ),
    "raw": Place(on(AGE), ".profile .bars", says="a long number by its values, raw"),
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
    "year": Place(
        on(YEAR, view="history"),
        ".history .legend:not([hidden])",
        says="a year of daily rounds, two of them unanswered",
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
        state_of("visits", "Visits to a doctor", VISITS, now - DAY_S / 2, [_visits()], of=1),
        state_of("health", "Self-rated health", HEALTH, now - 4.5 * DAY_S, _health(), of=7),
        state_of("panel", "Self-rated health, of another panel", PANEL, now - 9 * DAY_S, _panel(), of=1),
        state_of("sleep", "Hours of sleep", SOON, now + 3 * 3600 + 60, [], of=7),
        state_of("steps", "Steps per day", OPEN, now - 600, [], of=7),
        state_of("commute", "Way to work", SILENT, now - 20 * DAY_S, [], of=3),
        state_of("diet", "Diet", HELD, now - 9 * DAY_S, [_withheld()], of=1),
        state_of("age", "Age", AGE, now - 5 * DAY_S, [_age()], of=1),
        state_of("age-tree", "Age, by a tree of ranges", TREE, now - 5 * DAY_S, [_age(TREE_OF_AGES)], of=1),
        state_of("hours", "Hours of sleep", HOURS, now - 5 * DAY_S, hours(MEAN), of=1),
        state_of("mood", "Mood", YEAR, now - 364.5 * DAY_S, year(), of=365),
        state_of("activity", "Activity", SCORE, now - 5 * DAY_S, [_score()], of=1),
        state_of(
            "age-by-sex", "Age by sex", TABLE, now - 5 * DAY_S, [_table()], of=1, attributes=("age", "sex")
        ),
        lag=1,
    )


def state_of(
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
        begin = start_s + DAY_S * (document["round"] - 1)
        document.update(start=stamp(begin), end=stamp(begin + DAY_S))
    """A survey as the page sees it, whose rounds begin at a time."""
    survey = survey_of(name, *rounds, title=title, digest=digest)
    survey["schedule"] = {"start": stamp(start_s), "round_s": DAY_S, "rounds": of, "lateness_s": 3600}
    read = attributes or ("health" if name == "panel" else name,)
    survey["attributes"] = [{"id": each, "kind": "evolving"} for each in read]
    survey["quota"] = 3 * survey["planned_devices"] if of > 1 else None
    return survey


def _visits() -> dict[str, Any]:
    survey = Survey.parse(VISITS_BY_GROUP)
    visits = np.random.default_rng(1).geometric(0.16, 12400) - 1
    document = real_round(survey, _missed(np.minimum(visits, 40), 41), sealed=False)
    return document | {"accounting": accounting(accepted=12400, duplicate=31, late=12, invalid=3)}


def _health() -> list[dict[str, Any]]:
    survey = Survey.parse(HEALTH_OF_A_DAY)
    rounds = []
    for number in range(5):
        good = 0.42 + 0.02 * number
        told = np.random.default_rng(number).choice(4, 5000 + 40 * number, p=[0.23, good, 0.73 - good, 0.04])
        rounds.append(real_round(survey, _missed(told, 4), number=number, sealed=number < 4))
    return rounds


def _panel() -> list[dict[str, Any]]:
    told = np.random.default_rng(11).choice(4, 6000, p=[0.16, 0.39, 0.35, 0.1])
    return [real_round(Survey.parse(HEALTH_OF_A_DAY), _missed(told, 4))]


def _missed(told: Any, missing: int) -> Any:
    """Return the values with every 25th missing."""
    return np.where(np.arange(len(told)) % 25 == 0, missing, told)


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
    return real_round(survey, told)


def _stated(survey: Survey, document: dict[str, Any]) -> dict[str, Any]:
    """The document with what a server says of readers of a sealed round."""
    found = ShufflingStatements().of(survey, document) if document["sealed"] else None
    return {**document, "after_shuffling": found}


HEALTH_OF_A_DAY = LABELS.replace("epsilon = 1.0", "epsilon = 2.0").replace("rounds = 3", "rounds = 7")
VISITS_BY_GROUP = (
    VISITS_OF_A_YEAR.replace("high = 20", "high = 40").partition("[[category]]")[0]
    + """
[[category]]
name = "none"
values = [0]
[[category]]
name = "1 or 2"
range = [1, 2]
[[category]]
name = "3 to 5"
range = [3, 5]
[[category]]
name = "6 to 10"
range = [6, 10]
[[category]]
name = "11 to 20"
range = [11, 20]
[[category]]
name = "more"
range = [21, 40]
"""
)
LABELLED = 'type = "label"\nlabels = ["excellent", "good", "fair", "poor"]\n\n[mechanism]\nname = "grr"\n'
NUMBERED = 'type = "number"\nlow = 0.0\nhigh = 24.0\n\n[mechanism]\nname = "optimal"\npoints = 33\n'
MEAN = LABELS.replace(LABELLED, NUMBERED)
CURVE = MEAN.replace('optimal"', 'optimal"\ntuned_for = "quantiles"')


def hours(text: str, *, devices: int = 20_000) -> list[dict[str, Any]]:
    """A sealed round of simulated hours of sleep, by a survey of their mean or of their curve."""
    told = (
        np.clip(np.random.default_rng(7).normal(7.2, 1.5, devices) / 24 * 32, 0, 32).round().astype(np.int64)
    )
    return [real_round(Survey.parse(text), told)]


def year() -> list[dict[str, Any]]:
    """A year of daily rounds of a dozen crowds: all but two were answered, and the last is provisional."""
    survey = Survey.parse(LABELS.replace("rounds = 3", "rounds = 365").replace("epsilon = 1", "epsilon = 3"))
    draw = np.random.default_rng(8)
    crowds = [
        draw.choice(4, 400, p=[0.2, good, 0.7 - good, 0.1]) for good in 0.4 + 0.15 * np.sin(np.arange(12) / 2)
    ]
    months = [real_round(survey, crowd, number=month) for month, crowd in enumerate(crowds)]
    days = [months[day // 31] | {"round": day + 1} for day in range(364) if day not in (40, 200)]
    return [*days, real_round(survey, crowds[-1], number=364, sealed=False)]


def real_round(survey: Survey, told: Any, *, number: int = 0, sealed: bool = True) -> dict[str, Any]:
    """Return what a server publishes of a round of simulated devices with these answers, with every fact."""
    counts = survey.channel.tally(survey.channel.perturb(told, source=seeded(number)))
    n = len(told)
    enrolment = FleetStatement({"": n + n // 20}, budget=8.0).of(survey, counted=n, enrolled=n)
    released = Release(
        survey,
        number,
        "sealed" if sealed else "provisional",
        AcceptedCounts({0: 9}, counts, n),
        VerdictCounts(attempts=n, accepted=n),
        enrolment=enrolment if sealed else None,
    )
    return _stated(survey, released.document() | {"as_of": n})


def _score() -> dict[str, Any]:
    survey = Survey.parse((EXAMPLES / "activity.toml").read_text(encoding="utf-8"))
    return real_round(survey, np.random.default_rng(3).binomial(1, 0.62, 9000))


def _table() -> dict[str, Any]:
    text = (EXAMPLES / "age-by-sex.toml").read_text(encoding="utf-8")
    survey = Survey.parse(text.replace('"auto"', '"subset"'))
    draw = np.random.default_rng(4)
    ages, sexes = draw.choice(4, 8000, p=[0.3, 0.3, 0.25, 0.15]), draw.integers(0, 2, 8000)
    # Each with a reading more, that its value is missing.
    return real_round(survey, 3 * ages + sexes)
