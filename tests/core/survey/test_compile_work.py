"""A survey file that would take minutes to compile is refused by a rule, before the work begins."""

from __future__ import annotations

import numpy as np
import pytest
from surveys import DISEASES, LABELS

from hubbub import Survey
from hubbub.errors import SurveyError
from hubbub_authoring.design import comparison


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
