"""The cost of composing a thousand different laws, and the distance of the result above the exact value.

    .venv/bin/python bench/papers/composition.py

Every law differs from every other. For Gaussians the composed law is a Gaussian, hence known exactly; for
the others the bound is held against one from a grid sixteen times finer, which is nearer to the exact value.
Seconds are of the processor, the best of several repetitions.
"""

from __future__ import annotations

import math
import sys
import time

from hubbub_lab.continuous_noise.composition import Composition
from hubbub_lab.continuous_noise.loss_sum import LossSum
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    GammaLaplace,
    Gaussian,
    Laplace,
    LaplaceMixture,
    Profile,
)

LAWS = 1000
DELTA = 1e-6
REPEATS = 3
SCALES = [20.0 + 30.0 * i / LAWS for i in range(LAWS)]
KINDS = {
    "Gaussian": lambda s: BoostedNoise(Gaussian(s)),
    "Laplace": lambda s: BoostedNoise(Laplace(s)),
    "boosted Gaussian": lambda s: BoostedNoise(Gaussian(s), AbsoluteRegion(1.0), 0.09),
    "boosted Laplace": lambda s: BoostedNoise(Laplace(s), AbsoluteRegion(1.0), 0.05),
    "Laplace of two scales": lambda s: BoostedNoise(LaplaceMixture((1 / s, 2 / s), (0.5, 0.5))),
    "Laplace of a Gamma scale": lambda s: BoostedNoise(GammaLaplace(2.0, 0.5 / s)),
}


def main(arguments: list[str]) -> int:
    """Print one line per kind of law, and one for all of them mixed."""
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    kinds = list(KINDS.values())
    mixed = [kinds[i % len(kinds)](scale) for i, scale in enumerate(SCALES)]
    rows = {name: [build(scale) for scale in SCALES] for name, build in KINDS.items()}
    print(f"epsilon of {LAWS} different laws at delta {DELTA:g}")
    for name, laws in {**rows, "all six in turn": mixed}.items():
        found, seconds = math.inf, math.inf
        for _ in range(REPEATS):
            # profiles remember what was asked of them: each repetition has its own
            composition = Composition([(Profile(law, 1.0), 1) for law in laws])
            start = time.process_time()
            found = composition.epsilon(DELTA)
            seconds = min(seconds, time.process_time() - start)
        if name == "Gaussian":
            together = 1.0 / math.sqrt(sum(scale**-2 for scale in SCALES))
            exact = Profile(BoostedNoise(Gaussian(together)), 1.0).epsilon(DELTA)
        else:
            extents = composition._extents(DELTA)
            fine = composition._first_interval(extents) / 16.0
            exact = LossSum(composition._grids(extents, fine)).epsilon(DELTA)
        print(f"{name:26} {found:9.5f}  {100 * (found / exact - 1):6.3f} % above  {seconds:5.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
