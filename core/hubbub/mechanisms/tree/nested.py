"""Level sampling over a tree of labels: every level by itself, in one attempt a report.

The mechanism of `levels` for any depth, with the symbols of a tree of ranges: a device draws words for the
level that its report is about, and for no other. Shares of levels are those of the least error, by the search
that trees of ranges have (`hubbub.mechanisms.tree.shares`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, Self

import numpy as np

from hubbub.channels.sets import WORD
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
from hubbub.errors import ParameterError
from hubbub.mechanisms.levels.hierarchy import Hierarchy
from hubbub.mechanisms.levels.levels import Levels, level_weights
from hubbub.mechanisms.levels.picked import PickedLevels
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.tree.shares import STEPS, nested_shares
from hubbub.numeric.exact import checked_epsilon


class NestedLevels(PickedLevels):
    """A channel from the values of a tree of labels, and missing, to a level and a set of its cells.

    Missing, the last input, is a cell of its own at every level.
    """

    kind = "nested_levels"
    description = (
        "The device sends a random set of answers or groups of answers, yours more often among them."
    )

    def with_dummy_reports(self, share: Fraction) -> NestedLevels:  # noqa: D102 - inherited
        mixed = [oracle.with_dummy_reports(share).p_draws for oracle in self.oracles]
        return NestedLevels(self.hierarchy, self.shares, [o.size for o in self.oracles], mixed)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {**super().to_spec(), "kind": self.kind}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "sizes", "shares", "subset", "held")
        hierarchy = Hierarchy.joined(spec_int(spec, "inputs"), spec_ints(spec, "sizes"))
        return cls(hierarchy, *(spec_ints(spec, key) for key in ("shares", "subset", "held")))


def nested_levels(
    hierarchy: Hierarchy,
    *,
    epsilon: float,
    tuned_for: int | None = None,
    shares: Sequence[int] | None = None,
    oracles: Literal["best", "grr"] = "best",
) -> NestedLevels | Levels:
    """Return level sampling over a tree of labels whose last input, missing, is by itself at every level.

    Args:
        hierarchy: The tree.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        tuned_for: The level whose cells' mean error the shares make small, 0 the coarsest; None: the mean of
            all levels' mean errors.
        shares: Thousandths of devices that report about each level, coarsest first, each at least 1, in
            place of those.
        oracles: "best": subset selection over each level's cells, of the size with the least squared error;
            "grr": one cell by randomised response, in a report of a few bytes.

    Raises:
        ParameterError: If a parameter is out of range, or no integers can express them.
    """
    declared, bins = checked_epsilon(epsilon), hierarchy.bins
    if any(labels[-1] == labels[-2] for labels in hierarchy.labels):
        raise ParameterError("the last input must be a cell of its own at every level")
    if oracles not in ("best", "grr"):
        raise ParameterError(f'oracles must be "best" or "grr", got {oracles!r}')
    size = 1 if oracles == "grr" else None
    chosen = [subset_selection(cells, epsilon=declared, size=size) for cells in bins]
    if shares is None:
        supports = [oracle.levels[0].support for oracle in chosen]
        shares = nested_shares([cells - 1 for cells in bins], supports, tuned_for)
    elif len(shares) != len(bins) or min(shares) < 1 or sum(shares) != STEPS:
        raise ParameterError(
            f"shares must be {len(bins)} thousandths of at least 1 that sum to {STEPS}, got {list(shares)}"
        )
    if oracles == "grr":
        return Levels(hierarchy, *level_weights(bins, [Fraction(share, STEPS) for share in shares], declared))
    ends = [sum(shares[: k + 1]) * WORD // STEPS for k in range(len(shares))]
    whole = np.diff([0, *ends]).tolist()
    return NestedLevels(hierarchy, whole, [o.size for o in chosen], [o.p_draws for o in chosen])
