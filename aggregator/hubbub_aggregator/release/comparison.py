"""The change between two rounds, and a survey's history: from releases alone, as JSON types.

A release holds what both need, estimates with their intervals: nothing here looks at counts.

Two rounds count different devices of one crowd, so their change is that of the crowd, in the intervals of
everybody who could have been asked. Memoised answers of devices that are known to be in both rounds are
compared for the devices counted, whose noise is in part the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from hubbub.errors import ParameterError
from hubbub.estimation import (
    Ends,
    correlation,
    device_variances,
    difference,
    mean_correlation,
    norm_sub,
    shared_devices,
    smoothed_trend,
    step_band,
)

Document: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["static", "evolving"]

Of: TypeAlias = Literal["crowd", "devices"]

_BANDS = (("low", "high"), ("simultaneous_low", "simultaneous_high"))
_NORMAL = NormalDist().inv_cdf(0.975)
_PREFIX: dict[Of, str] = {"crowd": "crowd_", "devices": ""}
_MISSING: Final = "missing"
_NONE: Final = "no trend"

_MOST_PARTS: Final = 2**21
"""The most places of a season times rounds and cells: a few arrays of 16 MiB."""


class IncomparableError(ParameterError):
    """Two rounds whose difference would mean nothing; the message says why."""


def change(
    before: Document,
    after: Document,
    *,
    kind: Kind,
    asked: int | None = None,
    attributes: tuple[Sequence[str], Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the change from one round to another, of one survey or of two that ask the same.

    Args:
        before: A release, as `Release.document` or the archive gives it.
        after: The later one.
        kind: "static" where devices send their first answer of a survey again in every round of it.
        asked: Devices that the survey was offered to; it says how many are in both rounds at least, which
            narrows the change of memoised answers.
        attributes: Ids of the attributes that the earlier round's survey reads, and of those that the later
            one's reads, which a release does not say; None for two rounds of one survey.

    Returns:
        "before", "after" (digest and round of each), "devices", "answers" ("fresh" or "memoised"), "of"
        ("crowd", everybody who could have been asked, or "devices", those counted), "shared", "level", and
        "values", "categories" (cells with label, estimate, low, high, simultaneous_low and
        simultaneous_high, and differs: the simultaneous interval leaves out 0) and "mean".

    Raises:
        IncomparableError: If a round is suppressed, or the two have other attributes, cells, units or levels.
    """
    if attributes is not None:
        _check_attributes(*attributes)
    _check(before, after)
    same = before["survey"]["digest"] == after["survey"]["digest"]
    answers: Literal["fresh", "memoised"] = "memoised" if same and kind == "static" else "fresh"
    devices = before["devices"], after["devices"]
    known = asked if asked is not None and asked >= max(devices) else None
    shared = shared_devices(*devices, asked=known) if answers == "memoised" else 0
    of: Of = "crowd" if shared == 0 else "devices"
    return {
        **{
            name: {"digest": each["survey"]["digest"], "round": each["round"]}
            for name, each in (("before", before), ("after", after))
        },
        "devices": list(devices),
        "answers": answers,
        "of": of,
        "shared": shared,
        "level": before["level"],
        **{name: _changes(before, after, name, shared, of) for name in ("values", "categories")},
        "mean": _mean(before, after, answers, shared, of),
    }


