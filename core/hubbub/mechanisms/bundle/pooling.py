"""Pooled tables: every part that holds a component of a table tells it, weighted by what it tells.

A table of attributes U is the sum of its components A, one for every subset of U (the ANOVA decomposition):
with r_j readings per attribute, the component A of a table f over T, which holds A, is

    (P_A f)[u] = prod_{j in A} (1[u_j = x_j] - 1/r_j) applied to f's margin over A.

A part T is answered by subset selection, whose errors are alike in every component, or tells one component
alone (an interaction). So the least squares of the planned uniform crowd weights component A of part T by

    om_{A,T} = n_T v_T / sum over T' that hold A of n_T' v_T',

where n_T are the reports about T, which depend on the public coin alone, and v_T is what one of them tells
(`told_by`). The constant component is known, 1 / prod r_j, and never taken from data. All tables then
agree in every margin that they share, and sum to one; they are unbiased for every crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.bundle.channel import Members, SampledParts, components_of
from hubbub.mechanisms.subset import SubsetSelection

Floats = NDArray[np.float64]


def told_by(oracle: SubsetSelection) -> float:
    """Return what a report tells of any component, v = (p - q)^2 F / (d (R - d)).

    p and q are the chances that a set of d of the R cells holds the true one, and any other, or what its
    levels say of an interaction; F the free numbers that it tells.
    """
    support, cells, size = oracle.levels[0].support, oracle.inputs, oracle.size
    return float((support.p - support.q) ** 2) * oracle.freedom / (size * (cells - size))


class Pooling:
    """The weights that pool the parts of a channel, for so many reports about each.

    Args:
        channel: The channel.
        reports: Reports about each part, shape (parts,), >= 0.
    """

    def __init__(self, channel: SampledParts, reports: Sequence[float] | NDArray[np.number]) -> None:
        self.channel = channel
        self.reports = np.asarray(reports, dtype=np.float64)
        self._weight = self.reports * self.told

    @cached_property
    def told(self) -> Floats:
        """The information of one report about each part, shape (parts,); see `told_by`."""
        return np.array([told_by(oracle) for oracle in self.channel.oracles])

    @cached_property
    def _holders(self) -> dict[Members, list[int]]:
        """The parts that hold each component."""
        found: dict[Members, list[int]] = {}
        for number, part in enumerate(self.channel.parts):
            for component in part.tells:
                found.setdefault(component, []).append(number)
        return found

    def weights(self, component: Members) -> dict[int, float]:
        """Return the weight of each part in a component, summing to one; {} where no report told it."""
        holders = [part for part in self._holders.get(component, []) if self._weight[part] > 0.0]
        total = float(self._weight[holders].sum())
        return {part: float(self._weight[part]) / total for part in holders}

    def is_told(self, table: Members) -> bool:
        """Return whether every component of a table was told by some report."""
        return all(self.weights(component) for component in components_of(table))

    def scores(self, table: Members) -> dict[int, Floats]:
        """Return how a table's cells are made of the parts' own estimates.

        Args:
            table: Its attributes, rising.

        Returns:
            By part that tells something of it, a matrix of shape (cells of the table, cells of the part): the
            pooled table is 1 / cells plus the sum over parts of matrix @ the part's own shares.
        """
        readings = self.channel.readings
        found = {}
        for part, matrix in self.shared_scores(table).items():
            members = self.channel.parts[part].members
            held = matrix.reshape(-1, *(readings[j] if j in table else 1 for j in members))
            whole = np.broadcast_to(held, (len(matrix), *(readings[j] for j in members)))
            found[part] = whole.reshape(len(matrix), -1)
        return found

    def shared_scores(self, table: Members) -> dict[int, Floats]:
        """Return the same of each part's margin over the attributes that it shares with the table, rising."""
        readings = self.channel.readings
        found: dict[int, Floats] = {}
        for component in components_of(table):
            for part, weight in self.weights(component).items():
                matrix = np.array([[weight]])
                # The estimates of an interaction part are its component.
                mean = float(self.channel.parts[part].classes == 1)
                for j in table:
                    r = readings[j]
                    if j in component:
                        factor = np.eye(r) - mean / r
                    else:
                        factor = np.full((r, r if j in self.channel.parts[part].members else 1), 1.0 / r)
                    matrix = np.kron(matrix, factor)
                known = found.get(part)
                found[part] = matrix if known is None else known + matrix
        return found
