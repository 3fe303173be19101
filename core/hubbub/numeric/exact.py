"""Exponentials and logarithms whose rounding errs on the side of privacy.

Every comparison that privacy depends on is made on integers or on these outward-rounded numbers.
"""

from __future__ import annotations

import math
import numbers
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from hubbub.errors import ParameterError

MIN_EPSILON: Final = 1e-6
"""The least epsilon: below it even 10^12 answers would show nothing, and HEADROOM would no longer be
negligible."""

MAX_EPSILON: Final = 40.0
"""The largest epsilon: 40 is the last round number whose weights fit a total below 2^63, and protects
nobody."""

HEADROOM: Final = 2.0**-36
"""The part of its declared epsilon that a compiled channel leaves, so that rounded sums still fit."""

_FRACTION_BITS: Final = 96
_DIGITS: Final = 80

_KEPT: Final = 512
"""Results kept, some tenth of a megabyte: a designer asks for those of a few channels over and over."""


def checked_epsilon(epsilon: float, *, subject: str = "epsilon", minimum: float = MIN_EPSILON) -> float:
    """Return a declared epsilon as a float, if it is one that a channel can have.

    Args:
        epsilon: The declared epsilon.
        subject: What the message calls it.
        minimum: The least value allowed (0.0 for a boost).

    Raises:
        ParameterError: If it is not a real number in [minimum, MAX_EPSILON].
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, numbers.Real):
        raise ParameterError(f"{subject} must be a number, got {epsilon!r}")
    value = float(epsilon)
    if not minimum <= value <= MAX_EPSILON:  # also refuses nan
        raise ParameterError(f"{subject} must be within {minimum:g} to {MAX_EPSILON:g}, got {value!r}")
    return value


@lru_cache(maxsize=_KEPT)
def exp_below(epsilon: float) -> Fraction:
    """Return a rational number at most e^epsilon, and within 2^-60 of it relative to its size.

    Args:
        epsilon: A finite float in 0.0 to MAX_EPSILON; its exact binary value is meant.

    Raises:
        ParameterError: If epsilon is outside that range.

    >>> exp_below(0.0)
    Fraction(1, 1)
    >>> float(exp_below(1.0))
    2.718281828459045
    """
    if not 0.0 <= epsilon <= MAX_EPSILON:
        raise ParameterError(f"the exponent must be within 0 to {MAX_EPSILON:g}, got {epsilon!r}")
    if epsilon == 0.0:
        return Fraction(1)
    context = Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)
    # Decimal.exp is correctly rounded; stepping to the number before it is then below the truth.
    below = context.next_minus(context.exp(Decimal(epsilon)))
    return Fraction(math.floor(Fraction(below) * 2**_FRACTION_BITS), 2**_FRACTION_BITS)


@lru_cache(maxsize=_KEPT)
def log_above(numerator: int, denominator: int) -> float:
    """Return a float at least ln(numerator/denominator), one step of the float grid above it at most.

    Args:
        numerator: An integer >= 1.
        denominator: An integer >= 1.

    Raises:
        ParameterError: If either is below one.

    >>> log_above(7, 7)
    0.0
    >>> log_above(2, 1) > 0.6931471805599453
    True
    """
    if numerator < 1 or denominator < 1:
        raise ParameterError(f"weights must be at least 1, got {min(numerator, denominator)}")
    if numerator == denominator:
        return 0.0
    above = log_bounds(numerator, denominator)[1]
    value = float(above)
    return value if Decimal(value) >= above else math.nextafter(value, math.inf)


def log_bounds(numerator: int, denominator: int) -> tuple[Decimal, Decimal]:
    """Return two decimals that enclose ln(numerator/denominator), some 10^-75 apart.

    Both logarithms are correctly rounded, so each is off by less than one unit of its last digit;
    the ratio itself is never formed, because it would have to be rounded first.

    Args:
        numerator: An integer >= 1.
        denominator: An integer >= 1.
    """
    digits = _DIGITS + len(str(max(numerator, denominator)))
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    difference = context.subtract(context.ln(Decimal(numerator)), context.ln(Decimal(denominator)))
    slack = Decimal(10) ** (6 - digits)  # ln < 10^4 for any integer in use: one unit is < 10^(4-digits)
    return context.subtract(difference, slack), context.add(difference, slack)
