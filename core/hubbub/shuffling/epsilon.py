"""The epsilon of a channel's reports after shuffling: for readers who see how often each report came.

Where n honest devices report once and their reports are shuffled, whoever sees the multiset learns less of
one person than from a report: by the privacy blanket (Balle, Bell, Gascon, Nissim 2019, Lemma 5.3), for all
inputs of the others,

    delta(epsilon) <= (1/n) E max(0, sum_{i <= n} l_i),

with l_i independent: 0 with probability 1 - gamma, else (P(y|x) - e^epsilon P(y|x'))/omega_y with y ~
omega/gamma; the largest over ordered pairs x, x' (`hubbub.shuffling.blanket`).

The sum's law is computed on a lattice, rounded outwards: an atom between two points is split so that its mean
stays, which can only raise the expectation of the convex max(0, .); what lies beyond the lattice, and the
rounding of the transform, are added.

It does not hold for whoever handles single reports, such as a collector; nor over several rounds of a
memoised answer, which repeat the same noise.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError
from hubbub.shuffling.blanket import MAX_TABLE, BlanketLaw, blanket_laws

Floats = NDArray[np.float64]

MAX_REPORTS: Final = 10**7
"""The most reports of a round that are looked at; more of them hide a person no worse."""

STEP: Final = 0.05
"""The lattice's step as a share of the standard deviation of l: the variance grows by 0.06 % at most."""

_TILTS: Final = 10.0 ** np.linspace(-4.0, 1.5, 56)
"""Exponents of Chernoff bounds, in units of one over the standard deviation of l."""

_FINE: Final = 2e-4
"""The share of epsilon up to which it is found; the upper end is returned."""

_UNIT: Final = 2.0**-53

_SPARE: Final = 1e-9
"""Share of a delta that covers the rounding of ratios, each good to a few 2^-53."""


def epsilon_after_shuffling(channel: Channel, n: int, delta: float, *, most_work: int = MAX_TABLE) -> float:
    """Return an epsilon such that the shuffled reports of n devices are (epsilon, delta)-private, rounded up.

    Neighbours differ in the input of one device. Never above the channel's own epsilon, which holds with
    delta 0.

    Args:
        channel: The channel of every report.
        n: Honest reports of one round, 2 to MAX_REPORTS (with more, the epsilon of so many is returned).
        delta: In (0, 1).
        most_work: The most pairs of inputs times outputs of a channel without symmetries; see `blanket_laws`.

    Raises:
        ParameterError: If an argument is out of range, or the channel is too large to look at.

    >>> from hubbub.mechanisms import grr
    >>> round(epsilon_after_shuffling(grr(91, epsilon=1.0), 10_000, 1e-6), 4)
    0.0076
    """
    if isinstance(n, bool) or n < 2:
        raise ParameterError(f"n must be at least 2 reports, got {n}")
    if not 0.0 < delta < 1.0:
        raise ParameterError(f"delta must be within (0, 1), got {delta!r}")
    n = min(n, MAX_REPORTS)
    waiting, best = blanket_laws(channel, most_work), 0.0
    while waiting:
        # A law whose bound in closed form is small enough is done with; of the others the worst comes next.
        bounds = [chernoff_delta(law, n, best) for law in waiting]
        order = sorted((at for at, bound in enumerate(bounds) if bound > delta), key=lambda at: -bounds[at])
        waiting = [waiting[at] for at in order]
        while waiting:
            law = waiting.pop(0)
            if shuffled_delta(law, n, best) > delta:
                best = _least(law, n, delta, low=best, high=channel.epsilon)
                break
        if best >= channel.epsilon:
            return channel.epsilon
    return min(best * (1.0 + _SPARE), channel.epsilon)


