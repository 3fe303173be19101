"""Other libraries beside this one: what needs none of them, and the sentence where they are missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np

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
