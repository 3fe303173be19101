"""The floor of any question about few inputs, by all the sets there are, for any prior and any error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub_authoring.floor.columns import exp_above, extremes, plane, priced
from hubbub_authoring.floor.programme import Aim, Certificate, Columns, Floats, certify

MAX_PATTERN_INPUTS: Final = 13
"""2^13 sets in 169 variables: a second or two. Symmetric questions have no such bound, see `orbits`."""


def pattern_floor(
    questions: Floats | Sequence[Sequence[float]], prior: Floats | Sequence[float], *, epsilon: float
) -> Certificate:
    """Return the least summed error of linear functionals that any epsilon-LDP channel can have.

    Args:
        questions: L, shape (r, K): the sums of shares that are asked for; the error is the trace of the
            covariance of their estimates, per report.
        prior: Shares of the inputs in the population, shape (K,), >= 0, summing to one; 0 for an input that
            has to be told apart though nobody holds it, such as missing.
        epsilon: Of the channels.

    Raises:
        ParameterError: If there are more than MAX_PATTERN_INPUTS inputs, or shapes do not fit.
    """
    p, asked = np.asarray(prior, dtype=np.float64), np.asarray(questions, dtype=np.float64)
    if p.ndim != 1 or not 2 <= len(p) <= MAX_PATTERN_INPUTS:
        raise ParameterError(f"prior must have 2 to {MAX_PATTERN_INPUTS} shares, got shape {p.shape}")
    if asked.ndim != 2 or asked.shape[1] != len(p):
        raise ParameterError(f"questions must have shape (r, {len(p)}), got {asked.shape}")
    basis = plane(p)
    aim = linear_aim(asked, p, basis)
    bits = (np.arange(1, 2 ** len(p) - 1)[:, None] >> np.arange(len(p))) & 1
    every = set_columns(bits.astype(np.float64), p, basis, exp_above(epsilon))
    start = every if len(every) <= 300 else every.take(extremes(every))
    return certify(aim, start, priced(aim, every))


def linear_aim(questions: Floats, prior: Floats, basis: Floats) -> Aim:
    """Return the aim of functionals, shape (r, K), in a basis of the plane r . p = 0."""
    means = questions @ prior
    pull = basis.T @ (questions - means[:, None]).T
    constant = float((means**2).sum() - ((questions**2) @ prior).sum())
    return Aim(pull, np.zeros(0), constant)


def set_columns(bits: Floats, prior: Floats, basis: Floats, a: float) -> Columns:
    """Return the columns of sets, given as rows of 0 and 1, shape (n, K)."""
    q = 1.0 + (a - 1.0) * bits
    r = q / (q @ prior)[:, None] - 1.0
    return Columns(r @ basis, np.zeros((len(bits), 0)))
