"""A number on [-1, 1]: the variance of its mean, and the error of its distribution, by every mechanism.

    .venv/bin/python bench/papers/numeric.py

The first table is the variance that one report adds to an estimated sum of numbers: the worst over the grid's
points, and their average. For channels it is exact, computed from the compiled integers; the decoded values
are those of the estimator, the best linear unbiased ones for a uniform population, which are not those that
make the worst point best; "own readings" are the decoded values of the mechanism's authors. Lines marked
"formula" are continuous mechanisms whose noise is simply added, with no end.

The second table is the Wasserstein distance, in units of the number, between the true distribution and the
one estimated from DEVICES reports, of a population whose numbers follow Beta(5, 2) stretched to [-1, 1]:

- unbiased: from the exact covariance of the linear estimates, E|Z| = sqrt(2/pi) sigma at every point of the
  curve. "-" where a mechanism hides the distribution;
- smoothed: by simulation, RUNS collections with seeds of their own, expectation maximisation with smoothing
  (Li et al. 2020) started from the uniform distribution. It is biased, and far better. "-" for
  sets, which have no such view.

The third is the designer's pick, with one more input for a missing value, and its objective over the best of
the tables' mechanisms, which then have that input, too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.finite import FiniteChannel
from hubbub.estimation import estimator_for
from hubbub.estimation.em import maximise
from hubbub.testing import seeded
from hubbub_authoring import mechanisms
from hubbub_authoring.design import Candidate, Objective, Workload, choose, expected_error
from hubbub_authoring.mechanisms.boosted.kernels import KernelName
from hubbub_authoring.mechanisms.boosted.scale_laws import Gamma, ScaleLaw, TruncatedGaussian, UniformScale

POINTS = 65
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0)
DEVICES = 100_000
RUNS = 20
GRID = np.linspace(-1.0, 1.0, POINTS)
UNIT = np.linspace(0.0, 1.0, POINTS)
CROWD = UNIT**4 * (1.0 - UNIT) / float((UNIT**4 * (1.0 - UNIT)).sum())
Missing = Literal["none", "input"]
KERNELS: tuple[KernelName, ...] = ("uniform", "laplace", "gaussian", "staircase")
LAWS: dict[str, ScaleLaw] = {
    "Gamma of shape 3": Gamma(3.0, 1.0),
    "uniform from 1 to 5": UniformScale(1.0, 5.0),
    "Gaussian 1 ± 1, cut below 0.2": TruncatedGaussian(1.0, 1.0, 0.2),
}
NAMES = {
    "square_wave": "Square Wave",
    "hybrid": "Hybrid",
    "piecewise": "Piecewise",
    "duchi": "Duchi",
    "subset": "subset selection",
    "local_hashing": "local hashing",
}
WITHIN = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)

Floats = NDArray[np.float64]


def channels(epsilon: float, missing: Missing = "none") -> Iterator[tuple[str, Channel]]:
    """Return every mechanism that is a channel, on the grid."""
    for kernel in KERNELS:
        yield (
            f"boosted {kernel}, searched",
            mechanisms.boosted(POINTS, epsilon=epsilon, kernel=kernel, missing=missing),
        )
    yield "Square Wave", mechanisms.square_wave(POINTS, epsilon=epsilon, missing=missing)
    yield "Hybrid", mechanisms.hybrid(POINTS, epsilon=epsilon, missing=missing)
    yield "Piecewise", mechanisms.piecewise(POINTS, epsilon=epsilon, missing=missing)
    yield "Duchi", mechanisms.duchi(POINTS, epsilon=epsilon, missing=missing)
    margin = POINTS - 1
    for kernel in ("laplace", "staircase"):
        plain = mechanisms.boosted(
            POINTS,
            epsilon=epsilon,
            kernel="laplace" if kernel == "laplace" else "staircase",
            region=mechanisms.Absolute(1.0),
            boost=0.0,
            margin=margin,
            missing=missing,
        )
        yield f"{kernel} noise, cut", plain
    drawn = [mechanisms.r2dp(POINTS, epsilon=epsilon, within=w, missing=missing) for w in WITHIN]
    yield "r2dp noise, cut, best of two-point laws", min(drawn, key=lambda c: c.design.mean_variance)
    for name, law in LAWS.items():
        yield f"r2dp noise, cut, {name}", mechanisms.r2dp(POINTS, epsilon=epsilon, law=law, missing=missing)
    inputs = POINTS + (missing == "input")
    yield "GRR", mechanisms.grr(inputs, epsilon=epsilon)
    yield "subset selection", mechanisms.subset_selection(inputs, epsilon=epsilon)
    yield "unary, optimised", mechanisms.unary(inputs, epsilon=epsilon)
    yield "local hashing", mechanisms.local_hashing(inputs, epsilon=epsilon)


def variances(channel: Channel) -> Floats:
    """Return the variance of a report's decoded value, per point, shape (K,)."""
    if not isinstance(channel, FiniteChannel) or isinstance(channel, mechanisms.LocalHashing):
        # Their estimates are unbiased for every share, so that one mean of them is.
        alone = [estimator_for(channel).expected_estimate(crowd, 1).covariance() for crowd in np.eye(POINTS)]
        return np.array([float(GRID @ covariance @ GRID) for covariance in alone])
    rows = channel.weights() / channel.total
    shares = rows.mean(axis=0)
    scaled = rows / np.sqrt(shares)
    weights = np.linalg.lstsq(scaled, GRID, rcond=1e-12)[0]
    if np.abs(scaled @ weights - GRID).max() > 1e-7:
        return np.full(POINTS, math.inf)
    readings = weights / np.sqrt(shares)
    return np.asarray(rows @ readings**2 - (rows @ readings) ** 2)


