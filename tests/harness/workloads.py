"""Small workloads for tests of designs, and every report that a small channel can send."""

from __future__ import annotations

import numpy as np

from hubbub.channels.finite import FiniteChannel
from hubbub_authoring.design import Objective, Workload


def labels(sizes, objective="both", participation=1.0, max_gain=None) -> Workload:
    return Workload.uniform(
        kind="labels",
        epsilon=1.0,
        category_of=np.repeat(np.arange(len(sizes) + 1), [*sizes, 1]),
        devices=1000,
        points=None,
        objective=Objective(objective),
        participation=participation,
        max_gain=max_gain,
    )


def numbers(points: int, objective: str) -> Workload:
    return Workload.uniform(
        kind="grid",
        epsilon=1.5,
        category_of=np.append(np.zeros(points, dtype=np.intp), 1),
        devices=1000,
        points=np.append(np.linspace(0.0, 1.0, points), np.nan),
        objective=Objective(objective),
    )


def symbols_of(channel) -> np.ndarray:
    """Every symbol that the channel can send."""
    if not channel.width:
        return np.arange(channel.bins)[:, None]
    every = b"".join(n.to_bytes(channel.width, "little") for n in range(2 ** (8 * channel.width)))
    column = np.frombuffer(every, dtype=np.uint8).reshape(-1, channel.width)
    return column[channel.contains(column)]


def table_of(channel) -> np.ndarray:
    """P(y|x) of every report, shape (K, reports): the weights, or the likelihoods of all sets."""
    if isinstance(channel, FiniteChannel):
        return channel.weights() / channel.total
    symbols = [symbol.tobytes() for symbol in symbols_of(channel)]
    return np.exp(np.array([channel.log_likelihood(symbol) for symbol in symbols])).T
