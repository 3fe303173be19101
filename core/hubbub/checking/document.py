"""A release held beside its survey and its public counts: right, different, or not to be said."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.checking.ends import WIDTH, is_shifted, wrong_ends
from hubbub.checking.scores import CellFamily, Families, families
from hubbub.errors import HubbubError, WireError
from hubbub.survey import Score, Survey
from hubbub.wire import PublicCounts, decode_counts

Document: TypeAlias = Mapping[str, Any]
Floats = NDArray[np.float64]

SLACK: Final = 2.0**-40
"""The distance of a number from its recomputation at most, absolutely below 1 and relatively above."""

_ENDS: Final = ("low", "high")
"""The last words of keys of interval ends."""

_TABLES: Final = ("dense", "curve", "weighted")
"""The kinds of channels that are tables of weights."""

_WORDS: Final = ("cut", "accounting", "lost", "issuers", "enrolment")
"""The parts of a release that rest on the collector's word."""


@dataclass(frozen=True, slots=True)
class WrongPlace:
    """One place at which a release does not say what its counts say.

    Attributes:
        path: The place, such as "values[3].low".
        said: What the release says.
        found: What it should say, in words or numbers.
    """

    path: str
    said: object
    found: object

    def __str__(self) -> str:
        return f"{self.path} is {self.said!r}, should be {self.found}"


@dataclass(slots=True)
class Checked:
    """The outcome of a check.

    Attributes:
        exact: Facts that are the same to the last bit.
        within: Numbers that agree to 2^-40, or whose ends have their certificate.
        again: Numbers that agree to 2^-40 with this version's own estimator, and with nothing else.
        differences: Everything that is wrong.
        unchecked: What nothing was held beside, by name.
        recomputed: The parts, as "values.error", that have a check of their own: no estimator has to look.
        certified: The parts, as "values.low", whose ends have their certificate.
    """

    exact: int = 0
    within: int = 0
    again: int = 0
    differences: list[WrongPlace] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    recomputed: set[str] = field(default_factory=set)
    certified: set[str] = field(default_factory=set)

    def fact(self, path: str, said: object, found: object) -> bool:
        """Note whether a fact is as it should be."""
        # True is 1 in Python and not in JSON.
        same = type(said) is type(found) and said == found
        self.exact += same
        if not same:
            self.differences.append(WrongPlace(path, said, found))
        return same

    def number(self, path: str, said: object, found: float | None) -> None:
        """Note whether a number is within SLACK of what it should be."""
        if near(said, found):
            self.within += 1
        else:
            self.differences.append(WrongPlace(path, said, found))

    def column(self, kind: str, key: str, said: Floats, found: Floats, *, slack: float = SLACK) -> int:
        """Note the cells of a column that are not what they should be, and return how many are.

        Args:
            kind: "values" or "categories".
            key: The column.
            said: Shape (c,), nan for null.
            found: The same.
            slack: Absolutely below 1, relatively above.
        """
        with np.errstate(invalid="ignore"):
            same = np.abs(said - found) <= slack * np.maximum(1.0, np.abs(found))
        same |= np.isnan(said) & np.isnan(found)
        for place in np.flatnonzero(~same).tolist():
            path = f"{kind}[{place}].{key}"
            self.differences.append(WrongPlace(path, _null(said[place]), _null(found[place])))
        return int(same.sum())


def near(said: object, found: float | None, slack: float = SLACK) -> bool:
    """Return whether two numbers of JSON are the same within a slack; null is near nothing but null."""
    if found is None or said is None:
        return found is said
    if isinstance(said, bool) or not isinstance(said, int | float):
        return False
    return abs(said - found) <= slack * max(1.0, abs(found))


