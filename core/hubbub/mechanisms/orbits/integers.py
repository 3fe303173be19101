"""From a mixture of orbits in floats to the integers of a channel, without ever exceeding its epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.sampling import Orbit, total_of
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below


def compiled(
    size: int,
    many: int,
    mixture: Sequence[tuple[Sequence[int], bool, float]],
    *,
    epsilon: float,
    missing: bool,
) -> OrbitChannel:
    """Return the integer channel of a mixture of orbits.

    Each orbit has a box: L and M from ceil(t (K - k)/K) and t, t its weight relative to 2^62, to e^epsilon
    times it, H likewise. What a row lacks or has too much by rounding is moved within the boxes, so that
    epsilon cannot be exceeded.

    Args:
        size: Values per category.
        many: Categories.
        mixture: Per orbit its counts per category, whether it holds missing, and its share of the reports.
        epsilon: The declared epsilon; the certified one is at least 2^-36 below it.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If the shares do not make rows that sum to one, within what rounding explains.
    """
    ceiling, values = exp_below(checked_epsilon(epsilon) - HEADROOM), size * many
    a1, total = float(ceiling) - 1.0, total_of(values)
    boxes: list[list[tuple[int, int, int]]] = [[], []]
    for counts, holds, share in mixture:
        k = sum(counts)
        low = math.floor(Fraction(share / (1.0 + a1 * k / values)) * total)
        high = math.floor(ceiling * low)
        for part in (k, values - k):
            least, most = -(-low * part // values), high * part // values
            boxes[0].append((least, most if part == k else least, most))
        if missing:
            boxes[1].append((low, high if holds else low, high))
    values_row = _settled(boxes[0], total)
    absent = _settled(boxes[1], total) if missing else [0] * len(mixture)
    orbits = [
        Orbit(
            tuple(sorted(counts, reverse=True)),
            bool(holds),
            values_row[2 * t],
            values_row[2 * t + 1],
            absent[t],
        )
        for t, (counts, holds, _) in enumerate(mixture)
    ]
    channel = OrbitChannel(size, many, orbits)
    if channel.epsilon > epsilon:
        raise ParameterError(f"no integers can express these orbits at epsilon {epsilon:g}")
    return channel


def _settled(boxes: Sequence[tuple[int, int, int]], total: int) -> list[int]:
    """Return the wanted values, moved within (least, wanted, most) until they sum to the total."""
    row = [wanted for _, wanted, _ in boxes]
    for i, (least, _, most) in sorted(enumerate(boxes), key=lambda box: box[1][0] - box[1][2]):
        row[i] += max(least - row[i], min(most - row[i], total - sum(row)))
    if sum(row) != total:
        raise ParameterError("the rows of a mixture of orbits must sum to one, got a mixture that is off")
    return row
