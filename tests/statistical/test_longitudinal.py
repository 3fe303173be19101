"""Attacks on what real agents sent stay below the bound; a broken memo is caught above it."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hubbub.testing import seeded
from hubbub_authoring import mechanisms
from hubbub_lab.filters import Odometer

BENCH = Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH))  # at the end: a module there is called coverage
SPEC = importlib.util.spec_from_file_location("longitudinal", BENCH / "longitudinal.py")
assert SPEC is not None and SPEC.loader is not None
bench = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = bench
SPEC.loader.exec_module(bench)

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-7
RNG = np.random.default_rng(5)


def attacked(kind: str, epsilon: float, agents: int, rounds: int, *, broken: bool = False) -> list[float]:
    """The chance of as many right guesses at the bound, after each round."""
    asked = bench.survey("fact", 16, epsilon, rounds, kind=kind)
    values = RNG.integers(16, size=(agents, 1))
    seen = bench.transcripts([asked], values, rounds, broken=broken, source=seeded(9))
    hits = bench.value_hits(asked, seen, values[:, 0], RNG)
    return [
        bench.above(int(hits[day]), agents, bench.guess_bound(seen.losses[:, day], 16))
        for day in range(rounds)
    ]


def test_no_attack_on_a_memo_exceeds_the_bound_and_a_broken_memo_does() -> None:
    """20 and 30 agents, 16 values at epsilon 2, whose bound is 33 %.

    Statistic: right guesses by the likelihood of all rounds. False alarm: at most 1e-7 a round by Hoeffding's
    bound of sums of Bernoulli variables, after 3 rounds 3e-7; symbols come from the operating system.
    Control: of 24 answers drawn anew, which the account counts as one, all but the first come from a seed
    with which 28 to 30 of 30 guesses were right in every run. 25 are enough to be caught.
    """
    assert min(attacked("static", 2.0, 20, 3)) > FALSE_ALARM
    assert attacked("static", 2.0, 30, 24, broken=True)[-1] < FALSE_ALARM


def test_no_attack_on_fresh_answers_exceeds_a_bound_that_grows_with_every_round() -> None:
    """20 agents, 4 rounds at epsilon 0.9; false alarm: at most 1e-7 a round, as above."""
    asked = bench.survey("fact", 16, 0.9, 4, kind="evolving")
    values = RNG.integers(16, size=(20, 1))
    seen = bench.transcripts([asked], values, 4)
    hits = bench.value_hits(asked, seen, values[:, 0], RNG)
    for day in range(4):
        bound = bench.guess_bound(seen.losses[:, day], 16)
        assert bound == pytest.approx(1 / (1 + 15 * math.exp(-0.9 * (day + 1))), rel=1e-6)
        assert bench.above(int(hits[day]), 20, bound) > FALSE_ALARM
    odometer = Odometer()
    for symbol in seen.symbols[0, 0].tolist():
        odometer.observe("fact", asked.channel, symbol)
    alone = bench.Transcripts(seen.symbols[:1], seen.losses[:1])
    constant = bench.known_constant_bound(asked, alone)[-1]
    assert constant <= bench.guess_bound(np.full(1, odometer.loss), 16) < bound


@pytest.mark.parametrize("values", [2, 5, 16])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_answer_by_randomised_response_reaches_the_bound_and_categories_do_not(values, epsilon) -> None:
    """Exactly, from the integers: the chance of the best guess, all values equally likely."""
    bound = bench.guess_bound(np.array([epsilon]), values)
    grr = mechanisms.grr(values, epsilon=epsilon)
    half = mechanisms.pbgrr([1, values - 1], epsilon=epsilon, boost_epsilon=epsilon / 2)
    guesses = [
        np.asarray(channel.weights(), dtype=np.float64).max(axis=0).sum() / channel.total / values
        for channel in (grr, half)
    ]
    assert guesses[0] == pytest.approx(bound, rel=1e-6)
    assert guesses[1] < bound - 1e-3 or values == 2


def test_memoised_rounds_are_linked_as_far_as_symbols_differ() -> None:
    """16 devices, four memos each: as many links are right as there are different quadruples, on average.

    Ties are broken at random: the mean of 200 attacks has a standard error below 0.1, and 1.5 are allowed.
    """
    facts = [bench.survey(name, size, 1.0, 2, kind="static") for name, size in bench.FACTS.items()]
    known = np.stack([RNG.integers(size, size=16) for size in bench.FACTS.values()], axis=1)
    seen = bench.transcripts(facts, known, 2)
    assert (seen.symbols[:, :, 0] == seen.symbols[:, :, 1]).all()
    distinct = len({tuple(row) for row in seen.symbols[:, :, 0].tolist()})
    rng = np.random.default_rng(2)
    linked = [bench.link_hits(seen, None, rng) for _ in range(200)]
    assert np.mean(linked) == pytest.approx(distinct, abs=1.5)
    owners = bench.owner_hits(facts, seen, known, rng)
    bound = bench.guess_bound(seen.losses[:, -1], 16)
    assert bench.above(int(owners[-1]), 16, bound) > FALSE_ALARM


def test_a_line_plot_is_svg_with_a_path_for_every_line(tmp_path) -> None:
    from line_plot import Line, Panel, write_plot

    lines = [
        Line("a & b", "#123456", [(1, 10.0), (2, 120.0)]),
        Line("bound", "#654321", [(1, 5.0)], dashed=True),
    ]
    write_plot(tmp_path / "plot.svg", [Panel("one < two", "x", "y", lines, 100.0, (1, 2))] * 2)
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()  # noqa: S314 - written above
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    strokes = [path.get("stroke") for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert [strokes.count(line.colour) for line in lines] == [4, 4]  # each panel: the line, and its legend
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a & b", "bound", "one < two"} <= set(words)
    kinds = ("memo", "memo bound", "broken", "fresh", "fresh bound", "fresh constant", "owner", "owner bound")
    bench.plot(tmp_path / "attacks.svg", {kind: [(1.0, 5.0), (30.0, 9.0)] for kind in kinds}, 3)
    assert "Which of 3 owners" in (tmp_path / "attacks.svg").read_text(encoding="utf-8")
