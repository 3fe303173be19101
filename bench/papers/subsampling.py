"""Subsampling before boosted Gaussian noise, and the rate that suits a sum, an average or a count best.

If each record enters the sample with probability p (Poisson, neighbours by addition or removal) or the sample
is a uniform subset of p N records (neighbours by substitution), an (epsilon, delta)-private mechanism of the
sample is (ln(1 + p (e^epsilon - 1)), p delta)-private for all records (budget-recycling-dp Theorem 4; Balle,
Barthe and Gaboardi 2018, where the two cases are kept apart). So a smaller sample may spend more.

Two things in budget-recycling-dp section 7 do not hold and are replaced here:

* its estimates of all three queries multiply what one record moves by 1 / p (sum and count are scaled up,
  an average has p N records only), yet the noise is set for the sensitivity before that; here it is scaled;
* Proposition 7 takes sampling error plus boosted noise to be boosted noise of a wider kernel. The boost acts
  on the noise alone, before the sampling error is added: the acceptance here is Pr(|sampling error + noise|
  <= half width) itself.

This is the central model: someone holds the records. Devices do not use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.boost import AbsoluteRegion, BoostedNoise
from hubbub_lab.continuous_noise.noise import Gaussian
from hubbub_lab.continuous_noise.profile import MAX_EPSILON, gaussian_sigma, largest_boost

__all__ = ["AggregateQuery", "SampledNoise", "acceptance", "amplified", "best_rate", "sampled", "spendable"]

Kind = Literal["sum", "average", "count"]

_RATES: Final = 20
_SIGMAS: Final = 12
_GOLDEN_STEPS: Final = 14
_LEAST_RATE: Final = 1e-4


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return the cost for all records of a mechanism of the sample: ln(1 + p (e^epsilon - 1)) and p delta.

    Args:
        epsilon: Of the mechanism, given the sample, >= 0.
        delta: The same, in [0, 1].
        rate: p in (0, 1].

    >>> round(amplified(1.0, 1e-5, 0.1)[0], 4)
    0.1586
    """
    _check(epsilon, delta, rate)
    return math.log1p(rate * math.expm1(epsilon)), rate * delta


