"""The channel: a randomised map from inputs to symbols, given by integers, which every mechanism compiles to.

Everything is read from those integers: what is sampled, the certified epsilon, the likelihood that the
privacy filter uses, and what the estimator inverts. So none of them can disagree with another. A symbol is a
number where there are few of them (`hubbub.channels.finite`), or a set packed into bytes
(`hubbub.channels.sets`).

The unit of privacy is one report: for any two inputs, and any symbol, the log-ratio of the probabilities
is at most `epsilon`.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence
from hubbub.channels.spec import SpecValue
from hubbub.channels.symbols import Symbol
from hubbub.errors import ParameterError
from hubbub.numeric.randomness import SYSTEM, Source

MAX_WEIGHTS: Final = 2**24
"""The most entries of any matrix that is built, 128 MiB: a larger channel is used through its structure
only."""

LOGARITHM: Final = 2**17
"""The comparisons of two weights that one logarithm in decimal arithmetic takes as long as."""

MAX_INPUTS: Final = 2**17
"""The most inputs of a channel: what a survey's table of labels, estimates and errors can carry."""

MAX_HASHED: Final = 2**20
"""The most inputs of local hashing, whose answers are drawn and sent without a look at any other input."""

CountsKind: TypeAlias = Literal["bins", "support"]
"""Reports per bin; or by hashing per input, then by how many inputs of each category they hold."""


