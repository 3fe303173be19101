"""The alarms of a crowd that stands still, of which other devices answer in every round.

    python bench/still_crowds.py                  100,000 rounds in pairs, 26,000 in series
    python bench/still_crowds.py --rounds 200     fewer rounds, for a look

Shares are .5, .3 and .2 of three values; 1,800 devices answer in a round: a random tenth, half or nine tenths
of the crowd, or by turns a twelfth, each device once a cycle. "Same" is the control: the same devices twice.
Counted are pairs of rounds with an alarm of a jump and of a joint change, and of series of 52 rounds the
rounds with an alarm of either kind in any window of a scan, each kind at half the rate. The stated rate is
.01; the exit status is 1 where alarms are more than .012 gives: of a cell (1e-6 for the table),
or of all but the control together at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

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
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import grr, levels, pbgrr, subset_selection, unary

SHARES = np.array([0.5, 0.3, 0.2])
TURNS = 12
PARTS = {"a tenth": 10.0, "half": 2.0, "nine tenths": 1.0 / 0.9, "turns of 12": float(TURNS), "same": 2.0}
SCANNED = ("half", "turns of 12")
"""Crowds whose series of rounds are scanned."""
DEVICES = 1800
SERIES = 52
RATE, MOST = 0.01, 0.012


def channels() -> dict[str, Channel]:
    """Return every mechanism at several epsilon."""
    return {
        **{f"grr {epsilon:g}": grr(3, epsilon=epsilon) for epsilon in (1.0, 3.0, 5.0, 8.0)},
        **{f"subset {epsilon:g}": subset_selection(3, epsilon=epsilon) for epsilon in (1.0, 3.0)},
        **{f"unary {epsilon:g}": unary(3, epsilon=epsilon) for epsilon in (1.0, 3.0)},
        "pbgrr 3": pbgrr([2, 1], epsilon=3.0, boost_epsilon=2.0),
        "levels 3": levels([2, 1], epsilon=3.0),
    }


class Crowd:
    """A mechanism, and a crowd whose rounds it asks.

    Args:
        channel: The mechanism.
        part: Who answers, one of PARTS.
        seed: Of who answers, and of what they say.
    """

    def __init__(self, channel: Channel, part: str, seed: int) -> None:
        self.channel, self.estimator = channel, estimator_for(channel)
        self.noise = survey_noise(channel, self.estimator)
        self._part, self._chance, self._source = part, np.random.default_rng(seed), seeded(seed)
        self._crowd = np.round(DEVICES * PARTS[part] * SHARES).astype(int)

    def rounds(self, many: int) -> Iterator[RoundShares]:
        """Yield so many rounds."""
        held = left = self._chance.multivariate_hypergeometric(self._crowd, DEVICES)
        for number in range(many):
            if self._part == "turns of 12":
                left = self._crowd.copy() if number % TURNS == 0 else left - held
                held = self._chance.multivariate_hypergeometric(left, DEVICES)
            elif self._part != "same":
                held = self._chance.multivariate_hypergeometric(self._crowd, DEVICES)
            reports = self.channel.perturb(np.repeat(np.arange(3), held), source=self._source)
            estimate = self.estimator(self.channel.tally(reports), DEVICES)
            yield RoundShares(DEVICES, estimate.values, estimate.categories)

    def pairs(self, many: int) -> tuple[int, int]:
        """Return how many of so many pairs of rounds have a jump, and a joint change."""
        some = list(self.rounds(2 * many))
        found = list(zip(some[::2], some[1::2], strict=True))
        jumps = sum(bool(jump_alerts(self.noise, *pair, rate=RATE)) for pair in found)
        joint = sum(bool(joint_alerts(self.channel, self.estimator, *pair, rate=RATE)) for pair in found)
        return jumps, joint

    def scanned(self, series: int) -> int:
        """Return the rounds of so many series that have an alarm in any window; see `comparisons`."""
        raised = 0
        for _ in range(series):
            rounds, since = list(self.rounds(SERIES)), 0
            for t in range(2, SERIES + 1):
                known, half = rounds[:t], RATE / 2.0
                if window_jumps(self.noise, known, since=since, rate=half) or window_joints(
                    self.channel, self.estimator, known, since=since, rate=half
                ):
                    raised, since = raised + 1, t
        return raised


def main() -> int:
    """Print the table, and return 1 if alarms of one kind are more than a rate of .012 gives, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000, help="of all pairs together")
    rounds, made = parser.parse_args().rounds, channels()
    pairs = rounds // (2 * len(PARTS) * len(made))
    series = max(1, rounds // 4 // SERIES // (len(SCANNED) * len(made)))
    many = np.array([pairs, pairs, series * (SERIES - 1)])
    found, broken = np.zeros((len(PARTS), 3)), False
    print(
        f"Alarms of {pairs:,} pairs: jump / joint; of {many[2]:,} rounds by a scan. The rate is {RATE:g}.\n"
    )
    print(f"| mechanism | {' | '.join([*PARTS, *(f'scan: {part}' for part in SCANNED)])} |")
    print("|---" * (1 + len(PARTS) + len(SCANNED)) + "|")
    for i, (name, channel) in enumerate(made.items()):
        counts = np.zeros_like(found)
        for k, part in enumerate(PARTS):
            crowd = Crowd(channel, part, 10 * i + k)
            counts[k] = *crowd.pairs(pairs), crowd.scanned(series) if part in SCANNED else 0
        broken = broken or bool((counts > binom.isf(1e-8, many, MOST)).any())
        found += counts
        print(f"| {name} | {shown(counts, '.0f')} |", flush=True)
    print(f"| rate | {shown(found / len(made) / many, '.4f')} |")
    crowds = [k for k, part in enumerate(PARTS) if part != "same"], list(map([*PARTS].index, SCANNED))
    rates = [
        found[rows, kind].sum() / (len(made) * len(rows) * many[kind])
        for kind, rows in enumerate((crowds[0], crowds[0], crowds[1]))
    ]
    print("\nAll but the control: jump {:.4f}, joint {:.4f}, scan {:.4f}.".format(*rates))
    return int(broken or max(rates) > MOST)


def shown(counts: np.ndarray, form: str) -> str:
    """Return the cells of a row of the table."""
    pairs = [f"{jump:{form}} / {joint:{form}}" for jump, joint, _ in counts]
    scans = [f"{counts[[*PARTS].index(part), 2]:{form}}" for part in SCANNED]
    return " | ".join([*pairs, *scans])


if __name__ == "__main__":
    sys.exit(main())
