"""Exact squared errors of every mechanism for labels, and whether the designer picks the best.

    .venv/bin/python bench/mechanisms.py          the tables, as Markdown
    .venv/bin/python bench/mechanisms.py levels   level sampling beside PB-GRR, K = 90, m = 9
    .venv/bin/python bench/mechanisms.py floors   the least that any mechanism can have; 40 minutes for 1000/3
    .venv/bin/python bench/mechanisms.py floors 10/3 91/10

Every figure is n times the mean squared error of a share, over the randomisation: the variance that one
report stands for. Divide by the number of devices. Values are equally common, categories as equal as K and m
allow, the larger ones first; one more input stands for a missing value, as in every survey, and is in no
average. Nothing is simulated.

One is built here, and not by Hubbub:

- The exponential mechanism over a hierarchy of three levels, as diffprivlib's ExponentialHierarchical has it:
  weights 1, e^(-s/2), e^(-s) by distance, each row divided by its own sum. diffprivlib itself takes s = eps
  where all rows have the same sum, and s = eps/2 elsewhere; here s is what certifies eps exactly, which is in
  its favour. (diffprivlib 0.6.6 does not import beside scikit-learn 1.9.1.)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.estimation import estimator_for
from hubbub.mechanisms.integers import column_epsilon, integerise
from hubbub_authoring import mechanisms
from hubbub_authoring.design import Floors, Objective, Workload, choose, compare, expected_error

SIZES = (10, 91, 1000)
CATEGORIES = (3, 10)
EPSILONS = (0.5, 1.0, 2.0, 5.0)
OBJECTIVES = (Objective("value"), Objective("category"), Objective("both"))
BOOSTS = (0.25, 0.5, 0.75)
CATEGORIES_ALONE: dict[str, Callable[..., Channel]] = {
    "GRR": mechanisms.grr,
    "subset selection": mechanisms.subset_selection,
    "local hashing": mechanisms.local_hashing,
}
HIDDEN = math.inf
TOLERANCE = 0.01
DOMINANCE = ((10, 3), (91, 3), (91, 10), (1000, 10))


@dataclass(frozen=True)
class Row:
    """The squared errors of one mechanism, times n."""

    label: str
    value: float
    category: float

    def cost(self, objective: Objective) -> float:
        """Return the objective's value."""
        if objective.quantity == "both":
            return (self.value + self.category) / 2.0
        return self.value if objective.quantity == "value" else self.category


