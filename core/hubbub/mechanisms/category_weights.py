"""The integers of privacy-boosted randomised response: exact fractions rounded to totals below 2^63."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.mechanisms.grr import NARROW_LOSS, TOTALS
from hubbub.numeric.exact import log_above


def category_weights(
    sizes: Mapping[int, int], ceiling: Fraction, near: Fraction, *, totals: Sequence[int] = TOTALS
) -> dict[int, tuple[int, int, int]]:
    """Return the weights (t, u, o) of a category by its size.

    o_c = round(P v_c) and u_c = ceil(b o_c), both by exact fractions; the total T is the least over c of what
    the row of c would sum to with floor(a o_c) at the true value, and t_c takes what that leaves, so that
    t_c <= a o_c for all. u is rounded up so that t_c/u_c <= a/b as well. P is as large as the limit on T
    allows.

    Args:
        sizes: How many categories there are of each size.
        ceiling: a, a little below e^ε.
        near: b, a little below e^(ε - ε₀); 1 <= b < a.
        totals: Limits on T that are tried, smallest first; the last is taken whatever it loses of ε.

    Raises:
        ParameterError: If even the largest total cannot express the weights.
    """
    spans = {size: ceiling - 1 + (size - 1) * (near - 1) for size in sizes}
    norm = 1 + sum(number * size / spans[size] for size, number in sizes.items())
    shares = {size: 1 / (norm * period) for size, period in spans.items()}
    aim, inner = math.log(ceiling), math.log(ceiling / near)
    for limit in totals:
        # T misses its scale by what roundings add up to in the row that decides: half a unit of o per input,
        # one of u (with b/2 of its o) per other value of the category, a/2 for the true value.
        inputs = sum(number * size for size, number in sizes.items())
        slack = inputs + min(sizes) * math.ceil(near) + math.ceil(ceiling)
        weights, total = _weights_at(limit - slack, sizes, shares, ceiling, near)
        if total > limit:
            continue
        kept = 0.0 if limit == totals[-1] else 1.0 - NARROW_LOSS
        if all(
            t > u >= o >= 1
            and log_above(t, o) >= aim * kept
            and (size == 1 or log_above(t, u) >= inner * kept)
            for size, (t, u, o) in weights.items()
        ):
            return weights
    raise ParameterError(
        f"no total below 2^{totals[-1].bit_length()} can express epsilon {aim:.6g} and boost_epsilon "
        f"{inner:.6g} on these categories"
    )


def _weights_at(
    scale: int, sizes: Mapping[int, int], shares: Mapping[int, Fraction], ceiling: Fraction, near: Fraction
) -> tuple[dict[int, tuple[int, int, int]], int]:
    other = {size: round(scale * share) for size, share in shares.items()}
    same = {size: other[size] if size == 1 else math.ceil(near * other[size]) for size in sizes}
    base = sum(number * size * other[size] for size, number in sizes.items())
    rest = {size: base - size * other[size] + (size - 1) * same[size] for size in sizes}
    total = min(rest[size] + math.floor(ceiling * other[size]) for size in sizes)
    return {size: (total - rest[size], same[size], other[size]) for size in sizes}, total


def narrowed_blocks(
    sizes: Sequence[int], t: Sequence[int], u: Sequence[int], o: Sequence[int], *, limit: int
) -> tuple[list[int], list[int], list[int]]:
    """Return weights of a total of at most `limit` whose ratios are at most those given.

    The rows of PB-GRR have one total whatever the sizes of their categories, so they are made anew.

    Args:
        sizes: Values per category.
        t: Weight of the true value, per category.
        u: Weight of another value of the category.
        o: Weight of a value of another category.
        limit: The largest total.

    Returns:
        t, u and o per category.
    """
    across = max(Fraction(true, other) for true, other in zip(t, o, strict=True))
    within = max(
        (Fraction(true, near) for size, true, near in zip(sizes, t, u, strict=True) if size > 1),
        default=across,
    )
    by_size = category_weights(Counter(sizes), across, across / within, totals=(limit,))
    true, near, other = zip(*(by_size[size] for size in sizes), strict=True)
    return list(true), list(near), list(other)
