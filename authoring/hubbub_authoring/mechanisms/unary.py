"""The entry of unary in survey files and for the designer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, get_args

from hubbub import mechanisms
from hubbub.mechanisms import Unary, Variant
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    READING,
    ChoiceKey,
    Judge,
    Mechanism,
    Request,
    Trial,
    grid_parameters,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload


_VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)


_VARIANT: Final = ChoiceKey(
    "variant", '`variant`: "optimised" (the default) or "symmetric"', choices=_VARIANTS
)


def _of_request(request: Request) -> Unary:
    chosen = _VARIANT.read(request)
    variant = next(variant for variant in _VARIANTS if variant == chosen)
    return mechanisms.unary(request.inputs, epsilon=request.epsilon, variant=variant)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    inputs, epsilon = workload.inputs, workload.epsilon
    for variant in _VARIANTS:
        yield Trial(
            {"variant": variant, **grid_parameters(workload)},
            lambda variant=variant: mechanisms.unary(inputs, epsilon=epsilon, variant=variant),  # type: ignore[misc]  # binds the loop's
            6,
        )


ENTRIES: Final = (
    Mechanism(
        name="unary",
        purpose="many values without categories, by one bit for every value",
        keys=(READING, _VARIANT, POINTS),
        takes=frozenset({"labels", "numbers", "table"}),
        build=_of_request,
        trials=_trials,
    ),
)
