"""`survey design` and `survey check` of sets: when single items are better, and what a larger set does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from surveys import LABELS

from hubbub import Survey
from hubbub_deploy.cli import main


def written(folder: Path, items: int, most: int, epsilon: float, more: str = "") -> str:
    labels = json.dumps([f"app-{i}" for i in range(items)])
    text = LABELS.replace(
        'type = "label"\nlabels = ["excellent", "good", "fair", "poor"]', f'type = "set"\nlabels = {labels}'
    )
    text = text.replace('name = "grr"', f'name = "set"\nmost = {most}\n{more}')
    file = folder / "sets.toml"
    file.write_text(text.replace("epsilon = 1.0", f"epsilon = {epsilon}"), encoding="utf-8")
    return str(file)


def law(inputs: int, most: int, size: int, a: float) -> tuple[float, float]:
    """Return the chances that a report has a cell the device holds, and another, by counting subsets."""
    cells = inputs + most
    h = 1.0 - math.comb(cells - most, size) / math.comb(cells, size)
    h1 = 1.0 - math.comb(cells - 1 - most, size - 1) / math.comb(cells - 1, size - 1)
    bar = 1.0 + (a - 1.0) * h
    return a * size / (cells * bar), size * (1.0 + (a - 1.0) * h1) / (cells * bar)


@pytest.mark.parametrize("case", [(9, 9, 2.0, True), (37, 20, 4.0, False), (200, 5, 1.0, False)])
def test_single_items_are_advised_where_they_are_better(
    case: tuple[int, int, float, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items, most, epsilon, single = case
    file = written(tmp_path, items, most, epsilon)
    size = Survey.load(file).channel.size
    assert main(["survey", "design", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    a, inputs, devices = math.exp(epsilon), items + 1, found["devices"]
    p, q = law(inputs, most, size, a)

    def of_set(f: float) -> float:
        return (f * p * (1.0 - p) + (1.0 - f) * q * (1.0 - q)) / (p - q) ** 2

    def of_one(f: float) -> float:
        # n/V devices are drawn of n, of which a share f has it; an answer is true by a/(a + 1).
        return inputs * (a / (a - 1.0) ** 2 + f * (1.0 - f)) - f * (1.0 - f)

    assert (of_one(0.0) < of_set(0.0)) == single
    assert ("ask each device about one item instead" in found["sentence"]) == single
    assert found["standard_error"]["value"] ** 2 * devices == pytest.approx(of_set(0.0), rel=1e-6)
    assert found["single_item_error"] ** 2 * devices == pytest.approx(of_one(0.0))
    turn = found["single_item_from"]
    if turn:
        assert of_set(turn - 0.01) < of_one(turn - 0.01) and of_one(turn + 0.01) < of_set(turn + 0.01)
        assert f"less than sets for items that {100 * turn:.0f} % or more have" in found["sentence"]
    assert found["leverage"] == pytest.approx((1.0 - q) / (p - q))
    assert found["leverage_of_all"] == pytest.approx((size - inputs * q) / (p - q))
    for name in ("leverage", "leverage_of_all"):
        assert f"as {found[name]:.3g} " in found["sentence"].replace("counts as", "as")
    assert items != 200 or found["leverage"] == pytest.approx(19.7, abs=0.1)


def test_what_a_larger_set_does_to_shares_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, told = (
        "which `more = true` asks for.",
        'plus the share of "more than 2", which is asked in the same answer.',
    )
    for more, said in (("", plain), ("more = true", told)):
        file = written(tmp_path, 6, 2, 1.0, more)
        for words in (["check", file], ["design", file]):
            assert main(["survey", *words]) == 0
            assert said in capsys.readouterr().out
