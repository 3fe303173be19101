"""Random surveys of every form and mechanism over a few small attributes, and random answers to them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub import Survey
from hubbub.errors import HubbubError
from hubbub.survey.score import Score

SCORES = ("linear", "truncated", "logistic")

MECHANISMS = (
    "grr",
    "grr by category",
    "pbgrr",
    "subset",
    "unary",
    "levels",
    "grr levels",
    "local_hashing",
    "neighbourhood",
    "boosted",
    "r2dp",
    "brdp",
    "square_wave",
    "piecewise",
    "grid grr",
    "tree",
    "grr tree",
    "orbits",
    "table",
    *SCORES,
)
"""Every form and every kind of channel; each may get a participation coin but a score, which has none."""


@dataclass(frozen=True)
class Held:
    """An attribute that the device holds."""

    id: str
    kind: str
    type: str
    low: int
    high: int

    @property
    def toml(self) -> str:
        ends = f"low = {self.low}\nhigh = {self.high}"
        if self.type == "number":
            ends = f"low = {float(self.low)}\nhigh = {float(self.high)}"
        if self.type == "label":
            ends = f"labels = [{', '.join(f'{chr(34)}l{i}{chr(34)}' for i in range(self.high + 1))}]"
        return f'id = "{self.id}"\nkind = "{self.kind}"\ntype = "{self.type}"\n{ends}\n'

    def category(self, name: str, first: int, last: int) -> str:
        values = f"range = [{first}, {last}]"
        if self.type == "label":
            values = f"values = [{', '.join(f'{chr(34)}l{i}{chr(34)}' for i in range(first, last + 1))}]"
        return f'name = "{name}"\n{values}\n'


def attributes(chance: random.Random) -> list[Held]:
    """Four or five attributes, of each type one at least, most of them static."""
    found = [
        Held("a", "static", "integer", low := chance.randint(-3, 3), low + chance.randint(3, 5)),
        Held("b", chance.choice(["static", "evolving"]), "label", 0, chance.randint(3, 6)),
        Held("c", "static", "number", low := chance.randint(-2, 2), low + chance.randint(1, 3)),
        Held("d", chance.choice(["static", "evolving"]), "number", 0, 1),
        Held("e", "evolving", "integer", 0, 3),
    ]
    return found[: chance.choice([4, 5, 5])]


def survey(chance: random.Random, held: Sequence[Held], name: str, mechanism: str) -> Survey | None:
    """A random survey by one mechanism, None where its terms do not compile."""
    rounds = chance.randint(1, 4)
    epsilon = chance.choice([0.2, 0.5, 1.0, 2.0, 3.5])
    terms = (
        f'id = "{name}"\nversion = 1\ntitle = "{name}"\nepsilon = {epsilon}\nminimum_cohort = 1\n'
        'planned_devices = 100000\n[schedule]\nstart = 2026-01-01T00:00:00Z\nround = "1d"\n'
        f'rounds = {rounds}\nlateness = "1h"\nskew = "5m"\n'
    )
    try:
        return Survey.parse(terms + _asked(chance, held, mechanism, epsilon))
    except HubbubError:
        return None


def _asked(  # noqa: PLR0911 - one way of writing a survey for each mechanism
    chance: random.Random, held: Sequence[Held], mechanism: str, epsilon: float
) -> str:
    numbers = [each for each in held if each.type == "number"]
    finite = [each for each in held if each.type != "number"]
    if mechanism in SCORES:
        return _score(chance, [each for each in held if each.type != "label"], mechanism)
    coin = f"participation = {chance.choice([0.3, 0.7])}\n" if chance.random() < 0.3 else ""
    if mechanism == "table":
        chosen = chance.sample(finite, min(len(finite), chance.choice([2, 2, 3])))
        parts = "".join(
            f"[[attribute]]\n{each.toml}"
            + (_categories(chance, each, "[[attribute.category]]") if chance.random() < 0.4 else "")
            for each in chosen
        )
        return f'{parts}[mechanism]\nname = "{chance.choice(["grr", "subset", "unary"])}"\n{coin}'
    if mechanism in _ON_GRID:
        points = chance.choice([3, 5, 9])
        keys = _ON_GRID[mechanism](chance)
        name = mechanism.removeprefix("grid ").removeprefix("grr ")
        asked = chance.choice(numbers)
        return f'[attribute]\n{asked.toml}[mechanism]\nname = "{name}"\npoints = {points}\n{keys}{coin}'
    asked = chance.choice(finite)
    parts = f"[attribute]\n{asked.toml}"
    categories = _categories(chance, asked, "[[category]]")
    plain = categories if chance.random() < 0.3 else ""
    if mechanism == "grr by category":
        return f'{parts}[mechanism]\nname = "grr"\nreading = "category"\n{coin}{categories}'
    if mechanism in ("pbgrr", "neighbourhood"):
        boost = f"boost_epsilon = {round(epsilon * chance.choice([0.0, 0.3, 0.7]), 3)}\n"
        if mechanism == "neighbourhood":
            boost += "window = 1\n" if asked.type == "integer" else 'pairs = [["l0", "l1"], ["l1", "l2"]]\n'
            categories = plain
        return f'{parts}[mechanism]\nname = "{mechanism}"\n{boost}{coin}{categories}'
    if mechanism.endswith("levels"):
        oracles = 'oracles = "grr"\n' if mechanism == "grr levels" else ""
        return f'{parts}[mechanism]\nname = "levels"\n{oracles}category_share = 0.4\n{coin}{categories}'
    if mechanism == "orbits":
        weight = f"category_weight = {chance.choice([0.2, 0.8])}\n" if chance.random() < 0.5 else ""
        return f'{parts}[mechanism]\nname = "orbits"\n{weight}{coin}{categories}'
    keys = f"buckets = {chance.choice([2, 3, 4])}\n" if mechanism == "local_hashing" else ""
    if mechanism == "unary":
        keys = f'variant = "{chance.choice(["optimised", "symmetric"])}"\n'
    return f'{parts}[mechanism]\nname = "{mechanism}"\n{keys}{coin}{plain}'


_ON_GRID: dict[str, Callable[[random.Random], str]] = {
    "boosted": lambda chance: f'kernel = "{chance.choice(["uniform", "laplace"])}"\nhalf_width = 0.3\n',
    "r2dp": lambda _: 'law = { name = "two_point", slow = 1, fast = 3, share = 0.2 }\n',
    "brdp": lambda _: "half_width = 0.3\nrecycling = 0.4\n",
    "square_wave": lambda _: "",
    "piecewise": lambda _: "",
    "grid grr": lambda _: "",
    "tree": lambda chance: f"branching = {chance.choice([2, 3])}\n",
    "grr tree": lambda _: 'oracles = "grr"\n',
}


def _categories(chance: random.Random, asked: Held, head: str) -> str:
    cut = chance.randint(asked.low + 1, asked.high)
    low, high = asked.category("low", asked.low, cut - 1), asked.category("high", cut, asked.high)
    return f"{head}\n{low}{head}\n{high}"


def _score(chance: random.Random, held: Sequence[Held], kind: str) -> str:
    """Coefficients and defaults of few sorts, so that surveys often share some and rarely all."""
    chosen = sorted(
        chance.sample(held, min(len(held), chance.choice([1, 1, 1, 2, 2, 3]))), key=lambda e: e.id
    )
    slopes = [chance.choice([-2.0, -1.0, 0.5, 1.0, 3.0]) for _ in chosen]
    parts = ""
    for each, slope in zip(chosen, slopes, strict=True):
        default = chance.choice([each.low, each.high, each.low + 0.5, each.low + 1])
        parts += f"[[attribute]]\n{each.toml}coefficient = {slope}\ndefault = {default}\n"
    sums = [sorted([slope * each.low, slope * each.high]) for each, slope in zip(chosen, slopes, strict=True)]
    low, high = sum(pair[0] for pair in sums), sum(pair[1] for pair in sums)
    middle = -0.5 * (low + high)
    ends = ""
    if kind == "linear":
        spare = chance.choice([0.0, 0.5])
        ends = f"low = {low + middle - spare}\nhigh = {high + middle}\n"
    elif kind == "truncated":
        reach = (high - low) * chance.choice([0.1, 0.3])
        ends = f"low = {-reach}\nhigh = {reach}\n"
    return f'{parts}[mechanism]\nname = "regression"\nscore = "{kind}"\nintercept = {middle}\n{ends}'


def symbol(chance: random.Random, asked: Survey) -> int | bytes:
    """An answer that some input gives."""
    if isinstance(asked.form, Score):
        return chance.randrange(2)
    return asked.channel.perturb(chance.randrange(asked.channel.inputs))