def question(inputs: int, categories: int, epsilon: float, objective: Objective) -> Workload:
    """Return the workload of K values in m categories of nearly equal size, and one missing input."""
    sizes = [inputs // categories + (c < inputs % categories) for c in range(categories)]
    prior = np.full(inputs + 1, 1.0 / inputs)
    prior[-1] = 0.0
    return Workload(
        kind="labels",
        epsilon=epsilon,
        category_of=np.repeat(np.arange(categories + 1), [*sizes, 1]),
        devices=1,
        prior=prior,
        points=None,
        objective=objective,
    )


def rows_of(asked: Workload) -> list[Row]:
    """Yield every mechanism at the parameters that anyone would try, and the designer's tuned ones."""
    inputs, sizes, epsilon = asked.inputs, asked.sizes, asked.epsilon
    grouped = max(sizes) > 1
    channels: list[tuple[str, Channel]] = [("GRR", mechanisms.grr(inputs, epsilon=epsilon))]
    if grouped:
        for part in BOOSTS:
            boosted = mechanisms.pbgrr(sizes, epsilon=epsilon, boost_epsilon=part * epsilon)
            channels.append((f"PB-GRR, boost {part:g} epsilon", boosted))
    channels += [
        ("subset selection", mechanisms.subset_selection(inputs, epsilon=epsilon)),
        ("unary, symmetric", mechanisms.unary(inputs, epsilon=epsilon, variant="symmetric")),
        ("unary, optimised", mechanisms.unary(inputs, epsilon=epsilon)),
        ("local hashing", mechanisms.local_hashing(inputs, epsilon=epsilon)),
    ]
    if grouped:
        for oracles in ("grr", "best"):
            sampled = mechanisms.levels(sizes, epsilon=epsilon, oracles="grr" if oracles == "grr" else "best")
            channels.append((f"levels, half and half, {oracles}", sampled))
    found = [_row(label, channel, asked) for label, channel in channels]
    found.append(Row("local hashing, a random hash", *random_hash(asked)))
    if grouped:
        found.append(_row("three-level exponential", exponential(asked), asked))
        found += [_categories_alone(asked, name) for name in CATEGORIES_ALONE]
        both = replace(asked, objective=Objective("both"))
        tuned = [c for c in compare(both) if c.accuracy is not None and math.isfinite(c.cost)]
        for name in ("pbgrr", "levels"):
            best = min((c for c in tuned if c.mechanism == name), key=lambda c: c.cost)
            errors = expected_error(_channel(best.channel), asked)
            title = "PB-GRR" if name == "pbgrr" else name
            found.append(Row(f"{title}, tuned for both", errors.value**2, errors.category**2))
    return found


def random_hash(asked: Workload) -> tuple[float, float]:
    """Return errors of optimised local hashing with a perfectly random hash, by formula (Wang et al. 2017).

    An input is supported with p = e^eps/(e^eps + g - 1), any other with q = 1/g, each on its own; of the two
    whole numbers g next to e^eps + 1 the one with the better value error is taken.
    """
    shares = asked.prior
    near = max(math.floor(math.exp(asked.epsilon) + 1.0), 2)
    found = []
    for g in (near, near + 1):
        p, q = math.exp(asked.epsilon) / (math.exp(asked.epsilon) + g - 1), 1.0 / g
        mine, other = p * (1.0 - p) / (p - q) ** 2, q * (1.0 - q) / (p - q) ** 2
        value = float(np.mean(mine * shares[:-1] + other * (1.0 - shares[:-1])))
        together = np.bincount(asked.category_of, weights=shares)[:-1]
        category = float(np.mean(mine * together + other * (np.array(asked.sizes[:-1]) - together)))
        found.append((value, category))
    return min(found)


def exponential(asked: Workload) -> Channel:
    """Return the three-level exponential mechanism whose exact epsilon is the question's."""
    groups = asked.category_of
    distance = 2.0 - (groups[:, None] == groups) - np.eye(asked.inputs)

    def at(scale: float) -> NDArray[np.float64]:
        weights = np.exp(-scale * distance / 2.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    low, high = asked.epsilon / 2.0, 2.0 * asked.epsilon
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if column_epsilon(at(middle)) <= asked.epsilon else (low, middle)
    return integerise(at(low), epsilon=asked.epsilon)


def _row(label: str, channel: Channel, asked: Workload) -> Row:
    errors = expected_error(channel, asked)
    return Row(label, errors.value**2, errors.category**2)


def _categories_alone(asked: Workload, name: str) -> Row:
    """Return a mechanism over the categories in place of the values, which it hides."""
    channel = CATEGORIES_ALONE[name](len(asked.sizes), epsilon=asked.epsilon)
    crowd = np.bincount(asked.category_of, weights=asked.prior)
    errors = estimator_for(channel).expected_estimate(crowd, 1).value_errors
    return Row(f"{name}, of the category", HIDDEN, float(np.mean(errors[:-1] ** 2)))


def _channel(channel: Channel | None) -> Channel:
    assert channel is not None
    return channel


def text(number: float) -> str:
    """Return three digits, or a dash for what is hidden."""
    return "-" if math.isinf(number) else f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def table(inputs: int, categories: int, worst: dict[str, tuple[float, str]]) -> None:
    """Print the table of one K and m, and what the designer picks; keep the worst ratios."""
    lines: dict[str, list[str]] = {}
    picks: dict[str, list[str]] = {}
    for epsilon in EPSILONS:
        asked = question(inputs, categories, epsilon, OBJECTIVES[0])
        rows = rows_of(asked)
        for row in rows:
            lines.setdefault(row.label, []).append(f"{text(row.value)} / {text(row.category)}")
        for objective in OBJECTIVES:
            picked = choose(replace(asked, objective=objective))
            best = min(rows, key=lambda row: row.cost(objective))
            ratio = picked.cost / best.cost(objective)
            picks.setdefault(objective.quantity, []).append(f"{picked.label}: {text(picked.cost)}")
            place = f"K {inputs}, m {categories}, epsilon {epsilon:g}, {objective.quantity}"
            note(worst, "the best of the table", ratio, f"{place}: {best.label}")
            for row in rows:
                if row.label in REFERENCES and math.isfinite(row.cost(objective)):
                    note(worst, row.label, picked.cost / row.cost(objective), place)
    heads = [f"epsilon {epsilon:g}" for epsilon in EPSILONS]
    print(f"\n### K = {inputs}, m = {categories}\n")
    _markdown(["value / category", *heads], [[label, *cells] for label, cells in lines.items()])
    print()
    _markdown(["the designer's pick for", *heads], [[quantity, *cells] for quantity, cells in picks.items()])


REFERENCES = (
    "GRR",
    "unary, optimised",
    "local hashing",
    "local hashing, a random hash",
    "subset selection",
    "three-level exponential",
)


def note(worst: dict[str, tuple[float, str]], name: str, ratio: float, place: str) -> None:
    """Keep the largest ratio of a name."""
    if ratio > worst.get(name, (-math.inf, ""))[0]:
        worst[name] = (ratio, place)


def _markdown(heads: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def floors(shapes: list[str]) -> None:
    """Print the floors of shapes, values/categories, a row of value, category and both for each."""
    rows = []
    for shape in shapes:
        inputs, categories = (int(part) for part in shape.split("/"))
        cells = []
        for epsilon in EPSILONS:
            parts = []
            for objective in OBJECTIVES:
                asked = question(inputs, categories, epsilon, objective)
                found = Floors(asked).of(objective.quantity)
                parts.append("-" if found is None else text(found.error))
            cells.append(" / ".join(parts))
        rows.append([f"K = {inputs}, m = {categories}", *cells])
    _markdown(["floor: value / category / both", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)], rows)


def sampling() -> None:
    """Print how many times PB-GRR's combined error is level sampling's, both tuned, K = 90, m = 9."""
    lines = []
    for epsilon in (1.0, 2.0, 3.0, 4.0, 5.0):
        cells = [f"{epsilon:g}"]
        for of in ("means", "totals"):
            asked = question(90, 9, epsilon, Objective("both", of="totals" if of == "totals" else "means"))
            found = [c for c in compare(asked) if math.isfinite(c.cost)]
            rival = min(c.cost for c in found if c.mechanism == "pbgrr")
            sampled = {c.label: c.cost for c in found if c.mechanism == "levels"}
            plain = [cost for label, cost in sampled.items() if "oracles grr" in label]
            others = [c for c in found if c.mechanism not in ("pbgrr", "levels")]
            best = min(others, key=lambda c: c.cost)
            cells += [
                f"{rival / min(sampled.values()):.2f}",
                f"{rival / min(plain):.2f}",
                f"{rival / best.cost:.2f} ({best.label})",
            ]
        lines.append(cells)
    heads = [f"{of}: {what}" for of in ("means", "totals") for what in ("levels", "levels by GRR", "others")]
    _markdown(["epsilon", *heads], lines)


def dominated() -> None:
    """Print the factor by which both errors of PB-GRR shrink at the boost where they shrink least.

    Rivals are level sampling at all shares in hundredths, GRR and subset selection. Below 1, something beats
    PB-GRR in both errors whatever its boost; above 1, there is a boost at which nothing does.
    """
    table = {}
    for inputs, categories in DOMINANCE:
        cells = []
        for epsilon in (*EPSILONS, 6.0):
            asked = question(inputs, categories, epsilon, Objective("both"))
            rivals: list[Channel] = [
                mechanisms.grr(asked.inputs, epsilon=epsilon),
                mechanisms.subset_selection(asked.inputs, epsilon=epsilon),
            ]
            for share in np.linspace(0.01, 0.99, 99).tolist():
                shares = [share, 1.0 - share]
                rivals += [
                    mechanisms.levels(asked.sizes, epsilon=epsilon, shares=shares, oracles="grr"),
                    mechanisms.levels(asked.sizes, epsilon=epsilon, shares=shares),
                ]
            reached = np.array([_pair(rival, asked) for rival in rivals])
            factors = []
            for part in np.linspace(0.05, 0.95, 19).tolist():
                boosted = mechanisms.pbgrr(asked.sizes, epsilon=epsilon, boost_epsilon=part * epsilon)
                factors.append(float((reached / _pair(boosted, asked)).max(axis=1).min()))
            worst = int(np.argmax(factors))
            cells.append(f"{factors[worst]:.3f} (boost {0.05 * (worst + 1):.2f} epsilon)")
        table[f"K = {inputs}, m = {categories}"] = cells
    print()
    heads = [f"epsilon {epsilon:g}" for epsilon in (*EPSILONS, 6.0)]
    _markdown(["least gain over PB-GRR", *heads], [[label, *cells] for label, cells in table.items()])


def _pair(channel: Channel, asked: Workload) -> tuple[float, float]:
    errors = expected_error(channel, asked)
    return errors.value**2, errors.category**2


def main(arguments: list[str]) -> int:
    """Print what is asked for."""
    if arguments == ["levels"]:
        sampling()
        dominated()
        return 0
    if arguments[:1] == ["floors"]:
        floors(arguments[1:] or [f"{k}/{m}" for k in SIZES for m in CATEGORIES])
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    worst: dict[str, tuple[float, str]] = {}
    for inputs in SIZES:
        for categories in CATEGORIES:
            table(inputs, categories, worst)
    print("\nThe designer's pick, its objective over another mechanism's, at worst:\n")
    for name, (ratio, place) in worst.items():
        verdict = "" if ratio <= 1.0 + TOLERANCE else "  MORE THAN 1 % WORSE"
        print(f"- {name}: {ratio:.4f} ({place}){verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
