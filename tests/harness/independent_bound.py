"""How much a transcript tells at least: the largest log-ratio that a search finds over all pairs of records.

It shares no code with the filter, nor with what reads values on a device: it knows canonical survey bytes,
what was said, and which pinned value each answer was about. A record is a value for every pinned one, and
for every answer to an evolving attribute values of its own. Every number that it returns is reached by two
records, but for floating point below 10^-9, so that an account that states less understates.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from independent_reading import FLOATS, Field, Question, column, question

ROUNDING = 1e-9
"""Nats by which a found ratio may lie above a true one: a few hundred logarithms of float64."""

MAX_POINTS = 30_000
"""Records of which all are tried; of more, so many at random, and the best are improved."""

MAX_EVOLVING = 200
"""Values of what evolves that are tried for each record: ends and missing are the extremes of every form."""

SAMPLED = 2_000
SWEEPS = 4
_EVERY = 40
"""Values of a domain that are all tried; of larger ones the ends, where readings change, and some between."""


class Told(NamedTuple):
    """One answer: the survey, its round, what was said, and the version of each pinned value it was about."""

    digest: bytes
    round: int
    symbol: int | bytes
    pins: tuple[tuple[str, int], ...] = ()


@dataclass
class Answer:
    """One draw: the same noise in however many reports."""

    asked: Question
    symbol: int | bytes
    pinned: dict[str, int]


def largest_log_ratio(
    surveys: Iterable[bytes],
    transcript: Iterable[Told],
    *,
    domains: Mapping[str, Field] | None = None,
    seed: int = 0,
) -> float:
    """The largest log-ratio of the transcript's probabilities that is found, nats.

    Args:
        surveys: Canonical bytes of every survey answered.
        transcript: What was said; the same answer sent again counts once.
        domains: What the device holds, by attribute; a survey of another domain must not be answered.
        seed: Of what is sampled.

    Raises:
        AssertionError: An answer came with two noises, or reads what the device does not hold.
    """
    known = {each.digest: each for each in map(question, surveys)}
    said: dict[tuple, int | bytes] = {}
    for told in transcript:
        asked = known[told.digest]
        pins = tuple(sorted(told.pins))
        place = (told.digest, -1 if asked.static else told.round, pins)
        assert said.setdefault(place, told.symbol) == told.symbol, "one answer had two noises"
    answers = []
    for (digest, _, pins), symbol in said.items():
        asked = known[digest]
        for field in asked.fields:
            assert domains is None or domains[field.id] == field, f"{field.id} has another domain"
        version = dict(pins)
        pinned = {field.id: version.get(field.id, 0) for field in asked.fields if field.static}
        answers.append(Answer(asked, symbol, pinned))
    chance = random.Random(seed)  # noqa: S311 - a search
    return sum(_Part(part, chance).spread() for part in _parts(answers))


class Said(NamedTuple):
    """One answer about a finite value: its name, the channel as a map, inputs by value, the symbol."""

    coordinate: Hashable
    channel: dict[str, Any]
    mapping: Any
    symbol: int | bytes


def largest_of_finite(answers: Iterable[Said]) -> float:
    """The largest log-ratio of answers about finite values, each its own, nats: every value is tried."""
    sums: dict[Hashable, FLOATS] = {}
    for answer in answers:
        law = np.log(column(answer.channel, answer.symbol))
        law = law if answer.mapping is None else law[np.asarray(answer.mapping)]
        sums[answer.coordinate] = sums.get(answer.coordinate, 0.0) + law
    return sum(float(each.max() - each.min()) for each in sums.values())


def _parts(answers: Sequence[Answer]) -> list[list[Answer]]:
    """Answers by what they read in common: the ratios of different parts multiply."""
    found: list[tuple[set, list[Answer]]] = []
    for answer in answers:
        keys, group, apart = set(answer.pinned.items()), [answer], []
        for others, members in found:
            if keys & others:
                keys, group = keys | others, members + group
            else:
                apart.append((others, members))
        found = [*apart, (keys, group)]
    return [members for _, members in found]


class _Part:
    """Answers that pinned values join, and the records of these values."""

    def __init__(self, answers: Sequence[Answer], chance: random.Random) -> None:
        self.chance = chance
        self.variables: dict[tuple[str, int], Field] = {}
        readers: dict[str, list[Question]] = defaultdict(list)
        for answer in answers:
            for field in answer.asked.fields:
                readers[field.id].append(answer.asked)
                if field.static:
                    self.variables[field.id, answer.pinned[field.id]] = field
        # An evolving score's answers in all rounds are functions of the same numbers: two laws at most.
        counted: dict[tuple, int] = defaultdict(int)
        kept: dict[tuple, Answer] = {}
        for answer in answers:
            key = (answer.asked.digest, answer.symbol, tuple(sorted(answer.pinned.items())))
            counted[key] += 1
            kept[key] = answer
        self.answers = [(answer, counted[key]) for key, answer in kept.items()]
        self.names = list(self.variables)
        self.tried = {
            name: _candidates(field, readers[name[0]], chance) for name, field in self.variables.items()
        }
        self.evolving = [
            _combined(
                [_candidates(f, [answer.asked], chance) for f in answer.asked.fields if not f.static],
                MAX_EVOLVING,
            )
            for answer, _ in self.answers
        ]

    def spread(self) -> float:
        """The largest sum of log-probabilities less the least."""
        sizes = [len(self.tried[name]) for name in self.names]
        every = math.prod(sizes) <= MAX_POINTS
        points = _combined([self.tried[name] for name in self.names]) if every else self._sampled()
        most, least = self.sums(points)
        best, worst = float(most.max()), float(least.min())
        # Where all of a finite domain was tried, only numbers are left, between the points that were.
        open_ = [
            at for at, name in enumerate(self.names) if not every or self.variables[name].type == "number"
        ]
        if open_:
            for i in np.argsort(-most)[: 1 if every else 2]:
                best = max(best, self._improved(points[i], +1, open_))
            for i in np.argsort(least)[: 1 if every else 2]:
                worst = min(worst, -self._improved(points[i], -1, open_))
        return best - worst

    def sums(self, points: FLOATS) -> tuple[FLOATS, FLOATS]:
        """The most and the least probable that what evolves makes the answers, for each record of the rest.

        Args:
            points: Pinned values, shape (n, variables).
        """
        most, least = np.zeros(len(points)), np.zeros(len(points))
        for (answer, count), free in zip(self.answers, self.evolving, strict=True):
            asked, place, values = answer.asked, 0, []
            for field in asked.fields:
                if field.static:
                    at = self.names.index((field.id, answer.pinned[field.id]))
                    values.append(points[:, at] if asked.static else points[:, at, None])
                else:
                    values.append(free[None, :, place])
                    place += 1
            law = asked.law(answer.symbol, values)
            most += count * (law if asked.static else law.max(axis=1))
            least += count * (law if asked.static else law.min(axis=1))
        return most, least

    def _sampled(self) -> FLOATS:
        """Some records: of any values, of the ends and what is missing, and of what is missing alone."""
        chosen = np.empty((SAMPLED, len(self.names)))
        for at, name in enumerate(self.names):
            tried = self.tried[name]
            anywhere = np.array(self.chance.choices(tried.tolist(), k=SAMPLED))
            ends = np.array(self.chance.choices(tried[:3].tolist(), k=SAMPLED))
            chosen[:, at] = np.where(np.arange(SAMPLED) % 2, anywhere, ends)
        chosen[0] = np.nan
        return chosen

    def _improved(self, point: FLOATS, sign: int, open_: Sequence[int]) -> float:
        """The best that is found from one record on, a value at a time: `sign` 1 for most, -1 for least."""
        point, reached = point.copy(), -math.inf
        width = {
            name: 0.25 * (field.domain[1] - field.domain[0]) if field.type == "number" else 0.0
            for name, field in self.variables.items()
        }
        for sweep in range(SWEEPS):
            for at in open_:
                name = self.names[at]
                near = point[at] + width[name] * np.linspace(-1.0, 1.0, 13)
                values = np.concatenate([self.tried[name] if sweep < 2 else point[at : at + 1], near])
                points = np.repeat(point[None, :], len(values), axis=0)
                points[:, at] = values
                most, least = self.sums(points)
                found = most if sign > 0 else -least
                reached, point = float(found.max()), points[int(found.argmax())]
            if not any(width.values()) and sweep == 1:
                break
            width = {name: 0.25 * each for name, each in width.items()}
        return reached


def _candidates(field: Field, readers: Sequence[Question], chance: random.Random) -> FLOATS:
    """Values to try: missing and the ends first; then all, or some, and what is out of the domain."""
    if field.type == "number":
        low, high = field.domain
        found = [math.nan, low, high, *np.linspace(low, high, 7)[1:-1].tolist(), high + (high - low)]
        for asked in readers:
            if asked.form[0] == "grid":
                found += np.linspace(low, high, asked.inputs - 1).tolist()[1 : _EVERY + 1]
        return np.array(list(dict.fromkeys(found)))
    low = field.domain[0] if field.type == "integer" else 0
    high = low + field.size - 1
    found = [math.nan, low, high]
    if field.size <= _EVERY:
        found += range(low, high + 1)
    else:
        found += [chance.randint(low, high) for _ in range(_EVERY // 2)]
        for asked in readers:
            if asked.form[0] == "table":
                reading = asked.form[1][asked.fields.index(field)]
                steps = np.flatnonzero(np.diff(reading)) if reading else np.arange(0)
                found += [low + int(each) for each in (*steps[:20], *(steps[:20] + 1)) if each < field.size]
    return np.array([*dict.fromkeys(found), low - 1.0, low + 0.5])


def _combined(values: Sequence[FLOATS], most: int = MAX_POINTS) -> FLOATS:
    """All combinations of values, shape (n, len(values)); of too many, those of each one's first few."""
    lists = list(values)
    if not lists:
        return np.empty((1, 0))
    while math.prod(map(len, lists)) > most:
        longest = max(range(len(lists)), key=lambda i: len(lists[i]))
        lists[longest] = lists[longest][: len(lists[longest]) // 2]
    return np.array(list(itertools.product(*(each.tolist() for each in lists)))).reshape(-1, len(lists))