@contextmanager
def guarded(checked: Checked) -> Iterator[None]:
    """Note a document of another shape as a difference: it is a lie like any other, and told."""
    try:
        yield
    except (HubbubError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        checked.differences.append(WrongPlace("the release", type(error).__name__, "a sealed release"))


def check_release(survey: Survey, document: Document, data: bytes | None) -> Checked:
    """Return what is right and wrong of a release.

    Args:
        survey: The survey that the release should be of.
        document: The sealed release.
        data: The bytes of its public counts; None of a round with too few devices, which has no numbers.
    """
    checked = Checked()
    with guarded(checked):
        _facts(checked, survey, document)
        if data is None:
            checked.fact("suppressed", document["suppressed"], True)
            for kind in ("values", "categories"):
                checked.fact(kind, document[kind], [])
            checked.fact("mean", document["mean"], None)
        counts = None if data is None else _counts(checked, survey, document, data)
        if counts is not None:
            _estimates(checked, survey, document, counts)
    checked.unchecked += [f"{part} (the collector's word)" for part in _WORDS if document.get(part)]
    return checked


def _facts(checked: Checked, survey: Survey, document: Document) -> None:
    number = document["round"]
    about = document["survey"]
    for key, found in (
        ("id", survey.id),
        ("version", survey.version),
        ("digest", survey.digest.hex()),
        ("title", survey.title),
    ):
        checked.fact(f"survey.{key}", about[key], found)
    in_schedule = type(number) is int and 1 <= number <= survey.rounds
    if checked.fact("round is in the schedule", in_schedule, True):
        # Releases number rounds from 1; surveys and counts from 0.
        checked.fact("start", document["start"], _timestamp(survey.round_start_s(number - 1)))
        checked.fact("end", document["end"], _timestamp(survey.round_end_s(number - 1)))
    checked.fact("sealed", document["sealed"], True)
    checked.fact("level", document["level"], 0.95)
    epsilon = {"declared": survey.epsilon, "certified": survey.channel.epsilon}
    for key, stated in epsilon.items():
        checked.fact(f"epsilon.{key}", document["epsilon"][key], stated)
    verdicts = dict(document["accounting"])
    attempts = verdicts.pop("attempts")
    checked.fact("accounting.attempts", attempts, sum(verdicts.values()))
    checked.fact("devices", document["devices"], verdicts["accepted"])
    checked.fact("suppressed", document["suppressed"], document["devices"] < max(survey.minimum_cohort, 1))


def _counts(checked: Checked, survey: Survey, document: Document, data: bytes) -> PublicCounts | None:
    """Return the public counts if they are those that the release states."""
    stated = document["counts"]
    if not checked.fact("counts.sha256", stated["sha256"], hashlib.sha256(data).hexdigest()):
        return None
    try:
        counts = decode_counts(data)
    except WireError as error:
        checked.differences.append(WrongPlace("counts", "bytes", str(error)))
        return None
    n, cells, channel = counts.n, counts.cells, survey.channel
    fine = [
        checked.fact("counts.kind", stated["kind"], counts.kind),
        checked.fact("counts.cells", stated["cells"], len(cells)),
        checked.fact("counts' digest", counts.digest.hex(), survey.digest.hex()),
        checked.fact("counts' round", counts.round, document["round"] - 1),
        checked.fact("devices", document["devices"], n),
    ]
    if counts.kind == "bins":
        fine.append(checked.fact("counts can be those of n reports", channel.agrees(cells, n), True))
        fine.append(checked.fact("counts.cells", len(cells), channel.bins))
    else:
        fine.append(checked.fact("counts can be those of n reports", _supports_agree(survey, counts), True))
    return counts if all(fine) else None


def _supports_agree(survey: Survey, counts: PublicCounts) -> bool:
    """Return whether supports and the histograms after them can be those of n reports."""
    channel, place = survey.channel, survey.channel.inputs
    for row in np.atleast_2d(survey.category_of):
        for category in np.flatnonzero(np.bincount(row) > 1).tolist():
            members = row == category
            lengths = int(channel.held(members).max()) + 1  # type: ignore[attr-defined]  # local hashing alone has supports
            sizes = counts.cells[place : place + lengths]
            held = int(counts.cells[: channel.inputs][members].sum())
            if (int(sizes.sum()), int(np.arange(len(sizes)) @ sizes)) != (counts.n, held):
                return False
            place += lengths
    return place == len(counts.cells)


def _estimates(checked: Checked, survey: Survey, document: Document, counts: PublicCounts) -> None:
    groupings = list(np.atleast_2d(survey.category_of))
    asks_cells, parts = survey.form.tells_values, survey.form.samples_parts
    found = families(survey.channel, groupings, counts) if asks_cells and not parts else (None, None)
    labels = survey.input_labels if asks_cells else ()
    drawn = _drawn(document, counts.n)
    if parts:
        said = [line["reports"] for line in document["parts"]]
        checked.fact("parts: reports", said, counts.cells[: len(said)].tolist())
        if isinstance(classes := survey.channel.to_spec().get("classes"), list):
            told = ["interaction" if g > 1 else None for g in classes]
            checked.fact("parts: tells", [line.get("tells") for line in document["parts"]], told)
    for kind, names, family in zip(
        ("values", "categories"), (labels, survey.category_names), found, strict=True
    ):
        cells = document[kind]
        checked.fact(f"{kind}: how many", len(cells), len(names))
        checked.fact(f"{kind}: labels", [cell["label"] for cell in cells], list(names))
        if family is not None:
            _family(checked, document, kind, family, n=counts.n, drawn=drawn)
    _value_categories(checked, survey, document)
    if found == (None, None):
        _normal_equations(checked, survey, document, counts)
    if parts:
        return
    _mean(checked, survey, document, found, counts)
    if asks_cells:
        _consistent(checked, survey, document)


def _normal_equations(checked: Checked, survey: Survey, document: Document, counts: PublicCounts) -> None:
    """Check the raw values of a table of probabilities: they solve the weighted least squares of its counts.

    With rows P, the mean row d and counts C, the values f have P diag(1/d) (P^T f - C/n) = 0. Nothing is
    inverted. The categories are then the sums of their values.
    """
    spec = survey.channel.to_spec()
    if spec["kind"] not in _TABLES:
        return
    inputs, width = int(str(spec["inputs"])), "<u4" if int(str(spec["total"])) <= 2**32 else "<u8"
    packed = spec["weights"]
    assert isinstance(packed, bytes)  # noqa: S101 - of these kinds
    rows = np.frombuffer(packed, dtype=width).reshape(inputs, -1).astype(np.float64) / int(str(spec["total"]))
    values = column_of(document["values"], "estimate")
    if np.isnan(values).any():
        return
    common = np.array(spec.get("common", [1] * inputs), dtype=np.float64)
    scaled = rows / (common / common.sum() @ rows)
    left = scaled @ (values @ rows - counts.cells / counts.n)
    for place, residual in enumerate(left.tolist()):
        if abs(residual) <= SLACK * max(1.0, float(np.abs(values).max())):
            checked.within += 1
        else:
            checked.differences.append(
                WrongPlace(f"values[{place}].estimate", values[place], f"a solution, off by {residual:g}")
            )
    for category, total in enumerate(np.bincount(survey.category_of, values).tolist()):
        cell = document["categories"][category]
        checked.number(f"categories[{category}].estimate", cell["estimate"], total)
    checked.recomputed |= {"values.estimate", "categories.estimate"}


def _drawn(document: Document, n: int) -> float:
    """Return the part of who is counted that is left to chance, by the devices that were asked."""
    asked = (document.get("enrolment") or {}).get("asked")
    return 1.0 if asked is None or asked < n else 1.0 - n / asked


def _value_categories(checked: Checked, survey: Survey, document: Document) -> None:
    names = survey.category_names
    one = survey.category_of.ndim == 1
    due = [names[category] for category in survey.category_of.tolist()] if one else None
    said = [cell["category"] for cell in document["values"]]
    if (places := survey.form.cell_levels) is not None:
        cells = (*document["categories"], *document["values"])
        stated = [[cell["tree_level"], cell["category"]] for cell in cells]
        checked.fact("levels and categories of a tree", stated, [list(place) for place in places])
        return
    checked.fact("values: categories", said, due if due is not None else [None] * len(said))


def _family(
    checked: Checked, document: Document, kind: str, family: CellFamily, *, n: int, drawn: float
) -> None:
    cells, estimates = document[kind], family.estimates
    if len(estimates) != len(cells):
        return
    exact = np.array([np.nan if estimate is None else estimate for estimate in estimates])
    checked.within += checked.column(kind, "estimate", column_of(cells, "estimate"), exact)
    checked.recomputed.add(f"{kind}.estimate")
    law = family.law
    if law is None:
        return
    hidden = np.isnan(exact)
    within = np.clip(exact, 0.0, 1.0)
    z_one, z_all = (_z(document["level"], many) for many in (1, max(len(cells), 1)))
    errors = law.errors(within)
    variances, _ = law.of_crowd(within, drawn)
    crowd = np.sqrt(np.maximum(variances.sum(axis=0), 0.0)) / n
    for key, due in (("error", errors), ("crowd_error", crowd)):
        known = np.where(hidden, np.nan, due)
        checked.within += checked.column(kind, key, column_of(cells, key), known)
        checked.recomputed.add(f"{kind}.{key}")
    for before, z, draw in (
        ("", z_one, None),
        ("simultaneous_", z_all, None),
        ("crowd_", z_one, drawn),
        ("crowd_simultaneous_", z_all, drawn),
    ):
        low, high = (column_of(cells, f"{before}{end}") for end in ("low", "high"))
        with np.errstate(invalid="ignore"):
            wrong = wrong_ends(exact, low, high, law, z=z, drawn=draw)
        wrong = np.where(hidden, ~(np.isnan(low) & np.isnan(high)), wrong)
        checked.within += 2 * int((~wrong).sum())
        for place in np.flatnonzero(wrong).tolist():
            said = [cells[place][f"{before}{end}"] for end in ("low", "high")]
            checked.differences.append(
                WrongPlace(
                    f"{kind}[{place}].{before}low to high", said, "the ends that the rule accepts last"
                )
            )
        checked.certified |= {f"{kind}.{before}low", f"{kind}.{before}high"}
    _margins(checked, document, kind, family, n=n, z=z_one)


def _margins(
    checked: Checked, document: Document, kind: str, family: CellFamily, *, n: int, z: float
) -> None:
    """Check the forged reports that move every estimate by its margin of error: none of them may be left out.

    With the half width h = z error, of n reports of which each adds at most `most` to a cell (or at least
    `least`), it takes ceil(h n / pull), pull = max(most - estimate, estimate - least) - h. It is null where
    no number of reports does it: pull <= 0.
    """
    stated = (document["poison_margin"] or {}).get(kind) or ()
    if not checked.fact(f"poison_margin.{kind}: how many", len(stated), len(family.estimates)):
        return
    assert family.law is not None  # noqa: S101 - the caller looked
    exact = np.array([np.nan if each is None else each for each in family.estimates])
    halves = z * family.law.errors(np.clip(exact, 0.0, 1.0))
    pull = np.maximum(family.most - exact, exact - family.least) - halves
    rounding = 1e-12 * np.maximum(1.0, np.maximum(family.most, -family.least))
    for place, said in enumerate(stated):
        path = f"poison_margin.{kind}[{place}]"
        if math.isnan(exact[place]) or pull[place] <= rounding[place]:
            checked.fact(path, said, None)
            continue
        needed = float(halves[place] * n / pull[place])
        # A quotient beside a whole number may be rounded up to either.
        due = {max(math.ceil(needed * (1.0 + side * SLACK)), 1) for side in (-1, 1)}
        if said in due:
            checked.within += 1
        else:
            checked.differences.append(WrongPlace(path, said, max(due)))
    checked.recomputed.add(f"poison_margin.{kind}")


def _mean(
    checked: Checked, survey: Survey, document: Document, found: Families, counts: PublicCounts
) -> None:
    """Check the mean where the values are known as rationals: of the devices that have a number."""
    points, said, values = survey.points, document["mean"], found[0]
    if not survey.form.tells_values:
        _score(checked, survey, said, counts)
        return
    if points is None:
        checked.fact("mean", said, None)
        return
    if values is None or said is None or any(top is None for top in values.tops):
        return
    shares = [Fraction(top or 0, bottom) for top, bottom in zip(values.tops, values.bottoms, strict=True)]
    pairs = [
        (Fraction(point), share)
        for point, share in zip(points.tolist(), shares, strict=True)
        if math.isfinite(point)
    ]
    answered = sum(share for _, share in pairs)
    if answered > 0:
        mean = float(sum(point * share for point, share in pairs) / answered)
        checked.number("mean.estimate", said["estimate"], mean)
        checked.recomputed.add("mean.estimate")


def _score(checked: Checked, survey: Survey, said: Document, counts: PublicCounts) -> None:
    """Check the mean of a score, answered by yes or no at its two ends, and its standard error."""
    form, spec = survey.form, survey.channel.to_spec()
    assert isinstance(form, Score)  # noqa: S101 - the one form without cells
    t, u, yes = int(str(spec["t"])), int(str(spec["u"])), int(counts.cells[1])
    width = (Fraction(form.high) - Fraction(form.low)) * Fraction(t + u, t - u)
    least = Fraction(u, t + u)
    share = Fraction(yes, counts.n)
    checked.number("mean.estimate", said["estimate"], float(Fraction(form.low) + width * (share - least)))
    spread = min(max(share, least), 1 - least)
    error = float(width) * math.sqrt(spread * (1 - spread) / counts.n)
    checked.number("mean.error", said["error"], error)
    checked.recomputed |= {"mean.estimate", "mean.error"}


def _consistent(checked: Checked, survey: Survey, document: Document) -> None:
    """Check that the consistent view is the nearest one to the raw estimates that are stated."""
    raw = [column_of(document[kind], "estimate") for kind in ("values", "categories")]
    view = document["consistent"]
    shown = [np.array([np.nan if x is None else x for x in view[kind]]) for kind in ("values", "categories")]
    if [len(each) for each in shown] != [len(each) for each in raw]:
        checked.differences.append(
            WrongPlace("consistent: how many", [len(each) for each in shown], "all cells")
        )
        return
    margins = survey.category_of
    groups: list[tuple[str, Floats, Floats, float]] = []
    if survey.form.cell_levels is not None:
        groups += _within_levels(margins, raw, shown)
    elif margins.ndim == 2 and not len(margins):  # items of sets, each by itself
        checked.within += checked.column("consistent.values", "share", shown[0], np.clip(raw[0], 0.0, 1.0))
    elif margins.ndim == 2:
        groups.append(("consistent.values", raw[0], shown[0], 1.0))
        sums = np.concatenate([np.bincount(row - row.min(), shown[0]) for row in margins])
        for place, total in enumerate(sums.tolist()):
            checked.number(f"consistent.categories[{place}]", shown[1][place], total)
    else:
        groups.append(("consistent.categories", raw[1], shown[1], 1.0))
        for category, members in enumerate(_members(margins)):
            path = f"consistent.values of category {category}"
            groups.append((path, raw[0][members], shown[0][members], float(shown[1][category])))
    for path, estimates, cells, total in groups:
        if np.isnan(estimates).any() or math.isnan(total):
            # A cell that the channel hides has no view, nor has any value beside it.
            checked.fact(path, bool(np.isnan(cells).all()), True)
        elif np.isnan(cells).any() or not is_shifted(estimates, cells, total):
            checked.differences.append(WrongPlace(path, "a view", "the nearest one to the raw estimates"))
        else:
            checked.within += len(cells)
    checked.recomputed.add("consistent")


def _members(group_of: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Return the cells of every group, of which none is empty."""
    return np.split(np.argsort(group_of, kind="stable"), np.cumsum(np.bincount(group_of))[:-1])


def _within_levels(
    levels: NDArray[Any], raw: Sequence[Floats], shown: Sequence[Floats]
) -> list[tuple[str, Floats, Floats, float]]:
    """Return what lies in every category of a tree: its place, raw estimates, view and total."""
    found = []
    group_of, totals = np.zeros(levels.shape[1], dtype=np.intp), np.ones(1)
    for level, row in enumerate(levels, start=1):
        low = int(row.min())
        parent = np.zeros(int(row.max()) + 1 - low, dtype=np.intp)
        parent[row - low] = group_of
        for group, members in enumerate(_members(parent)):
            cells = low + members
            path = f"consistent.categories of level {level}, group {group}"
            found.append((path, raw[1][cells], shown[1][cells], float(totals[group])))
        group_of, totals = row - low, shown[1][low : low + len(parent)]
    for group, members in enumerate(_members(group_of)):
        path = f"consistent.values of category {group}"
        found.append((path, raw[0][members], shown[0][members], float(totals[group])))
    return found


def compare(checked: Checked, path: str, said: object, found: object) -> None:
    """Note how two parts of JSON documents agree, number by number.

    Args:
        checked: Where it is noted.
        path: Where the parts lie.
        said: The part of the release.
        found: What this version makes of the counts.
    """
    if isinstance(said, Mapping) and isinstance(found, Mapping) and said.keys() == found.keys():
        for key in found:
            compare(checked, f"{path}.{key}" if path else key, said[key], found[key])
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for place, (one, other) in enumerate(zip(said, found, strict=True)):
            compare(checked, f"{path}[{place}]", one, other)
    elif isinstance(found, float) and near(said, found, slack_of(path)):
        checked.again += 1
    elif isinstance(found, float) or said != found or type(said) is not type(found):
        checked.differences.append(WrongPlace(path, said, found))


def slack_of(path: str) -> float:
    """Return how far a number may be from another machine's: an end may stop one halving off."""
    return WIDTH if path.endswith(_ENDS) else SLACK


def _null(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def column_of(cells: Sequence[Document], key: str) -> Floats:
    """Return a column of cells, shape (c,), nan where it is null.

    Raises:
        ValueError: If anything in it is no number.
    """
    numbers = [cell[key] for cell in cells]
    if not all(x is None or (isinstance(x, int | float) and not isinstance(x, bool)) for x in numbers):
        raise ValueError(f"{key} must be numbers")
    return np.array([np.nan if x is None else x for x in numbers], dtype=np.float64)


def _z(level: float, cells: int) -> float:
    return -NormalDist().inv_cdf((1.0 - level) / (2.0 * cells))


def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
