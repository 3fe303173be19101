"""Closed forms that the papers do not give: errors of boosted noise, accepted counts of a few parts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from hubbub_lab.continuous_noise.profile import AbsoluteRegion, BoostedNoise, Gaussian, Laplace


class NoiseErrors(NamedTuple):
    """The errors of one output: E|y - x| and E(y - x)^2, which is the variance, as the law is symmetric."""

    absolute: float
    square: float


def outside(kernel: Gaussian | Laplace, width: float) -> NoiseErrors:
    """Return E[|N|; |N| > width] and E[N^2; |N| > width] of a kernel."""
    if isinstance(kernel, Laplace):
        b, tail = kernel.scale, math.exp(-width / kernel.scale)
        return NoiseErrors(tail * (width + b), tail * (width**2 + 2 * width * b + 2 * b**2))
    sigma, at = kernel.sigma, width / kernel.sigma
    density = math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return NoiseErrors(2 * sigma * density, sigma**2 * (2 * at * density + math.erfc(at / math.sqrt(2))))


def noise_errors(law: BoostedNoise) -> NoiseErrors:
    """Return the errors of noise boosted in an absolute region, or of plain noise, exactly.

    The density outside of the region is multiplied by 1 - q, and all of it divided by Z = 1 - q Pr(|N| > w);
    so of every moment q of its part outside is taken away.
    """
    assert isinstance(law.kernel, Gaussian | Laplace)
    whole = outside(law.kernel, 0.0)
    if law.region is None:
        return whole
    assert isinstance(law.region, AbsoluteRegion)
    low, high = law.around(0.0)
    assert low == -high
    far, z = outside(law.kernel, high), law.normaliser(0.0)
    return NoiseErrors(*((all_ - law.boost * part) / z for all_, part in zip(whole, far, strict=True)))


def accepted_in_two_parts(labels: int, epsilon: float) -> float:
    """Return the expected number of equal randomised responses of `epsilon` in a budget of twice that.

    The log-ratios of a record are the times that each label came, less the least. The budget is used up when
    one came twice while another did not come; when every label has come once, all is as at the beginning.
    So, with D_j the chance that j answers are all different, E = (D_0 + ... + D_(m-1)) / (1 - D_m). Of
    j different answers the true one, of chance p, is one of j or none; the others have r each:

        D_j = (m-1)!/(m-1-j)! r^j + j p (m-1)!/(m-j)! r^(j-1).

    For m = 2 this is eq. 69; as epsilon goes to 0 it is the birthday problem, anew after every full set.
    """
    whole = math.exp(epsilon) + labels - 1
    p, r = math.exp(epsilon) / whole, 1 / whole
    different = [
        math.perm(labels - 1, j) * r**j + (j * p * math.perm(labels - 1, j - 1) * r ** (j - 1) if j else 0.0)
        for j in range(labels + 1)
    ]
    return sum(different[:-1]) / (1 - different[-1])


def accepted_in_three_parts(labels: int, epsilon: float) -> float:
    """Return the expected number of randomised responses of `epsilon` in a budget of three times that.

    As in two parts, each time that every label has come anew is the begin of another lap. It begins with the
    true label t ahead by 0 or 1 and b of the others ahead by 1. Within a lap some label has not come, so all
    counts are below 3 whatever their order: a lap's states are met with the chances of multinomials, and
    the laps are a chain of 2m - 1 states,

        E = e_0 (I - A)^-1 s,    s = sum over counts c with a label that has not come: n! prod w_i^c_i / c_i!

    and A the same over counts that the last label completes, with (n - 1)!. For 2 labels it is eq. 69.
    """
    whole = math.exp(epsilon) + labels - 1
    p, r, others = math.exp(epsilon) / whole, 1 / whole, labels - 1
    states = [(t, b) for t in (0, 1) for b in range(labels) if t + b < labels]
    place = {state: i for i, state in enumerate(states)}
    after, steps = np.zeros((len(states), len(states))), np.zeros(len(states))
    for (t, b), at in place.items():
        zero = others - b
        for true in range(3 - t):
            for ahead in range(b + 1):
                for twice in range(zero + 1):
                    for once in range(zero - twice + 1):
                        n = true + ahead + 2 * twice + once
                        ways = math.comb(b, ahead) * math.comb(zero, twice) * math.comb(zero - twice, once)
                        law = ways * p**true * r ** (n - true) / (math.factorial(true) * 2**twice)
                        if twice + once < zero or t + true == 0:
                            steps[at] += math.factorial(n) * law
                            continue
                        last = once + (t == 0 and true == 1)
                        if last:
                            to = place[t + true - 1, ahead + twice]
                            after[at, to] += last * math.factorial(n - 1) * law
    return float(np.linalg.solve(np.eye(len(states)) - after, steps)[0])


def largest_normal(count: int) -> float:
    """Return the mean of the largest of `count` independent standard normal variables."""
    at = np.linspace(-12.0, 12.0, 24_001)
    return float(np.trapezoid(np.heaviside(at, 0.5) - np.exp(count * log_ndtr(at)), at))


def accepted_in_many_parts(labels: int, epsilon: float, parts: int) -> float:
    """Return the first two terms of the expected number of reports for many parts, with an error of order 1.

    The true label draws ahead of each other one by v = p - r a report, and the last of the others falls
    behind their middle by e sqrt(r n), e the mean of the largest of m - 1 standard normals: the budget is
    used up about where v n + e sqrt(r n) = k,

        E = k / v - e sqrt(r k) / v^(3/2) + O(1).
    """
    whole = math.exp(epsilon) + labels - 1
    r = 1 / whole
    drift = (math.exp(epsilon) - 1) / whole
    behind = largest_normal(labels - 1) * math.sqrt(r * parts)
    return parts / drift - behind / drift**1.5
