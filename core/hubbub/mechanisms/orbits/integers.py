"""From a mixture of orbits in floats to the integers of a channel, without ever exceeding its epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.layout import Layout
from hubbub.mechanisms.orbits.sampling import Orbit, shift_of
from hubbub.mechanisms.orbits.settling import settled
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below

Mixture = Sequence[tuple[Sequence[Sequence[int]], bool, float]]
"""Per orbit its counts per class and category, whether it holds missing, and its share of the reports."""


def compiled(sizes: Sequence[int], mixture: Mixture, *, epsilon: float, missing: bool) -> OrbitChannel:
    """Return the integer channel of a mixture of orbits.

    Each orbit has a box from t to e^epsilon t, t its weight relative to the total; weights start at its ends.
    What a row lacks or has too much by rounding is moved within the boxes, so that epsilon cannot be
    exceeded.

    Args:
        sizes: Values per category, without missing.
        mixture: The orbits.
        epsilon: The declared epsilon; the certified one is at least 2^-36 below it.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If the shares do not make rows that sum to one, within what rounding explains.
    """
    layout = Layout(sizes)
    # Weights of 50 bits and more come so near to the ceiling that its logarithm rounds to the bound itself.
    ceiling = exp_below(checked_epsilon(epsilon) - 1.01 * HEADROOM)
    total = 1 << shift_of(layout.values)
    a1 = float(ceiling) - 1.0
    boxes = []
    for counts, _, share in mixture:
        held = sum(sum(part) for part in counts)
        low = max(math.floor(Fraction(share / (1.0 + a1 * held / layout.values)) * total), 1)
        boxes.append((low, math.floor(ceiling * low)))
    rows = []
    for g, values in enumerate(layout.held):
        entries = []
        for (counts, _, _), (low, high) in zip(mixture, boxes, strict=True):
            k = sum(counts[g])
            entries += [(k, (low, high), high), (values - k, (low, high), low)]
        rows.append(settled(entries, values * total))
    gone = [0] * len(mixture)
    if missing:
        wanted = [
            (1, box, box[1] if holds else box[0]) for (_, holds, _), box in zip(mixture, boxes, strict=True)
        ]
        gone = settled(wanted, total)
    orbits = []
    for t, (counts, holds, _) in enumerate(mixture):
        shape = tuple(tuple(sorted((int(n) for n in part), reverse=True)) for part in counts)
        inside, outside = (tuple(row[2 * t + way] for row in rows) for way in (0, 1))
        orbits.append(Orbit(shape, bool(holds), inside, outside, gone[t]))
    channel = OrbitChannel(sizes, orbits)
    if channel.epsilon > epsilon:
        raise ParameterError(f"no integers can express these orbits at epsilon {epsilon:g}")
    return channel
