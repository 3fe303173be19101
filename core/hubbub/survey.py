"""The survey: who is asked what, when, through which channel; parsed, compiled, canonical, and digested.

A survey's canonical bytes hold everything that a device and a server must agree on, the channel's integers
included. Their digest travels in every report, so that two sides that differ in one parameter fail closed.
"""

from __future__ import annotations

import hashlib
import math
import numbers
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub import survey_canonical, survey_toml
from hubbub.channel import Channel
from hubbub.domain import Attribute, IntegerDomain, NumberDomain
from hubbub.errors import ParameterError, SurveyError
from hubbub.estimation import AnyEstimator, estimator_for
from hubbub.mechanisms.levels import Levels, SetLevels
from hubbub.mechanisms.pbgrr import PBGRR
from hubbub.mechanisms.rounding import stochastic
from hubbub.randomness import SYSTEM, Source
from hubbub.survey_rules import MAX_CANONICAL_BYTES, MAX_NAME_CHARACTERS, MISSING, Rules
from hubbub.wire import DIGEST_BYTES


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """One compiled survey.

    The guarantee: any report of it is `epsilon`-differentially private for the attribute's value, missing
    included, because `channel.epsilon`, certified from the integers, is at most `epsilon`.

    Attributes:
        id: The survey's name; `version` tells its editions apart.
        title: What people read.
        attribute: What it asks for: it must equal the attribute that the device's host registered.
        epsilon: Declared, per report.
        channel: From inputs 0..K-1 to symbols; the last input means missing.
        category_names: Names of the m categories, the last one "missing".
        category_of: Category of every input, shape (K,), contiguous and rising.
        mapping: Input of every index of the attribute's domain and, last, of missing, shape (size + 1,);
            None for numbers, whose inputs are grid points.
        start_s: When round 0 begins, seconds since 1970-01-01T00:00Z.
        round_s: Seconds of a round; round r is [start_s + r round_s, start_s + (r+1) round_s).
        rounds: How many rounds the schedule has.
        lateness_s: How long after its round a report is still taken.
        skew_s: How far a device's clock may be ahead.
        minimum_cohort: Fewer accepted reports than this release nothing.
        planned_devices: How many devices the design counts on.
        quota: The most reports that one round takes, or None.
        canonical: The bytes that `from_canonical` reads.
        digest: The first 16 bytes of SHA-256 of `canonical`.

    A device holds surveys that it was sent: what only a server reads (labels, points) is made when asked for.

    Raises:
        SurveyError: If any part breaks a rule, or the channel's certified epsilon exceeds the declared one.
    """

    id: str
    version: int
    title: str
    attribute: Attribute
    epsilon: float
    channel: Channel
    category_names: tuple[str, ...]
    category_of: NDArray[np.intp]
    mapping: NDArray[np.intp] | None
    start_s: int
    round_s: int
    rounds: int
    lateness_s: int
    skew_s: int
    minimum_cohort: int
    planned_devices: int
    quota: int | None = None
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
        )
        rules.epsilon(self.epsilon)
        _check_categories(rules, self.channel, self.category_names, self.category_of)
        _check_mapping(rules, self.channel, self.attribute, self.mapping, self.category_of)
        if self.channel.epsilon > self.epsilon:
            rules.refuse(
                "epsilon",
                f"must be at least the certified {self.channel.epsilon!r} of its channel",
                self.epsilon,
            )
        if isinstance(self.attribute.domain, NumberDomain):
            try:
                self.attribute.domain.grid(self.channel.inputs - 1)
            except ParameterError as error:
                rules.refuse("attribute", f"must leave room for its inputs ({error})", self.attribute.id)
        for array in (self.category_of, self.mapping):
            if array is not None:
                array.setflags(write=False)
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
        """The survey of a TOML file.

        Raises:
            SurveyError: If the file cannot be read or is no valid survey; it names file, key, rule and value.
        """
        return cls.parse(survey_toml.read(path), file=str(path))

    @classmethod
    def parse(cls, text: str, file: str = "<string>") -> Survey:
        """The survey of TOML text; `file` is what errors call it.

        Raises:
            SurveyError: If the text is no valid survey.
        """
        declared = survey_toml.parse(text, file)
        return cls(**declared, file=file)

    @classmethod
    def from_canonical(cls, data: bytes, file: str = "<canonical>") -> Survey:
        """The survey of canonical bytes, which may come from a hostile server.

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

    @property
    def missing_input(self) -> int:
        """The input that a missing or out-of-domain value has: the last."""
        return self.channel.inputs - 1

    @property
    def grid_points(self) -> int | None:
        """How many points the grid of a number survey has, else None."""
        return self.channel.inputs - 1 if isinstance(self.attribute.domain, NumberDomain) else None

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs, the last one "missing"."""
        domain = self.attribute.domain
        if isinstance(domain, NumberDomain):
            return (*(f"{point:.6g}" for point in domain.grid(self.missing_input)), MISSING)
        assert self.mapping is not None  # noqa: S101 - construction refuses that
        first, shared = _order(self.mapping)
        inputs = zip(first.tolist(), shared.tolist(), self.category_of[:-1].tolist(), strict=True)
        return (
            *(
                self.category_names[category] if several else self.attribute.label_of(index)
                for index, several, category in inputs
            ),
            MISSING,
        )

    @cached_property
    def points(self) -> NDArray[np.float64] | None:
        """The number that each input stands for, shape (K,), nan at missing; None without numbers."""
        domain = self.attribute.domain
        if isinstance(domain, NumberDomain):
            numbers = domain.grid(self.missing_input)
        else:
            assert self.mapping is not None  # noqa: S101 - construction refuses that
            first, shared = _order(self.mapping)
            if not isinstance(domain, IntegerDomain) or shared.any():
                return None
            numbers = domain.low + first.astype(np.float64)
        points = np.append(numbers, np.nan)
        points.setflags(write=False)
        return points

    def input_of(self, value: object, *, source: Source = SYSTEM) -> int:
        """The channel's input for a value; missing for None, nan, other types and what is out of the domain.

        A number is rounded to one of the two grid points beside it at random so that the mean stays unbiased:
        another call may round it differently, so a caller who keeps a value keeps its input.

        Args:
            value: What the host application holds.
            source: Where the rounding's bytes come from; leave it alone outside simulations and tests.
        """
        domain = self.attribute.domain
        if self.mapping is not None:
            return int(self.mapping[self.attribute.index_of(value)])
        assert isinstance(domain, NumberDomain)  # noqa: S101 - construction refuses any other
        number = _exact(value)
        if number is None or not domain.low <= number <= domain.high:
            return self.missing_input
        return stochastic(number, domain.low, domain.high, self.missing_input, source=source)

    def round_at(self, now_s: float) -> int | None:
        """The round that a moment lies in, or None outside the schedule."""
        if not self.start_s <= now_s < self.round_end_s(self.rounds - 1):
            return None
        return min(math.floor((now_s - self.start_s) / self.round_s), self.rounds - 1)

    def round_start_s(self, number: int) -> int:
        """When a round begins, seconds since 1970."""
        return self.start_s + number * self.round_s

    def round_end_s(self, number: int) -> int:
        """When a round ends and the next begins, seconds since 1970."""
        return self.round_start_s(number + 1)

    def estimator(self) -> AnyEstimator:
        """The unbiased estimator of this survey's channel, categories and points."""
        return estimator_for(
            self.channel,
            category_of=self.category_of,
            points=self.points,
            missing=self.missing_input,
            rounding="none" if self.grid_points is None else "stochastic",
        )


