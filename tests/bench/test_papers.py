"""The papers' own accountants: as printed, where they go wrong, and the run and page that say so."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from pathlib import Path

import paper_accounting
import pytest

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.composition import Composition
from hubbub_lab.continuous_noise.profile import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    Gaussian,
    Laplace,
    PairLoss,
    Profile,
    gaussian_sigma,
)

pytestmark = pytest.mark.xdist_group("papers")  # all tables are computed once
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def bench():
    spec = importlib.util.spec_from_file_location("papers_bench", ROOT / "bench" / "papers" / "papers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def rows(bench):
    """The rows of all tables, by the name of the figure."""
    figures = [figure for _, section in bench.SECTIONS.values() for figure in section()]
    assert len({name for name, *_ in figures}) == len(figures)
    return {figure[0]: bench.row(figure) for figure in figures}


@pytest.fixture(scope="module")
def kept():
    lines = json.loads((ROOT / "evidence" / "papers.json").read_text(encoding="utf-8"))[-1]["output"]
    return [line for line in lines if line.startswith(("| BR-", "| PB-", "| R2-", "| BPF-"))]


def test_every_figure_of_the_kept_run_is_what_the_command_prints(rows, kept):
    assert len(rows) > 50
    missing = [row for row in rows.values() if row not in kept]
    assert not missing, "evidence must have these rows: run make evidence NAME=papers"


def test_the_kept_run_has_no_figure_that_the_command_does_not_print(rows, kept):
    assert [line for line in kept if line not in rows.values()] == []


def test_figures_that_the_text_names_exist(rows):
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:BR|PB|R2|BPF)-[\w.]+(?:-[\w.]*\w)*", text))
    assert {name.rstrip(".") for name in named} <= {*rows, "PB-GRR"}


def test_without_a_boost_the_papers_profile_is_the_kernels():
    kernel = Gaussian(2.0)
    exact = Profile(BoostedNoise(kernel), 1.0)
    law = BoostedNoise(kernel, AbsoluteRegion(1.0), 0.0)
    for epsilon in (0.2, 1.0):
        assert paper_accounting.paper_br_delta(kernel, 1.0, 0.0, 1.0, epsilon) == pytest.approx(
            exact.delta(epsilon), rel=1e-9
        )
        assert paper_accounting.paper_pb_delta(law, 0.0, 1.0, epsilon) == pytest.approx(
            exact.delta(epsilon), rel=1e-9
        )
    assert paper_accounting.paper_pb_renyi(law, 0.0, 1.0, 3.0) == pytest.approx(exact.renyi(3.0), rel=1e-9)


def test_budget_recycling_is_unsafe_where_the_region_meets_the_tail_and_wasteful_where_not():
    narrow, wide = (paper_accounting.paper_br_design(width, 1.0, 3.0, 1e-5) for width in (1.0, 4.867))
    assert Profile(narrow.law, 1.0).epsilon(1e-5) == pytest.approx(2.085, abs=1e-3)
    assert Profile(wide.law, 1.0).delta(3.0) / 1e-5 == pytest.approx(71.2, abs=0.1)
    assert Profile(wide.law, 1.0).epsilon(1e-5) == pytest.approx(3.52, abs=0.01)


def test_the_rate_of_algorithm_1_spends_delta_by_the_papers_formula():
    kernel = Gaussian(gaussian_sigma(1.5, 1e-5, 1.0))
    boost = paper_accounting.paper_br_boost(kernel, 1.0, 1.0, 3.0, 1e-5)
    assert paper_accounting.paper_br_delta(kernel, 1.0, boost, 1.0, 3.0) == pytest.approx(1e-5, rel=1e-6)
    assert paper_accounting.paper_br_epsilon(kernel, 1.0, boost, 1.0, 1e-5) == pytest.approx(3.0, rel=1e-9)


def test_the_papers_compositions_of_one_release_are_their_profiles():
    kernel = Gaussian(1.5)
    alone = PairLoss(BoostedNoise(kernel), 0.0, 1.0).delta
    once = paper_accounting.paper_br_composed_delta(
        alone, kernel=kernel, half_width=1.0, boost=0.6, sensitivity=1.0, times=1, epsilon=1.0
    )
    assert once == pytest.approx(paper_accounting.paper_br_delta(kernel, 1.0, 0.6, 1.0, 1.0), rel=1e-12)
    law = BoostedNoise(kernel, AbsoluteRegion(1.0), 0.6)
    split = paper_accounting.paper_pb_split(law, 0.0, 1.0)
    once = paper_accounting.paper_pb_composed_delta(alone, split, 1, 1.0)
    assert once == pytest.approx(paper_accounting.paper_pb_delta(law, 0.0, 1.0, 1.0), rel=1e-12)
    twice = paper_accounting.paper_pb_composed_delta(alone, split, 2, 1.0)
    steps = {1: split.gain, -1: split.loss, 0: split.rest}
    wanted = sum(
        p * r * alone(1.0 - 2 * split.shift - (i + j) * split.leap)
        for i, p in steps.items()
        for j, r in steps.items()
    )
    assert twice == pytest.approx(wanted, rel=1e-12)


def test_the_papers_composed_delta_is_below_the_exact_one_for_a_wide_region():
    law = BoostedNoise(Gaussian(3.0), AbsoluteRegion(10.0), 0.95)
    composition = Composition([(Profile(law, 1.0), 100)])
    at = composition.epsilon(1e-5)
    alone = PairLoss(BoostedNoise(Gaussian(0.3)), 0.0, 1.0).delta
    claimed = paper_accounting.paper_pb_composed_delta(
        alone, paper_accounting.paper_pb_split(law, 0.0, 1.0), 100, at
    )
    assert claimed < 0.1 * composition.delta(at)


def test_two_random_scales_cost_more_than_r2dp_says():
    assert paper_accounting.paper_r2_two_point_epsilon((1.0, 3.0), 0.5, 0.1) == pytest.approx(
        0.20499, abs=1e-5
    )


def test_a_fixed_region_has_no_leap():
    law = BoostedNoise(Laplace(1.0), FixedRegion(-2.0, 2.0), 0.5)
    split = paper_accounting.paper_pb_split(law, -1.0, 1.0)
    assert (split.gain, split.loss, split.rest) == (0.0, 0.0, 1.0)


def test_nothing_outside_comparisons_uses_the_papers_accountants():
    users = [
        path.relative_to(ROOT).as_posix()
        for root in ("core", "client", "collector", "aggregator")
        for path in (ROOT / root).rglob("*.py")
        if "paper_" in path.read_text(encoding="utf-8") and path.name != "papers.py"
    ]
    assert users == []


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: paper_accounting.paper_r2_two_point_epsilon((1.0, 3.0), 1.5, 0.1),
            "probability must be in [0, 1]",
        ),
        (
            lambda: paper_accounting.paper_br_epsilon(Gaussian(1.0), 1.0, 0.5, 1.0, 0.0),
            "delta must be strictly between",
        ),
        (lambda: paper_accounting.paper_br_design(1.0, 1.0, math.nan, 1e-5), "epsilon"),
    ],
)
def test_bad_parameters_name_subject_rule_and_value(build, words):
    with pytest.raises(ParameterError) as caught:
        build()
    assert words in str(caught.value)
