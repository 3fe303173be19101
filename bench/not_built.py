"""The ways of asking that are not built, in numbers: attacks, variances, losses, delays.

    python bench/not_built.py                     all tables
    python bench/not_built.py --lives 400         fewer simulated lives, for a look

*Memos of evolving values* keep one answer for each value and send it again, with a second noise on top. Two
lives, A, A, A, ... and A, B, A, B, ..., are told apart by the best test there is, the likelihood of all
reports.
*A tree* sends one node of a dyadic tree of changes of a bit, drawn by chance, and keeps one change of k;
its variance is simulated beside its closed form, and compared with one answer in a life.
*Realised losses* are exact, from the channels. *Pauses* ask every fourth round after eight quiet ones, until
the scan of windows gives an alert; its estimates are normal, in units of a round's standard error.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from hubbub.channels import Channel
from hubbub.mechanisms import grr
from hubbub_authoring.mechanisms import brdp, pbgrr, piecewise, square_wave

SEED: Final = 31
ROUNDS: Final = (2, 30, 365)
RATE: Final = 1e-3
STILL: Final = 52
QUIET: Final = 8
EVERY: Final = 4
Floats = NDArray[np.float64]


def response(size: int, epsilon: float) -> Floats:
    """Return the matrix of randomised response, shape (size, size)."""
    rows = np.ones((size, size)) + np.eye(size) * math.expm1(epsilon)
    return rows / rows.sum(axis=1, keepdims=True)


def told_apart(
    size: int, memo: float, second: float, lives: int, draws: np.random.Generator, *, hashed: bool
) -> list[str]:
    """Return accuracy and largest log-ratio, by rounds, of the best test of constant and alternating lives.

    Half of the lives alternate. Where values are hashed, the attacker knows the hash: A and B are in one
    bucket in one life of `size`, and no report then tells anything.
    """
    first, noise = response(size, memo), np.log(response(size, second))
    found = []
    for rounds in ROUNDS:
        right, most = 0.0, 0.0
        for life in range(lives):
            other = 1 if not hashed or draws.random() >= 1 / size else 0
            kept = [draws.choice(size, p=first[0]), draws.choice(size, p=first[other])]
            if other == 0:
                kept[1] = kept[0]
            counts = np.zeros((2, size))
            for place in (0, 1):
                times = (rounds + 1 - place) // 2
                counts[place] = draws.multinomial(times, np.exp(noise[kept[place if life % 2 else 0]]))
            even, odd = (noise @ count for count in counts)  # by memo
            constant = logsumexp(np.log(first[0]) + even + odd)
            turns = logsumexp(np.log(first[0]) + even) + logsumexp(np.log(first[other]) + odd)
            ratio = 0.0 if other == 0 else turns - constant
            most = max(most, abs(ratio))
            right += 0.5 if ratio == 0.0 else float((ratio > 0.0) == bool(life % 2))
        found.append(f"{right / lives:.2f}")
    return [*found, f"{most:.1f}"]


def memos(lives: int) -> None:
    """Print how well two lives are told apart."""
    draws = np.random.default_rng(SEED)
    hit, miss = response(10, 1.0)[0, :2]
    alone = 0.5 + 0.5 * (1.0 - 2 * hit * miss - 8 * miss**2)
    print(
        "| memo of an evolving value | 2 rounds | 30 | 365 | largest log-ratio seen |\n|---|---|---|---|---|"
    )
    print(f"| 10 values, epsilon 1, no second noise | {alone:.2f} | {alone:.2f} | {alone:.2f} | infinite |")
    for words, size, memo, second, hashed in (
        ("10 values, epsilon 1, second noise .5", 10, 1.0, 0.5, False),
        ("2 buckets, 1 and .5", 2, 1.0, 0.5, True),
        ("4 buckets, 2 and 1", 4, 2.0, 1.0, True),
    ):
        print(f"| {' | '.join([words, *told_apart(size, memo, second, lives, draws, hashed=hashed)])} |")


def tree_variance(rounds: int, changes: int, at: int, lives: int, draws: np.random.Generator) -> float:
    """Return n times the simulated variance of a share after `at` rounds, epsilon 1, all bits still 0."""
    levels, a = round(math.log2(rounds)) + 1, math.e
    scale = levels * changes * (a + 1) / (a - 1)
    nodes = [level for level in range(levels) if at >> level & 1]  # of the dyadic intervals that end at `at`
    level = draws.integers(levels, size=(lives, 1000))
    sign = draws.choice((-1.0, 1.0), size=(lives, 1000))  # no change: either sign alike
    estimates = np.mean(scale * sign * np.isin(level, nodes), axis=1)
    return 1000 * float(np.var(estimates))


def trees(lives: int) -> None:
    """Print how much more variance a tree has than one answer in a life, and its simulated variance."""
    draws, unit = np.random.default_rng(SEED), ((math.e + 1) / (math.e - 1)) ** 2
    print("\n| rounds | one answer a life over the tree, 1 change | 2 | 4 |\n|---|---|---|---|")
    for rounds in (64, 256, 1024, 4096):
        levels = round(math.log2(rounds)) + 1
        ones = float(np.mean([number.bit_count() for number in range(1, rounds + 1)]))
        cells = [f"{rounds / 4 / (ones * levels * k * k):.2f}" for k in (1, 2, 4)]
        print(f"| {rounds:,} | {' | '.join(cells)} |")
    print("\n| tree of 32 rounds, 2 changes: after round | simulated n Var | closed form |\n|---|---|---|")
    for at in (1, 7, 31, 32):
        closed = at.bit_count() * 6 * 4 * unit
        print(f"| {at} | {tree_variance(32, 2, at, 20 * lives, draws):.1f} | {closed:.1f} |")


def realised(rows: Iterable[tuple[str, Channel]]) -> None:
    """Print what an answer realises of its epsilon, on average, its values equally common."""
    print("\n| mechanism | mean realised loss over epsilon |\n|---|---|")
    for name, channel in rows:
        matrix = channel.probabilities()
        assert matrix is not None
        losses = np.log(matrix.max(axis=0)) - np.log(matrix.min(axis=0))
        print(f"| {name} | {float(matrix.mean(axis=0) @ losses) / channel.epsilon:.4f} |")


def overlaps() -> None:
    """Print how much less variance a change has if the same people answer twice, their values alike by .9."""
    print("\n| inputs, epsilon | share | gain of asking the same people |\n|---|---|---|")
    for inputs, epsilon, f in ((91, 1.0, 0.1), (3, 1.0, 0.5), (91, 4.0, 0.1), (3, 3.0, 0.5)):
        a, costs = math.exp(epsilon), []
        for size in range(1, inputs // 2 + 1):
            p = size * a / (size * a + inputs - size)
            q = (p * (size - 1) + (1 - p) * size) / (inputs - 1)
            costs.append((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
        noise, s = min(costs), f * (1 - f)
        print(f"| {inputs}, {epsilon:g} | {f:g} | {(noise + s) / (noise + s * 0.1):.2f} |")


def watched(jump: float, length: int, draws: np.random.Generator, *, pauses: bool) -> tuple[int, int | None]:
    """Return the rounds asked after `STILL`, and after how many of all an alert came; None without one."""
    seen: list[float] = []
    quiet = asked = 0
    for number in range(length):
        if pauses and quiet >= QUIET and number % EVERY:
            continue
        seen.append(draws.normal() + jump * (number >= STILL))
        asked += number >= STILL
        quiet += 1
        windows = [2**k for k in range(len(seen).bit_length()) if 2 * 2**k <= len(seen)]
        sums, n = np.cumsum(seen), len(seen)
        alert = any(
            abs((sums[-1] - sums[-1 - last]) / last - sums[-1 - last] / (n - last))
            > norm.isf(RATE / len(windows) / 2) * math.sqrt(1 / last + 1 / (n - last))
            for last in windows
        )
        if alert and jump and number >= STILL:
            return asked, number - STILL + 1
        if alert:
            seen, quiet = seen[-1:], 0
    return asked, None


def pauses(lives: int) -> None:
    """Print what pausing saves in a still crowd, and how late it finds a jump of two standard errors."""
    print("\n| rounds | asked in a still crowd | jump found in 13 rounds | median |\n|---|---|---|---|")
    for name, pausing in (("always asked", False), ("paused", True)):
        draws = np.random.default_rng(SEED)
        still = [watched(0.0, STILL + 104, draws, pauses=pausing)[0] for _ in range(lives // 4)]
        delays = [watched(2.0, STILL + 104, draws, pauses=pausing)[1] or 999 for _ in range(lives // 2)]
        soon = float(np.mean(np.array(delays) <= 13))
        print(f"| {name} | {np.mean(still) / 104:.2f} | {soon:.3f} | {np.median(delays):g} |")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all tables, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lives", type=int, default=2000)
    lives = parser.parse_args(arguments).lives
    tables: list[Callable[[], None]] = [
        lambda: memos(lives),
        lambda: trees(lives),
        lambda: realised(
            [
                ("grr, 12 inputs", grr(12, epsilon=1.0)),
                ("pbgrr, categories of 5 and 6", pbgrr([5, 6, 1], epsilon=1.0, boost_epsilon=0.5)),
                ("square wave, 101 points", square_wave(101, epsilon=1.0)),
                ("piecewise, 101 points", piecewise(101, epsilon=1.0)),
                ("Laplace, 101 points", brdp(101, epsilon=1.0, half_width=0.5, recycling=0.0, margin=400)),
            ]
        ),
        overlaps,
        lambda: pauses(lives),
    ]
    for table in tables:
        table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
