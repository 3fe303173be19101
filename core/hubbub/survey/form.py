"""The form of a survey: what it asks for, and how the answer becomes an input of its channel.

A form is one module, with a class that does what `Form` says, and one line of `forms`; docs/extending.md
shows one being added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import Attribute
from hubbub.survey.rules import Rules

if TYPE_CHECKING:
    from hubbub.estimation import Estimator
    from hubbub.filter import Likelihood, Regression
    from hubbub.survey.declared import DeclaredAttribute

Law: TypeAlias = "Likelihood | Regression"
"""The knowledge that the privacy filter has of the answers to a survey."""


class Form(Protocol):
    """The members that every form has; `BaseForm` gives those that most forms have in common."""

    noun: ClassVar[str]
    """The word for what an answer tells apart, for the owner of a device."""

    cost: ClassVar[str]
    """The sentence about the cost of an answer beside its loss; "" where there is nothing to add."""

    alone: ClassVar[bool]
    """True if it asks for one attribute, so that its categories are parts of its inputs, missing last."""

    tells_values: ClassVar[bool]
    """True if frequencies can be told from its answers; False if nothing but a mean can."""

    of_sets: ClassVar[bool]
    """True if a device's value is a set of items, and an input no number below K."""

    tells_absent: ClassVar[bool]
    """True if "absent" may be a value of what it asks for, told apart from missing."""

    samples_parts: ClassVar[bool]
    """True if a device answers one part of what is asked, by a coin that it tosses once: a `Bundle`."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that it asks for."""

    @property
    def lag(self) -> int:
        """Rounds between the two values of an attribute that an answer reads; 0: it reads those of now."""

    @property
    def reads(self) -> tuple[Attribute, ...]:
        """The attributes whose values an answer takes, in their order."""

    @property
    def mapping(self) -> NDArray[np.intp] | None:
        """Input of every combination of indices, an axis of size + 1 per value read, missing last on each.

        None where a device works the input out of numbers: see `input_of` and `shared_point`.
        """

    @property
    def map_entries(self) -> int:
        """The entries of the largest map that reading the form builds, of values or of combinations."""

    @property
    def grid_points(self) -> int | None:
        """Points of a number's grid; None for any other form."""

    @property
    def joins_values(self) -> bool:
        """True if values are told by category alone: an input stands for several of them."""

    @property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs."""

    @property
    def category_names(self) -> tuple[str, ...]:
        """Names of the m categories."""

    @property
    def category_of(self) -> NDArray[np.intp]:
        """Category of every input, shape (K,), or one row per margin, shape (margins, K)."""

    @property
    def cell_levels(self) -> tuple[tuple[int, str | None], ...] | None:
        """Level in a tree, from 1, and name of what it is in, of every category and then of every input.

        None where categories are no tree: the rows of `category_of` are then margins.
        """

    @property
    def points(self) -> NDArray[np.float64] | None:
        """The number that each input stands for, shape (K,), nan at missing; None without numbers."""

    @property
    def shared_point(self) -> tuple[float, ...] | None:
        """The facts by which memoised answers of two surveys without `mapping` read the same point.

        Two surveys of the same attributes and the same shared point have one coordinate in the privacy
        filter. None where every survey has a draw of its own.
        """

    @property
    def apart(self) -> str:
        """The name of a coordinate that every survey of the form has for itself, pinned values or not.

        Its law is a constant: losses add. "" where surveys share the coordinates of what they read.
        """

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for.

        Args:
            attributes: The attributes, each in words.
        """

    def description(self, channel: Channel) -> str:
        """Return how an answer is made, for the owner of a device."""

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If the parts of the form break a rule, or are not those of the channel.
        """

    def likelihood(self, channel: Channel) -> Law:
        """Return the law of the answers as the privacy filter reads it."""

    def held_inputs(self, channel: Channel) -> int:
        """Return how many inputs a device keeps something of each for."""

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the channel's input for one value per attribute; see `Survey.input_of`."""

    def inputs_of(self, columns: Sequence[NDArray[np.float64]], source: Source) -> NDArray[np.intp]:
        """Return the inputs of many devices, shape (n,), where there is no `mapping`; for simulation.

        Args:
            columns: The numbers of each attribute, shape (n,), float, nan where missing, else in its domain.
            source: Where the bytes come from.
        """

    def number_of(self, values: Sequence[object]) -> float | None:
        """Return the number that the released mean is the mean of, for one value per attribute.

        None where the device has none, or the form has no numbers.
        """

    def estimator(self, channel: Channel) -> Estimator:
        """Return the unbiased estimator of what the form asks for."""

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries."""


class BaseForm:
    """The members that most forms have in common."""

    noun: ClassVar[str] = "value"
    """The word for what an answer tells apart, for the owner of a device."""

    cost: ClassVar[str] = ""
    """The sentence about the cost of an answer beside its loss; "" where there is nothing to add."""

    alone: ClassVar[bool] = False
    """True if it asks for one attribute, so that its categories are parts of its inputs, missing last."""

    tells_values: ClassVar[bool] = True
    """True if frequencies can be told from its answers; False if nothing but a mean can."""

    of_sets: ClassVar[bool] = False
    """True if a device's value is a set of items, and an input no number below K."""

    tells_absent: ClassVar[bool] = False
    """True if "absent" may be a value of what it asks for, told apart from missing."""

    samples_parts: ClassVar[bool] = False
    """True if a device answers one part of what is asked, by a coin that it tosses once: a `Bundle`."""

    lag: int = 0
    """0: an answer reads the values of now."""

    if TYPE_CHECKING:

        @property
        def attributes(self) -> tuple[Attribute, ...]:
            """The attributes that it asks for."""

    @property
    def reads(self) -> tuple[Attribute, ...]:
        """The attributes that it asks for, each once: the values of now."""
        return self.attributes

    @property
    def mapping(self) -> NDArray[np.intp] | None:
        """None: inputs are not read from a table of stored values."""
        return None

    @property
    def map_entries(self) -> int:
        """The entries of its mapping."""
        return 0 if self.mapping is None else self.mapping.size

    @property
    def grid_points(self) -> int | None:
        """None: no grid is asked about."""
        return None

    @property
    def cell_levels(self) -> tuple[tuple[int, str | None], ...] | None:
        """None: categories are no tree."""
        return None

    @property
    def joins_values(self) -> bool:
        """False: an input stands for one value, or for whatever a form's question reads alike."""
        return False

    @property
    def points(self) -> NDArray[np.float64] | None:
        """None: an input stands for no number."""
        return None

    @property
    def shared_point(self) -> tuple[float, ...] | None:
        """None: every survey has a draw of its own, or reads stored values by `mapping`."""
        return None

    @property
    def apart(self) -> str:
        """No name: surveys share the coordinates of what they read."""
        return ""

    def description(self, channel: Channel) -> str:
        """Return how an answer is made, for the owner of a device: the channel's own sentence."""
        return channel.description

    def likelihood(self, channel: Channel) -> Law:
        """Return the law of the answers as the privacy filter reads it: the channel's own."""
        return channel

    def held_inputs(self, channel: Channel) -> int:
        """Return how many inputs a device keeps something of each for: all."""
        return channel.inputs

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the channel's input for one value per attribute, by `mapping`; see `Survey.input_of`."""
        del source
        assert self.mapping is not None  # noqa: S101 - a form without it has an input_of of its own
        return int(self.mapping[*(a.index_of(v) for a, v in zip(self.attributes, values, strict=True))])

    def inputs_of(self, columns: Sequence[NDArray[np.float64]], source: Source) -> NDArray[np.intp]:
        """Raise NotImplementedError: callers look for `mapping` first, and a form that has it needs no more.

        Not abstract, so that a form with `mapping` need not write it; one without must.
        """
        raise NotImplementedError("a form without a mapping must work its inputs out of numbers")

    def number_of(self, values: Sequence[object]) -> float | None:
        """Return None: the form has no mean."""
        del values
        return None


