"""Releases of trees of labels: every level, its tidy rows, ranks within a level, and what a check finds."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from lies import printed

from hubbub import Survey
from hubbub_aggregator.export import tidy_rows
from hubbub_aggregator.release.verification import verify
from hubbub_aggregator.release.views import effective_sizes, empirical_bayes_values, round_ranks
from hubbub_aggregator.web.table_statistics import table_facts

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(params=["region", "heat-map"])
def survey(request: pytest.FixtureRequest) -> Survey:
    return Survey.load(GOLDEN / f"survey-{request.param}.toml")


def test_a_release_has_every_level_and_what_each_cell_is_in(survey: Survey) -> None:
    document, data = printed(survey, 3_000, np.random.default_rng(1))
    by_level: dict[int, dict[str, float]] = {}
    for cell in (*document["categories"], *document["values"]):
        by_level.setdefault(cell["tree_level"], {})[cell["label"]] = cell["estimate"]
        assert cell["simultaneous_low"] <= cell["low"] <= cell["high"] <= cell["simultaneous_high"]
        assert cell["crowd_low"] is not None
    assert list(by_level) == list(range(1, len(survey.category_of) + 2))
    for level, cells in by_level.items():
        assert sum(cells.values()) == pytest.approx(1.0)
        if level == 1:
            continue
        sums = dict.fromkeys(by_level[level - 1], 0.0)
        for cell in (*document["categories"], *document["values"]):
            if cell["tree_level"] == level:
                sums[cell["category"]] += cell["estimate"]
        assert sums == pytest.approx(by_level[level - 1])
    assert {cell["category"] for cell in document["categories"] if cell["tree_level"] == 1} == {None}
    found = verify(survey, document, data)
    assert found.differences == [] and found.again > 0 and "consistent" in found.recomputed


def test_what_is_false_of_a_level_is_found(survey: Survey) -> None:
    document, data = printed(survey, 3_000, np.random.default_rng(1))
    changes = (
        lambda it: it["values"][2].update(tree_level=1),
        lambda it: it["categories"][-2].update(category="elsewhere"),
        lambda it: it["categories"][0].update(estimate=it["categories"][0]["estimate"] + 1e-6),
        lambda it: it["categories"][-2].update(low=it["categories"][-2]["low"] / 2 - 0.001),
        lambda it: it["consistent"]["categories"].__setitem__(0, 0.9),
    )
    for change in changes:
        lied = copy.deepcopy(document)
        change(lied)
        assert verify(survey, lied, data).differences


def test_tidy_rows_have_the_level(survey: Survey) -> None:
    document, _ = printed(survey, 3_000, np.random.default_rng(1))
    for row in tidy_rows([document]):
        cells = document["values" if row["kind"] == "value" else "categories"]
        assert (row["tree_level"], row["category"]) in {
            (cell["tree_level"], cell["category"]) for cell in cells if cell["label"] == row["label"]
        }


def test_a_cell_is_ranked_among_those_of_its_level(survey: Survey) -> None:
    document, _ = printed(survey, 3_000, np.random.default_rng(1))
    cells, ranks = document["categories"], round_ranks(document, "categories")
    for level in range(1, len(survey.category_of) + 1):
        own = [ranks[i] for i, cell in enumerate(cells) if cell["tree_level"] == level]
        known = [pair for pair in own if pair is not None]
        assert own[-1] is None and min(best for best, _ in known) == 1
        assert max(worst for _, worst in known) <= len(known)
    view = empirical_bayes_values(document)
    assert view is not None and sum(share or 0.0 for share in view) == pytest.approx(1.0)
    assert effective_sizes(document)["categories"] is not None
    assert table_facts(survey) is None
