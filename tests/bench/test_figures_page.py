"""docs/figures.md shows every figure that bench/papers/figures.py draws, and no other, promises marked."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("figures_bench", ROOT / "bench" / "papers" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_page_shows_every_figure_that_the_command_draws(bench):
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[([a-z0-9-]+)\]\(figures/([a-z0-9-]+)\.png\)", page)
    assert [name for name, _ in shown] == list(bench.FIGURES) == [file for _, file in shown]
    assert {path.stem for path in (ROOT / "docs" / "figures").glob("*.png")} == set(bench.FIGURES)


def test_a_promise_is_marked_broken_where_exact_epsilon_is_above_it(bench):
    setting = bench.settings(10.0, 0.9, 4.0)["absolute"]
    found = bench.Need(*(round(value, 6) for value in vars(bench.need(setting, 10.0, 2.0)).values()))
    assert found.claimed < found.best <= found.true  # Renyi order 2: the formula is unsafe
    wide = bench.laplace_recycled(1.0, 0.1)
    assert bench.Profile(wide, 1.0).epsilon(bench.DELTA) > 0.1  # as Table 1 marks it
