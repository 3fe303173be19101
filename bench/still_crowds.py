"""The coverage of intervals of a crowd's shares, and the alarms of a crowd that stands still.

    python bench/still_crowds.py                  the table
    python bench/still_crowds.py --rounds 200     fewer rounds, for a look

Shares are .5, .3 and .2 of three values; the devices of every round are drawn anew from the crowd. The table
has the part of cell-rounds in which the interval holds the crowd's share, of everybody and of the devices
counted, and pairs of rounds with an alarm at a stated rate of .01. Beside a tenth, a half and nine tenths
who answer, "same" is the control: the same devices twice.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

from hubbub.channels.channel import Channel
from hubbub.estimation import Estimate, RoundShares, estimator_for, joint_alerts, jump_alerts, survey_noise
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import grr, levels, pbgrr, subset_selection, unary

SHARES = np.array([0.5, 0.3, 0.2])
PARTS = (("a tenth", 0.1), ("half", 0.5), ("nine tenths", 0.9), ("same", 0.5))
DEVICES = 1800
RATE = 0.01
MOST = 0.012


def channels() -> dict[str, Channel]:
    """Return every mechanism at several epsilon."""
    return {
        **{f"grr {epsilon:g}": grr(3, epsilon=epsilon) for epsilon in (1.0, 3.0, 5.0, 8.0)},
        **{f"subset {epsilon:g}": subset_selection(3, epsilon=epsilon) for epsilon in (1.0, 3.0)},
        **{f"unary {epsilon:g}": unary(3, epsilon=epsilon) for epsilon in (1.0, 3.0)},
        "pbgrr 3": pbgrr([2, 1], epsilon=3.0, boost_epsilon=2.0),
        "levels 3": levels([2, 1], epsilon=3.0),
    }


def rounds(channel: Channel, estimator: Any, part: float, many: int, *, same: bool) -> Iterator[Estimate]:
    """Yield the estimates of rounds in which a random part of the crowd answers."""
    chance, source = np.random.default_rng(1), seeded(2)
    crowd = np.round(DEVICES / part * SHARES).astype(int)
    held = chance.multivariate_hypergeometric(crowd, DEVICES)
    for _ in range(many):
        if not same:
            held = chance.multivariate_hypergeometric(crowd, DEVICES)
        reports = channel.perturb(np.repeat(np.arange(3), held), source=source)
        yield estimator(channel.tally(reports), DEVICES)


def main() -> int:
    """Print the table, and return 1 if alarms of one kind are more than a rate of .012 gives, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=2000, help="rounds, and half as many pairs, of each cell"
    )
    many = parser.parse_args().rounds
    print("| mechanism | who answers | of the crowd | of the devices | jump alarms | joint alarms | pairs |")
    print("|---|---|---|---|---|---|---|")
    most, broken = binom.isf(1e-6 / 80, many // 2, MOST), False
    for name, channel in channels().items():
        estimator = estimator_for(channel)
        noise = survey_noise(channel, estimator)
        for part, share in PARTS:
            some = list(rounds(channel, estimator, share, many, same=part == "same"))
            held = np.zeros(2)
            for each in some[: many // 2]:
                asked = round(DEVICES / share)
                for i, found in enumerate((each.of_crowd(asked=asked).intervals(), each.intervals())):
                    held[i] += ((found.values_low <= SHARES) & (found.values_high >= SHARES)).mean()
            known = [RoundShares(each.n, each.values, each.categories) for each in some]
            pairs = list(zip(known[::2], known[1::2], strict=False))
            jumps = sum(bool(jump_alerts(noise, *pair, rate=RATE)) for pair in pairs)
            joint = sum(bool(joint_alerts(channel, estimator, *pair, rate=RATE)) for pair in pairs)
            broken = broken or max(jumps, joint) > most
            crowd, devices = held / (many // 2)
            print(
                f"| {name} | {part} | {crowd:.3f} | {devices:.3f} | {jumps} | {joint} | {len(pairs)} |",
                flush=True,
            )
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
