"""The entry of a mechanism: all that survey files, the designer and the documents know of it.

A mechanism's module holds its functions, its channel (unless it compiles to a dense one) and its entry, in a
tuple `ENTRIES`; a larger one keeps its channel in a module of its own, as `pbgrr_entry` does in `pbgrr`. The
registry names the module of the entry; docs/extending.md shows one being added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import MAX_INPUTS, Channel
from hubbub.errors import ABSENT

if TYPE_CHECKING:
    from hubbub.survey import Attribute, Rules
    from hubbub_authoring.mechanisms.workload import Workload

Subject = Literal["labels", "numbers", "table"]
"""An attribute of integers or labels; one of numbers, on a grid; the cross table of several attributes."""

Parameters: TypeAlias = dict[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a mechanism in a survey file.

    Attributes:
        name: Under [mechanism].
        sentence: The explanation that the site's reference prints.
        required: The rule that an error names where the key is absent; "" where it may be.
    """

    name: str
    sentence: str
    required: str = ""

    @property
    def place(self) -> str:
        """The dotted name in a survey file."""
        return f"mechanism.{self.name}"

    def given(self, request: Request) -> bool:
        """Return whether a file gives the key.

        Raises:
            SurveyError: If the key is required and absent.
        """
        if self.name in request.keys:
            return True
        if self.required:
            request.rules.refuse(self.place, self.required, ABSENT)
        return False

    def refuse(self, request: Request, rule: str) -> NoReturn:
        """Refuse the key, with the rule that it breaks."""
        request.rules.refuse(self.place, rule, request.keys.get(self.name, ABSENT))


@dataclass(frozen=True, slots=True)
class ChoiceKey(Key):
    """A key that is one of a few words; where it is absent its default, or else the first of them."""

    choices: tuple[str, ...] = ()
    default: str = ""

    def read(self, request: Request) -> str:
        """Return the word."""
        value = request.keys[self.name] if self.given(request) else self.default or self.choices[0]
        return request.rules.choice(self.place, value, self.choices)


@dataclass(frozen=True, slots=True)
class RealKey(Key):
    """A key that is a finite number within its bounds."""

    low: float = -math.inf
    high: float = math.inf

    def read(self, request: Request, high: float | None = None) -> float | None:
        """Return the number, None where it is absent; `high` is a bound that only the survey knows."""
        if not self.given(request):
            return None
        top = self.high if high is None else high
        return request.rules.real(self.place, request.keys[self.name], self.low, top)


@dataclass(frozen=True, slots=True)
class IntegerKey(Key):
    """A key that is an integer within its bounds."""

    low: int = 0
    high: int = MAX_INPUTS

    def read(self, request: Request, high: int | None = None) -> int | None:
        """Return the integer, None where it is absent; `high` is a bound that only the survey knows."""
        if not self.given(request):
            return None
        top = self.high if high is None else high
        return request.rules.integer(self.place, request.keys[self.name], self.low, top)


READING: Final = ChoiceKey(
    "reading",
    '`reading = "category"` makes every category one input; otherwise every value is one',
    choices=("value", "category"),
)
"""The key of mechanisms that may be asked about categories in place of values; the compiler reads it."""

POINTS: Final = IntegerKey(
    "points", "`points` of the grid, for numbers", required="must be given", low=2, high=MAX_INPUTS - 1
)
"""The key of mechanisms of numbers; the compiler reads it."""


@dataclass(frozen=True, eq=False)
class Request:
    """One channel to compile: the keys that a file declares, and the inputs that they are about.

    Attributes:
        rules: How to refuse.
        keys: Those of [mechanism], of known names, unchecked.
        inputs: K, the missing one included, which is last.
        epsilon: Declared, per report.
        category_of: Category of every input, shape (K,), rising, missing last and alone.
        categories: Declared categories; 0 without any.
        devices: How many the design counts on.
        attribute: What is asked for; None in a table.
        order: Input of every value of the attribute and of missing; None for numbers and tables.
        span: The two ends of a number; None for anything else.
        integers: True if the values are integers, told by their order.
        joined: Values per category where every category is one input, missing left out; () elsewhere.
    """

    rules: Rules
    keys: Mapping[str, object]
    inputs: int
    epsilon: float
    category_of: NDArray[np.intp]
    categories: int = 0
    devices: int = 1
    attribute: Attribute | None = None
    order: NDArray[np.intp] | None = None
    span: tuple[float, float] | None = None
    integers: bool = False
    joined: tuple[int, ...] = ()

    @property
    def sizes(self) -> list[int]:
        """Inputs per category, missing last."""
        counts: list[int] = np.bincount(self.category_of).tolist()
        return counts

    @property
    def points(self) -> int:
        """Points of a number's grid: all inputs but missing."""
        return self.inputs - 1


Build: TypeAlias = Callable[[], Channel]
Judge: TypeAlias = Callable[[Build], float]
"""The objective's value for what is built; inf where it does not compile."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to answer a workload: a mechanism with its keys, for the designer to measure.

    Attributes:
        parameters: Its keys in a survey file.
        build: Compiles it; a ParameterError of it is the reason why it does not fit.
        simplicity: Of equally good trials the one of the least number is taken.
        by_category: True if its inputs are the workload's categories, and values are hidden.
        told: Return all keys of a built channel, with those that were searched for; None: `parameters` are
            all.
    """

    parameters: Parameters
    build: Build
    simplicity: int
    by_category: bool = False
    told: Callable[[Channel], Parameters] | None = None


def no_trials(workload: Workload, judge: Judge) -> Iterable[Trial]:
    """Return nothing: "auto" does not choose it, because an author has to say what it is for."""
    del workload, judge
    return ()


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A mechanism as survey files, the designer and the documents know it.

    Attributes:
        name: In a survey file.
        purpose: The data that it is for, as the site's reference prints it.
        keys: Its keys in a survey file.
        takes: The subjects that it can be asked about.
        build: Compiles a request; raises SurveyError for a key that breaks its rule, ParameterError where no
            integers keep the declared epsilon.
        trials: The designer's trials for a workload, each tuned by its judge.
    """

    name: str
    purpose: str
    keys: tuple[Key, ...]
    takes: frozenset[Subject]
    build: Callable[[Request], Channel]
    trials: Callable[[Workload, Judge], Iterable[Trial]] = no_trials

    def key(self, name: str) -> Key | None:
        """Return the key of a name; None where the mechanism has none."""
        return next((key for key in self.keys if key.name == name), None)


def grid_parameters(workload: Workload) -> Parameters:
    """Return the key that a number's survey needs beside a mechanism's own: none for labels."""
    return {"points": workload.inputs - 1} if workload.kind == "grid" else {}


def grouped(workload: Workload) -> bool:
    """Return whether a workload has two categories or more beside missing, one of them of several values."""
    return len(workload.sizes) > 2 and max(workload.sizes) > 1
