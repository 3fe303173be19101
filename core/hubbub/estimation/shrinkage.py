"""The empirical Bayes view of many shares: shrunk as far as all of them together say that they are noise.

An estimate is read as its share plus normal noise of known standard deviation, and the shares as drawn from
an unknown law of numbers that are not negative. That law is found by nonparametric maximum likelihood (Kiefer
and Wolfowitz 1956; Jiang and Zhang 2009), and every share is its posterior mean; then `norm_sub` makes them
sum to their total. Where most shares are near nothing, the view had a half to a thirtieth of the raw
estimates' squared error. It is biased, it is shown beside them and never alone, and it has no intervals;
alerts, tests and changes look at raw estimates.

A category of FEW values or more has a law of its own, which suits its values best; all others share one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.consistency import Consistent, is_nested, norm_sub

Floats = NDArray[np.float64]

FEW: Final = 10
"""Values from which on a category has a law of its own."""

STEPS: Final = 100
"""The most steps of the search for the likeliest law: more change the view's error by a hundredth."""

GAP: Final = 1e-3
"""Steps end where no law could raise the mean log-likelihood by more than this."""

_FINE: Final = 200
_NEAR: Final = 8.0
"""Up to this many standard deviations the law may lie on _FINE points; beyond, where estimates are."""
_FAR: Final = 500
_BINS: Final = 20.0
"""Estimates are read to this part of a standard deviation: a hundred thousand then take no time."""


def empirical_bayes(
    estimates: ArrayLike, errors: ArrayLike, category_of: NDArray[Any], totals: ArrayLike
) -> Floats:
    """Return the empirical Bayes view of the shares of values.

    Args:
        estimates: Unbiased estimates, shape (K,); nan where hidden.
        errors: Their standard errors, shape (K,), > 0.
        category_of: Category 0..m-1 of every value, shape (K,), each used at least once.
        totals: The consistent shares of the categories, shape (m,), >= 0; nan where hidden.

    Returns:
        Shares, shape (K,), >= 0, summing to their category's; nan where estimate or total is hidden.

    Raises:
        ParameterError: If shapes differ, or an error of a known estimate is not above 0.
    """
    x, sigma = np.asarray(estimates, np.float64), np.asarray(errors, np.float64)
    groups, wanted = np.asarray(category_of, np.intp), np.asarray(totals, np.float64)
    if not x.shape == sigma.shape == groups.shape:
        raise ParameterError(
            f"errors and categories must be of all estimates, got {sigma.shape} and {groups.shape}"
        )
    hidden = np.isnan(x) | np.isnan(wanted[groups])
    if not (sigma[~hidden] > 0.0).all():
        raise ParameterError("errors must be above 0, got one that is not")
    sizes = np.bincount(groups)
    found = np.where(hidden, 0.0, x)
    own = np.flatnonzero(sizes >= FEW)
    parts = [groups == group for group in own.tolist()] if len(own) <= len(x) // FEW else []
    parts.append(~np.isin(groups, own))
    for part in parts:
        cells = np.flatnonzero(part & ~hidden)
        if len(cells):
            found[cells] = posterior_means(x[cells], float(np.median(sigma[cells])))
    view = norm_sub(found, groups, np.nan_to_num(wanted))
    return np.where(hidden, np.nan, view)


def bayes_view(values: Floats, errors: Floats, categories: Floats, category_of: NDArray[Any]) -> Consistent:
    """Return the view of an estimate, with categories that are consistent already.

    Args:
        values: Raw value frequencies, shape (K,); nan where hidden.
        errors: Their standard errors, shape (K,), > 0 where known.
        categories: Consistent category frequencies, shape (m,); nan where hidden.
        category_of: Category of every value, shape (K,); of a cross table one row per margin, of a tree of
            labels one per level.
    """
    if is_nested(category_of):
        first, last = category_of[-1].min(), category_of[-1]
        return Consistent(empirical_bayes(values, errors, last - first, categories[first:]), categories)
    if category_of.ndim == 2:
        if not len(values) or np.isnan(values).any():  # a score has a mean alone
            return Consistent(np.full(len(values), np.nan), categories)
        if not len(category_of):  # items of sets, whose shares have no total
            means = posterior_means(values, float(np.median(errors)))
            return Consistent(np.clip(means, 0.0, 1.0), categories)
        cells = empirical_bayes(values, errors, np.zeros(len(values), dtype=np.intp), [1.0])
        sums = np.zeros(len(categories))
        for margin in category_of:
            np.add.at(sums, margin, cells)
        return Consistent(cells, sums)
    return Consistent(empirical_bayes(values, errors, category_of, categories), categories)


def posterior_means(estimates: Floats, error: float) -> Floats:
    """Return the posterior mean of every share under the likeliest law of all of them.

    Args:
        estimates: Unbiased estimates, shape (k,), finite.
        error: Their standard deviation, > 0.
    """
    read, place, times = np.unique(
        np.rint(estimates * (_BINS / error)), return_inverse=True, return_counts=True
    )
    z, weights = read / _BINS, times / len(estimates)
    grid = _support(z)
    squares = 0.5 * (z[:, None] - grid) ** 2
    likelihood = np.exp(-(squares - squares.min(axis=1, keepdims=True)))
    law = np.full(len(grid), 1.0 / len(grid))
    for _ in range(STEPS):
        gain = (weights / (likelihood @ law)) @ likelihood
        law = law * gain
        if gain.max() - 1.0 <= GAP:
            break
    means = (likelihood @ (law * grid)) / (likelihood @ law)
    return np.asarray(error * means[place])


def _support(z: Floats) -> Floats:
    """Return where the law may lie, in standard deviations: finely near nothing, and at far estimates."""
    top = max(float(z.max()), 1.0)
    near = np.linspace(0.0, min(top, _NEAR), _FINE)
    far = z[z > _NEAR]
    if len(far) > _FAR:
        far = np.quantile(far, np.linspace(0.0, 1.0, _FAR))
    return np.concatenate([near, far])