def history(
    rounds: Sequence[Document],
    *,
    kind: Kind,
    only: tuple[str, str | None] | None = None,
    step: float | None = None,
    season: int | None = None,
) -> dict[str, Any]:
    """Return how the cells of one survey went over its rounds, each round with its own interval.

    Args:
        rounds: Releases of one survey; suppressed ones are left out.
        kind: "static" where devices send their first answer again: their noise does not average out, so
            such a history has no trend.
        only: "values", "categories" or "mean", and the label of the one line wanted; None for all of either.
            Trends are made of all cells together, whatever is wanted.
        step: How far a share moves from round to round at most, as the reader states; None states nothing.
        season: Rounds after which a pattern comes again, as the reader states; None states no pattern. There
            is no trend until every place in it has two rounds.

    Returns:
        "rounds" (numbers in order), "devices", "of" (as in `change`), "smoothed" (why the trend is a view, or
        why there is none), and "values" and "categories": per cell label, estimate, low, high, and trend,
        lists over the rounds, and bandwidth, the rounds that a level of the trend averages; "mean" is such a
        line, too, or None.
        Trend and bandwidth are None where there is no trend. The trends of all values add up to one, and so
        do those of an attribute's categories. With a step, cells of fresh answers have "band", lists
        "estimate", "low" and "high" that hold at `level` if the statement does.

    Raises:
        IncomparableError: If the releases are of several surveys.
        ParameterError: If the step is not a number of at least 0.
    """
    shown = sorted((each for each in rounds if not each["suppressed"]), key=lambda each: int(each["round"]))
    if len({each["survey"]["digest"] for each in shown}) > 1:
        raise IncomparableError("a history must be of one survey, got several")
    why = "a smoothed view: biased where a share jumps, and not for tests; low and high are of the raw rounds"
    if kind == "static":
        why = f"{_NONE}: answers are memoised, so their noise is the same in every round"
    of: Of = "crowd" if kind == "evolving" else "devices"
    devices = [int(each["devices"]) for each in shown]
    places = None if season is None else [int(each["round"]) % season for each in shown]
    if kind != "static" and season is not None:
        why = _season(season, shown, why)
    smooth = not why.startswith(_NONE)
    found: dict[str, list[dict[str, Any]]] = {"values": [], "categories": []}
    for name in ("values", "categories"):
        if not shown or (only is not None and only[0] != name):
            continue
        for cells in _wholes(shown[0], name):
            rows = [[each[name][i] for i in cells] for each in shown]
            found[name] += _lines(rows, kind, of, devices, step=step, total=1.0, places=places, smooth=smooth)
        if only is not None and only[1] is not None:
            found[name] = [line for line in found[name] if line["label"] == only[1]]
    mean = None
    if any(each["mean"] for each in shown) and (only is None or only[0] == "mean"):
        rows = [[each["mean"] or {}] for each in shown]
        (mean,) = _lines(rows, kind, of, devices, step=None, total=None, places=places, smooth=smooth)
    return {
        "rounds": [each["round"] for each in shown],
        "devices": devices,
        "of": of,
        "smoothed": why,
        **found,
        "mean": mean,
    }


def _season(season: int, shown: Sequence[Document], why: str) -> str:
    """Return why a trend with a season is a view, or why there is none."""
    cells = max((len(each["values"]) for each in shown), default=0)
    if season < 2 or season * len(shown) * cells > _MOST_PARTS:
        return f"{_NONE}: a season must be two rounds or more, and few of many rounds and cells, got {season}"
    counts = Counter(int(each["round"]) % season for each in shown)
    if len(counts) < season or min(counts.values()) < 2:
        return f"{_NONE}: each place in a season of {season} rounds must have two rounds"
    return f"with a stated season of {season} rounds, {why}"


def _check_attributes(before: Sequence[str], after: Sequence[str]) -> None:
    if list(before) != list(after):
        raise IncomparableError(
            f"surveys must ask for the same attributes, got {' x '.join(before)} and {' x '.join(after)}"
        )


def _check(before: Document, after: Document) -> None:
    one, other = before["survey"], after["survey"]
    for each in (before, after):
        if each["suppressed"]:
            raise IncomparableError(
                f"rounds must be released with estimates to be compared, got round {each['round']} of "
                f"{each['survey']['id']!r} with too few devices"
            )
    if (one["digest"], before["round"]) == (other["digest"], after["round"]):
        raise IncomparableError(f"rounds must be two, got round {before['round']} twice")
    if before["level"] != after["level"]:
        raise IncomparableError(f"intervals must be of one level, got {before['level']} and {after['level']}")
    for name in ("values", "categories"):
        if _labels(before[name]) != _labels(after[name]):
            raise IncomparableError(f"surveys must have the same {name}, got others in {other['id']!r}")
    if (before["mean"] is None) != (after["mean"] is None) and not before["values"]:
        raise IncomparableError(
            f"surveys must both have a mean, got one in {one['id']!r} and {other['id']!r}"
        )
    if one["digest"] != other["digest"] and not before["values"]:
        raise IncomparableError("scores of two surveys must be of one formula, got two surveys")


