"""The survey: who is asked what, when, through which channel; parsed, compiled, canonical, and digested.

A survey's canonical bytes hold everything that a device and a server must agree on, the channel's integers
included. Their digest travels in every report, so that two sides that differ in one parameter fail closed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError, SurveyError, WireError
from hubbub.html_table import html_table
from hubbub.numeric.randomness import SYSTEM, Source
from hubbub.survey import canonical as survey_canonical
from hubbub.survey.canonical import read_compiled
from hubbub.survey.domain import Attribute, SetDomain
from hubbub.survey.rules import DEFAULT_LEDGERS, MAX_CANONICAL_BYTES, Rules
from hubbub.wire.report import DIGEST_BYTES

if TYPE_CHECKING:
    from hubbub.channels.symbols import Symbol
    from hubbub.estimation import Estimate, Estimator
    from hubbub.survey.choice import Choice
    from hubbub.survey.form import Form


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """One compiled survey.

    The guarantee: any report of it is `epsilon`-differentially private for its attributes' values, missing
    included, because `channel.epsilon`, certified from the integers, is at most `epsilon`.

    Attributes:
        id: The survey's name; `version` tells its editions apart.
        title: What people read.
        form: What it asks for, and how that becomes an input of the channel: `Single`, `CrossTable`,
            `Score` or `Transition`.
        epsilon: Declared, per report.
        channel: From inputs 0..K-1 to symbols; the last input means missing.
        start_s: When round 0 begins, seconds since 1970-01-01T00:00Z.
        round_s: Seconds of a round; round r is [start_s + r round_s, start_s + (r+1) round_s).
        rounds: How many rounds the schedule has.
        lateness_s: How long after its round a report is still taken.
        skew_s: How far a device's clock may be ahead.
        minimum_cohort: Fewer accepted reports than this release nothing.
        planned_devices: How many devices the design counts on.
        quota: The most reports that one round takes, or None.
        rotation: Rounds of a cycle, in which a device answers one; 1 where it answers every round.
        ledgers: Where a device that answers may keep its account; see `rules.LEDGERS`.
        choice: What "auto" chose for a file that left the choice to it, among what, and why; None where the
            file names its mechanism, and for a survey read from canonical bytes, which hold the result alone.
        canonical: The bytes that `from_canonical` reads.
        digest: The first 16 bytes of SHA-256 of `canonical`.

    A device holds surveys that it was sent: what only a server reads (labels, points) is made when asked for.

    Raises:
        SurveyError: If any part breaks a rule, or the channel's certified epsilon exceeds the declared one.
    """

    id: str
    version: int
    title: str
    form: Form
    epsilon: float
    channel: Channel
    start_s: int
    round_s: int
    rounds: int
    lateness_s: int
    skew_s: int
    minimum_cohort: int
    planned_devices: int
    quota: int | None = None
    rotation: int = 1
    ledgers: tuple[str, ...] = DEFAULT_LEDGERS
    choice: Choice | None = None
    file: InitVar[str] = "<survey>"
    canonical: bytes = field(init=False)
    digest: bytes = field(init=False)

    def __post_init__(self, file: str) -> None:
        rules = Rules(file)
        rules.terms(
            survey_id=self.id,
            version=self.version,
            title=self.title,
            start_s=self.start_s,
            round_s=self.round_s,
            rounds=self.rounds,
            lateness_s=self.lateness_s,
            skew_s=self.skew_s,
            minimum_cohort=self.minimum_cohort,
            planned_devices=self.planned_devices,
            quota=self.quota,
            rotation=self.rotation,
            ledgers=self.ledgers,
        )
        if self.rotation > 1 and all(each.kind == "static" for each in self.attributes):
            rules.refuse(
                "schedule.rotation",
                "must be left out where every attribute is static: its one answer serves all rounds",
                self.rotation,
            )
        rules.epsilon(self.epsilon)
        if self.form.lag >= self.rounds:
            rules.refuse("transition.lag", f"must be below the {self.rounds} rounds", self.form.lag)
        if not self.form.of_sets and any(isinstance(each.domain, SetDomain) for each in self.attributes):
            rules.refuse("attribute.type", "must not be set unless mechanism.name is set", "set")
        if not self.form.tells_absent and any(each.tells_absent for each in self.attributes):
            rules.refuse(
                "attribute.absent",
                "must be left out but for key_value, tables, transitions and bundles",
                True,
            )
        self.form.check(rules, self.channel)
        if self.channel.epsilon > self.epsilon:
            rules.refuse(
                "epsilon",
                f"must be at least the certified {self.channel.epsilon!r} of its channel",
                self.epsilon,
            )
        canonical = survey_canonical.encode(self)
        if len(canonical) > MAX_CANONICAL_BYTES:
            rules.refuse("", f"must compile to at most {MAX_CANONICAL_BYTES} bytes", len(canonical))
        derived = {
            "canonical": canonical,
            "digest": hashlib.sha256(canonical).digest()[:DIGEST_BYTES],
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        """Return the survey of a file: TOML, or what `hubbub survey compile` made of it.

        Raises:
            SurveyError: If the file cannot be read or is no valid survey; it names file, key, rule and value.
        """
        compiled = read_compiled(path)
        if compiled is not None:
            try:
                return cls.from_canonical(compiled, file=str(path))
            except WireError as error:
                raise SurveyError(
                    str(path), "", f"must be a compiled survey ({error})", "its bytes"
                ) from None
        from hubbub_authoring import files as authoring  # noqa: PLC0415 - not on a device

        return cls.parse(authoring.read(path), file=str(path))

    @classmethod
    def parse(cls, text: str, file: str = "<string>") -> Survey:
        """Return the survey of TOML text; `file` is what errors call it.

        Raises:
            SurveyError: If the text is no valid survey.
        """
        from hubbub_authoring import files as authoring  # noqa: PLC0415 - not on a device

        declared = authoring.parse(text, file)
        return cls(**declared, file=file)

    @classmethod
    def from_canonical(cls, data: bytes, file: str = "<canonical>") -> Survey:
        """Return the survey of canonical bytes, which may come from a hostile server.

        Everything is checked again, and epsilon is certified anew from the integers.

        Raises:
            WireError: If the bytes are not of this layout, or not the canonical ones of what they say.
            SurveyError: If what they say breaks a rule, or exceeds its declared epsilon.
        """
        try:
            survey = cls(**survey_canonical.decode(data), file=file)
        except SurveyError:
            raise
        except ParameterError as error:
            raise SurveyError(file, "", f"must keep every rule ({error})", "canonical bytes") from None
        survey_canonical.require_same(data, survey.canonical)
        return survey

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return (
            f"<Survey {self.id} version {self.version}, digest {self.digest.hex()}, epsilon {self.epsilon:g}>"
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks: what the survey asks, of whom, and what an answer costs."""
        rows = [
            ("title", self.title),
            ("asks for", ", ".join(f"{each.id} ({each.kind})" for each in self.attributes)),
            ("mechanism", self.channel.kind),
            ("epsilon of a report", f"{self.channel.epsilon:.6g}, at most {self.epsilon:g}"),
            ("rounds", f"{self.rounds} of {self.round_s:,} s"),
            ("smallest round", f"{self.minimum_cohort:,} reports"),
            ("digest", self.digest.hex()),
        ]
        return html_table((self.id, f"version {self.version}"), rows)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that it asks for: each must equal the one that the device's host registered."""
        return self.form.attributes

    @cached_property
    def attribute_ids(self) -> frozenset[str]:
        """Their ids, which a device asks for with every answer."""
        return frozenset(attribute.id for attribute in self.form.attributes)

    @property
    def attribute(self) -> Attribute:
        """The attribute of a survey that asks for one.

        Raises:
            ParameterError: If it asks for several.
        """
        if len(self.attributes) > 1:
            raise ParameterError(f"survey {self.id} must ask for one attribute, got {len(self.attributes)}")
        return self.attributes[0]

    @property
    def mapping(self) -> NDArray[np.intp] | None:
        """Input of every index of the domain and, last, of missing, shape (size + 1,); None for numbers.

        A table has one such axis per attribute.
        """
        return self.form.mapping

    @property
    def category_names(self) -> tuple[str, ...]:
        """Names of the m categories, "missing" last; of a table, of every attribute's margin in turn."""
        return self.form.category_names

    @property
    def category_of(self) -> NDArray[np.intp]:
        """Category of every input, shape (K,); of a table, one row per margin, shape (attributes, K)."""
        return self.form.category_of

    @property
    def missing_input(self) -> int:
        """The input where everything is missing or out of the domain: the last."""
        return self.channel.inputs - 1

    @property
    def grid_points(self) -> int | None:
        """The number of points of a number survey's grid, else None."""
        return self.form.grid_points

    @property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs, the last one "missing"."""
        return self.form.input_labels

    @property
    def points(self) -> NDArray[np.float64] | None:
        """The number that each input stands for, shape (K,), nan at missing; None without numbers."""
        return self.form.points

    def input_of(self, *values: object, source: Source = SYSTEM) -> int:
        """Return the channel's input for a value; missing for None, nan and whatever is out of the domain.

        A number is rounded to one of the two grid points beside it at random so that the mean stays unbiased:
        another call may round it differently, so a caller who keeps a value keeps its input.

        Args:
            values: What the host application holds, one per attribute in their order; of a transition the
                value then and the value now.
            source: Where the rounding's bytes come from; leave it alone outside simulations and tests.
        """
        return self.form.input_of(values, source)

    @property
    def planned_per_round(self) -> int:
        """The devices that the design counts on in one round: of a rotating survey, one in `rotation`."""
        return max(1, self.planned_devices // self.rotation)

    def round_at(self, now_s: float) -> int | None:
        """Return the round that a moment lies in, or None outside the schedule."""
        if not self.start_s <= now_s < self.round_end_s(self.rounds - 1):
            return None
        return min(math.floor((now_s - self.start_s) / self.round_s), self.rounds - 1)

    def round_start_s(self, number: int) -> int:
        """Return the start of a round, seconds since 1970."""
        return self.start_s + number * self.round_s

    def round_end_s(self, number: int) -> int:
        """Return the end of a round, where the next begins, seconds since 1970."""
        return self.round_start_s(number + 1)

    def estimator(self) -> Estimator:
        """Return the unbiased estimator of this survey's channel, categories and points."""
        return self.form.estimator(self.channel)

    def estimate(self, symbols: Sequence[Symbol] | NDArray[np.unsignedinteger[Any]]) -> Estimate:
        """Return the estimate of one round from the symbols of its reports.

        Args:
            symbols: One per report, as `channel.perturb` gives them: numbers or packed sets, or a column of
                them, shape (n,), or (n, width) of uint8 for sets.

        Raises:
            ParameterError: If there is none, or one that the channel cannot send.
        """
        column = self.channel.column_of(symbols)
        return self.estimator()(self.channel.tally(column), len(column))
