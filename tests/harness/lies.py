"""Releases with their public counts, honest ones and lies: what an operator could print, kind by kind."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub import Survey
from hubbub.wire import PublicCounts, decode_counts, encode_counts
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.provisional import AcceptedCounts
from hubbub_aggregator.release.round_release import Release, canonical_bytes

Printed = tuple[dict[str, Any], bytes]
"""A release, and the bytes of its counts."""


def printed(survey: Survey, n: int, rng: np.random.Generator, *, asked: int | None = None) -> Printed:
    """Return an honest release of the first round, of devices whose values are random."""
    inputs = survey.channel.inputs
    values = rng.choice(inputs, n, p=rng.dirichlet(np.full(inputs, 0.5)))
    return released(survey, survey.channel.tally(survey.channel.perturb(values)), n, asked=asked)


def released(survey: Survey, counts: np.ndarray, n: int, *, asked: int | None = None) -> Printed:
    """Return an honest release of counts."""
    kind, cells = survey.channel.public_counts(counts, survey.category_of)
    fleet = FleetStatement({} if asked is None else {"": asked}, budget=4.0)
    made = Release(
        survey,
        0,
        "sealed",
        AcceptedCounts({0: 7}, counts, n),
        VerdictCounts(attempts=n + 3, accepted=n, late=3),
        enrolment=fleet.of(survey, counted=n, enrolled=n),
    )
    public = PublicCounts(survey.digest, 0, kind, n, cells)
    document = json.loads(canonical_bytes(made.document() | {"counts": public.statement()}))
    return document, encode_counts(public)


def _restated(document: dict[str, Any], counts: PublicCounts) -> Printed:
    document["counts"] = counts.statement()
    return document, encode_counts(counts)


def _cell(document: dict[str, Any], chance: random.Random, kind: str = "values") -> dict[str, Any] | None:
    known = [cell for cell in document[kind] if cell["estimate"] is not None]
    return chance.choice(known) if known else None


def _moved(key: str, kind: str = "values") -> Callable[..., Printed | None]:
    """Return the lie that moves one number of one cell: an end by a thousandth of its interval's width."""

    def lie(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
        cell = _cell(document, chance, kind)
        if cell is None:
            return None
        by = 1e-9
        if key.endswith(("low", "high")):
            low, high = (cell[key.replace("high", end).replace("low", end)] for end in ("low", "high"))
            by = max(1e-3 * (high - low), 1e-6)
        cell[key] += by * chance.choice([-1, 1])
        return document, data

    return lie


def _count(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed:
    counts = decode_counts(data)
    cells = counts.cells.copy()
    place = chance.randrange(len(cells))
    cells[place] += 1 if cells[place] < counts.n else -1
    return _restated(document, replace(counts, cells=cells))


def _other_counts(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed:
    """Only the counts file is another one: its hash is not the release's."""
    counts = decode_counts(data)
    cells = counts.cells.copy()
    cells[0] += 1 if cells[0] < counts.n else -1
    return document, encode_counts(replace(counts, cells=cells))


def _counts_round(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed:
    return _restated(document, replace(decode_counts(data), round=1))


def _counts_survey(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed:
    return _restated(document, replace(decode_counts(data), digest=bytes(16)))


def _labels(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
    values = document["values"]
    if len(values) < 2:
        return None
    one, other = chance.sample(values, 2)
    one["label"], other["label"] = other["label"], one["label"]
    return document, data


def _cells_swapped(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
    """All numbers of two values change places, whose estimates differ."""
    known = [cell for cell in document["values"] if cell["estimate"] is not None]
    # Values with the same counts may differ by a rounding.
    pairs = [(a, b) for a in known for b in known if abs(a["estimate"] - b["estimate"]) > 1e-9]
    if not pairs:
        return None
    one, other = chance.choice(pairs)
    for key in one.keys() - {"label", "category"}:
        one[key], other[key] = other[key], one[key]
    return document, data


def _devices(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed:
    document["devices"] += 1
    document["accounting"]["accepted"] += 1
    document["accounting"]["attempts"] += 1
    return document, data


def _set(*path: str, to: Callable[[Any], Any]) -> Callable[..., Printed | None]:
    def lie(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
            if place is None:
                return None
        if place[path[-1]] is None:
            return None
        place[path[-1]] = to(place[path[-1]])
        return document, data

    return lie


def _consistent(kind: str) -> Callable[..., Printed | None]:
    def lie(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
        """Something is taken from one cell of the view and given to another: the sum stays."""
        view = document["consistent"][kind]
        most = [place for place, share in enumerate(view) if share is not None and share > 1e-6]
        if len(view) < 2 or not most:
            return None
        one = chance.choice(most)
        other = chance.choice([place for place in range(len(view)) if place != one])
        if view[other] is None:
            return None
        view[one], view[other] = view[one] - 1e-6, view[other] + 1e-6
        return document, data

    return lie


def _margin(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
    margins = (document["poison_margin"] or {}).get("values", [])
    places = [place for place, each in enumerate(margins) if each is not None]
    if not places:
        return None
    margins[chance.choice(places)] += 1.0
    return document, data


def _suppressed(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed:
    document |= {"suppressed": True, "values": [], "categories": [], "mean": None}
    return document, data


def _bias(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
    bias = (document["enrolment"] or {}).get("bias")
    if not bias or not bias["values"]:
        return None
    bias["values"][0] /= 2.0
    return (document, data) if bias["values"][0] > 1e-9 else None


def _curve(key: str) -> Callable[..., Printed | None]:
    def lie(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
        column = (document.get("cumulative") or {}).get(key)
        if column is None:
            return None
        column[0] += 1e-6
        return document, data

    return lie


def _cell_gone(document: dict[str, Any], data: bytes, chance: random.Random) -> Printed | None:
    if not document["values"]:
        return None
    document["values"].pop()
    return document, data


LIES: dict[str, Callable[[dict[str, Any], bytes, random.Random], Printed | None]] = {
    "a count, with its hash": _count,
    "another file of counts": _other_counts,
    "counts of another round": _counts_round,
    "counts of another survey": _counts_survey,
    "an estimate": _moved("estimate"),
    "an error": _moved("error"),
    "a lower end": _moved("low"),
    "an upper end": _moved("high"),
    "an end of all at once": _moved("simultaneous_high"),
    "an error of the crowd": _moved("crowd_error"),
    "an end of the crowd": _moved("crowd_low"),
    "an end of the crowd, all at once": _moved("crowd_simultaneous_high"),
    "a category": _moved("estimate", "categories"),
    "an error of a category": _moved("error", "categories"),
    "an end of a category": _moved("low", "categories"),
    "labels": _labels,
    "numbers of two values": _cells_swapped,
    "a value left out": _cell_gone,
    "devices": _devices,
    "attempts": _set("accounting", "attempts", to=lambda many: many + 1),
    "certified epsilon": _set("epsilon", "certified", to=lambda epsilon: epsilon * 0.9),
    "declared epsilon": _set("epsilon", "declared", to=lambda epsilon: epsilon * 0.9),
    "level": _set("level", to=lambda level: 0.99),
    "start": _set("start", to=lambda text: text.replace("2026", "2025")),
    "round": _set("round", to=lambda number: number + 1),
    "title": _set("survey", "title", to=lambda text: text + "?"),
    "version": _set("survey", "version", to=lambda version: version + 1),
    "devices asked": _set("enrolment", "asked", to=lambda asked: asked * 2),
    "bias": _bias,
    "the consistent view": _consistent("values"),
    "the consistent view of categories": _consistent("categories"),
    "a poison margin": _margin,
    "the mean": _set("mean", "estimate", to=lambda mean: mean + 1e-6),
    "the mean's end": _set("mean", "low", to=lambda end: end - 1e-6),
    "a curve's share": _curve("shares"),
    "a curve's band": _curve("high"),
    "a round hidden": _suppressed,
    "an open round": _set("sealed", to=lambda _: False),
}
"""Every kind of lie by name: it changes a copy of a release and its counts; None without such a part."""


def told(lie: str, honest: Printed, chance: random.Random) -> Printed | None:
    """Return a lie about an honest release; None where it has nothing to lie about so."""
    return LIES[lie](copy.deepcopy(honest[0]), honest[1], chance)