def _labels(cells: Sequence[Document]) -> list[tuple[str, Any]]:
    return [(cell["label"], cell.get("category")) for cell in cells]


def _changes(before: Document, after: Document, family: str, shared: int, of: Of) -> list[dict[str, Any]]:
    rounds, devices = (before[family], after[family]), (before["devices"], after["devices"])
    if not rounds[0]:
        return []
    columns: dict[str, list[float | None]] = {}
    differs = [False] * len(rounds[0])
    single = [_ends(cells, "devices", _BANDS[0], 0.0) for cells in rounds]
    errors = [_column(cells, "error") for cells in rounds]
    variances = device_variances(list(zip(single, errors, devices, strict=True)))
    for (low, high), at_once in zip(_BANDS, (1, len(rounds[0])), strict=True):
        ends = [_ends(cells, of, (low, high), _quantile(before["level"], at_once)) for cells in rounds]
        r = correlation(*ends, devices=devices, shared=shared, variances=variances)
        found = difference(*ends, correlation=r)
        numbers = {"estimate": found.estimate, low: found.low, high: found.high}
        columns |= {name: _numbers(array) for name, array in numbers.items()}
        differs = found.differs.tolist()
    return [
        {
            "label": cell["label"],
            **{name: column[i] for name, column in columns.items()},
            "differs": differs[i],
        }
        for i, cell in enumerate(rounds[0])
    ]


def _mean(
    before: Document, after: Document, answers: Literal["fresh", "memoised"], shared: int, of: Of
) -> dict[str, Any] | None:
    if before["mean"] is None or after["mean"] is None:
        return None
    z = _quantile(before["level"], 1)
    ends = [_ends([each["mean"]], of, _BANDS[0], z) for each in (before, after)]
    r = 0.0
    if answers == "memoised":
        r = (
            1.0
            if shared == max(before["devices"], after["devices"])
            else _least_correlation(before, after, of)
        )
    found = difference(*ends, correlation=r)
    numbers = {"estimate": found.estimate, "low": found.low, "high": found.high}
    return {
        **{name: _numbers(array)[0] for name, array in numbers.items()},
        "differs": bool(found.differs[0]),
    }


def _least_correlation(before: Document, after: Document, of: Of) -> float:
    """Return the least correlation of two means of memoised answers; see `mean_correlation`.

    Of a crowd's means who was drawn counts, too: for at most n A devices in both rounds as noise does.
    """
    if not before["values"]:
        return 0.0  # a score of everybody: its mean is no ratio
    answered, noise = [], []
    for each in (before, after):
        missing = next((c for c in (*each["categories"], *each["values"]) if c["label"] == _MISSING), None)
        if missing is None or missing["estimate"] is None or missing.get("error") is None:
            return -1.0
        share = min(1.0 - missing["estimate"], 1.0)
        drawn = max(share, 0.0) / each["devices"] if of == "crowd" else 0.0
        answered.append(share)
        noise.append(math.sqrt(missing["error"] ** 2 + drawn))
    means = before["mean"], after["mean"]
    return mean_correlation(
        means[1]["estimate"] - means[0]["estimate"],
        errors=(means[0]["error"], means[1]["error"]),
        answered=(answered[0], answered[1]),
        noise=(noise[0], noise[1]),
    )


def _quantile(level: float, cells: int) -> float:
    """Return the normal quantile of intervals of so many cells that hold at once."""
    return -NormalDist().inv_cdf((1.0 - level) / (2.0 * cells))


def _ends(cells: Sequence[Document], of: Of, ends: tuple[str, str], z: float) -> Ends:
    low, high = (_column(cells, _PREFIX[of] + end) for end in ends)
    known = [{"error": cell.get(_PREFIX[of] + "error", cell["error"])} for cell in cells]  # a mean has one
    return Ends(_column(cells, "estimate"), low, high, z * _column(known, "error"))


