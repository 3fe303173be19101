"""The least cut of a weighted graph that is not 0, exactly, in integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.int64]


def least_cut(weights: Weights) -> int | None:
    """Return the least weight, above 0, of all edges between two parts of a graph; None without an edge.

    It is the algorithm of Stoer and Wagner (1997) in a graph that may fall apart. Nodes are taken in the
    order of what ties them to those before; by their lemma no cut between a node and the one before it weighs
    less than that tie. So both become one node wherever the tie is at least the least cut so far, and what a
    node weighs alone is a cut.

    Args:
        weights: The weight of each pair's edges, shape (n, n), symmetric, >= 0, and 0 from a node to itself.
    """
    best: int | None = None
    while True:
        degrees = weights.sum(axis=1)
        kept = np.flatnonzero(degrees)
        if not len(kept):
            return best
        weights, least = weights[np.ix_(kept, kept)], int(degrees[kept].min())
        best = least if best is None else min(best, least)
        order, ties = _by_ties(weights)
        starts = np.flatnonzero(ties < best)  # a tie of 0 begins another part of the graph
        weights = np.add.reduceat(weights[np.ix_(order, order)], starts, axis=0)
        weights = np.add.reduceat(weights, starts, axis=1)
        np.fill_diagonal(weights, 0)


def _by_ties(weights: Weights) -> tuple[NDArray[np.intp], Weights]:
    """Return the nodes, each the one most tied to all before it, and the weight of its edges to them."""
    n = len(weights)
    order, ties = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.int64)
    left = np.zeros(n, dtype=np.int64)  # a node's tie to those taken; -1 once it is one of them
    taken = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        order[i] = node = int(left.argmax())
        ties[i], taken[node] = left[node], True
        left += weights[node]
        left[taken] = -1
    return order, ties
