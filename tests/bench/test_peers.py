"""Other libraries beside this one: what needs none of them, and the sentence where they are missing."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "bench" / "peers"


def loaded(name: str):
    spec = importlib.util.spec_from_file_location(f"peers_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_without_the_peers_the_run_says_how_to_get_them(monkeypatch, tmp_path, capsys) -> None:
    peers = loaded("peers")
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    monkeypatch.setattr(peers, "PYTHON", tmp_path / "nowhere" / "python")
    assert peers.run_there("measured.py", []) == 77
    assert "`make peers` makes it" in capsys.readouterr().err


def test_populations_are_the_same_in_every_run_and_need_no_file(tmp_path) -> None:
    module = loaded("populations")
    made = [module.populations(None) for _ in range(2)]
    for one, again in zip(*made, strict=True):
        assert np.array_equal(one.values, again.values)
        assert one.values.min() >= 0
        assert one.values.max() < one.k == len(one.category_of)
    file = tmp_path / "people.csv"
    file.write_text("age,sex\n17,f\n 90,m\n5,f\n")
    assert module.populations(file)[0].values.tolist() == [7, 80, 0]
    assert module.has_ages(file)
    file.write_text("sex\nf\n")
    (tmp_path / "binary").write_bytes(bytes(range(128, 256)))
    assert not any(map(module.has_ages, (file, tmp_path, tmp_path / "none", tmp_path / "binary")))


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_formula_of_projective_geometry_is_that_of_the_plane_of_seven_points(epsilon: float) -> None:
    """Build the plane of two elements point by point and read p, r and the error off its rows."""
    research = loaded("research")
    points = [np.array(v) for v in itertools.product((0, 1), repeat=3) if any(v)]
    member = np.array([[int(a @ b % 2 == 0) for b in points] for a in points])
    weights = np.where(member, math.exp(epsilon), 1.0)
    rows = weights / weights.sum(axis=1, keepdims=True)
    p, r = float(rows[0] @ member[0]), float(rows[0] @ member[1])
    shares = np.full(7, 1 / 7)
    mean = shares @ rows @ member.T  # the chance that a report supports a value
    by_hand = float(np.mean(mean * (1 - mean) - shares * (p - r) ** 2 * (1 - shares)) / (p - r) ** 2)
    found, q, bits = research.projective(7, epsilon)
    assert (q, bits) == (2, 3)
    assert found == pytest.approx(by_hand, rel=1e-12)
