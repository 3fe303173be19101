"""Rounds that are watched while they fill: how often a band misses at some look, beside today's interval.

    python bench/watched_rounds.py                   nine settings and more mechanisms
    python bench/watched_rounds.py --rounds 100      fewer rounds, for a look

A round has 64,000 reports and is looked at 128 times, after every 500. In the cell, a tenth of the devices,
members come as they happen to, first, or last. A look misses if the share among the devices counted so far
is left out. "Width" is the mean over looks of the band's over that of an interval of 1.96 errors, where no
end of the band is cut at 0 or 1; the worst look's is beside it. The control is the interval of a sealed
round, looked at as often. The exit status is 1 where a band misses in more than .03 of rounds, is wider than
1.7 times on average, or the control is not caught.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from hubbub.channels.channel import Channel
from hubbub.estimation import Looks, always_valid, estimator_for, survey_noise
from hubbub.estimation.alerts.score_noise import ScoreNoise
from hubbub.mechanisms import grr

SIZE, STEP, LOOKS = 64_000, 500, 128
SHARE = 0.1
LEVEL = 0.95
ORDERS = ("as they come", "members first", "members last")
MOST, WIDEST, CAUGHT = 0.03, 1.7, 0.28
PLANNED = Looks(STEP, SIZE)


def members(order: str, rounds: int, chance: np.random.Generator) -> np.ndarray:
    """Return how many devices in the cell are in every step of reports, shape (rounds, LOOKS)."""
    held = round(SHARE * SIZE)
    if order == "as they come":
        return chance.multivariate_hypergeometric(np.full(LOOKS, STEP), held, size=rounds)
    full = np.clip(held - STEP * np.arange(LOOKS), 0, STEP)
    return np.tile(full if order == "members first" else full[::-1], (rounds, 1))


def estimates(
    channel: Channel, held: np.ndarray, chance: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, ScoreNoise]:
    """Return estimates and true shares at all looks, shape (rounds, LOOKS), reports, and the cell's noise.

    Of a cell whose score takes two values, p and q are the chances that a report is for it.
    """
    noise = survey_noise(channel, estimator_for(channel)).values.picked(slice(0, 1))
    low, high = float(noise.low[0]), float(noise.high[0])
    p, q = (1.0 - low) / (high - low), -low / (high - low)
    hits = np.cumsum(chance.binomial(held, p) + chance.binomial(STEP - held, q), axis=1)
    n = STEP * np.arange(1, LOOKS + 1)
    return low + (high - low) * hits / n, np.cumsum(held, axis=1) / n, n, noise


def sealed_interval(found: np.ndarray, n: np.ndarray, noise: ScoreNoise) -> tuple[np.ndarray, np.ndarray]:
    """Return what an interval of 1.96 errors leaves, by the score's own variance at the estimate."""
    f = np.clip(found, 0.0, 1.0)
    half = 1.959964 * np.sqrt((f * noise.own[0] + (1.0 - f) * noise.rest[0]) / n)
    return found - half, found + half


def watched(channel: Channel, order: str, rounds: int, seed: int) -> tuple[float, float, float, float, float]:
    """Return rounds missed at any look by the band, and by the control at any look and at the last one.

    The last two are the mean and the largest width over that of the control.
    """
    chance = np.random.default_rng(seed)
    found, truth, n, noise = estimates(channel, members(order, rounds, chance), chance)
    columns = found.T  # every round is a cell of the same law, looked at LOOKS times
    tiled = noise.picked(np.zeros(rounds, dtype=np.intp))
    low, high = (
        each.T for each in always_valid(columns, tiled, n, alpha=1.0 - LEVEL, looks=PLANNED, of="devices")
    )
    missed = ((truth < low) | (truth > high)).any(axis=1).mean()
    from_, until = sealed_interval(found, n, noise)
    off = (truth < from_) | (truth > until)
    ratio = (high - low) / (until - from_)
    whole = (low > 0.0) & (high < 1.0)
    looks = [ratio[whole[:, i], i].mean() for i in range(LOOKS) if whole[:, i].any()]
    width = np.array(looks)
    return missed, off.any(axis=1).mean(), off[:, -1].mean(), width.mean(), width.max()


def main() -> int:
    """Print the table, and return 1 if a number is out of what must be shown, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    rounds = parser.parse_args().rounds
    print(f"Parts of {rounds:,} rounds with a miss; {LOOKS} looks, shares of {SHARE:g}.\n")
    print("| mechanism | members | band | interval at any look | at the last | width | worst look |")
    print("|---|---|---|---|---|---|---|")
    broken = False
    made = {"grr 3, epsilon 1": grr(3, epsilon=1.0), "grr 91, epsilon 1": grr(91, epsilon=1.0)}
    made["grr 3, epsilon 3"] = grr(3, epsilon=3.0)
    for i, (name, channel) in enumerate(made.items()):
        for k, order in enumerate(ORDERS):
            found = watched(channel, order, rounds, 10 * i + k)
            broken = broken or found[0] > MOST or found[3] > WIDEST or found[1] < CAUGHT
            print(f"| {name} | {order} | {' | '.join(f'{each:.4f}' for each in found)} |", flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
