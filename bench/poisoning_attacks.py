"""The known attacks on local privacy, as counts of forged reports, for every mechanism of labels.

Random value, random report and maximal gain are those of Cao, Jia and Gong (USENIX Security 2021), input
poisoning is the lie of an honest device. Maximal gain sends the report that adds most to the targets'
estimates: the best symbol of the channel's own, or the set of the targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from hubbub.channels.channel import Channel
from hubbub.channels.finite import FiniteChannel
from hubbub.channels.sets import SetChannel
from hubbub.estimation import RoundShares, estimator_for, survey_noise
from hubbub.mechanisms import grr, levels, local_hashing, subset_selection, unary
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import boosted, pbgrr

VALUES = 30
GROUPS = 10
ATTACKS = ("random value", "random report", "input", "maximal gain")


def _grouped(build: Callable[[float], Channel]) -> Callable[[float], tuple[Channel, np.ndarray]]:
    return lambda epsilon: (build(epsilon), np.arange(VALUES) // (VALUES // GROUPS))


SIZES = [VALUES // GROUPS] * GROUPS
MECHANISMS: dict[str, Callable[[float], tuple[Channel, np.ndarray | None]]] = {
    "grr": _grouped(lambda epsilon: grr(VALUES, epsilon=epsilon)),
    "pbgrr": _grouped(lambda epsilon: pbgrr(SIZES, epsilon=epsilon, boost_epsilon=epsilon / 2)),
    "subset": _grouped(lambda epsilon: subset_selection(VALUES, epsilon=epsilon)),
    "unary": _grouped(lambda epsilon: unary(VALUES, epsilon=epsilon)),
    "local_hashing": _grouped(lambda epsilon: local_hashing(VALUES, epsilon=epsilon)),
    "levels": lambda epsilon: (levels(SIZES, epsilon=epsilon, oracles="grr"), None),
    "boosted": lambda epsilon: (boosted(VALUES - 1, epsilon=epsilon, missing="input"), None),
}


@dataclass(frozen=True, eq=False)
class Target:
    """One mechanism under attack.

    Attributes:
        channel: The channel of VALUES inputs.
        estimator: Its estimator.
        noise: What alerts know of it.
    """

    channel: Channel
    estimator: object
    noise: object

    def shares(self, counts: np.ndarray, n: int) -> RoundShares:
        """Return the raw estimates of a round."""
        estimate = self.estimator(counts, n)
        return RoundShares(n, estimate.values, estimate.categories)


@cache
def target(name: str, epsilon: float) -> Target:
    """Return a mechanism of `MECHANISMS`, made once."""
    channel, groups = MECHANISMS[name](epsilon)
    estimator = estimator_for(channel, category_of=groups)
    return Target(channel, estimator, survey_noise(channel, estimator))


def people(truth: str, n: int) -> np.ndarray:
    """Return the inputs of n devices, shape (n,): even shares, those of Zipf's law, or one value."""
    weights = {
        "even": np.ones(VALUES),
        "zipf": 1.0 / np.arange(1, VALUES + 1),
        "one value": np.eye(VALUES)[0],
    }[truth]
    edges = np.round(np.cumsum(weights) / weights.sum() * n).astype(int)
    return np.searchsorted(edges, np.arange(n), side="right")


def honest(found: Target, held: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Return the counts of one honest round, drawn from the channel's own rows."""
    channel = found.channel
    if isinstance(channel, FiniteChannel):
        rows = channel.probabilities()
        return sum(
            chance.multinomial(many, rows[x] / rows[x].sum())
            for x, many in enumerate(np.bincount(held, minlength=channel.inputs).tolist())
        )
    return channel.tally(channel.perturb(held, source=seeded(int(chance.integers(2**32)))))


def forged(
    found: Target, attack: str, targets: list[int], many: int, chance: np.random.Generator
) -> np.ndarray:
    """Return the counts of forged reports."""
    channel = found.channel
    if attack == "input":
        return honest(found, np.resize(targets, many), chance)
    if attack == "random value":
        return honest(found, chance.integers(channel.inputs, size=many), chance)
    if attack == "random report":
        if isinstance(channel, FiniteChannel):
            return chance.multinomial(many, np.full(channel.outputs, 1.0 / channel.outputs))
        return channel.tally(np.stack([_any_set(channel, chance) for _ in range(many)]))
    if isinstance(channel, FiniteChannel):
        return many * np.eye(channel.outputs, dtype=np.int64)[_best_symbol(found, targets)]
    return _best_sets(channel, targets, many, chance)


def gain_of(found: Target, attack: str, targets: list[int], many: int, chance: np.random.Generator) -> float:
    """Return what one forged report adds to the targets' summed share, beside a report of no target's holder.

    Estimates are linear in the counts, and honest reports of others add 0 on average: so this is the mean
    over forged reports, with no noise of honest ones.
    """
    counts = forged(found, attack, targets, many, chance)
    base = honest(found, people("even", many * 20), chance)
    n = many * 20
    with_them = found.estimator(base + counts, n + many).values[targets].sum()
    without = found.estimator(base, n).values[targets].sum()
    return float((with_them - without) * (n + many) / many + without)


def _any_set(channel: SetChannel, chance: np.random.Generator) -> np.ndarray:
    size = channel.levels[0].support.size
    bits = np.zeros(channel.bins, dtype=bool)
    if size is None:
        bits = chance.random(channel.bins) < 0.5
    else:
        bits[chance.choice(channel.bins, size, replace=False)] = True
    return np.packbits(bits, bitorder="little")


def _best_symbol(found: Target, targets: list[int]) -> int:
    channel, estimator = found.channel, found.estimator
    inverse = getattr(estimator, "inverse", None)
    if inverse is not None:
        unit = np.zeros(channel.inputs)
        unit[targets] = 1.0
        return int(np.argmax(inverse.pull_back(unit)))
    # Added to a round, since estimates by levels need reports about each.
    base = np.round(1e6 * channel.expected(np.full(channel.inputs, 1.0 / channel.inputs))).astype(int)
    each = [base + 1000 * symbol for symbol in np.eye(channel.outputs, dtype=np.int64)]
    return int(np.argmax([estimator(counts, int(counts.sum())).values[targets].sum() for counts in each]))


def _best_sets(channel: SetChannel, targets: list[int], many: int, chance: np.random.Generator) -> np.ndarray:
    size = channel.levels[0].support.size
    counts = np.zeros(channel.bins, dtype=np.int64)
    counts[targets[:size]] = many
    rest = 0 if size is None else size - len(targets[:size])
    if rest > 0:  # the rest of a set of fixed size is spread evenly: less to see, and the same gain
        others = np.setdiff1d(np.arange(channel.bins), targets)
        counts[others] = chance.multinomial(many * rest, np.full(len(others), 1.0 / len(others)))
    return counts
