"""Rows that sum to their total exactly: integers moved within the boxes that epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.mechanisms.orbits.layout import Layout
from hubbub.mechanisms.orbits.sampling import Orbit, shift_of

Entry = tuple[int, tuple[int, int], int]
"""The number of values that a weight counts for, its box, and what is wanted of it."""


def covered(layout: Layout, orbits: Sequence[Orbit], total: int, share: Fraction) -> list[Orbit]:
    """Return the orbits of a channel that answers with a probability, and else as the missing input would.

    Args:
        layout: The categories.
        orbits: Those of a channel with a missing input.
        total: Its T.
        share: In thousandths, in (0, 1); its denominator is the new channel's unit.
    """
    kept, steps = share.numerator, share.denominator
    target = steps << shift_of(layout.values, steps)
    # The power of two is smaller than before: weights are rounded down to it and the rows settled, between
    # the rounded ends of every orbit.
    scale = Fraction(target, total * steps)
    wanted: list[list[list[Fraction]]] = []
    for orbit in orbits:
        cover = (steps - kept) * orbit.absent
        wanted.append([[(kept * w + cover) * scale for w in row] for row in (orbit.inside, orbit.outside)])
    ends = []
    for orbit, (inside, outside) in zip(orbits, wanted, strict=True):
        every = [*inside, *outside, orbit.absent * scale * steps]
        ends.append((math.ceil(min(every)), math.floor(max(every))))
    rows = []
    for g, values in enumerate(layout.held):
        entries = []
        for orbit, (inside, outside), box in zip(orbits, wanted, ends, strict=True):
            k = orbit.held[g]
            entries += [(k, box, math.floor(inside[g])), (values - k, box, math.floor(outside[g]))]
        entries = [(part, box, min(max(start, box[0]), box[1])) for part, box, start in entries]
        rows.append(settled(entries, values * target))
    gone = settled(
        [
            (1, box, min(max(math.floor(orbit.absent * scale * steps), box[0]), box[1]))
            for orbit, box in zip(orbits, ends, strict=True)
        ],
        target,
    )
    return [
        Orbit(
            orbit.counts,
            orbit.missing,
            tuple(row[2 * t] for row in rows),
            tuple(row[2 * t + 1] for row in rows),
            gone[t],
        )
        for t, orbit in enumerate(orbits)
    ]


def settled(entries: Sequence[Entry], total: int) -> list[int]:
    """Return weights within their boxes, near the wanted ones, whose sum over values is the total."""
    # Weights begin a little inside of their boxes, which leaves room for the last step.
    most = max(part for part, _, _ in entries)
    room = 4 * len(entries) * most if most > 1 else 0
    row = []
    for _, (low, high), wanted in entries:
        inner = room if high - low > 2 * room else 0
        row.append(max(low + inner, min(wanted, high - inner)))
    missing = total - sum(part * w for (part, _, _), w in zip(entries, row, strict=True))
    for i, (part, (low, high), _) in sorted(enumerate(entries), key=lambda e: e[1][1][0] - e[1][1][1]):
        if not part or not missing:
            continue
        inner = room if high - low > 2 * room else 0
        whole = missing // part if missing > 0 else -(-missing // part)
        step = max(low + inner - row[i], min(high - inner - row[i], whole))
        row[i] += step
        missing -= step * part
    for i, by in _closing([part for part, _, _ in entries], missing).items():
        row[i] += by
    within = all(low <= w <= high for (_, (low, high), _), w in zip(entries, row, strict=True))
    if not within or sum(part * w for (part, _, _), w in zip(entries, row, strict=True)) != total:
        raise ParameterError("the rows of a mixture of orbits must sum to one, got a mixture that is off")
    return row


def _closing(parts: Sequence[int], missing: int) -> dict[int, int]:
    """Return changes of weights whose sum, each times its part, is what is missing: small ones (Bezout)."""
    if not missing:
        return {}
    anchor = max(range(len(parts)), key=parts.__getitem__)
    base = divisor = parts[anchor]
    factors: dict[int, int] = {}
    for i, part in enumerate(parts):
        if missing % divisor == 0:
            break
        if i != anchor and part:
            divisor, x, y = _bezout(divisor, part)
            factors = {j: f * x for j, f in factors.items()} | {i: y}
    if missing % divisor:
        return {}
    # Every change but the anchor's is taken modulo the anchor's part; the anchor makes up for the rest.
    changes = {i: (f * (missing // divisor)) % base for i, f in factors.items()}
    changes = {i: f - base if 2 * f > base else f for i, f in changes.items()}
    left = missing - sum(parts[i] * f for i, f in changes.items())
    return changes | {anchor: left // base}


def _bezout(a: int, b: int) -> tuple[int, int, int]:
    """Return gcd(a, b) and x, y with a x + b y equal to it."""
    old, new, x, y, u, v = a, b, 1, 0, 0, 1
    while new:
        q = old // new
        old, new = new, old - q * new
        x, u = u, x - q * u
        y, v = v, y - q * v
    return old, x, y
