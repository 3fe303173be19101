"""Dense channels that carry what they were searched for, because estimates and releases depend on it.

What is sampled, certified and sent is a dense channel's: a table of probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.finite import DenseChannel
from hubbub.channels.spec import SpecValue, spec_ints
from hubbub.errors import ParameterError, WireError


class CurveChannel(DenseChannel):
    """A channel of points in order, and last the missing input, whose cumulative shares releases state."""

    kind = "curve"
    description = "The device says a number with random noise, from a table made for cumulative shares."
    shows_curve = True

    def mixed(self, scale: int, dummy: int) -> CurveChannel:  # noqa: D102 - inherited
        return CurveChannel(_mixed(self.weights(), scale, dummy))


class WeightedChannel(DenseChannel):
    """A channel made for inputs that are not equally common.

    Attributes:
        common: How common every input was taken to be, relatively, shape (K,): estimates weigh outputs by it.
    """

    kind = "weighted"
    description = "The device says your answer with random noise, from a table made for what is asked."

    def __init__(self, weights: NDArray[np.integer[Any]], common: Sequence[int]) -> None:
        """Keep a copy of the weights.

        Args:
            weights: As of a dense channel.
            common: K integers >= 1, below 2^31.

        Raises:
            ParameterError: If the weights break a rule, or there are not K such integers.
        """
        super().__init__(weights)
        if len(common) != self.inputs or not all(1 <= many < 2**31 for many in common):
            raise ParameterError(f"common must be {self.inputs} integers within 1 to 2^31 - 1")
        self.common = tuple(common)

    def mixed(self, scale: int, dummy: int) -> WeightedChannel:  # noqa: D102 - inherited
        return WeightedChannel(_mixed(self.weights(), scale, dummy), self.common)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {**super().to_spec(), "common": list(self.common)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        if "common" not in spec:
            raise WireError("a weighted channel must have the key common")
        common = spec_ints(spec, "common")
        table = DenseChannel.from_spec({key: value for key, value in spec.items() if key != "common"})
        return cls(table.weights(), common)


def _mixed(weights: NDArray[np.int64], scale: int, dummy: int) -> NDArray[np.int64]:
    found = weights * scale + dummy
    return np.asarray(found // int(np.gcd.reduce(found, axis=None)))
