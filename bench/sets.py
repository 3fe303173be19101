"""Sets of items: errors beside their formula, the speed of draws, and the time of a hit and of a miss.

    python bench/sets.py [ROUNDS]

200 items with "missing", 8 of a device at most, epsilon 1. 20,000 devices have 0 to 8 items, the same in
every round; the error is that of all items over ROUNDS (200). Its
relative deviation is sqrt(2/40,000), 0.7 %.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from hubbub.estimation import ItemsEstimator
from hubbub.mechanisms import set_selection
from hubbub.testing import seeded

ITEMS, MOST, EPSILON = 200, 8, 1.0
DEVICES, BATCH, DRAWS = 20_000, 10_000, 20_000


class Coin:
    """A source of system bytes but for the coin of a draw."""

    def __init__(self, coin: int) -> None:
        self._source, self._coin = seeded(coin & 1), coin.to_bytes(8, "little")

    def token_bytes(self, n: int, /) -> bytes:
        """Return n bytes, the second eight of which are the coin's."""
        data = self._source.token_bytes(n)
        return data[:8] + self._coin + data[16:] if n > 16 else data


def main(arguments: list[str]) -> int:
    """Print the tables."""
    rounds = int(arguments[0]) if arguments else 200
    channel = set_selection(ITEMS, most=MOST, epsilon=EPSILON)
    p, q = float(channel.p), float(channel.q)
    rng = np.random.default_rng(11)
    held = rng.random((DEVICES, ITEMS)).argsort(axis=1) < rng.integers(0, MOST + 1, DEVICES)[:, None]
    packed, truth = np.packbits(held, axis=1, bitorder="little"), held.mean(axis=0)
    estimator, squares = ItemsEstimator(channel), 0.0
    for number in range(rounds):
        counts = channel.tally(channel.perturb(packed, source=seeded(number)))
        squares += float(np.mean((estimator(counts, DEVICES).values - truth) ** 2)) / rounds
    formula = float(np.mean(truth * p * (1 - p) + (1 - truth) * q * (1 - q))) / (p - q) ** 2
    print("| items | of a device | epsilon | k | n x variance, rare | n x mse, simulated | formula | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {ITEMS} | {MOST} | {EPSILON:g} | {channel.size} | {q * (1 - q) / (p - q) ** 2:.4f} "
        f"| {DEVICES * squares:.3f} | {formula:.3f} | {DEVICES * squares / formula:.4f} |"
    )
    took = []
    for _ in range(9):
        begun = time.perf_counter()
        channel.perturb(packed[:BATCH])
        took.append(1e6 * (time.perf_counter() - begun) / BATCH)
    hit, miss = Coin(0), Coin(2**64 - 1)
    times: dict[str, list[int]] = {"hit": [], "miss": []}
    for _ in range(DRAWS):
        for name, source in (("hit", hit), ("miss", miss)):
            begun_ns = time.perf_counter_ns()
            channel.draw(7, source)
            times[name].append(time.perf_counter_ns() - begun_ns)
    medians = {name: float(np.median(each)) / 1000 for name, each in times.items()}
    print("\n| a report in batches of 10,000, us | alone, a hit, us | alone, a miss, us | miss over hit |")
    print("|---|---|---|---|")
    print(
        f"| {np.median(took):.2f} | {medians['hit']:.2f} | {medians['miss']:.2f} "
        f"| {medians['miss'] / medians['hit']:.3f} |"
    )
    return 0 if 0.98 < DEVICES * squares / formula < 1.02 else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
