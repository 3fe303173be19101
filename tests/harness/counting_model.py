"""A model of what collector and worker count, in plain Python: a verdict a report, in the log's order."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self, TypeAlias

from hubbub.survey.survey import Survey
from hubbub.wire.record import NO_ROUND
from hubbub.wire.report import Outcome

Key: TypeAlias = tuple[bytes, int]


class Sent(NamedTuple):
    """A report as a device sends it, of a survey that is served or not."""

    survey: Survey
    round: int
    id: bytes
    symbol: int


@dataclass
class RoundModel:
    verdicts: Counter[str] = field(default_factory=Counter)
    after_seal: Counter[str] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)
    ids: set[bytes] = field(default_factory=set)
    sealed: bool = False


@dataclass
class CountingModel:
    surveys: dict[bytes, Survey]
    grace_s: float
    rounds: dict[Key, RoundModel] = field(default_factory=dict)
    unknown: int = 0

    def copy(self) -> Self:
        return type(self)(self.surveys, self.grace_s, copy.deepcopy(self.rounds), self.unknown)

    def judge(self, sent: Sent, now_s: float) -> tuple[Outcome, Key | None]:
        """Return the collector's answer to the device, and the round that it is tallied under."""
        survey = self.surveys.get(sent.survey.digest)
        if survey is None:
            return "unknown", None
        if not 0 <= sent.round < survey.rounds:
            return "invalid", (survey.digest, NO_ROUND)
        begin_s = survey.start_s + sent.round * survey.round_s
        end_s = begin_s + survey.round_s
        off_s = max(
            begin_s - survey.round_s - now_s - survey.skew_s,
            now_s - survey.lateness_s - end_s - survey.round_s,
        )
        key = (survey.digest, sent.round if off_s <= 0 else NO_ROUND)
        if sent.symbol >= survey.channel.outputs:
            return "invalid", key
        if now_s < begin_s - survey.skew_s:
            return "early", key
        return ("late" if now_s > end_s + survey.lateness_s else "accepted"), key

    def append(self, upload: Sequence[Sent], now_s: float) -> None:
        """A batch that lies in the log."""
        for sent in upload:
            outcome, key = self.judge(sent, now_s)
            if key is None:
                self.unknown += 1
                continue
            known = self.rounds.setdefault(key, RoundModel())
            if known.sealed:
                known.after_seal["late" if outcome == "accepted" else outcome] += 1
            elif outcome != "accepted":
                known.verdicts[outcome] += 1
            elif sent.id in known.ids:
                known.verdicts["duplicate"] += 1
            else:
                known.ids.add(sent.id)
                known.verdicts["accepted"] += 1
                known.counts[sent.symbol] += 1

    def due(self, now_s: float) -> list[Key]:
        """The rounds that must be sealed now, once everything is counted."""
        return [
            (digest, number)
            for (digest, number), known in self.rounds.items()
            if known.ids and not known.sealed and now_s >= self.last_s(digest, number) + self.grace_s
        ]

    def last_s(self, digest: bytes, number: int) -> float:
        survey = self.surveys[digest]
        return survey.start_s + (number + 1) * survey.round_s + survey.lateness_s

    def seal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.rounds[key].sealed = True