def spendable(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return the cost that a mechanism of the sample may have, all records to get (epsilon, delta).

    Args:
        epsilon: For all records, >= 0.
        delta: The same, in [0, 1].
        rate: p in (0, 1].
    """
    _check(epsilon, delta, rate)
    return math.log1p(math.expm1(epsilon) / rate), min(1.0, delta / rate)


@dataclass(frozen=True)
class AggregateQuery:
    """A sum, an average or a count over people, to be estimated from a sample of them.

    Attributes:
        kind: What is asked.
        people: N >= 1.
        deviation: Standard deviation of one person's value; for a count sqrt(share (1 - share)).
        sensitivity: The most that one person moves the answer over everybody, before sampling.
    """

    kind: Kind
    people: int
    deviation: float
    sensitivity: float

    def __post_init__(self) -> None:
        if self.kind not in ("sum", "average", "count"):
            raise ParameterError(f"the kind of a query must be sum, average or count, got {self.kind!r}")
        if isinstance(self.people, bool) or not isinstance(self.people, int) or self.people < 1:
            raise ParameterError(f"the people of a query must be a whole number >= 1, got {self.people!r}")
        for value, name in ((self.deviation, "deviation"), (self.sensitivity, "sensitivity")):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
                raise ParameterError(f"the {name} of a query must be a positive finite number, got {value!r}")

    def sampling_error(self, rate: float) -> float:
        """Return the estimate's standard deviation from the sample alone (budget-recycling-dp Proposition 6).

        deviation * sqrt(N (1 - p) / p) for a sum or a count, that over N for an average.
        """
        error = self.deviation * math.sqrt(self.people * (1.0 - rate) / rate)
        return error / self.people if self.kind == "average" else error


@dataclass(frozen=True)
class SampledNoise:
    """A sampling rate, the noise that it leaves room for, and how often the answer is then acceptable.

    Attributes:
        rate: p.
        epsilon: Of the mechanism, given the sample.
        delta: The same.
        sensitivity: Of the scaled estimate.
        sampling_error: Standard deviation from the sample.
        law: The noise.
        acceptance: Pr(|sampling error + noise| <= half_width).
    """

    rate: float
    epsilon: float
    delta: float
    sensitivity: float
    sampling_error: float
    law: BoostedNoise
    acceptance: float


def acceptance(law: BoostedNoise, half_width: float, sampling_error: float) -> float:
    """Return Pr(|E + N| <= half_width), E normal of this deviation and N boosted Gaussian noise about 0.

    The boosted density is (1 - q) / Z times the kernel everywhere, plus q / Z times it inside the region: the
    first part is a normal probability, the second an integral over the region, by Gauss-Legendre quadrature.

    Args:
        law: Gaussian kernel, absolute region.
        half_width: Of what is acceptable, > 0; it may differ from the region's.
        sampling_error: >= 0.
    """
    kernel, region = law.kernel, law.region
    if not isinstance(kernel, Gaussian) or not isinstance(region, AbsoluteRegion):
        raise ParameterError("acceptance needs a Gaussian kernel and an absolute region, got another law")
    z = law.normaliser(0.0)
    inside = min(half_width, region.half_width)
    if sampling_error == 0.0:
        outer = kernel.mass(-half_width, half_width) - kernel.mass(-inside, inside)
        return (kernel.mass(-inside, inside) + (1.0 - law.boost) * outer) / z
    whole = Gaussian(math.hypot(kernel.sigma, sampling_error)).mass(-half_width, half_width)
    sample = Gaussian(sampling_error)
    width = region.half_width
    panels = min(4096, 1 + math.ceil(2.0 * width / min(kernel.sigma, sampling_error)))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    part = 0.0
    for i in range(panels):
        low = -width + 2.0 * width * i / panels
        half = width / panels
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            n = low + half * (1.0 + node)
            part += weight * half * kernel.density(n) * sample.mass(-half_width - n, half_width - n)
    return min(1.0, ((1.0 - law.boost) * whole + law.boost * part) / z)


def sampled(
    query: AggregateQuery, half_width: float, *, epsilon: float, delta: float, rate: float
) -> SampledNoise:
    """Return the boosted Gaussian of most acceptance for one sampling rate, by exact accounting.

    Args:
        query: What is estimated.
        half_width: Of what is acceptable; the region is the same.
        epsilon: For all records, > 0.
        delta: The same, in (0, 1).
        rate: p in (0, 1].
    """
    own_epsilon, own_delta = spendable(epsilon, delta, rate)
    own_delta = min(own_delta, 0.5)
    sensitivity, error = query.sensitivity / rate, query.sampling_error(rate)
    region = AbsoluteRegion(half_width)
    plain = gaussian_sigma(own_epsilon, own_delta, sensitivity)

    def at(log_scale: float) -> BoostedNoise | None:
        kernel = Gaussian(plain * math.exp(log_scale))
        boost = largest_boost(kernel, region, sensitivity=sensitivity, epsilon=own_epsilon, delta=own_delta)
        return None if boost is None else BoostedNoise(kernel, region, boost)

    def score(log_scale: float) -> float:
        law = at(log_scale)
        return 0.0 if law is None else acceptance(law, half_width, error)

    scales = sorted([0.0, *(_spaced(math.log(0.7), math.log(4.0), _SIGMAS))])
    best = _maximum(score, scales)
    law = at(best) or BoostedNoise(Gaussian(plain), region, 0.0)
    return SampledNoise(
        rate, own_epsilon, own_delta, sensitivity, error, law, acceptance(law, half_width, error)
    )


def best_rate(query: AggregateQuery, half_width: float, *, epsilon: float, delta: float) -> SampledNoise:
    """Return the sampling rate of most acceptance, by exact accounting (budget-recycling-dp Algorithm 4).

    A scan over rates from 1 / N (at least 1e-4) to 1, equally spaced in ln p, then golden section about the
    best: the acceptance need not have one peak.

    Args:
        query: What is estimated.
        half_width: Of what is acceptable.
        epsilon: For all records, > 0.
        delta: The same, in (0, 1).
    """

    def score(log_rate: float) -> float:
        rate = min(1.0, math.exp(log_rate))
        return sampled(query, half_width, epsilon=epsilon, delta=delta, rate=rate).acceptance

    rates = _spaced(math.log(max(1.0 / query.people, _LEAST_RATE)), 0.0, _RATES)
    best = min(1.0, math.exp(_maximum(score, rates)))
    return sampled(query, half_width, epsilon=epsilon, delta=delta, rate=best)


def _spaced(low: float, high: float, count: int) -> list[float]:
    return [low + (high - low) * i / count for i in range(count + 1)]


def _maximum(score: Callable[[float], float], points: Sequence[float]) -> float:
    """Return the place of the largest score: the best of the points, refined between its neighbours."""
    scores = [score(point) for point in points]
    best = max(range(len(points)), key=scores.__getitem__)
    low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
    found, top = points[best], scores[best]
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = score(a), score(b)
    for _ in range(_GOLDEN_STEPS):
        for point, value in ((a, at_a), (b, at_b)):
            if value > top:
                found, top = point, value
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = score(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = score(b)
    return found


def _check(epsilon: float, delta: float, rate: float) -> None:
    for value, subject, low, high in (
        (epsilon, "epsilon", 0.0, MAX_EPSILON),
        (delta, "delta", 0.0, 1.0),
        (rate, "a sampling rate", 0.0, 1.0),
    ):
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ParameterError(f"{subject} must be a number in [{low:g}, {high:g}], got {value!r}")
    if rate == 0.0:
        raise ParameterError(f"a sampling rate must be above 0, got {rate!r}")