class Channel(ABC):
    """A randomised map from inputs 0..K-1 to symbols.

    Attributes:
        inputs: K.
    """

    kind: ClassVar[str]
    """The name under which the description of such a channel is known on the wire."""

    width: int = 0
    """Bytes of a symbol where symbols are sets; 0 where they are numbers."""

    most_inputs: ClassVar[int] = MAX_INPUTS
    """The most inputs of such a channel."""

    needs_map: ClassVar[bool] = True
    """False if an answer is drawn, and its categories read, without anything as large as the inputs."""

    description: ClassVar[str] = "The device sends a random answer that depends on yours."
    """The sentence that the owner of a device reads about such a channel."""

    _kinds: ClassVar[dict[str, type[Channel]]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Channel._kinds[cls.kind] = cls

    def __init__(self, inputs: int) -> None:
        if not 2 <= inputs <= self.most_inputs:
            raise ParameterError(f"a channel must have 2 to {self.most_inputs} inputs, got {inputs}")
        self.inputs = inputs

    @cached_property
    @abstractmethod
    def epsilon(self) -> float:
        """The certified epsilon: the largest log-ratio of a symbol, from the integers, rounded up."""

    @abstractmethod
    def column(self, symbol: Any) -> NDArray[np.int64]:  # noqa: ANN401 - of whichever type it sends
        """Return the weights of one symbol for every input, shape (K,), int64, >= 1.

        Their ratios are those of the symbol's probabilities, exactly.

        Raises:
            ParameterError: If the symbol is not one of the channel's.
        """

    @abstractmethod
    def log_likelihood(self, symbol: Any) -> NDArray[np.float64]:  # noqa: ANN401 - the same
        """Return the log-probability of a symbol under every input x, shape (K,), float64.

        Raises:
            ParameterError: If the symbol is not one of the channel's.
        """

    def loss(self, symbol: Any) -> float:  # noqa: ANN401 - of whichever type it sends
        """Return what one symbol tells at most: its largest log-ratio over two inputs, nats.

        Raises:
            ParameterError: If the symbol is not one of the channel's.
        """
        likelihood = self.log_likelihood(symbol)
        return float(likelihood.max() - likelihood.min())

    @abstractmethod
    def blocks(self) -> BlockDivergence:
        """Return the max-divergence of every pair of inputs in whole units, rounded up."""

    @property
    def most_blocks(self) -> int:
        """An upper bound of the number of blocks of `blocks`, known without making them."""
        return min(self.inputs, MAX_BLOCKS)

    @property
    def block_work(self) -> int:
        """The work that `blocks` takes at most, in comparisons of two weights: about 2 x 10^9 a second."""
        return 8 * self.inputs + self.most_blocks**2 + LOGARITHM

    @abstractmethod
    def divergence(self) -> NDArray[np.float64]:
        """Return D[x, x'], the largest log-ratio of a symbol's probabilities, shape (K, K), float64.

        Raises:
            ParameterError: If K^2 exceeds MAX_WEIGHTS.
        """

    @overload
    def perturb(self, values: int, *, source: Source = SYSTEM) -> Symbol: ...
    @overload
    def perturb(
        self, values: NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> NDArray[np.unsignedinteger[Any]]: ...
    @abstractmethod
    def perturb(
        self, values: int | NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> Symbol | NDArray[np.unsignedinteger[Any]]:
        """Return one freshly drawn symbol per value.

        Every report is `epsilon`-differentially private for its value, over all K inputs. Array and scalar
        calls have the same law; of finite channels they draw the same symbols from the same bytes.

        Args:
            values: One input, or inputs of shape (n,), any integer type, each in 0..K-1.
            source: Where the bytes come from; leave it alone outside simulations and tests.

        Raises:
            ParameterError: If a value is not an integer or out of range; the message does not repeat it.
        """

    # The questions of a design to a channel of any type.

    tells_inputs: ClassVar[bool] = True
    """False if it tells some inputs apart by their category only: a cross table has other margins."""

    shows_curve: ClassVar[bool] = False
    """True if it is made for cumulative shares and quantiles, which releases then state."""

    @property
    @abstractmethod
    def widest_symbol(self) -> Symbol:
        """A symbol of the most bytes on the wire, which need not be one that the channel sends."""

    def probabilities(self) -> NDArray[np.float64] | None:
        """Return the probability of every symbol for every input, (K, M); None where symbols are sets."""
        return None

    def symbol_numbers(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the number that every symbol reads as, nan for "missing"; None where symbols are no numbers.

        Args:
            points: The number of every input, shape (K,), equally spaced, nan at missing, which is last.
        """
        del points
        return None

    def category_rule(self, category_of: NDArray[np.intp]) -> str:
        """Return the rule that a survey's categories break, "" where they fit the channel.

        Args:
            category_of: Category of every input, shape (K,).
        """
        del category_of
        return ""

    def with_dummy_reports(self, share: Fraction) -> Channel:
        """Return the channel that answers through this one with probability `share`, else sends a dummy.

        See `hubbub.mechanisms.participation.with_dummy_reports`, which checks the share.

        Raises:
            ParameterError: If the mixture cannot be told in integers.
        """
        del share
        raise ParameterError(f"a channel must have a law of dummy reports, got {type(self).__name__}")

    # The work of a server on reports of any type.

    @property
    @abstractmethod
    def bins(self) -> int:
        """The length of a round's counts: one per symbol, or per bin of a set."""

    @abstractmethod
    def admits(self, symbol: object) -> bool:
        """Return whether one report's symbol is one that the channel can send; of whatever type it is."""

    @abstractmethod
    def contains(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.bool_]:
        """Return which symbols of a column the channel can send, shape (n,), bool.

        Args:
            symbols: Shape (n,), or (n, width) for sets; a column of the other type holds none of them.
        """

    def column_of(
        self, symbols: Sequence[Symbol] | NDArray[np.unsignedinteger[Any]]
    ) -> NDArray[np.unsignedinteger[Any]]:
        """Return the column of some symbols, one at least, all of which the channel can send.

        Args:
            symbols: Numbers, or sets of `width` bytes each; or a column of them.

        Raises:
            ParameterError: If there is none, or one that the channel cannot send.
        """
        if isinstance(symbols, np.ndarray):
            column = symbols
        elif all(isinstance(each, bytes) and len(each) == self.width for each in symbols):
            column = np.frombuffer(b"".join(cast(Sequence[bytes], symbols)), np.uint8)
            column = column.reshape(len(symbols), self.width)
        elif all(isinstance(each, int | np.integer) and 0 <= each < 2**63 for each in symbols):
            column = np.array(symbols, dtype=np.uint64)
        else:
            raise ParameterError("symbols must be numbers or sets of the channel, got something else")
        if not len(column) or not self.contains(column).all():
            raise ParameterError(f"symbols must be one or more that {self!r} can send, got {len(column)}")
        return column

    def valid_mask(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.bool_] | None:
        """Return `contains` of a column, or None where that is True throughout."""
        valid = self.contains(symbols)
        return None if len(symbols) and valid.all() else valid

    @abstractmethod
    def tally(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
        """Return the counts of a column of symbols that the channel can send, shape (bins,), int64."""

    @abstractmethod
    def agrees(self, counts: NDArray[np.int64], n: int) -> bool:
        """Return whether counts can be those of n reports, to check what was stored.

        A round without counts has n = 0.
        """

    def public_counts(
        self, counts: NDArray[np.int64], groupings: NDArray[np.intp]
    ) -> tuple[CountsKind, NDArray[np.int64]]:
        """Return the smallest integers that a round's estimates are functions of, and how they read.

        Args:
            counts: As `tally` gives them, shape (bins,).
            groupings: Category of every input, shape (K,); of a table one row per margin, shape (k, K).
        """
        del groupings
        return "bins", counts

    @abstractmethod
    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected counts of one report of a population: what estimates are made from, per report.

        Args:
            frequencies: The share of the population that holds each input, shape (K,), >= 0, summing to one.
        """

    @abstractmethod
    def to_spec(self) -> dict[str, SpecValue]:
        """Return the integers as a description that msgpack can carry; `channel_from_spec` reads it."""

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """Return the channel of a description of this kind; see `channel_from_spec`."""

    def __eq__(self, other: object) -> bool:
        """Return whether the other channel has the same kind and the same integers."""
        return isinstance(other, Channel) and self.to_spec() == other.to_spec()

    def __hash__(self) -> int:
        return hash((self.kind, self.inputs))

    def _checked_values(
        self, values: int | NDArray[np.integer[Any]] | Sequence[int]
    ) -> NDArray[np.integer[Any]]:
        """Return the inputs that `perturb` was given, of shape () or (n,), all of them in range."""
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            raise ParameterError("values must be one number or one row of them, got a ragged list") from None
        if array.ndim == 0:
            return np.array(self._checked_input(values))
        if array.ndim != 1:
            raise ParameterError(f"values must be one number or one row of them, got shape {array.shape}")
        if array.dtype.kind not in "iu" and array.size:
            raise ParameterError(f"values must be integers, got {array.dtype}")
        if array.size and (array.min() < 0 or array.max() >= self.inputs):
            raise self._out_of_range()
        return array

    def _checked_input(self, value: object) -> int:
        if isinstance(value, bool | np.bool_):
            raise ParameterError("a value must be an integer, got a bool")
        try:
            index = operator.index(value)  # type: ignore[arg-type]  # what has no __index__ is refused below
        except TypeError:
            raise ParameterError(f"a value must be an integer, got {type(value).__name__}") from None
        if not 0 <= index < self.inputs:
            raise self._out_of_range()
        return index

    def _out_of_range(self) -> ParameterError:
        # Never the value itself: it may be a person's, and messages end in logs.
        return ParameterError(f"values must be within 0 to {self.inputs - 1}, got one outside")

    def _constant_divergence(self, numerator: int, denominator: int) -> NDArray[np.float64]:
        """Return D of a channel in which any two inputs are equally far apart."""
        self._refuse_above(self.inputs, "divergence")
        matrix = np.full((self.inputs, self.inputs), math.log(numerator / denominator))
        np.fill_diagonal(matrix, 0.0)
        return matrix

    def _refuse_above(self, width: int, subject: str) -> None:
        if self.inputs * width > MAX_WEIGHTS:
            raise ParameterError(
                f"{subject}() must have at most {MAX_WEIGHTS} entries, got {self.inputs} x {width}"
            )

    @staticmethod
    def kinds() -> Mapping[str, type[Channel]]:
        """Return the loaded kinds of channels by name; the registry of mechanisms loads them."""
        return Channel._kinds
