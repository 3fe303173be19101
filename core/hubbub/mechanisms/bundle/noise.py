"""The noise of a bundle's pooled tables, as the statistics of tables read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np

from hubbub.estimation.tables.noise import TableNoise
from hubbub.mechanisms.bundle.pooling import Floats, Members, Pooling


class PooledNoise:
    """The covariance of a pooled table: of every part that tells something of it, independent of the others.

    A part's scores depend on the attributes that it shares with the table alone, so its noise follows from
    the table's own margin over these: no larger table is asked for. Devices are drawn from the crowd for
    every part by itself: across parts the devices counted are not taken off, which pairs cannot tell.

    Args:
        pooling: The weights, of so many reports about each part.
        table: Its attributes, in the order of its axes.
    """

    def __init__(self, pooling: Pooling, table: Members) -> None:
        self._pooling, self._table = pooling, table

    def along(self, axes: Sequence[int]) -> Self:
        """Return the noise of the table's margin over some of its axes, in that order."""
        return type(self)(self._pooling, tuple(self._table[axis] for axis in axes))

    def covariance(self, shares: Floats, *, cells: int, devices: int) -> Floats:
        """Return the covariance of the table's shares, shape (R, R), where its crowd has these shares.

        Args:
            shares: Of every cell, shape (R,), the last axis fastest.
            cells: Not used: a margin's noise is not that of a sum of the cells of one part.
            devices: Not used: what counts is the reports about each part.
        """
        del cells, devices
        readings, rising = self._pooling.channel.readings, sorted(self._table)
        order = [self._table.index(member) for member in rising]
        shape = [readings[member] for member in self._table]
        crowd = shares.reshape(shape).transpose(order)
        found = np.zeros((shares.size, shares.size))
        for part, matrix in self._pooling.shared_scores(tuple(rising)).items():
            oracle = self._pooling.channel.oracles[part]
            outside = [j for j in rising if j not in self._pooling.channel.parts[part].members]
            margin = crowd.sum(axis=tuple(rising.index(j) for j in outside)).ravel()
            told = TableNoise.of_sets(oracle.levels[0].support).covariance(
                margin, cells=oracle.inputs // margin.size, devices=int(self._pooling.reports[part])
            )
            found += matrix @ told @ matrix.T
        back = np.arange(math.prod(shape)).reshape([shape[axis] for axis in order])
        kept = back.transpose(np.argsort(order)).ravel()
        return np.asarray(found[np.ix_(kept, kept)])