def formulas(epsilon: float) -> Iterator[tuple[str, float]]:
    """Return variances of noise that is added as it is, the same for all numbers, whose range is 2."""
    yield "Laplace noise, formula", 8.0 / epsilon**2
    b = math.exp(-epsilon)
    # Geng and Viswanath 2016, at the stair that makes the variance least.
    yield "staircase noise, formula", 4.0 * ((b * (1.0 + b) / 2.0) ** (2 / 3) + b) / (1.0 - b) ** 2
    yield "r2dp noise, two-point, formula", 4.0 * two_point(epsilon)


def two_point(epsilon: float) -> float:
    """Return the least variance of Laplace noise of a random scale, range one, by search over two atoms.

    The law is feasible when E[h(u)] >= 0, h(u) = u (e^-u - e^-eps); the variance is E[2/u^2] (r2dp).
    """
    slow = epsilon * np.linspace(1e-4, 1.0, 2000)[:, None]
    fast = epsilon * np.exp(np.linspace(0.0, 6.0, 2000))[None, :]
    gain, debt = slow * (np.exp(-slow) - math.exp(-epsilon)), fast * (math.exp(-epsilon) - np.exp(-fast))
    share = gain / np.maximum(gain + debt, 1e-300)
    cost = share * 2.0 / fast**2 + (1.0 - share) * 2.0 / slow**2
    return min(float(cost.min()), 2.0 / epsilon**2)


def unbiased_distance(channel: Channel) -> float:
    """Return the expected Wasserstein distance of the linear estimates; inf where it is hidden."""
    missing = channel.inputs - POINTS  # a tree's, in which nobody is
    groups = np.repeat([0, 1], [POINTS, 1]) if missing else None
    crowd = np.append(CROWD, np.zeros(missing))
    covariance = estimator_for(channel, category_of=groups).expected_estimate(crowd, DEVICES).covariance()
    covariance = covariance[:POINTS, :POINTS]
    if not np.isfinite(covariance).all():
        return math.inf
    curve = np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1))[:-1]
    step = GRID[1] - GRID[0]
    return float(step * math.sqrt(2.0 / math.pi) * np.sqrt(np.maximum(curve, 0.0)).sum())


def smoothed_distance(channel: Channel) -> tuple[float, float] | None:
    """Return mean Wasserstein distance of smoothed estimates, and its standard error; None for sets."""
    if not isinstance(channel, FiniteChannel):
        return None
    numbers = np.repeat(np.arange(POINTS), np.round(CROWD * DEVICES).astype(np.int64))
    truth = np.cumsum(np.bincount(numbers, minlength=POINTS) / len(numbers))
    found, rows = [], channel.weights() / channel.total
    for seed in range(RUNS):
        symbols = channel.perturb(numbers, source=seeded(seed))
        view = maximise(rows, np.bincount(symbols, minlength=channel.outputs), order=np.arange(POINTS))
        found.append(float(np.abs(np.cumsum(view.values) - truth)[:-1].sum() * (GRID[1] - GRID[0])))
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(RUNS))


