"""The noise of a bundle's pooled tables, as the statistics of tables read it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from hubbub.errors import ParameterError
from hubbub.estimation.tables.noise import TableNoise
from hubbub.mechanisms.bundle.channel import Members
from hubbub.mechanisms.bundle.latin import interaction_of
from hubbub.mechanisms.bundle.pooling import Floats, Pooling


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
            outside = [j for j in rising if j not in self._pooling.channel.parts[part].members]
            margin = crowd.sum(axis=tuple(rising.index(j) for j in outside)).ravel()
            found += matrix @ _told(self._pooling, part, margin) @ matrix.T
        back = np.arange(math.prod(shape)).reshape([shape[axis] for axis in order])
        kept = back.transpose(np.argsort(order)).ravel()
        return np.asarray(found[np.ix_(kept, kept)])


class PairedTables:
    """The tables of every two of some attributes, and the noise of what is made of all of them together.

    Args:
        pooling: The weights, of so many reports about each part.
        axes: The attributes.
        shares: The shares of every two of them, by both attributes, rising: shape (r_i, r_j).

    Raises:
        ParameterError: If a part is about three of them: how these three go together is in no table of two.
    """

    def __init__(
        self, pooling: Pooling, axes: Sequence[int], shares: Mapping[tuple[int, int], Floats]
    ) -> None:
        self._pooling, self._axes, self._shares = pooling, tuple(axes), shares
        self._told: dict[int, list[int]] = {}
        for part, each in enumerate(pooling.channel.parts):
            held = [j for j in each.members if j in axes]
            if len(held) > 2:
                raise ParameterError(
                    "attributes must be in parts of two, or in one table, got a part of three"
                )
            if held and pooling.reports[part] > 0.0:
                self._told[part] = held

    def pair(self, a: int, b: int) -> Floats:
        """Return the shares of two attributes, by their places among these, shape (r_a, r_b)."""
        one, two = self._axes[a], self._axes[b]
        return self._shares[one, two] if one < two else self._shares[two, one].T

    def covariance(self, parts: Mapping[tuple[int, int], Floats], crowd: Sequence[Floats] | None) -> Floats:
        """Return the covariance of sums over tables, shape (k, k), of devices drawn for every part by itself.

        Args:
            parts: Of every two places a < b the coefficients of their shares, shape (k, r_a, r_b).
            crowd: The shares of each attribute in a crowd where they are independent; None: as estimated.
        """
        readings = self._pooling.channel.readings
        scores: dict[int, Floats] = {}
        for (a, b), own in parts.items():
            one, two = sorted((self._axes[a], self._axes[b]))
            flat = (own if self._axes[a] == one else own.swapaxes(1, 2)).reshape(len(own), -1)
            for part, matrix in self._pooling.shared_scores((one, two)).items():
                held = self._told[part]
                shape = [readings[j] if j in (one, two) else 1 for j in held]
                score = (flat @ matrix).reshape(len(own), *shape)
                whole = np.broadcast_to(score, (len(own), *(readings[j] for j in held)))
                scores[part] = scores[part] + whole if part in scores else whole
        found = np.zeros(())
        for part, score in scores.items():
            places = [self._axes.index(j) for j in self._told[part]]
            if crowd is not None:
                margin = (
                    np.multiply.outer(*(crowd[p] for p in places)) if len(places) > 1 else crowd[places[0]]
                )
            else:
                own = self.pair(places[0], places[1] if len(places) > 1 else int(places[0] == 0))
                margin = own if len(places) > 1 else own.sum(axis=1)
                margin = np.maximum(margin, 0.0) / np.maximum(margin, 0.0).sum()
            flat = score.reshape(len(score), -1)
            found = found + flat @ _told(self._pooling, part, margin.ravel()) @ flat.T
        return np.asarray(found)


def _told(pooling: Pooling, part: int, margin: Floats) -> Floats:
    """Return the covariance of a part's own shares, or of its interaction, given a margin of its table."""
    channel, devices = pooling.channel, int(pooling.reports[part])
    oracle, shape = channel.oracles[part], channel.shapes[part]
    noise, cells = TableNoise.of_sets(oracle.levels[0].support), oracle.inputs // margin.size
    if channel.parts[part].classes == 1:
        return noise.covariance(margin, cells=cells, devices=devices)
    told = noise.covariance(interaction_of(margin.reshape(shape)).ravel(), cells=1, devices=devices)
    return interaction_of(told.reshape(*shape, *shape)).reshape(told.shape)