def _least(law: BlanketLaw, n: int, delta: float, *, low: float, high: float) -> float:
    """Return an epsilon at which a law's delta is small enough, near the least one."""
    while high - low > _FINE * high:
        middle = 0.5 * (low + high) if low > 0.05 * high else max(0.1 * high, low * 1.5)
        if chernoff_delta(law, n, middle) <= delta or shuffled_delta(law, n, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def chernoff_delta(law: BlanketLaw, n: int, epsilon: float) -> float:
    """Return a bound of delta in closed form, some ten times too large: max(0, s) <= e^(t s - 1)/t."""
    values, odds = _terms(law, epsilon)
    tilts = _TILTS / _deviation(values, odds)
    exponents = n * _log_moments(values, odds, tilts) - 1.0 - np.log(tilts * n)
    return float(np.exp(min(float(exponents.min()), 0.0))) * (1.0 + _SPARE)


def shuffled_delta(law: BlanketLaw, n: int, epsilon: float) -> float:
    """Return an upper bound of delta at an epsilon, by the law of the sum on a lattice."""
    values, odds = _terms(law, epsilon)
    step = STEP * _deviation(values, odds)
    tilts = _TILTS * STEP / step
    moments = n * _log_moments(values, odds, tilts)
    # Splitting an atom multiplies its moment by at most cosh(t step / 2) <= e^((t step)^2 / 8).
    split = n * (tilts * step) ** 2 / 8.0
    highest, lowest = float(values.max()), float(values.min())
    if highest <= 0.0:
        return 0.0
    most, least = (
        n * (highest + step),
        n * (max(-lowest, 0.0) + step),
    )  # an atom is split a step beyond itself
    beyond = 80.0 + math.log(most + 1.0)  # tails below e^-80 of the largest sum
    high = min(most, float(((moments + split + beyond) / tilts).min()))
    below = n * _log_moments(-values, odds, tilts) + split
    low = min(least, float(((below + beyond) / tilts).min()))
    top, bottom = math.ceil(max(high, step) / step) + 1, math.ceil(max(low, step) / step) + 1
    return _of_lattice(values / step, odds, n, top, bottom) * step / n * (1.0 + _SPARE) + math.exp(-80.0)


def _of_lattice(values: Floats, odds: Floats, n: int, top: int, bottom: int) -> float:
    """Return the expectation of the sum's positive part, in steps, up to `top`, rounded up."""
    low = np.floor(values)
    part = values - low
    places = np.concatenate([low, low + 1.0, [0.0]])
    masses = np.concatenate([odds * (1.0 - part), odds * part, [max(0.0, 1.0 - float(odds.sum()))]])
    reach = int(np.abs(places).max()) + 1
    size = 1 << max(top + bottom, 2 * reach).bit_length()
    law = np.zeros(size)
    np.add.at(law, places.astype(np.int64) % size, masses)
    rough = np.fft.rfft(law)
    # The transform is computed anew, term by term, for powers that are not next to nothing: good to 8 units.
    logs = n * np.log(np.maximum(np.abs(rough) + size**0.5 * 64.0 * _UNIT, 1e-300))
    kept = np.flatnonzero(logs > -80.0)
    used = np.flatnonzero(law)
    power = np.zeros(len(rough), dtype=np.complex128)
    for at in range(0, len(kept), 4096):
        part_of = kept[at : at + 4096]
        turns = (part_of[:, None] * used) % size
        exact = np.exp(-2j * np.pi * turns / size) @ law[used]
        power[part_of] = np.exp(n * np.log(exact))
    spectrum = np.abs(power)
    law = np.fft.irfft(power, size)
    found = float(np.arange(1, top + 1) @ law[1 : top + 1])
    # Errors: of the terms (in the 2-norm, through the power), of the inverse transform, of what was left out.
    terms = 12.0 * n * _UNIT * math.sqrt(2.0 * float((spectrum**2).sum()) / size)
    inverse = 16.0 * math.log2(size) * _UNIT * float(np.sqrt((law**2).sum()))
    weight = math.sqrt(top * (top + 1.0) * (2.0 * top + 1.0) / 6.0)
    return found + weight * (terms + inverse + math.exp(-80.0) * math.sqrt(size))


def _terms(law: BlanketLaw, epsilon: float) -> tuple[Floats, Floats]:
    """Return the values of l and their probabilities; the rest is at 0."""
    return law.own - math.exp(epsilon) * law.other, law.masses


def _deviation(values: Floats, odds: Floats) -> float:
    mean = float(odds @ values)
    return math.sqrt(max(float(odds @ values**2) - mean**2, 1e-300))


def _log_moments(values: Floats, odds: Floats, tilts: Floats) -> Floats:
    """Return ln E e^(t l) for every tilt t, shape of tilts, rounded up."""
    with np.errstate(over="ignore"):
        grown = np.expm1(np.minimum(tilts[:, None] * values, 700.0)) @ odds
    return np.asarray(np.log1p(grown) + 16.0 * _UNIT * (1.0 + np.abs(grown)))
