"""The estimate of one round: unbiased values, standard errors, intervals, a consistent view."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.consistency import Consistent, consistent_view
from hubbub.estimation.cumulative import Cumulative, Functionals
from hubbub.estimation.em import Smoothed
from hubbub.estimation.intervals.crowd import crowd_laws
from hubbub.estimation.intervals.laws import ScoreLaws
from hubbub.estimation.intervals.skew_score import score_interval
from hubbub.estimation.poison import PoisonMargin, Reach, forged_reports
from hubbub.estimation.ranks import rank_sets
from hubbub.estimation.rounds.change import effective_sample_size
from hubbub.estimation.shrinkage import bayes_view
from hubbub.html_table import html_table

Floats = NDArray[np.float64]

# A (K, K) covariance of float64 at this K takes 128 MiB; beyond it nobody reads one.
MAX_COVARIANCE = 4096

_SHOWN = 20
"""Values, and categories, that a notebook shows."""


@dataclass(frozen=True)
class Intervals:
    """The two-sided confidence intervals of all cells.

    Attributes:
        level: The coverage aimed at, per cell or for the whole family at once.
        values_low: Lower ends, shape (K,); nan where hidden.
        values_high: Upper ends, shape (K,); nan where hidden.
        categories_low: Lower ends, shape (m,).
        categories_high: Upper ends, shape (m,).
        mean_low: Lower end, None for a survey without numbers.
        mean_high: Upper end, None for a survey without numbers.
    """

    level: float
    values_low: Floats
    values_high: Floats
    categories_low: Floats
    categories_high: Floats
    mean_low: float | None
    mean_high: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """The unbiased frequencies of the devices whose reports were accepted, with standard errors.

    The errors describe the randomisation alone, given who reported: they say nothing about devices that
    did not report. Single estimates may be negative or exceed one; `consistent` gives a view that does not.

    Attributes:
        n: Reports counted.
        values: Frequency of every input, shape (K,). nan where the channel hides the value inside its
            category (boost_epsilon = 0): no number of reports would reveal it.
        value_errors: Standard errors, shape (K,); inf where hidden.
        categories: Frequency of every category, shape (m,); nan where hidden. Of a cross table: the margins
            of its attributes, one after the other.
        category_errors: Standard errors, shape (m,); inf where hidden.
        mean: Mean over the devices that have a value (missing left out), None without numbers. A ratio of
            two unbiased estimates: its bias is of order 1/n, at most its own standard error times the
            relative standard error of the share of devices with a value (Hartley and Ross 1954). nan when
            nobody seems to have a value, or the channel hides it.
        mean_error: Its standard error by the delta method, stochastic rounding included where the survey
            rounds.
    """

    n: int
    values: Floats
    value_errors: Floats
    categories: Floats
    category_errors: Floats
    mean: float | None
    mean_error: float | None
    _category_of: NDArray[Any] = field(repr=False)
    _covariance: Callable[[], Floats] = field(repr=False)
    _reach: Callable[[], Reach] | None = field(default=None, repr=False)
    _smoothed: Callable[[], Smoothed] | None = field(default=None, repr=False)
    _laws: Callable[[], ScoreLaws] | None = field(default=None, repr=False)
    _functionals: Functionals | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        mean = "" if self.mean is None else f", mean {self.mean:.6g} ± {self.mean_error:.2g}"
        return (
            f"<Estimate of {self.n} reports: {len(self.values)} values, "
            f"{len(self.categories)} categories{mean}>"
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the most frequent categories and values, each with its error."""
        rows = [
            (f"{kind} {place}", f"{shares[place]:.4f}", f"{errors[place]:.4f}")
            for kind, shares, errors in (
                ("category", self.categories, self.category_errors),
                ("value", self.values, self.value_errors),
            )
            for place in np.argsort(-shares, kind="stable")[:_SHOWN].tolist()
        ]
        if self.mean is not None:
            rows.insert(0, ("mean", f"{self.mean:.6g}", f"{self.mean_error:.2g}"))
        return html_table((f"{self.n:,} reports", "estimate", "standard error"), rows)

    def intervals(self, level: float = 0.95) -> Intervals:
        """Return an interval per cell that covers the truth with the stated probability, cell by cell.

        The intervals lie within what is possible, 0 to 1 and the survey's numbers, have a width in the
        smallest round too, and are not symmetric about the estimates (`hubbub.estimation.intervals`). An
        estimator without laws of its scores gives estimates and errors by the normal law, uncut.

        Args:
            level: The coverage, strictly between 0 and 1.

        Raises:
            ParameterError: The level is not in (0, 1).
        """
        return self._by_score(level, 1, 1)

    @property
    def has_laws(self) -> bool:
        """True if the estimator gives the laws of its scores."""
        return self._laws is not None

    def of_crowd(self, *, asked: int | None = None) -> Estimate:
        """Return the estimate with errors and intervals *of everybody who could have been asked*.

        They hold who happened to answer, too, if those who answered are like a random part of the others.
        Without laws of scores there is none of the mean, and the others are by the normal law.

        Args:
            asked: Devices that were asked, as stated; None, and a number below those counted: not known, so
                the crowd is taken as without end, which is wider.
        """
        drawn = 1.0 if asked is None or asked < self.n else 1.0 - self.n / asked
        curve, laws = self._functionals and self._functionals.of_crowd(drawn), self.laws
        if laws is not None:
            crowd = crowd_laws(laws, self.n, drawn=drawn)
            return replace(self, _laws=partial(_given, crowd), _functionals=curve)
        errors = [
            np.sqrt(error**2 + drawn * np.clip(f * (1.0 - f), 0.0, None) / self.n)
            for f, error in ((self.values, self.value_errors), (self.categories, self.category_errors))
        ]
        without = replace(self, mean=None, mean_error=None, _functionals=curve)
        return replace(without, value_errors=errors[0], category_errors=errors[1])

    @cached_property
    def laws(self) -> ScoreLaws | None:
        """The laws of the scores behind the estimates; None where the estimator does not give them."""
        return None if self._laws is None else self._laws()

    @cached_property
    def printed_errors(self) -> tuple[Floats, Floats]:
        """The standard errors of values and categories to print, shapes (K,) and (m,).

        They follow from the law at the estimate, read as 0 or 1 where it lies beyond: so a rare cell that
        nobody happened to report has one too. `value_errors` are unbiased as variances, and may be 0 there.
        """
        if self.laws is None:
            return self.value_errors, self.category_errors
        found = []
        for estimates, law in ((self.values, self.laws.values), (self.categories, self.laws.categories)):
            with np.errstate(invalid="ignore"):
                variance, _ = law.moments(np.clip(estimates, 0.0, 1.0))
            errors = np.sqrt(np.maximum(variance, 0.0)) / self.n
            found.append(np.where(np.isnan(estimates), np.inf, errors))
        return found[0], found[1]

    @property
    def printed_mean_error(self) -> float | None:
        """The standard error of the mean to print: by its law where that says more than the reports do."""
        return getattr(self.laws and self.laws.mean, "error", self.mean_error)

    def simultaneous(self, level: float = 0.95) -> Intervals:
        """Return intervals that cover all truths of a family at once with at least the stated probability.

        The values are one family, the categories another, the mean a third (Bonferroni within each).

        Args:
            level: The coverage, strictly between 0 and 1.

        Raises:
            ParameterError: The level is not in (0, 1).
        """
        return self._by_score(level, max(len(self.values), 1), max(len(self.categories), 1))

    def consistent(self) -> Consistent:
        """Return a biased view: non-negative, of sum one, values summing to their categories."""
        return consistent_view(self.values, self.categories, self._category_of)

    def smoothed(self) -> Smoothed:
        """Return a biased view of a number's distribution that is smooth and non-negative (see `em`).

        Raises:
            ParameterError: The inputs are not equally spaced numbers, or reports are sets or about levels.
        """
        if self._smoothed is None:
            raise ParameterError("a smoothed view needs reports that are numbers, got sets or levels")
        return self._smoothed()

    def empirical_bayes(self) -> Consistent:
        """Return a biased view whose values are shrunk as far as all of them say (see `empirical_bayes`).

        Its categories are those of `consistent`. Of a cross table all cells share one law.
        """
        return bayes_view(
            self.values, self.printed_errors[0], self.consistent().categories, self._category_of
        )

    def ranks(self, level: float = 0.95) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the best and the worst rank that each value could have, all at once (see `rank_sets`).

        Args:
            level: The coverage of all of them together, strictly between 0 and 1.

        Raises:
            ParameterError: The level is not in (0, 1).
        """
        spans = self.simultaneous(level)
        return rank_sets(spans.values_low, spans.values_high)

    def effective_size(self, of: Literal["values", "categories"] = "values") -> float | None:
        """Return how many devices without any noise would know the shares as well; None where none is known.

        Those of a curve are `Cumulative.effective_size`.

        Args:
            of: The shares; of a cross table the categories are all margins together.
        """
        margins = self._category_of.shape[0] if of == "categories" and self._category_of.ndim > 1 else 1
        total = float(margins if len(self._category_of) else max(self.values.sum(), 0.0))  # of sets
        errors = self.printed_errors[0 if of == "values" else 1]
        return effective_sample_size(getattr(self, of), errors, total=total)

    def cumulative(self, level: float = 0.95) -> Cumulative | None:
        """Return the cumulative shares of a number, and a band that covers all of them at once.

        Its quantiles have intervals. None where nobody seems to have a value, or where no report was about
        the finest level.

        Args:
            level: The coverage of the band, strictly between 0 and 1.

        Raises:
            ParameterError: The level is not in (0, 1), or reports are no sets, levels or curve.
        """
        if self._functionals is None and not np.isfinite(self.values).any():
            return None
        return self._of_numbers().cumulative(level)

    def share_between(self, low: float, high: float) -> tuple[float, float]:
        """Return the share of all devices with a number from low to high, and its standard error.

        Args:
            low: The least number.
            high: The largest number, included.

        Raises:
            ParameterError: No point lies there, or reports are not sets, about levels or of a curve.
        """
        return self._of_numbers().between(low, high)

    def _of_numbers(self) -> Functionals:
        if self._functionals is None:
            raise ParameterError("a cumulative share needs numbers, asked by sets, levels or a curve")
        return self._functionals

    def poison_margin(self, level: float = 0.95) -> PoisonMargin:
        """Return how many forged reports would move each estimate by its margin of error (see `poison`).

        Args:
            level: The coverage of the intervals, strictly between 0 and 1.

        Raises:
            ParameterError: The level is not in (0, 1), or the estimator does not know what one report can do.
        """
        z, reach = _quantile(level, 1), self.reach()
        values, categories = self.printed_errors
        return PoisonMargin(
            level,
            forged_reports(self.values, z * values, reach.values_low, reach.values_high, self.n),
            forged_reports(
                self.categories, z * categories, reach.categories_low, reach.categories_high, self.n
            ),
        )

    def reach(self) -> Reach:
        """Return the least and the largest that one report can add to every value and category.

        Raises:
            ParameterError: The estimator does not know.
        """
        if self._reach is None:
            raise ParameterError("a poison margin needs an estimator that knows the reach of one report")
        return self._reach()

    def covariance(self) -> Floats:
        """Return the estimated covariance of `values`, shape (K, K), over the randomisation given the data.

        Raises:
            ParameterError: K exceeds MAX_COVARIANCE.
        """
        if len(self.values) > MAX_COVARIANCE:
            raise ParameterError(f"a covariance needs K <= {MAX_COVARIANCE}, got {len(self.values)}")
        return self._covariance()

    def _by_score(self, level: float, values: int, categories: int) -> Intervals:
        z_values, z_categories, z = (_quantile(level, cells) for cells in (values, categories, 1))
        laws = self.laws
        if laws is None:
            return self._at(level, z_values, z_categories, z)
        mean: tuple[float | None, float | None] = (None, None)
        if self.mean is not None:
            mean = (math.nan, math.nan) if laws.mean is None else laws.mean.interval(z)
        return Intervals(
            level,
            *score_interval(self.values, laws.values, n=self.n, z=z_values),
            *score_interval(self.categories, laws.categories, n=self.n, z=z_categories),
            *mean,
        )

    def _at(self, level: float, z_values: float, z_categories: float, z_mean: float) -> Intervals:
        values_low, values_high = _around(self.values, self.value_errors, z_values)
        categories_low, categories_high = _around(self.categories, self.category_errors, z_categories)
        mean_low = mean_high = None
        if self.mean is not None and self.mean_error is not None:
            half = z_mean * self.mean_error
            mean_low, mean_high = self.mean - half, self.mean + half
        return Intervals(level, values_low, values_high, categories_low, categories_high, mean_low, mean_high)


@runtime_checkable
class Estimator(Protocol):
    """An unbiased estimator of one survey's rounds.

    Attributes:
        channel: The channel whose reports are counted.
        category_of: Category of every input, shape (K,); of a cross table one row per margin.
    """

    channel: Any
    category_of: NDArray[Any]

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate frequencies from one round's counts.

        Args:
            counts: The channel's counts of n reports, shape (bins,), integers >= 0.
            n: Number of reports, >= 1.

        Raises:
            ParameterError: The shape, the type or the sum is wrong.
        """

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices before any has reported: their shares, and exact errors.

        Args:
            frequencies: The share of the devices that holds each input, shape (K,), >= 0, summing to one.
            n: Number of devices, >= 1.

        Raises:
            ParameterError: Shares or n break their rule.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.channel!r}>"


def _given(laws: ScoreLaws) -> ScoreLaws:
    return laws


def _around(centre: Floats, errors: Floats, z: float) -> tuple[Floats, Floats]:
    return centre - z * errors, centre + z * errors


def _quantile(level: float, cells: int) -> float:
    if not (math.isfinite(level) and 0.0 < level < 1.0):
        raise ParameterError(f"level must lie strictly between 0 and 1, got {level!r}")
    # The lower tail keeps its precision where 1 - tail would round to 1.
    return -NormalDist().inv_cdf((1.0 - level) / (2.0 * cells))