def _column(cells: Sequence[Document], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([cell[name] for cell in cells], np.float64)


def _numbers(array: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in array.tolist()]


def _wholes(release: Document, name: str) -> list[list[int]]:
    """Return which cells add up to one: all; of categories those of each level, or of each attribute."""
    cells, values = release[name], release["values"]
    if not cells:
        return []
    parts: list[object]
    if "tree_level" in cells[0]:
        parts = [cell["tree_level"] for cell in cells]
    elif name == "values" or not values or values[0].get("category") is not None:
        return [list(range(len(cells)))]
    else:
        parts = [str(cell["label"]).partition(": ")[0] for cell in cells]
    return [[i for i, of in enumerate(parts) if of == each] for each in dict.fromkeys(parts)]


def _lines(
    rows: Sequence[Sequence[Document]],
    kind: Kind,
    of: Of,
    devices: Sequence[int],
    *,
    step: float | None,
    total: float | None,
    places: Sequence[int] | None,
    smooth: bool,
) -> list[dict[str, Any]]:
    """Return the lines of cells over the rounds, with trends that add up.

    Args:
        rows: Of every round its cells; an empty one stands for a round that has no such cell.
        kind: As in `history`.
        of: Whose intervals and errors are read.
        devices: Reports of every round.
        step: As in `history`.
        total: The sum of all cells by rights, if there is one.
        places: Of every round in a stated season; None where none is.
        smooth: Whether there are trends.
    """
    names = {"estimate": "estimate", **{name: _PREFIX[of] + name for name in ("low", "high")}}
    lines: list[dict[str, Any]] = [
        ({"label": cells[0]["label"]} if "label" in cells[0] else {})
        | {name: [cell.get(key) for cell in cells] for name, key in names.items()}
        | {"trend": None, "bandwidth": None}
        for cells in zip(*rows, strict=True)
    ]
    errors = [[_error(cell, of) for cell in cells] for cells in zip(*rows, strict=True)]
    known = [all(each) and None not in line["estimate"] for line, each in zip(lines, errors, strict=True)]
    chosen = [i for i, is_known in enumerate(known) if is_known]
    if kind == "static" or len(rows) < 2 or not chosen:
        return lines
    y = np.array([lines[i]["estimate"] for i in chosen], np.float64).T
    sigma = np.array([errors[i] for i in chosen], np.float64).T
    whole = total if all(known) else None
    if smooth:
        trend = smoothed_trend(y, sigma, total=whole, places=places)
        level = trend.level
        if whole is not None:
            one = np.zeros(len(chosen), dtype=np.intp)
            level = np.stack([norm_sub(each, one, np.array([whole])) for each in level])
        # A round's own weight in its level is the level's variance over that of the round's error.
        width = np.mean(np.square(sigma) / np.square(trend.error), axis=0)
        for k, i in enumerate(chosen):
            lines[i] |= {"trend": level[:, k].tolist(), "bandwidth": float(width[k])}
    if step is not None:
        n = np.array(devices, np.float64)[:, None]
        # The errors by design: those of one report, the same in every round, over the reports of each.
        band = step_band(y, np.sqrt(np.mean(n * np.square(sigma), axis=0) / n), delta=step)
        ends = band.estimate, *(np.clip(band.estimate + side * band.half, 0.0, 1.0) for side in (-1.0, 1.0))
        for k, i in enumerate(chosen):
            columns = zip(("estimate", "low", "high"), ends, strict=True)
            lines[i]["band"] = {name: column[:, k].tolist() for name, column in columns}
    return lines


def _error(cell: Document, of: Of) -> float | None:
    """Return a cell's error; that of the crowd's mean, which releases do not have, by its interval."""
    error: float | None = cell.get(_PREFIX[of] + "error", cell.get("error"))
    if (
        of == "crowd"
        and "crowd_error" not in cell
        and error is not None
        and cell.get("crowd_low") is not None
    ):
        error = max(error, float(cell["crowd_high"] - cell["crowd_low"]) / (2.0 * _NORMAL))
    return error
