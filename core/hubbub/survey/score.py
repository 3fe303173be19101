"""The form of a survey that asks for a score of several numbers: a linear, truncated or logistic regression.

The device computes the score, and its place g, 0 to 1, between the two ends of the output. An exact coin
moves it to the upper end with probability g, and randomised response says at which end it is (Pan, eq. 8). So
the channel has two inputs, the ends, and its integers certify epsilon whatever the score. Nothing but the
mean of the score can be told from the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from hubbub import mechanisms
from hubbub.channels.channel import Channel
from hubbub.errors import ABSENT, ParameterError, WireError
from hubbub.filter.regression.regression import MAX_NUMBERS, TOTAL, Box, Regression
from hubbub.mechanisms.rounding import stochastic, stochastic_many
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import (
    Attribute,
    DictionaryDomain,
    IntegerDomain,
    LabelDomain,
    SetDomain,
    exact_number,
    number_names,
)
from hubbub.survey.form import BaseForm, FormEntry, FormRequest
from hubbub.survey.rules import Rules, check_attributes
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation

FORM: Final = "score"

NO_NUMBERS: Final = (LabelDomain, SetDomain, DictionaryDomain)
"""The domains that a score cannot read."""

ScoreKind = Literal["linear", "truncated", "logistic"]
SCORE_KINDS: Final[tuple[ScoreKind, ...]] = ("linear", "truncated", "logistic")


@dataclass(frozen=True, eq=False)
class Score(BaseForm):
    """A score, and the defaults that take the place of missing numbers.

    Attributes:
        attributes: The numbers that it reads, in the order of their ids; integers count as the numbers that
            they are.
        kind: See `Regression`.
        coefficients: One per attribute.
        intercept: Added to their sum.
        defaults: What a missing value of each attribute counts as, within its domain.
        low: The output's lower end.
        high: Its upper end.
        epsilon: Declared, of one answer.
    """

    attributes: tuple[Attribute, ...]
    kind: ScoreKind
    coefficients: tuple[float, ...]
    intercept: float
    defaults: tuple[float, ...]
    low: float
    high: float
    epsilon: float

    noun: ClassVar[str] = "record"
    """The word for what an answer tells apart, for the owner of a device."""

    cost: ClassVar[str] = (
        "Its cost adds to that of every survey but scores of the same values that count what is missing "
        "alike, because what two answers say together is at most the sum of what each says."
    )
    """The sentence about the cost of an answer beside its loss."""

    tells_values: ClassVar[bool] = False
    """False: only a mean can be told."""

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: the score."""
        return f"a score of {'; '.join(attributes)}"

    def description(self, channel: Channel) -> str:
        """Return how an answer is made, for the owner of a device."""
        del channel
        terms = " ".join(
            f"{'-' if weight < 0 else '+'} {abs(weight):g} x {attribute.id}"
            for attribute, weight in zip(self.attributes, self.coefficients, strict=True)
        )
        return (
            f"The device works out a {self.kind} score, {self.intercept:g} {terms}, from {self.low:g} to "
            f"{self.high:g}, moves it to one of these ends at random, and says that end or, at random, "
            "the other."
        )

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If attributes, coefficients or defaults are not such, or the channel is not theirs.
        """
        check_attributes(rules, self.attributes, 1, MAX_NUMBERS)
        if list(self.attributes) != sorted(self.attributes, key=lambda attribute: attribute.id):
            rules.refuse("attribute", "must be in the order of ids", [each.id for each in self.attributes])
        for i, (attribute, default) in enumerate(zip(self.attributes, self.defaults, strict=True)):
            domain = attribute.domain
            if isinstance(domain, NO_NUMBERS):
                rules.refuse(
                    f"attribute[{i}].type", "must be integer or number in a score", attribute.to_spec()[2]
                )
            rules.real(f"attribute[{i}].default", default, domain.low, domain.high)
        try:
            own = score_channel(self.regression)
        except ParameterError as error:
            rules.refuse("mechanism", f"must be a score ({error})", self.kind)
        if channel != own:
            rules.refuse("mechanism", "must be the randomised response of its epsilon", channel.kind)

    @cached_property
    def regression(self) -> Regression:
        """The regression that the privacy filter accounts for.

        Raises:
            ParameterError: If a number is out of its range, or a linear score leaves the output's ends.
        """
        domains = [attribute.domain for attribute in self.attributes]
        box = Box(
            # Whole numbers are taken for any between: the loss over more records is never less.
            tuple(float(domain.low) for domain in domains if not isinstance(domain, NO_NUMBERS)),
            tuple(float(domain.high) for domain in domains if not isinstance(domain, NO_NUMBERS)),
        )
        return Regression(
            self.kind, box, self.coefficients, self.intercept, self.epsilon, self.low, self.high
        )

    @property
    def shared_point(self) -> tuple[float, ...]:
        """The defaults: two scores of the same pinned numbers read the same point if these are equal."""
        return self.defaults

    def likelihood(self, channel: Channel) -> Regression:
        """Return the regression that the privacy filter accounts for; the channel follows from it."""
        del channel
        return self.regression

    @property
    def input_labels(self) -> tuple[str, ...]:
        """The two ends of the output."""
        return number_names((self.low, self.high))

    @property
    def category_names(self) -> tuple[str, ...]:
        """None: only a mean can be told."""
        return ()

    @property
    def category_of(self) -> NDArray[np.intp]:
        """No grouping of the two inputs, shape (0, 2)."""
        return np.empty((0, 2), dtype=np.intp)

    @property
    def points(self) -> NDArray[np.float64]:
        """The two ends of the output, shape (2,)."""
        return np.array([self.low, self.high])

    def place(self, values: Sequence[object]) -> float:
        """Return the place of the output between its ends, 0 to 1, for one value per attribute.

        What is None, no number, or out of an attribute's domain counts as the attribute's default.
        """
        numbers = []
        for attribute, value, default in zip(self.attributes, values, self.defaults, strict=True):
            number, domain = exact_number(value), attribute.domain
            assert not isinstance(domain, NO_NUMBERS)  # noqa: S101 - `check` refuses that
            whole = not isinstance(domain, IntegerDomain) or (number is not None and number.denominator == 1)
            inside = number is not None and whole and domain.low <= number <= domain.high
            numbers.append(float(number) if number is not None and inside else default)
        return self.regression.place(numbers)

    def score(self, values: Sequence[object]) -> float:
        """Return the output for one value per attribute: what the released mean is the mean of."""
        return self.low + (self.high - self.low) * self.place(values)

    def number_of(self, values: Sequence[object]) -> float:
        """Return the output for one value per attribute."""
        return self.score(values)

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the end that a device moves to, by an exact coin; see `Survey.input_of`."""
        return stochastic(self.place(values), 0.0, 1.0, 2, source=source)

    def inputs_of(self, columns: Sequence[NDArray[np.float64]], source: Source) -> NDArray[np.intp]:
        """Return the ends that many devices move to, shape (n,), for simulation: near `input_of`'s law.

        Args:
            columns: The numbers of each attribute, shape (n,), float, nan where missing, else in its domain.
            source: Where the bytes come from.
        """
        total = np.full(len(columns[0]), self.intercept)
        for column, default, coefficient in zip(columns, self.defaults, self.coefficients, strict=True):
            total += coefficient * np.where(np.isnan(column), default, column)
        if self.kind == "logistic":
            small = np.exp(-np.abs(total))
            places = np.where(total >= 0.0, 1.0, small) / (1.0 + small)
        else:
            places = np.clip((total - self.low) / (self.high - self.low), 0.0, 1.0)
        return stochastic_many(places, 0.0, 1.0, 2, source=source).astype(np.intp)

    def estimator(self, channel: Channel) -> estimation.ScoreEstimator:
        """Return the unbiased estimator of the mean score."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.ScoreEstimator(cast(mechanisms.GRR, channel), low=self.low, high=self.high)

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `score_from_spec` reads them."""
        return [
            FORM,
            self.kind,
            [[*pair] for pair in zip(self.coefficients, self.defaults, strict=True)],
            self.intercept,
            [self.low, self.high],
        ]


