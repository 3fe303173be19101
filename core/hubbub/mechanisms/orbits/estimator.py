"""From counts per orbit to shares: generalised least squares with weights that the design fixes, in O(K).

Under permutations of values, and of categories of one size, shares fall apart into the totals of the classes
and of missing, differences between categories of a class, and differences within categories. Reports of orbit
t tell the totals by how many they are; the differences by

    sum of 1[x in S] - k_c/s    and    k_c - k/m,

whose expectations are kappa_t and beta_t times the difference. Each of the three parts weighs the orbits by
what they tell over their variance at a uniform population: least squares, since the parts are uncorrelated
there. So a report adds to the share of value x of category c and class g

    C[g, t]/n_g + B[g, t] (k_c - k/m)/s + W[g, t] (1[x in S] - k_c/s),

and errors need the second moment of that number for devices that hold x, another value of its category,
another category of its class, another class, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.estimate import MAX_COVARIANCE, Estimate, Estimator
from hubbub.estimation.poison import Reach
from hubbub.estimation.questions import InputNumbers, Rounding, checked_counts, expected_counts
from hubbub.mechanisms.orbits.laws import orbit_laws
from hubbub.mechanisms.orbits.moments import Inclusion, OrbitMoments

if TYPE_CHECKING:
    from hubbub.mechanisms.orbits.channel import OrbitChannel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OrbitShares:
    """The estimated shares; unbiased, so they may be negative.

    Attributes:
        values: Per value, shape (K,).
        categories: Per category, shape (m,).
        missing: Of the missing input; 0.0 where there is none.
    """

    values: Floats
    categories: Floats
    missing: float


class OrbitEstimator(Estimator):
    """The unbiased linear estimator of an orbit channel.

    Args:
        channel: The channel whose reports were counted.
        category_of: The channel's own categories, missing last and alone; None: the same.
        points: The number of every input, shape (K,), nan at `missing`; None without numbers.
        missing: The input that means "no value"; None: the channel's.
        rounding: See `hubbub.estimation.InverseEstimator`.

    Raises:
        ParameterError: If the channel does not tell all values apart, or an argument does not fit it.
    """

    def __init__(
        self,
        channel: OrbitChannel,
        *,
        category_of: NDArray[np.integer[Any]] | None = None,
        points: Floats | None = None,
        missing: int | None = None,
        rounding: Rounding = "none",
    ) -> None:
        self.channel, self.layout = channel, channel.layout
        labels = channel.layout.labels
        own = np.append(labels, len(self.layout.sizes)) if channel.missing else labels
        if category_of is not None and not np.array_equal(own, category_of):
            raise ParameterError("category_of must be the channel's own categories, got another grouping")
        self.category_of = own
        self.numbers = InputNumbers.of(channel.inputs, points=points, missing=missing, rounding=rounding)
        self._design()

    def _design(self) -> None:
        """Set C, B and W from the integers."""
        channel, layout = self.channel, self.layout
        classes, orbits, total = layout.classes, channel.orbits, channel.total
        names = classes + channel.missing
        chances = np.zeros((len(orbits), names))
        power = np.zeros((2, classes, len(orbits)))  # what an orbit tells between, and within, categories
        noise = np.zeros((2, classes, len(orbits)))
        prior = np.array([*layout.held, *([0] if channel.missing else [])]) / layout.values
        for t, orbit in enumerate(orbits):
            for g, held in enumerate(layout.held):
                chances[t, g] = orbit.weight(g, held) / (held * total)
            if channel.missing:
                chances[t, -1] = orbit.absent / total
        mu = chances @ prior
        for t, orbit in enumerate(orbits):
            for g, size in enumerate(layout.class_sizes):
                p = Inclusion.of(orbit.counts[g], size)
                extra = (orbit.inside[g] - orbit.outside[g]) / total
                # Of "y in S": the expectation under x = y, less those under its sibling and its cousin.
                power[1, g, t] = extra * (p.one - p.same)
                power[0, g, t] = extra * (p.one + (size - 1) * p.same - size * p.apart)
                n = np.array(orbit.counts[g], dtype=np.float64)
                noise[0, g, t] = mu[t] * float(((n - n.mean()) ** 2).sum())
                noise[1, g, t] = mu[t] * float((n * (size - n)).sum())
        if np.linalg.matrix_rank(chances, tol=1e-9) < names:
            raise ParameterError("orbits must tell apart categories of different sizes and missing")
        weighed = chances / mu[:, None]
        self.totals = np.linalg.solve(chances.T @ weighed, weighed.T)  # C, shape (names, orbits)
        parts = []
        for kind in range(2):
            weights = np.where(noise[kind] > 0.0, power[kind] / np.where(noise[kind] > 0, noise[kind], 1), 0)
            told = (weights * power[kind]).sum(axis=1, keepdims=True)
            needed = np.array(layout.many if kind == 0 else layout.class_sizes) > 1
            if (needed[:, None] & (told <= 0.0)).any():
                raise ParameterError("an orbit channel must tell all values apart to be estimated from")
            parts.append(np.where(told > 0.0, weights / np.where(told > 0.0, told, 1.0), 0.0))
        self.between, self.within = parts  # B and W, shape (classes, orbits)

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate frequencies from one round's counts.

        Args:
            counts: As `OrbitChannel.tally` gives them, shape (bins,), integers.
            n: Reports, >= 1.

        Raises:
            ParameterError: The shape, the type or a count is wrong.
        """
        return self._estimate(checked_counts(counts, self.channel.bins, n), n)

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices before any has reported: their shares, and exact errors.

        Raises:
            ParameterError: Shares or n break their rule.
        """
        return self._estimate(expected_counts(self.channel, frequencies, n), n)

    def shares(self, counts: NDArray[Any], n: float) -> OrbitShares:
        """Return the unbiased shares alone."""
        layout, channel = self.layout, self.channel
        table = np.asarray(counts, dtype=np.float64).reshape(len(channel.orbits), -1)
        totals = self.totals @ table[:, 0] / n
        values, categories = [], []
        for g, members in enumerate(layout.members):
            hits = table[:, 1:][:, members]
            size, many = layout.class_sizes[g], layout.many[g]
            between = np.tensordot(self.between[g], hits, axes=1).sum(axis=1) / n
            within = np.tensordot(self.within[g], hits, axes=1) / n
            group = totals[g] / many + between - between.mean()
            categories.append(group)
            values.append(group[:, None] / size + within - within.mean(axis=1, keepdims=True))
        gone = float(totals[-1]) if channel.missing else 0.0
        return OrbitShares(layout.joined(values), layout.by_category(categories), gone)

    def _estimate(self, counts: NDArray[Any], n: int) -> Estimate:
        found = self.shares(counts, n)
        gone = [found.missing] if self.channel.missing else []
        values, categories = np.append(found.values, gone), np.append(found.categories, gone)
        value_errors, category_errors = self._errors(values, categories, n)

        def variance(part: Floats) -> float:
            return float(self.second(part[:, None], values)[0, 0]) / n

        numbers = self.numbers
        mean, mean_error = (None, None) if numbers is None else numbers.ratio(values, n, variance)
        return Estimate(
            n=n,
            values=values,
            value_errors=value_errors,
            categories=categories,
            category_errors=category_errors,
            mean=mean,
            mean_error=mean_error,
            _category_of=self.category_of,
            _covariance=partial(self._covariance, values, n),
            _reach=self.reach,
            _laws=partial(orbit_laws, self, values, n),
        )

    def _errors(self, values: Floats, categories: Floats, n: int) -> tuple[Floats, Floats]:
        """Return the standard errors of values and categories, missing last, at given shares."""
        layout = self.layout
        m = len(layout.sizes)
        groups = np.bincount(layout.class_of, weights=categories[:m], minlength=layout.classes)
        gone = float(values[-1]) if self.channel.missing else 0.0
        value, category = np.empty(len(values)), np.empty(len(categories))
        for g, members in enumerate(layout.members):
            own_v, own_c = self.power_means(g, np.append(groups, gone), 2)
            f, of = values[members], categories[:m][layout.class_of == g]
            rest = groups[g] - of
            mixed = own_v[0] * f + own_v[1] * (of[:, None] - f) + own_v[2] * rest[:, None] + own_v[3]
            value[members] = mixed - f
            category[np.flatnonzero(layout.class_of == g)] = own_c[0] * of + own_c[1] * rest + own_c[2] - of
        if self.channel.missing:
            squares = self.chances * self.totals[-1][:, None] ** 2
            spread = float(squares.sum(axis=0) @ np.append(groups, gone)) - gone
            value[-1] = category[-1] = spread
        return np.sqrt(np.maximum(value, 0.0) / n), np.sqrt(np.maximum(category, 0.0) / n)

    @cached_property
    def chances(self) -> Floats:
        """The probability of every orbit given a class, or missing, shape (orbits, classes + 1)."""
        layout, total = self.layout, self.channel.total
        rows = []
        for orbit in self.channel.orbits:
            row = [orbit.weight(g, held) / (held * total) for g, held in enumerate(layout.held)]
            rows.append([*row, orbit.absent / total] if self.channel.missing else [*row, 0.0])
        return np.array(rows)

    def power_means(self, g: int, groups: Floats, power: int) -> tuple[list[float], list[float]]:
        """Return E[score^power] of a value and of a category, by the relation of the device's value.

        Of a value: for a device that holds it, one of its category, one of another category, and the sum over
        all others at their shares. Of a category: for its own values, other categories, and the rest.

        Args:
            g: The class.
            groups: The share of every class, and of missing or 0, shape (classes + 1,).
            power: 2 or 3.
        """
        layout, chances = self.layout, self.chances
        size, many, held = layout.class_sizes[g], layout.many[g], layout.held[g]
        value, category = [0.0] * 4, [0.0] * 3
        foreign = np.delete(np.arange(len(groups)), g)
        for t, orbit in enumerate(self.channel.orbits):
            kinds, k, total = orbit.kinds[g], orbit.held[g], self.channel.total
            base = self.totals[g, t]
            inside, outside = orbit.inside[g] / (held * total), orbit.outside[g] / (held * total)
            elsewhere = float(chances[t, foreign] @ groups[foreign])

            def scored(n: int, found: float) -> tuple[float, float]:
                """Return the power of a value's score with probability `found` of it, of its category's."""
                group = base / many + self.between[g, t] * (n - k / many)  # noqa: B023 - called at once
                step = self.within[g, t]  # noqa: B023 - the same
                here, away = group / size + step * (1.0 - n / size), group / size - step * n / size
                return found * here**power + (1.0 - found) * away**power, group**power

            for n, times in kinds:
                # k h/(N T) is the chance of "in", and n of its k places are in a category of this count.
                with_it, without = times * n * inside, times * (size - n) * outside
                value[0] += with_it * scored(n, 1.0)[0] + without * scored(n, 0.0)[0]
                if size > 1:
                    value[1] += with_it * scored(n, (n - 1) / (size - 1))[0]
                    value[1] += without * scored(n, n / (size - 1))[0]
                category[0] += (with_it + without) * scored(n, 0.0)[1]
                value[3] += elsewhere * times / many * scored(n, n / size)[0]
                category[2] += elsewhere * times / many * scored(n, 0.0)[1]
                for other, others in kinds:
                    left = others - (other == n)
                    if many > 1 and left:
                        chance = (with_it + without) * left / (many - 1)
                        square = scored(other, other / size)
                        value[2] += chance * square[0]
                        category[1] += chance * square[1]
        return value, category

    def pulled(self, functional: Floats) -> tuple[Floats, list[list[Floats]]]:
        """Return what a report adds to functionals: a constant per orbit, and a number per value in the set.

        Args:
            functional: Shape (K, c) over all inputs.

        Returns:
            Shape (orbits, c), and per orbit and class shape (m, s, c).
        """
        layout, orbits = self.layout, self.channel.orbits
        parts = layout.split(functional[: layout.values])
        base = np.zeros((len(orbits), functional.shape[1]))
        found: list[list[Floats]] = [[] for _ in orbits]
        if self.channel.missing:
            base += self.totals[-1][:, None] * functional[-1]
        for g, u in enumerate(parts):
            sums = u.sum(axis=1, keepdims=True) / layout.class_sizes[g]
            mean = sums.mean(axis=0)[0]
            for t, orbit in enumerate(orbits):
                b = self.between[g, t]
                base[t] += mean * (self.totals[g, t] - b * orbit.held[g])
                found[t].append(b * sums + self.within[g, t] * (u - sums))
        return base, found

    def second(self, functional: Floats, values: Floats) -> Floats:
        """Return the covariance of functionals times n, shape (c, c), at given shares."""
        layout = self.layout
        base, pulled = self.pulled(functional)
        found = -(functional.T * values) @ functional
        for t, orbit in enumerate(self.channel.orbits):
            moments = OrbitMoments.of(layout, orbit, self.channel.total, values)
            weights = pulled[t]
            hits = moments.hits()
            linear = sum((h[:, :, None] * w).sum(axis=(0, 1)) for h, w in zip(hits, weights, strict=True))
            product = moments.product(weights)
            found = found + np.outer(base[t], base[t]) * moments.reports
            found = found + np.outer(base[t], linear) + np.outer(linear, base[t])
            for w, p in zip(weights, product, strict=True):
                found = found + np.tensordot(w, p, axes=([0, 1], [0, 1]))
        return np.asarray(found)

    def _covariance(self, values: Floats, n: int) -> Floats:
        if self.channel.inputs > MAX_COVARIANCE:
            raise ParameterError(
                f"a covariance must be of at most {MAX_COVARIANCE} inputs, got {self.channel.inputs}"
            )
        return self.second(np.eye(self.channel.inputs), values) / n

    def reach(self) -> Reach:
        """Return the extremes of what one report can add to the devices of a value or a category."""
        layout = self.layout
        low, high = np.empty(len(self.category_of)), np.empty(len(self.category_of))
        least, most = np.empty(len(layout.sizes)), np.empty(len(layout.sizes))
        for g, members in enumerate(layout.members):
            values, groups = [], []
            for t, orbit in enumerate(self.channel.orbits):
                for n, _ in orbit.kinds[g]:
                    step = self.between[g, t] * (n - orbit.held[g] / layout.many[g])
                    group = self.totals[g, t] / layout.many[g] + step
                    size, within = layout.class_sizes[g], self.within[g, t]
                    groups.append(group)
                    values += [(group + within * (size - n)) / size] * (n > 0)
                    values += [(group - within * n) / size] * (n < size)
            low[members], high[members] = min(values), max(values)
            own = layout.class_of == g
            least[own], most[own] = min(groups), max(groups)
        if self.channel.missing:
            gone = self.totals[-1]
            low[-1], high[-1] = gone.min(), gone.max()
            least, most = np.append(least, gone.min()), np.append(most, gone.max())
        return Reach(low, high, least, most)