def question(epsilon: float, objective: Objective) -> Workload:
    """Return the workload of a number on [-1, 1], for one device; of a shape, for all."""
    return Workload.uniform(
        kind="grid",
        epsilon=epsilon,
        category_of=np.append(np.zeros(POINTS, dtype=np.intp), 1),
        devices=1 if objective.quantity != "shape" else DEVICES,
        points=np.append(GRID, math.nan),
        objective=objective,
    )


def for_the_curve(epsilon: float, picked: Candidate) -> Channel:
    """Return the pick without its missing input, but for trees, to stand beside the others."""
    if picked.mechanism == "tree":
        assert picked.channel is not None
        return picked.channel
    if picked.mechanism == "grr":
        return mechanisms.grr(POINTS, epsilon=epsilon)
    if picked.mechanism != "boosted":
        return dict(channels(epsilon))[NAMES[picked.mechanism]]
    steps = float(picked.parameters["half_width"]) / float(GRID[1] - GRID[0])
    region = mechanisms.Absolute(float(round(steps)))
    kernel = next(kernel for kernel in KERNELS if kernel == picked.parameters["kernel"])
    return mechanisms.boosted(POINTS, epsilon=epsilon, kernel=kernel, region=region)


def markdown(title: str, table: dict[str, list[str]]) -> None:
    """Print one table, epsilon across."""
    print("\n| " + " | ".join([title, *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]) + " |")
    print("|---" * (len(EPSILONS) + 1) + "|")
    for label, cells in table.items():
        print("| " + " | ".join([label, *cells]) + " |")


def text(number: float) -> str:
    """Return three digits, or a dash for what is hidden."""
    return "-" if math.isinf(number) else f"{number:.3g}" if number < 1e4 else f"{number:.0e}"


def smoothed_text(smooth: tuple[float, float] | None) -> str:
    """Return a mean and its standard error, or a dash for what has no such view."""
    return "-" if smooth is None else f"{smooth[0]:.4f} ± {smooth[1]:.4f}"


def main(arguments: list[str]) -> int:
    """Print the three tables."""
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    means: dict[str, list[str]] = {}
    distances: dict[str, list[str]] = {}
    picks: dict[str, list[str]] = {}
    for epsilon in EPSILONS:
        for label, channel in channels(epsilon):
            found = variances(channel)
            means.setdefault(label, []).append(f"{text(found.max())} / {text(float(found.mean()))}")
            if isinstance(channel, mechanisms.ScalarChannel):
                own = channel.variances
                cells = f"{text(own.max())} / {text(float(own.mean()))}"
                means.setdefault(f"{label}, own readings", []).append(cells)
            smooth = smoothed_distance(channel) if label != "Duchi" else None
            distances.setdefault(label, []).append(
                f"{text(unbiased_distance(channel))} / {smoothed_text(smooth)}"
            )
        for label, variance in formulas(epsilon):
            means.setdefault(label, []).append(f"{text(variance)} / {text(variance)}")
        rivals = list(channels(epsilon, "input"))
        for name in ("mean", "cdf", "shape"):
            objective = Objective(name)
            asked = question(epsilon, objective)
            picked = choose(asked)
            costs = {label: expected_error(channel, asked).cost(asked) for label, channel in rivals}
            best = min(costs, key=lambda label: costs[label])
            picks.setdefault(name, []).append(f"{picked.label}: {text(picked.cost)}")
            picks.setdefault(f"{name}, over the best of the tables", []).append(
                f"{picked.cost / costs[best]:.4f} ({best})"
            )
            if name != "mean":
                curved = for_the_curve(epsilon, picked)
                distances.setdefault(f'the designer\'s pick for "{name}"', []).append(
                    f"{text(unbiased_distance(curved))} / {smoothed_text(smoothed_distance(curved))}"
                )
    markdown("variance of the mean, worst / average", means)
    markdown("Wasserstein distance, unbiased / smoothed", distances)
    markdown("the designer's pick for", picks)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
