"""Closed forms that the papers do not give: errors of boosted noise, and accepted counts of two parts."""

from __future__ import annotations

import math
from typing import NamedTuple

from hubbub.privacy_profile.profile import AbsoluteRegion, BoostedNoise, Gaussian, Laplace


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
