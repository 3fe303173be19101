"""The change of memoised answers is covered whoever joins: every kind of mechanism, by releases themselves.

Nine in ten devices, or half, send their first answer again; the others left, and all who joined hold the
largest number. What the survey's file, its channel, a release and `change` do is run whole, with `asked` as
an operator states it. Joiners like these make most of a cell's noise new, and lie as far as can be from the
old mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from surveys import START_S, VISITS

from hubbub.survey import Survey
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, Release, change

pytestmark = pytest.mark.statistical

NUMBERS = 11
NUMBER = 'type = "number"\nlow = 0.0\nhigh = 10.0\n'
INTEGER = 'type = "integer"\nlow = 0\nhigh = 10\n'
GROUPS = """
[[category]]
name = "none"
values = [0]
[[category]]
name = "some"
range = [1, 4]
[[category]]
name = "many"
range = [5, 10]
"""

SETTINGS = {
    "pbgrr": (INTEGER, 'name = "pbgrr"\nboost_epsilon = 1.5\n' + GROUPS, 3.0, 2000, 0.9),
    "categories": (INTEGER, 'name = "pbgrr"\nboost_epsilon = 0.0\n' + GROUPS, 3.0, 2000, 0.9),
    "levels": (INTEGER, 'name = "levels"\n' + GROUPS, 4.0, 1000, 0.9),
    "orbits": (INTEGER, 'name = "orbits"\n' + GROUPS, 3.0, 1000, 0.9),
    "tree": (INTEGER, 'name = "tree"\n', 4.0, 1000, 0.9),
    "tree, grr": (INTEGER, 'name = "tree"\noracles = "grr"\n', 6.0, 1000, 0.5),
    "hashing": (INTEGER, 'name = "local_hashing"\n', 3.0, 1000, 0.9),
    "mean": (NUMBER, 'name = "optimal"\npoints = 11\n', 6.0, 1000, 0.5),
    "mean at its end": (NUMBER, 'name = "optimal"\npoints = 11\n', 3.0, 1000, 0.5),
    "piecewise": (NUMBER, 'name = "piecewise"\npoints = 11\n', 4.0, 1000, 0.5),
}
"""The attribute, the mechanism, epsilon, devices of a round, and the share of them that stays."""


def document(survey: Survey, number: int, symbols: np.ndarray) -> dict[str, Any]:
    counts = survey.channel.tally(symbols)
    accepted = AcceptedCounts({0: 1}, counts, len(symbols))
    return Release(survey, number, "sealed", accepted, VerdictCounts()).document()


def held(name: str, pairs: int) -> dict[str, np.ndarray]:
    """Return of each pair which cells' changes were covered, by family, shape (pairs, cells)."""
    domain, mechanism, epsilon, n, stays = SETTINGS[name]
    text = VISITS[: VISITS.index("[attribute]")].replace("epsilon = 3.0", f"epsilon = {epsilon}")
    attribute = f'[attribute]\nid = "visits"\nkind = "static"\n{domain}'
    survey = Survey.parse(f"{text}{attribute}[mechanism]\n{mechanism}")
    assert survey.start_s == START_S and survey.channel.inputs == NUMBERS + 1
    shares = np.append(1.0 / np.arange(1.0, NUMBERS + 1), 0.3)
    first = np.floor(n * shares / shares.sum()).astype(int)
    first[0] += n - first.sum()
    if name == "mean at its end":
        first = np.append(n, np.zeros(NUMBERS, int))
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(NUMBERS + 1), first))
    gone = n - round(stays * n)
    if stays < 0.9:
        order.sort()
    joiners = np.full(gone, NUMBERS - 1)
    second = np.bincount(np.concatenate([order[gone:], joiners]), minlength=NUMBERS + 1)
    source, channel, found = seeded(9), survey.channel, dict[str, list[list[bool]]]()
    numbers = np.arange(NUMBERS)
    means = [each[:-1] @ numbers / each[:-1].sum() for each in (first, second)]
    truth = {
        "values": (second - first) / n,
        "categories": (np.bincount(survey.category_of, second) - np.bincount(survey.category_of, first)) / n,
        "mean": np.array([means[1] - means[0]]),
    }
    for _ in range(pairs):
        common = channel.perturb(order[gone:], source=source)
        both = [
            document(survey, k, np.concatenate([common, channel.perturb(each, source=source)]))
            for k, each in enumerate((order[:gone], joiners))
        ]
        told = change(both[0], both[1], kind="static", asked=n + gone)
        assert (told["answers"], told["shared"], told["of"]) == ("memoised", n - gone, "devices")
        for family, true in truth.items():
            cells = told[family] if family != "mean" else [told["mean"]] if told["mean"] else []
            known = [(cell, t) for cell, t in zip(cells, true, strict=False) if cell["low"] is not None]
            if known:
                hits = [cell["low"] - 1e-12 <= t <= cell["high"] + 1e-12 for cell, t in known]
                found.setdefault(family, []).append(hits)
    return {family: np.array(rows) for family, rows in found.items()}


@pytest.mark.parametrize("name", SETTINGS)
def test_change_of_memoised_answers_is_covered_by_releases_of_every_mechanism(name: str) -> None:
    """60 pairs: each cell's hits at least the 1e-8 quantile of binomial(60, .94), and .94 of all."""
    pairs = 60
    found = held(name, pairs)
    assert found and all(len(rows) == pairs for rows in found.values())
    for family, rows in found.items():
        assert rows.sum(axis=0).min() >= int(binom.ppf(1e-8, pairs, 0.94)), family
        assert rows.mean() >= 0.94, family