@dataclass(frozen=True, eq=False)
class FormRequest:
    """One survey to compile, whose form is chosen by the name of its mechanism.

    Attributes:
        rules: How to refuse.
        asked: The attributes that its file declares, with their terms.
        keys: Those of [mechanism], of known names, unchecked.
        epsilon: Declared, per report.
        participation: As declared, unchecked; the coin is put in front of the channel afterwards.
    """

    rules: Rules
    asked: Sequence[DeclaredAttribute]
    keys: Mapping[str, object]
    epsilon: float
    participation: object


Compile: TypeAlias = Callable[[FormRequest], tuple[Form, Channel]]
"""A function that makes form and channel of a request; it raises SurveyError for what breaks a rule."""

ReadForm: TypeAlias = Callable[[tuple[Attribute, ...], list[object], float], Form]
"""A function that makes a form of attributes, the result of `Form.to_spec`, and epsilon; or raises
WireError."""


@dataclass(frozen=True, eq=False)
class FormEntry:
    """All that survey files and canonical bytes know of a form, as `ENTRY` of its module.

    Attributes:
        read: Reads its description in canonical bytes, which is not trusted.
        mechanism: The name under [mechanism] that makes a survey one of this form; "" for a form that any
            mechanism may answer, which the attributes of a file decide on.
        keys: Its keys under [mechanism].
        terms: Keys that it reads of every [[attribute]].
        compile: Compiles a survey file, where it has a mechanism of its own.
    """

    read: ReadForm
    mechanism: str = ""
    keys: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    compile: Compile | None = None
