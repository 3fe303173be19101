"""Rational bounds of e^q for rational q, by integers alone: what tests compare exact ratios with."""

from fractions import Fraction

BITS = 220


def exp_bounds(q: Fraction) -> tuple[Fraction, Fraction]:
    """A rational at most e^q and one at least e^q, about 2^-200 apart relative to their size."""
    if q < 0:
        low, high = exp_bounds(-q)
        return 1 / high, 1 / low
    halvings = 8
    while q >= 1 << (halvings - 8):
        halvings += 1
    one = 1 << BITS
    step_low = (q.numerator << BITS) // (q.denominator << halvings)
    step_high = step_low + 1
    return _power(step_low, halvings, one, up=0), _power(step_high, halvings, one, up=1)


def _power(step: int, halvings: int, one: int, *, up: int) -> Fraction:
    """(1 + s + s^2/2 + ...)^(2^halvings), every operation rounded down, or up; s = step/one is below 2^-7."""
    total = term = one
    for k in range(1, 60):
        term = (term * step + up * (one * k - 1)) // (one * k)
        total += term
    total += up  # what the series leaves out after 60 terms is below s^60 < 2^-420
    for _ in range(halvings):
        total = (total * total + up * (one - 1)) // one
    return Fraction(total, one)
