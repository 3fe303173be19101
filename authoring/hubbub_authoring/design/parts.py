"""The shares of a bundle's parts: the least summed error of the tables asked for, with a certificate.

At a crowd spread evenly over the combinations, with v_T what one report about part T tells of each component
A of it, and w_T its share, information about A is lam_A = sum of w_T v_T over the parts that hold A, and

    error(w) = sum over A of c_A / lam_A,   c_A = sum over tables that hold A of d_A / R,
    d_A = prod over A of (r_j - 1).

It is convex in w. With g_T = v_T sum over A in T of c_A / lam_A^2, which sum w_T g_T is the error of, steps
w_T <- w_T sqrt(g_T / error), scaled to sum to one, lead to its least; at any w no shares have an error below

    error / (1 + gap),   gap = max g_T / error - 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.mechanisms import (
    MAX_PARTS,
    LatinSelection,
    SampledPart,
    SampledParts,
    SubsetSelection,
    components_of,
    subset_selection,
    told_by,
)

LEAST_SHARE: Final = 1.0 / 1024
"""The share below which a part that others make up for is left out: of few reports each moves much."""

GAP: Final = 1e-6
"""The gap to which the shares are led; reports of a round are off their shares by far more."""

_STEPS: Final = 2_000
"""Steps at most; a few dozen do."""

_WORD: Final = 2**32

PartKinds: TypeAlias = Literal["tables", "interactions"]
"""The kinds of parts that a design considers: tables alone, or also interactions of two attributes."""

Members = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PartDesign:
    """The parts of a bundle and their shares.

    Attributes:
        channel: The channel of integers.
        total: n times the summed variance of the tables at a uniform crowd, sampling left out, by the
            optimised shares.
        gap: No other shares of the parts considered have an error below it by more than this share.
        considered: How many parts were considered.
    """

    channel: SampledParts
    total: float
    gap: float
    considered: int


def design_parts(
    readings: Sequence[int],
    tables: Sequence[Members],
    *,
    epsilon: float,
    weights: Sequence[float] | None = None,
    order: int | None = None,
    kinds: PartKinds = "tables",
) -> PartDesign:
    """Return the parts, and their shares, of the least weighted error of some tables.

    Args:
        readings: Readings of each attribute, missing included.
        tables: The attributes of each table, rising.
        epsilon: Declared, per report.
        weights: What each table's summed squared error counts; None: alike.
        order: The most attributes of a part; None: parts are the tables asked for, and no others.
        kinds: "interactions": also parts that tell how two attributes go together and no more.

    Raises:
        ParameterError: If there are too many parts to consider, or no integers express them.
    """
    cost = _costs(readings, tables, weights or [1.0] * len(tables))
    oracles: dict[tuple[Members, int], SubsetSelection] = {
        (table, 1): _told_best(math.prod(readings[j] for j in table), epsilon)
        for table in _candidates(len(readings), tables, order)
    }
    if kinds == "interactions":
        for one, two in (component for component in cost if len(component) == 2):
            if math.gcd(readings[one], readings[two]) > 1:
                latin = _interaction_best((readings[one], readings[two]), epsilon)
                oracles[(one, two), latin.classes] = latin
    considered = [
        SampledPart(members, 0, oracle.size, oracle.p_draws, classes)
        for (members, classes), oracle in oracles.items()
    ]
    holds = _incidence(considered, list(cost))
    told, value = np.array([told_by(oracle) for oracle in oracles.values()]), np.array(list(cost.values()))
    useful = np.flatnonzero(holds.any(axis=1))
    considered = [considered[place] for place in useful.tolist()]
    told, holds = told[useful], holds[useful]
    if len(considered) > MAX_PARTS:
        raise ParameterError(f"parts must be at most {MAX_PARTS}, got {len(considered)}")
    kept = np.arange(len(considered))
    while True:
        shares, error, gap = least_shares(holds[kept], told[kept], value)
        small = np.flatnonzero(shares < LEAST_SHARE).tolist()
        spare = [place for place in small if _is_spare(holds[kept], place)]
        if not spare:
            break
        least = min(spare, key=lambda place: shares[place])
        kept = np.delete(kept, least)
    whole = np.floor(shares * _WORD).astype(np.int64)
    whole[np.argmax(whole)] += _WORD - whole.sum()
    parts = [replace(considered[k], share=share) for k, share in zip(kept, whole.tolist(), strict=True)]
    return PartDesign(SampledParts(readings, parts), error - float(value.sum()), gap, len(considered))


def least_shares(
    holds: NDArray[np.bool_], told: Floats, cost: Floats, *, gap: float = GAP
) -> tuple[Floats, float, float]:
    """Return shares of near the least error, that error with sampling, and the gap that is proved.

    Args:
        holds: Whether each part holds each component, shape (parts, components); each in some part.
        told: v_T of each part, shape (parts,).
        cost: c_A of each component, shape (components,), > 0.
        gap: The gap at which to stop.
    """
    tells = holds * told[:, None]
    shares = np.full(len(told), 1.0 / len(told))
    for _ in range(_STEPS):
        known = shares @ tells
        error = float((cost / known).sum())
        gained = tells @ (cost / known**2)
        found = float(gained.max()) / error - 1.0
        if found <= gap:
            break
        shares = shares * np.sqrt(gained / error)
        shares /= shares.sum()
    return shares, error, found


def _candidates(attributes: int, tables: Sequence[Members], order: int | None) -> list[Members]:
    found = dict.fromkeys(tables)
    for many in range(1, (order or 0) + 1):
        if len(found) + math.comb(attributes, many) > 2 * MAX_PARTS:
            raise ParameterError(f"parts must be at most {MAX_PARTS}, got more of up to {order} attributes")
        found |= dict.fromkeys(combinations(range(attributes), many))
    if len(found) > MAX_PARTS:
        raise ParameterError(f"parts must be at most {MAX_PARTS}, got {len(found)}")
    return list(found)


def _told_best(cells: int, epsilon: float) -> SubsetSelection:
    """Return subset selection of the size that tells most of each component at a uniform crowd."""
    near = cells / (math.exp(epsilon) + 1.0)
    sizes = {min(max(size, 1), cells - 1) for size in (math.floor(near), math.ceil(near))}
    return max((subset_selection(cells, epsilon=epsilon, size=size) for size in sorted(sizes)), key=told_by)


def _interaction_best(shape: tuple[int, int], epsilon: float) -> LatinSelection:
    """Return the latin sets that tell most of two attributes' interaction at a uniform crowd."""
    cells, most = math.prod(shape), math.gcd(*shape)
    near = most / (math.exp(epsilon) + 1.0)
    found = []
    for band in sorted({min(max(band, 1), most - 1) for band in (math.floor(near), math.ceil(near))}):
        size = band * cells // most
        p_draws = subset_selection(cells, epsilon=epsilon, size=size).p_draws
        found.append(LatinSelection(shape, most // math.gcd(band, most), size, p_draws))
    return max(found, key=told_by)


def _costs(
    readings: Sequence[int], tables: Sequence[Members], weights: Sequence[float]
) -> dict[Members, float]:
    found: dict[Members, float] = {}
    for table, weight in zip(tables, weights, strict=True):
        cells = math.prod(readings[j] for j in table)
        for component in components_of(table):
            cost = weight * math.prod(readings[j] - 1 for j in component) / cells
            found[component] = found.get(component, 0.0) + cost
    return found


def _incidence(parts: Sequence[SampledPart], components: Sequence[Members]) -> NDArray[np.bool_]:
    place = {component: k for k, component in enumerate(components)}
    found = np.zeros((len(parts), len(components)), dtype=np.bool_)
    for row, part in enumerate(parts):
        found[row, [place[component] for component in part.tells if component in place]] = True
    return found


def _is_spare(holds: NDArray[np.bool_], part: int) -> bool:
    """Return whether other parts hold every component that a part holds."""
    return bool((holds.sum(axis=0)[holds[part]] > 1).all())
