"""The entry of orbit channels: their keys, and the mixture of least error for a request or a workload.

It stands among the floors because the mixture is what the floor's programme finds; devices never load it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hubbub.errors import ParameterError
from hubbub.mechanisms import compiled, shortest
from hubbub.numeric import checked_epsilon
from hubbub_authoring.floor.mixture import best_mixture
from hubbub_authoring.floor.orbits import Weights
from hubbub_authoring.mechanisms.mechanism import READING, Judge, Mechanism, RealKey, Request, Trial

if TYPE_CHECKING:
    from hubbub.mechanisms import OrbitChannel
    from hubbub_authoring.mechanisms.workload import Workload

_WEIGHT: Final = RealKey(
    "category_weight",
    "`category_weight`, the weight of categories in the error that is made least; values have the rest (0.5)",
    low=0.0,
    high=0.999,
)


MAX_SPENT: Final = 20.0
"""The most of an epsilon that orbits use: beyond it the search takes minutes, for what no round can show."""


def orbits(sizes: Sequence[int], *, epsilon: float, category_weight: float = 0.5) -> OrbitChannel:
    """Return the orbit channel of the least error of values and categories, with a missing input, last.

    Args:
        sizes: Values per category, missing left out.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        category_weight: The weight of the categories' mean error; the values' has the rest.

    Raises:
        ParameterError: If a parameter is out of range, or sizes have too many orbits to look at.

    >>> len(orbits([10] * 9, epsilon=1.0).orbits)
    3
    """
    return _built(tuple(sizes), min(checked_epsilon(epsilon), MAX_SPENT), category_weight)


@lru_cache(maxsize=16)
def _built(sizes: tuple[int, ...], epsilon: float, category_weight: float) -> OrbitChannel:
    if not 0.0 <= category_weight < 1.0:
        raise ParameterError(f"category_weight must be within [0, 1), got {category_weight!r}")
    weights = Weights(1.0 - category_weight, category_weight if len(sizes) > 1 else 0.0)
    mixture = best_mixture(sizes, epsilon=epsilon, weights=weights, missing=True)
    return shortest(compiled(sizes, mixture, epsilon=epsilon, missing=True))


def _of_request(request: Request) -> OrbitChannel:
    weight = _WEIGHT.read(request)
    return orbits(
        request.sizes[:-1], epsilon=request.epsilon, category_weight=0.5 if weight is None else weight
    )


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    sizes, objective, epsilon = workload.sizes[:-1], workload.objective, workload.epsilon
    many, k = len(sizes), sum(sizes)
    if objective.quantity == "category" and 1 < many < k:
        yield Trial(
            {"reading": "category", "category_weight": 0.0},
            lambda: orbits([1] * many, epsilon=epsilon, category_weight=0.0),
            7,
            by_category=True,
        )
        return
    if workload.kind != "labels":
        return
    weight = 0.0
    if objective.quantity == "both" and many > 1:
        # Totals weigh the means of m categories and K values by their numbers.
        parts = (k, many) if objective.of == "totals" else (1, 1)
        own = objective.category_weight * parts[1]
        weight = own / (own + (1.0 - objective.category_weight) * parts[0])
    yield Trial(
        {"category_weight": weight}, lambda: orbits(sizes, epsilon=epsilon, category_weight=weight), 7
    )


ENTRIES: Final = (
    Mechanism(
        name="orbits",
        purpose="values and categories both, at the least error that any mechanism can have",
        keys=(_WEIGHT, READING),
        takes=frozenset({"labels"}),
        build=_of_request,
        trials=_trials,
    ),
)
