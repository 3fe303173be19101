"""A survey file that would take minutes to compile is refused by a rule, before the work begins."""

from __future__ import annotations

import numpy as np
import pytest
from surveys import DISEASES, LABELS

from hubbub import Survey
from hubbub.design import cohort, comparison
from hubbub.errors import SurveyError


def number(mechanism: str) -> str:
    """A survey of a number with another mechanism."""
    return DISEASES[: DISEASES.index("[mechanism]")] + f"[mechanism]\n{mechanism}\n"


def integers(sizes: list[int], mechanism: str) -> str:
    """A survey of integers in categories of these sizes; of no categories, if there is one size."""
    ends = np.cumsum(sizes).tolist()
    text = LABELS.replace('type = "label"', 'type = "integer"').replace('name = "grr"', mechanism)
    attribute = f"low = 1\nhigh = {ends[-1]}"
    lines = [attribute if line.startswith("labels") else line for line in text.splitlines()]
    if len(sizes) > 1:
        for i, (size, end) in enumerate(zip(sizes, ends, strict=True)):
            lines += ["[[category]]", f'name = "c{i}"', f"range = [{end - size + 1}, {end}]"]
    return "\n".join(lines)


REFUSED = {
    "auto over a large grid": (
        number('name = "auto"\npoints = 257\nobjective = "cdf"'),
        "mechanism.points: must be at most 256 for auto, got 257",
    ),
    "auto over very many categories": (
        integers([2] * 1025, 'name = "auto"'),
        "category: must be at most 1024 for auto, got 1025",
    ),
    "auto over categories of very many sizes": (
        integers(list(range(1, 34)), 'name = "auto"'),
        "category: must have at most 32 different sizes for auto, got 33",
    ),
    "a neighbourhood of a large domain": (
        integers([1401], 'name = "neighbourhood"\nboost_epsilon = 0.5\nwindow = 3'),
        "attribute: must have at most 1400 values for neighbourhood, got 1401",
    ),
    "noise on a grid whose weights no survey holds": (
        number('name = "boosted"\npoints = 1000\nregion = "relative"\nshare = 2.0\nhalf_width = 60.0'),
        "inputs times outputs must be at most 4194304, got ",
    ),
    "a published mechanism on such a grid": (
        number('name = "hybrid"\npoints = 1500'),
        "inputs times outputs must be at most 4194304, got 1500 inputs",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_of_minutes_is_refused_before_anything_is_designed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def designed(*_: object, **__: object) -> None:
        pytest.fail("nothing may be designed, compiled or inverted for a file that is refused")

    monkeypatch.setattr(comparison, "compare", designed)
    monkeypatch.setattr(np.linalg, "qr", designed)
    text, rule = REFUSED[case]
    with pytest.raises(SurveyError) as refused:
        Survey.parse(text)
    assert rule in str(refused.value)


def test_the_least_cohort_does_not_multiply_every_two_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unary encoding of 1,024 inputs at epsilon 4 took 34 s: every count of 100,000 by every other."""
    fewer = cohort.missed(60, 0.9, 0.02, 1.0)

    def convolve(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        assert min(one.size, other.size) <= 1
        return one * other

    monkeypatch.setattr(np, "convolve", convolve)
    assert cohort.missed(60, 0.9, 0.02, 1.0) == fewer
    text = number('name = "unary"\npoints = 1023').replace("epsilon = 2.0", "epsilon = 4.0")
    survey = Survey.parse(text.replace("minimum_cohort = 100\n", ""))
    assert survey.minimum_cohort >= cohort.LEAST


@pytest.mark.parametrize(("n", "m", "p", "q"), [(50, 0, 0.3, 0.2), (400, 600, 0.9, 0.001), (1, 7, 0.5, 0.5)])
def test_the_law_of_a_sum_is_that_of_all_pairs_of_counts(n: int, m: int, p: float, q: float) -> None:
    one, other = cohort._binomial(n, p), cohort._binomial(m, q)
    exact = np.zeros(n + m + 1)
    for k, chance in enumerate(one):
        exact[k : k + m + 1] += chance * other
    np.testing.assert_allclose(cohort._sum_of(one, other), exact, atol=1e-14)