def score_channel(regression: Regression) -> mechanisms.GRR:
    """Return the channel of a score: at which of two ends the device is, by randomised response."""
    return mechanisms.GRR(2, TOTAL - regression.least, regression.least)


def score_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> Score:
    """Return the score that `Score.to_spec` described; `Score.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
    """
    packing.array(fields, "score", 5)
    kind = packing.text(fields[1], "score", 16)
    if kind not in SCORE_KINDS:
        raise WireError(f"a score must be one of {', '.join(SCORE_KINDS)}, got {kind!r}")
    pairs = [packing.array(item, "score coefficient", 2) for item in packing.array(fields[2], "score")]
    if len(pairs) != len(attributes):
        raise WireError(f"a score must have {len(attributes)} coefficients, got {len(pairs)}")
    low, high = (packing.real(end, "score end") for end in packing.array(fields[4], "score ends", 2))
    return Score(
        attributes,
        kind,
        tuple(packing.real(pair[0], "score coefficient") for pair in pairs),
        packing.real(fields[3], "score intercept"),
        tuple(packing.real(pair[1], "score default") for pair in pairs),
        low,
        high,
        epsilon,
    )


def _of_request(request: FormRequest) -> tuple[Score, Channel]:
    """Return the score of a survey file, its attributes in the order of ids: one score has one encoding."""
    rules, keys = request.rules, request.keys
    if request.participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for a regression", request.participation)
    check_attributes(rules, [each.attribute for each in request.asked], 1, MAX_NUMBERS)
    pairs = {}
    for each in request.asked:
        domain = each.attribute.domain
        if isinstance(domain, NO_NUMBERS):
            rules.refuse(
                f"{each.key}.type", "must be integer or number in a score", each.attribute.to_spec()[2]
            )
        if each.categories:
            rules.refuse(f"{each.key}.category", "must not be given in a score", each.categories[0].name)
        pairs[each.attribute.id] = (
            rules.real(f"{each.key}.coefficient", each.terms["coefficient"]),
            rules.real(f"{each.key}.default", each.terms["default"], float(domain.low), float(domain.high)),
        )
    for key in ("score", "intercept"):
        if key not in keys:
            rules.refuse(f"mechanism.{key}", "must be given", ABSENT)
    chosen = rules.choice("mechanism.score", keys["score"], SCORE_KINDS)
    kind = next(kind for kind in SCORE_KINDS if kind == chosen)
    ends = {}
    for key, fixed in (("low", 0.0), ("high", 1.0)):
        if kind == "logistic" and key in keys:
            rules.refuse(f"mechanism.{key}", f"must be absent for a logistic score, {fixed:g}", keys[key])
        if kind != "logistic" and key not in keys:
            rules.refuse(f"mechanism.{key}", "must be given", ABSENT)
        ends[key] = rules.real(f"mechanism.{key}", keys.get(key, fixed))
    attributes = sorted((each.attribute for each in request.asked), key=lambda attribute: attribute.id)
    form = Score(
        tuple(attributes),
        kind,
        tuple(pairs[attribute.id][0] for attribute in attributes),
        rules.real("mechanism.intercept", keys["intercept"]),
        tuple(pairs[attribute.id][1] for attribute in attributes),
        ends["low"],
        ends["high"],
        request.epsilon,
    )
    return form, score_channel(form.regression)


ENTRY: Final = FormEntry(
    read=score_from_spec,
    mechanism="regression",
    keys=("score", "intercept", "low", "high"),
    terms=("coefficient", "default"),
    compile=_of_request,
)