def _exact(value: object) -> Fraction | None:
    """`value` as the exact number that it is, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    return Fraction(number) if math.isfinite(number) else None


def _check_categories(
    rules: Rules, channel: Channel, names: tuple[str, ...], category_of: NDArray[np.intp]
) -> None:
    if channel.inputs < 3:
        rules.refuse("attribute", "must have at least two inputs beside missing", channel.inputs - 1)
    steps = np.diff(category_of)
    if (
        category_of.shape != (channel.inputs,)
        or category_of[0] != 0
        or category_of[-1] != len(names) - 1
        or not np.isin(steps, (0, 1)).all()
        or steps[-1] != 1
    ):
        rules.refuse("category", "must partition the inputs in order, missing last and alone", list(names))
    if isinstance(channel, PBGRR) and not np.array_equal(channel.category_of, category_of):
        rules.refuse("category", "must be the categories of its pbgrr channel", list(names))
    if isinstance(channel, Levels | SetLevels) and not any(
        np.array_equal(level.labels, category_of) for level in channel.levels
    ):
        rules.refuse("category", "must be a level of its levels channel", list(names))
    for i, name in enumerate(names):
        rules.text(f"category[{i}].name", name, MAX_NAME_CHARACTERS)
        if (name == MISSING) != (i == len(names) - 1):
            rules.refuse(f"category[{i}].name", f'must be "{MISSING}" for the last category only', name)
    if len(set(names)) != len(names):
        rules.refuse("category", "must have names that differ", list(names))


def _check_mapping(
    rules: Rules,
    channel: Channel,
    attribute: Attribute,
    mapping: NDArray[np.intp] | None,
    category_of: NDArray[np.intp],
) -> None:
    missing = channel.inputs - 1
    if (mapping is None) != isinstance(attribute.domain, NumberDomain):
        rules.refuse("attribute.type", "must be a number where there is no mapping, and only there", mapping)
    if mapping is None:
        return
    size = attribute.size
    if mapping.shape != (size + 1,) or mapping.min() < 0 or mapping.max() > missing:
        rules.refuse("attribute", f"must have {size + 1} mapped indices within 0 to {missing}", len(mapping))
    values_per_input = np.bincount(mapping, minlength=channel.inputs)
    if mapping[size] != missing or values_per_input[missing] != 1 or not values_per_input.all():
        rules.refuse("attribute", "must map onto every input, and only missing to the last", attribute.id)
    together = values_per_input[category_of.argsort(kind="stable")] > 1
    inputs_per_category = np.bincount(category_of)
    if (inputs_per_category[category_of[together]] > 1).any():
        rules.refuse(
            "category", "must be one input where one of its inputs holds several values", attribute.id
        )


def _order(mapping: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The first index of the domain that each input but missing stands for, and whether it has others."""
    inputs = int(mapping[-1])
    order = np.argsort(mapping[:-1], kind="stable")
    first = np.searchsorted(mapping[order], np.arange(inputs))
    return order[first], np.bincount(mapping[:-1], minlength=inputs) > 1
