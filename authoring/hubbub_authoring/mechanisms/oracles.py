"""The entries of the frequency oracles, for values that are told apart and no more.

Each asks about every value, or about the category alone where that is all that is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast, get_args

import numpy as np

from hubbub import mechanisms
from hubbub.channels import Channel
from hubbub.errors import ParameterError
from hubbub.mechanisms import MAX_SYMBOLS, LocalHashing, Unary, Variant, subset_selection
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    READING,
    ChoiceKey,
    IntegerKey,
    Judge,
    Mechanism,
    Parameters,
    Request,
    Trial,
    grid_parameters,
    grouped,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload

MAX_COMPARED: Final = 2**23
"""The most buckets of all seeds, times categories of several values, at which the designer tries it: every
category is summed over every bucket, some 10 s for so many. An author who names it gets it at any size."""

_VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
_VARIANT: Final = ChoiceKey(
    "variant", '`variant`: "optimised" (the default) or "symmetric"', choices=_VARIANTS
)
_BUCKETS: Final = IntegerKey(
    "buckets",
    "`buckets`, cells of a hash, a prime or a power of two (the number of least error if left out)",
    low=2,
    high=MAX_SYMBOLS,
)


def _trials(workload: Workload, make: Callable[..., Channel], simplicity: int) -> list[Trial]:
    """Return the trials of an oracle without keys: over values, and over categories where there are some."""
    inputs, categories, epsilon = workload.inputs, len(workload.sizes), workload.epsilon
    found = [Trial(grid_parameters(workload), lambda: make(inputs, epsilon=epsilon), simplicity)]
    if workload.kind == "labels" and grouped(workload):
        by_category: Parameters = {"reading": "category"}
        found.append(Trial(by_category, lambda: make(categories, epsilon=epsilon), 1, by_category=True))
    return found


def _grr_trials(workload: Workload, judge: Judge) -> Iterable[Trial]:
    del judge
    return _trials(workload, mechanisms.grr, 5 if workload.kind == "grid" else 0)


def _subset_trials(workload: Workload, judge: Judge) -> Iterable[Trial]:
    del judge
    return reversed(_trials(workload, subset_selection, 6))


def _unary_of(request: Request) -> Unary:
    chosen = _VARIANT.read(request)
    variant = next(variant for variant in _VARIANTS if variant == chosen)
    return mechanisms.unary(request.inputs, epsilon=request.epsilon, variant=variant)


def _unary_trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    inputs, epsilon = workload.inputs, workload.epsilon
    for variant in _VARIANTS:
        yield Trial(
            {"variant": variant, **grid_parameters(workload)},
            lambda variant=variant: mechanisms.unary(inputs, epsilon=epsilon, variant=variant),  # type: ignore[misc]  # binds the loop's
            6,
        )


def _hashing_of(request: Request) -> LocalHashing:
    return mechanisms.local_hashing(request.inputs, epsilon=request.epsilon, buckets=_BUCKETS.read(request))


def _hashing_trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    if workload.kind == "labels" and grouped(workload):
        yield _hashing_trial(workload, len(workload.sizes), {"reading": "category"}, 1)
    yield _hashing_trial(workload, workload.inputs, grid_parameters(workload), 6)


def _hashing_trial(workload: Workload, inputs: int, parameters: Parameters, simplicity: int) -> Trial:
    def told(channel: Channel) -> Parameters:
        buckets: Parameters = {"buckets": cast(LocalHashing, channel).pool.buckets}
        return buckets | parameters if "points" in parameters else parameters | buckets

    def build() -> LocalHashing:
        channel = mechanisms.local_hashing(inputs, epsilon=workload.epsilon)
        several = 0 if "reading" in parameters else np.count_nonzero(np.asarray(workload.sizes) > 1)
        if (cells := several * channel.outputs) > MAX_COMPARED:
            raise ParameterError(
                f"local hashing must have at most {MAX_COMPARED} cells of categories to be compared, "
                f"got {cells}"
            )
        return channel

    return Trial(parameters, build, simplicity, by_category="reading" in parameters, told=told)


ENTRIES: Final = (
    Mechanism(
        name="grr",
        purpose="few values",
        keys=(READING, POINTS),
        takes=frozenset({"labels", "numbers", "table"}),
        build=lambda request: mechanisms.grr(request.inputs, epsilon=request.epsilon),
        trials=_grr_trials,
    ),
    Mechanism(
        name="subset",
        purpose="many values without categories",
        keys=(READING, POINTS),
        takes=frozenset({"labels", "numbers", "table"}),
        build=lambda request: subset_selection(request.inputs, epsilon=request.epsilon),
        trials=_subset_trials,
    ),
    Mechanism(
        name="unary",
        purpose="many values without categories, by one bit for every value",
        keys=(READING, _VARIANT, POINTS),
        takes=frozenset({"labels", "numbers", "table"}),
        build=_unary_of,
        trials=_unary_trials,
    ),
    Mechanism(
        name="local_hashing",
        purpose="many values, in reports of a few bytes",
        keys=(READING, _BUCKETS, POINTS),
        takes=frozenset({"labels", "numbers"}),
        build=_hashing_of,
        trials=_hashing_trials,
    ),
)
