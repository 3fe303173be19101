"""The audit finds what gives away more than it says, and passes our mechanisms, tight where they are tight.

Each assertion that a bound is not above the truth fails by chance with a probability of at most 1e-6.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.survey import Survey
from hubbub_deploy.cli import main
from hubbub_lab.evaluation.audit import audit

GENERATOR = np.random.default_rng(20261122)
SAMPLES = 20_000


def randomised_response(truth: float, k: int = 5) -> Callable[[int, int], list[int]]:
    share = math.exp(truth) / (math.exp(truth) + k - 1)

    def sample(x: int, n: int) -> list[int]:
        other = (x + GENERATOR.integers(1, k, n)) % k
        return np.where(GENERATOR.random(n) < share, x, other).tolist()

    return sample


def laplace(scale: float) -> Callable[[int, int], list[float]]:
    return lambda x, n: (x + GENERATOR.laplace(0.0, scale, n)).tolist()


def unary(p: float, q: float, k: int = 8) -> Callable[[int, int], list[bytes]]:
    def sample(x: int, n: int) -> list[bytes]:
        shares = np.full(k, q)
        shares[x] = p
        return [row.tobytes() for row in np.packbits(GENERATOR.random((n, k)) < shares, axis=1)]

    return sample


def seed_published(x: int, n: int) -> list[tuple[int, int]]:
    """Return randomised response that sends the seed of its noise along."""
    seeds = GENERATOR.integers(0, 2**40, n).tolist()
    return [(seed, (x + seed % 5) % 5) for seed in seeds]


@pytest.mark.parametrize(
    ("sampler", "pair", "truth"),
    [
        (randomised_response(1.0), (0, 3), 1.0),
        (laplace(4.0), (0, 4), 1.0),
        (unary(0.5, 1 / (math.e + 1)), (2, 5), 1.0),
    ],
)
def test_a_bound_is_below_the_truth_and_near_it(
    sampler: Callable[[int, int], Any], pair: tuple[int, int], truth: float
) -> None:
    found = audit(sampler, [pair], samples=SAMPLES)
    assert 0.8 * truth < found.epsilon <= truth
    one, other = found.probabilities
    assert found.epsilon < math.log(one / other)


@pytest.mark.parametrize(
    ("sampler", "declared"),
    [
        (randomised_response(1.2), 0.5),
        (laplace(2.0), 1.0),  # a scale wrong by two
        (unary(0.75, 0.25), 0.5),  # each bit has what all of them may have: 2 ln 3
        (lambda x, n: [x] * n, 4.0),
    ],
)
def test_what_gives_away_more_than_it_says_is_found(
    sampler: Callable[[int, int], Any], declared: float
) -> None:
    assert audit(sampler, [(0, 4)], samples=SAMPLES).epsilon > declared


def test_a_seed_that_is_published_is_found_by_who_looks_for_it() -> None:
    """Frequencies of pairs that never repeat say nothing; the reading that the makers state does."""

    def likelihood(output: tuple[int, int], x: int) -> float:
        seed, answer = output
        return 0.0 if (answer - seed) % 5 == x else -9.0

    assert audit(seed_published, [(0, 1)], samples=2_000).epsilon == 0.0
    assert audit(seed_published, [(0, 1)], samples=2_000, likelihood=likelihood).epsilon > 4.0


SURVEY = """
id = "visits"
version = 1
title = "Visits"
epsilon = 1.0
minimum_cohort = 200
planned_devices = 20000
[schedule]
start = 2026-01-05T00:00:00Z
round = "1d"
rounds = 1
lateness = "1h"
skew = "5m"
[attribute]
id = "visits"
kind = "evolving"
type = "integer"
low = 0
high = 9
[[category]]
name = "few"
range = [0, 4]
[[category]]
name = "many"
range = [5, 9]
[mechanism]
{mechanism}
"""


@pytest.mark.parametrize(
    ("mechanism", "tightness"),
    [
        ('name = "grr"', 0.5),
        ('name = "pbgrr"\nboost_epsilon = 0.5', 0.5),
        ('name = "subset"', 0.5),
        ('name = "unary"', 0.5),
        ('name = "local_hashing"', 0.5),
        ('name = "levels"', 0.5),
    ],
)
def test_our_mechanisms_pass_and_the_bound_is_tight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mechanism: str, tightness: float
) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(SURVEY.format(mechanism=mechanism))
    assert main(["audit", str(file), "--samples", "5000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["broken"]
    assert tightness * found["declared"] < found["epsilon_at_least"] <= Survey.load(file).channel.epsilon


def test_a_function_of_anybody_is_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "leaky_mechanism.py").write_text("def answer(value):\n    return value\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["audit", "--callable", "leaky_mechanism:answer", "--inputs", "3", "--epsilon", "2"]
    assert main([*words, "--samples", "1000"]) == 1
    assert "MORE IS GIVEN AWAY" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--callable", "nothing_here:f", "--inputs", "3", "--epsilon", "1"], "cannot be imported"),
        (["--callable", "math:pi", "--inputs", "3", "--epsilon", "1"], "must name a function, got 'math:pi'"),
        (["--callable", "math", "--inputs", "3", "--epsilon", "1"], "must be MODULE:FUNCTION, got 'math'"),
        (["--callable", "math:exp"], "--callable must come with --inputs of at least 2 and --epsilon"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], rule: str
) -> None:
    assert main(["audit", *words]) == 1
    assert rule in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pairs", "more", "rule"),
    [
        ([], {}, "pairs of two different inputs"),
        ([(1, 1)], {}, "pairs of two different inputs"),
        ([(0, 1)], {"samples": 10}, "samples must be at least 100, got 10"),
        ([(0, 1)], {"false_alarm": 0.0}, "false_alarm must be in"),
    ],
)
def test_a_wrong_audit_is_refused(pairs: list[tuple[int, int]], more: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        audit(randomised_response(1.0), pairs, **more)
