"""The views of a release beside its raw estimates: computed from the release alone, whatever its age.

Nothing here is part of a release, so none of its bytes change. A view is biased where the raw estimates are
not, and is never given without them; ranks and the effective sample size say more of the raw ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation import effective_sample_size, empirical_bayes, rank_sets

Document: TypeAlias = Mapping[str, Any]
Floats = NDArray[np.float64]

_MISSING: Final = "missing"


def empirical_bayes_values(document: Document) -> list[float | None] | None:
    """Return the empirical Bayes view of a release's values, a number per value; see `empirical_bayes`.

    None where it has no estimates, or errors of 0 as old releases may have.

    Args:
        document: A release, or a provisional view of an open round.
    """
    cells = _cells(document, "values")
    errors = _column(cells, "error")
    estimates = _column(cells, "estimate")
    if not cells or not (errors[~np.isnan(estimates)] > 0.0).all():
        return None
    groups, totals = np.zeros(len(cells), dtype=np.intp), np.ones(1)
    if "parts" in document:  # the cells of several tables share no law
        return None
    listed = document.get("categories") or ()
    # Of a tree of labels the categories that values are in: those of the finest level.
    finest = max((cell.get("tree_level", 0) for cell in listed), default=0)
    own = [i for i, cell in enumerate(listed) if cell.get("tree_level", 0) == finest]
    place = {listed[i]["label"]: k for k, i in enumerate(own)}
    if all(cell.get("category") in place for cell in cells):  # the cells of a cross table are in several
        groups = np.array([place[cell["category"]] for cell in cells])
        shares = (document.get("consistent") or {}).get("categories") or []
        if len(shares) != len(listed):
            return None
        totals = np.array([shares[i] for i in own], dtype=np.float64)
    return [
        None if np.isnan(share) else share
        for share in empirical_bayes(estimates, errors, groups, totals).tolist()
    ]


def round_ranks(document: Document, kind: str) -> list[tuple[int, int] | None]:
    """Return the best and the worst rank that each cell could have, all of them at once; see `rank_sets`.

    None for "missing", which has no rank. In a tree of labels a cell is ranked among those of its level, in a
    bundle among those of its table or attribute: others have other readings.

    Args:
        document: A release, or a provisional view of an open round.
        kind: "values" or "categories".
    """
    cells = _cells(document, kind)
    found: list[tuple[int, int] | None] = [None] * len(cells)
    levels: dict[object, list[int]] = {}
    for i, cell in enumerate(cells):
        if cell["label"] != _MISSING and cell.get("simultaneous_low") is not None:
            pieces = cell["label"].split(" / ") if "parts" in document else ()
            table = tuple(piece.partition(": ")[0] for piece in pieces)
            levels.setdefault((cell.get("tree_level"), table), []).append(i)
    for ranked in levels.values():
        some = [cells[i] for i in ranked]
        best, worst = rank_sets(_column(some, "simultaneous_low"), _column(some, "simultaneous_high"))
        for i, pair in zip(ranked, zip(best.tolist(), worst.tolist(), strict=True), strict=True):
            found[i] = pair
    return found


def effective_sizes(document: Document) -> dict[str, float | None]:
    """Return by panel how many devices without noise would know its shares as well; None where unknown.

    Their sampling variance is the variance that the noise has here, all shares of a panel together. Those of
    the curve are devices with a value.
    """
    groups = (document.get("consistent") or {}).get("categories") or []
    margins = max(round(sum(share for share in groups if share is not None)), 1)  # each adds up to one
    found: dict[str, float | None] = {}
    for kind, total in (("values", 1), ("categories", margins)):
        if "parts" in document:  # each was told by other devices
            found[kind] = None
            continue
        cells = _cells(document, kind)
        found[kind] = effective_sample_size(_column(cells, "estimate"), _column(cells, "error"), total=total)
    curve = document.get("cumulative") or {"shares": [], "errors": []}
    shares = curve["shares"][:-1]  # the last is 1 whatever comes
    found["cumulative"] = effective_sample_size(shares, curve["errors"][:-1], total=sum(shares))
    return found


def round_views(document: Document) -> dict[str, Any]:
    """Return what a round's document has beside its release: views, ranks, its effective sizes."""
    return {
        "empirical_bayes": {"values": empirical_bayes_values(document) or []},
        "ranks": {kind: round_ranks(document, kind) for kind in ("values", "categories")},
        "effective_sample_size": effective_sizes(document),
    }


def _cells(document: Document, kind: str) -> Sequence[Document]:
    return () if document.get("suppressed") else document.get(kind) or ()


def _column(cells: Sequence[Document], name: str) -> Floats:
    return np.array([cell.get(name) for cell in cells], dtype=np.float64)
