"""Jumps and drifts that a survey's alerts find, and what they find in a crowd that stands still.

    python bench/scan.py                  the tables
    python bench/scan.py --runs 20        fewer runs, for a look

A run is a survey of fresh answers whose crowd stands still for 52 rounds. Then one share moves to another: at
once by two standard errors of a round's estimate, or by a tenth of one in every round. Counts are drawn from
the channel's own law, and rounds are judged by the product's own bounds at its usual rate of 1e-3 a round, of
which a change has half. "Neighbours" is the test of a round beside the one before, at the whole of that half.
"Still" is rounds with an alert at a rate of .1, of which a change then has half, in every fourth run;
the exit status is 1 where they are more than that gives at 1e-6.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from hubbub.channels.channel import Channel
from hubbub.estimation import (
    RoundShares,
    estimator_for,
    joint_alerts,
    jump_alerts,
    survey_noise,
    window_joints,
    window_jumps,
)
from hubbub.mechanisms import grr, subset_selection, unary
from hubbub.testing import seeded

STILL = 52
RATE = 1e-3
CONTROL = 0.1
STILL_PART = 4
MOVES = {"jump of 2": (2.0, 0.0, 13), "drift of .1": (0.0, 0.1, 26)}


def channels() -> dict[str, tuple[Channel, np.ndarray, int]]:
    """Return mechanisms with the shares of a crowd, and how many of it answer in a round."""
    yes_no, few = np.array([0.3, 0.7]), np.array([0.5, 0.3, 0.2])
    many = np.array([0.2, 0.2, *[0.06] * 10])
    return {
        "grr 2, epsilon 1": (grr(2, epsilon=1.0), yes_no, 2000),
        "grr 3, epsilon 1": (grr(3, epsilon=1.0), few, 2000),
        "grr 3, epsilon 3": (grr(3, epsilon=3.0), few, 2000),
        "unary 3, epsilon 1": (unary(3, epsilon=1.0), few, 2000),
        "grr 12, epsilon 2": (grr(12, epsilon=2.0), many, 1667),
        "subset 12, epsilon 1": (subset_selection(12, epsilon=1.0), many, 4000),
    }


class Case:
    """A mechanism, a crowd, and the standard error of its first share in a round."""

    def __init__(self, channel: Channel, shares: np.ndarray, n: int) -> None:
        self.channel, self.shares, self.n = channel, shares, n
        self.estimator: Any = estimator_for(channel)
        self.noise = survey_noise(channel, self.estimator)
        self.error = float(self.estimator.expected_estimate(shares, n).of_crowd().printed_errors[0][0])

    def rounds(self, moved: np.ndarray, chance: np.random.Generator) -> list[RoundShares]:
        """Return rounds in which so many standard errors have moved from the first share to the second."""
        found, source = [], seeded(int(chance.integers(2**31)))
        for errors in moved:
            shares = self.shares.copy()
            shares[:2] += np.array([-1.0, 1.0]) * errors * self.error
            if self.channel.probabilities() is not None:  # reports of a crowd are drawn from its mixture
                counts = chance.multinomial(self.n, self.channel.expected(shares))
            else:
                held = np.repeat(np.arange(len(shares)), chance.multinomial(self.n, shares))
                counts = self.channel.tally(self.channel.perturb(held, source=source))
            estimate = self.estimator(counts, self.n)
            found.append(RoundShares(self.n, estimate.values, estimate.categories))
        return found


def changed(case: Case, rounds: Sequence[RoundShares], since: int, rate: float) -> bool:
    """Return whether the last of some rounds has an alert of a change in any window."""
    return bool(
        window_jumps(case.noise, rounds, since=since, rate=rate / 4.0)
        or window_joints(case.channel, case.estimator, rounds, since=since, rate=rate / 4.0)
    )


def beside_neighbour(case: Case, rounds: Sequence[RoundShares], rate: float) -> bool:
    """Return whether the last of some rounds has an alert of a change since the one before."""
    pair = rounds[-2:]
    return bool(
        jump_alerts(case.noise, *pair, rate=rate / 4.0)
        or joint_alerts(case.channel, case.estimator, *pair, rate=rate / 4.0)
    )


def still(case: Case, runs: int) -> int:
    """Return the rounds of still crowds with an alert at the rate of the control."""
    chance, raised = np.random.default_rng(1), 0
    for _ in range(runs):
        rounds, since = case.rounds(np.zeros(STILL), chance), 0
        for t in range(2, STILL + 1):
            if changed(case, rounds[:t], since, CONTROL):
                raised, since = raised + 1, t
    return raised


def moves_found(case: Case, runs: int, jump: float, drift: float, within: int) -> tuple[int, int, float]:
    """Return the runs in which a move is found by windows, and by neighbours, and the median delay."""
    chance, delays, beside = np.random.default_rng(2), [], 0
    moved = np.concatenate([np.zeros(STILL), jump + drift * np.arange(1, within + 1)])
    for _ in range(runs):
        rounds = case.rounds(moved, chance)
        later = range(STILL + 1, len(rounds) + 1)
        found = (t - STILL for t in later if changed(case, rounds[:t], 0, RATE))
        delays.append(next(found, within + 1))
        beside += any(beside_neighbour(case, rounds[:t], RATE) for t in later)
    return sum(delay <= within for delay in delays), beside, float(np.median(delays))


def main() -> int:
    """Print the tables, and return 1 if a still crowd has more alerts than stated, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    many = runs // STILL_PART * (STILL - 1)
    most, broken = binom.isf(1e-6, many, CONTROL / 2.0), False
    head = " | ".join(f"{name}: windows | neighbours | median" for name in MOVES)
    print(f"Runs of {runs} in which a change is found within 13 rounds, and 26 of a drift.\n")
    print(f"| mechanism | {head} | still, of {many:,} |")
    print("|---|" + "---|" * (3 * len(MOVES) + 1))
    for name, (channel, shares, n) in channels().items():
        case = Case(channel, shares, n)
        cells = [
            " | ".join(f"{each:g}" for each in moves_found(case, runs, *move)) for move in MOVES.values()
        ]
        raised = still(case, runs // STILL_PART)
        broken = broken or raised > most
        print(f"| {name} | {' | '.join(cells)} | {raised} |", flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
