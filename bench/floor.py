"""The designer's pick beside the least error that any mechanism can have, for many shapes and epsilons.

    .venv/bin/python bench/floor.py                     all shapes; an hour, most of it for 1000/3
    .venv/bin/python bench/floor.py 12/3 90/9 91/10     some of them: values/categories

A cell is the pick's error over its floor, less one, in per cent; errors and floors count the missing input.
It fails (exit status 1) where a pick is above 0.5 % (1 % where categories are unequal), or below its floor.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from hubbub_authoring.design import Floors, Objective, Workload, choose
from hubbub_authoring.mechanisms.workload import Quantity

SHAPES = tuple(f"{k}/{m}" for k in (12, 90, 91, 1000) for m in (3, 9, 10))
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
QUANTITIES: tuple[Quantity, ...] = ("value", "category", "both")


def question(shape: str, epsilon: float, quantity: Quantity) -> Workload:
    """Return the workload of K values in m categories, as equal as they can be."""
    k, m = (int(part) for part in shape.split("/"))
    sizes = [k // m + (c < k % m) for c in range(m)]
    return Workload.uniform(
        kind="labels",
        epsilon=epsilon,
        category_of=np.repeat(np.arange(m + 1), [*sizes, 1]),
        devices=10_000,
        points=None,
        objective=Objective(quantity),
    )


def allowed(shape: str) -> float:
    """Return how far above its floor a pick may be."""
    k, m = (int(part) for part in shape.split("/"))
    return 0.005 if k % m == 0 else 0.01


def gap(asked: Workload) -> tuple[str, float, float]:
    """Return the pick's mechanism, n times its error, and how far that is above the floor."""
    pick = choose(asked)
    above = Floors(asked).above(pick.cost)
    assert above is not None
    return pick.mechanism, pick.cost * asked.devices, above


def main(shapes: Sequence[str]) -> int:
    """Print a table per shape; return 1 where a pick breaks the rule."""
    status = 0
    for shape in shapes:
        print(f"\n| {shape} | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |")
        print("|---" * (1 + len(EPSILONS)) + "|")
        for quantity in QUANTITIES:
            row = []
            for epsilon in EPSILONS:
                name, error, above = gap(question(shape, epsilon, quantity))
                good = 0.0 <= above <= allowed(shape)
                status |= not good
                row.append(f"{name} {error:.4g}: {100 * above:.2g} %" + ("" if good else " **(!)**"))
            print(f"| {quantity} | " + " | ".join(row) + " |", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or SHAPES))
