"""The workload of an analyst, before any mechanism: inputs, categories, devices, which error counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric import checked_epsilon

if TYPE_CHECKING:
    from hubbub.survey import Survey

Quantity = Literal["value", "category", "both", "mean", "cdf", "quantiles", "shape", "hit"]
QUANTITIES: Final[tuple[Quantity, ...]] = get_args(Quantity)
OBJECTIVES: Final[dict[str, Quantity]] = {quantity: quantity for quantity in QUANTITIES}


@dataclass(frozen=True)
class Objective:
    """The number that a design makes as small as it can.

    Attributes:
        quantity: "value" or "category": the mean squared error of a share, averaged over values or
            categories; "both": their weighted sum; "mean": the variance of the mean; "cdf": the mean squared
            error of the cumulative shares; "quantiles": the same over those from 1/8 to 7/8, where quartiles
            are looked for; "shape": that of "cdf" for smooth populations, where an estimate may rely on that
            (see `shape`); "hit": the share of reports farther than `within` from their value.
        category_weight: The weight of categories in "both", in (0, 1); values have the rest.
        of: Whether "both" weighs the averages or the totals over all values and all categories. The optimum
            differs: a total counts every one of many values.
        within: For "hit", the distance up to which a report counts as near, > 0, in the units of the points.
    """

    quantity: Quantity
    category_weight: float = 0.5
    of: Literal["means", "totals"] = "means"
    within: float | None = None

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise ParameterError(f"objective must be one of {', '.join(QUANTITIES)}, got {self.quantity!r}")
        if self.of not in ("means", "totals"):
            raise ParameterError(f"objective.of must be means or totals, got {self.of!r}")
        if not 0.0 < self.category_weight < 1.0:
            raise ParameterError(f"category_weight must be within (0, 1), got {self.category_weight!r}")
        if (self.within is not None) != (self.quantity == "hit"):
            raise ParameterError(
                f"within must be given for objective hit, and only there, got {self.within!r}"
            )
        if self.within is not None and not 0.0 < self.within < math.inf:
            raise ParameterError(f"within must be a positive finite distance, got {self.within!r}")


@dataclass(frozen=True, eq=False)
class Workload:
    """One question to a population of devices.

    Inputs are values in the order of their categories, and last the missing one, in a category of its own.

    Attributes:
        kind: "labels": inputs without order, told apart by discrete mechanisms. "grid": equally spaced
            points of a number, for boosted noise.
        epsilon: The declared epsilon, per report.
        category_of: Category of every input, shape (K,), rising from 0, missing last and alone.
        devices: How many devices are planned to report.
        prior: The shares of the inputs for which errors are computed, shape (K,), >= 0, summing to one.
            Errors depend on it little where shares are small: the noise outweighs them.
        points: The number of each input, shape (K,), nan at missing; None for labels without numbers.
        objective: What a design is judged by.
        participation: The share of devices that answer; the others send dummy reports.
        max_gain: The most by which forged reports may move a cell's share, per share forged; None: any.
    """

    kind: Literal["labels", "grid"]
    epsilon: float
    category_of: NDArray[np.intp]
    devices: int
    prior: NDArray[np.float64]
    points: NDArray[np.float64] | None
    objective: Objective
    participation: float = 1.0
    max_gain: float | None = None

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)
        steps = np.diff(self.category_of)
        if len(self.category_of) < 3 or self.category_of[0] != 0 or not np.isin(steps, (0, 1)).all():
            raise ParameterError("category_of must rise from 0 by steps of one over three inputs or more")
        if steps[-1] != 1:
            raise ParameterError("the last input must be missing, in a category of its own")
        if self.devices < 1:
            raise ParameterError(f"devices must be at least 1, got {self.devices}")
        shape = self.category_of.shape
        if self.prior.shape != shape or not (self.prior.min() >= 0.0 and math.isclose(self.prior.sum(), 1.0)):
            raise ParameterError(f"prior must be {shape[0]} shares >= 0 that sum to one")
        if self.points is not None and self.points.shape != shape:
            raise ParameterError(f"points must have shape {shape}, got {self.points.shape}")
        if self.max_gain is not None and not 1.0 <= self.max_gain < math.inf:
            raise ParameterError(f"max_gain must be at least 1 and finite, got {self.max_gain!r}")
        quantity = self.objective.quantity
        if self.points is None and quantity in ("mean", "quantiles", "shape", "hit"):
            raise ParameterError(f"objective {quantity} must be asked of numbers, got labels without points")
        if quantity == "hit" and self.participation < 1.0:
            raise ParameterError(f"participation must be 1 for objective hit, got {self.participation:g}")

    @property
    def key(self) -> tuple[object, ...]:
        """All that it says, to compare it by: two questions of one key have one answer."""
        asked = self.kind, self.epsilon, self.devices, self.objective, self.participation, self.max_gain
        arrays = self.category_of, self.prior, self.points
        return *asked, *(None if each is None else each.tobytes() for each in arrays)

    @property
    def inputs(self) -> int:
        """K, missing included."""
        return len(self.category_of)

    @property
    def sizes(self) -> list[int]:
        """Inputs per category, missing last."""
        counts: list[int] = np.bincount(self.category_of).tolist()
        return counts

    @classmethod
    def uniform(
        cls,
        *,
        kind: Literal["labels", "grid"],
        epsilon: float,
        category_of: NDArray[np.intp],
        devices: int,
        points: NDArray[np.float64] | None,
        objective: Objective | None,
        participation: float = 1.0,
        max_gain: float | None = None,
    ) -> Workload:
        """Return the workload under a prior that is uniform over the values, nobody missing.

        Without an objective: the mean for numbers on a grid; values and categories alike where there are
        categories of several values; else values.
        """
        prior = np.full(len(category_of), 1.0 / (len(category_of) - 1))
        prior[-1] = 0.0
        if objective is None:
            several = 1 < category_of[-1] < len(category_of) - 1
            objective = Objective("mean" if kind == "grid" else "both" if several else "value")
        return cls(kind, epsilon, category_of, devices, prior, points, objective, participation, max_gain)

    @classmethod
    def of_survey(
        cls,
        survey: Survey,
        *,
        objective: Objective | None = None,
        participation: float = 1.0,
        max_gain: float | None = None,
    ) -> Workload:
        """Return the workload of a survey, whatever mechanism it has chosen; see `uniform`."""
        category_of, points = survey.category_of, survey.points
        if survey.form.joins_values and survey.mapping is not None:
            # Read by category: the question's inputs are the values that the survey has joined.
            category_of = np.sort(survey.mapping)
        return cls.uniform(
            kind="labels" if survey.grid_points is None else "grid",
            epsilon=survey.epsilon,
            category_of=category_of,
            devices=survey.planned_per_round,
            points=points if points is None or len(points) == len(category_of) else None,
            objective=objective,
            participation=participation,
            max_gain=max_gain,
        )
