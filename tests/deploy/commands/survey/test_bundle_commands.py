"""A bundle's file from the command line: checked, designed, compiled, each in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bundles import bundle_text

from hubbub import Survey
from hubbub_deploy.cli import main

SIZES = {"age": 4, "sex": 2, "job": 3}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bundle.toml"
    path.write_text(bundle_text(SIZES).replace('tables = "pairs"', 'tables = "pairs"\nerror = 0.01'))
    return path


def test_the_design_says_its_distance_from_the_floor_and_the_devices_for_an_error(file: Path, capsys):
    assert main(["survey", "design", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["workload"]["floor"] <= found["workload"]["total"]
    assert found["workload"]["above_floor"] == pytest.approx(
        found["workload"]["total"] / found["workload"]["floor"] - 1.0
    )
    assert [part["attributes"] for part in found["parts"]] == [["age", "sex"], ["age", "job"], ["sex", "job"]]
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1.0)
    cells = 5 * 3 + 5 * 4 + 3 * 4
    assert found["devices_for_error"] == pytest.approx(found["workload"]["total"] / cells / 1e-4, abs=1)
    assert main(["survey", "design", str(file)]) == 0
    assert "each answering one of 3 parts" in capsys.readouterr().out


def test_the_design_names_the_interactions_and_what_they_gain(tmp_path: Path, capsys):
    found = {}
    for parts in ("tables", "interactions"):
        path = tmp_path / f"{parts}.toml"
        path.write_text(bundle_text(dict.fromkeys("abcd", 3), more=f'parts = "{parts}"\n'))
        assert main(["survey", "design", str(path), "--json"]) == 0
        found[parts] = json.loads(capsys.readouterr().out)
    assert {part["tells"] for part in found["tables"]["parts"]} == {"table"}
    assert {part["tells"] for part in found["interactions"]["parts"]} == {"table", "interaction"}
    assert found["interactions"]["workload"]["total"] < 0.95 * found["tables"]["workload"]["total"]
    assert found["interactions"]["workload"]["floor"] == found["tables"]["workload"]["floor"]
    assert main(["survey", "check", str(path)]) == 0


def test_check_and_compile_take_it(file: Path, tmp_path: Path, capsys):
    assert main(["survey", "check", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == 5 * 3 * 4 and found["cells"] == 3 + 47
    assert found["memoised_bits"] <= 8 * found["symbol_bytes"]
    out = tmp_path / "bundle.bin"
    assert main(["survey", "compile", str(file), "--out", str(out)]) == 0
    assert Survey.from_canonical(out.read_bytes()) == Survey.load(file)


def test_new_writes_a_bundle_of_pairs_or_of_each_attribute_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["survey", "new", "--id", "b", "--epsilon", "1", "--kind", "static"]
    words += ["--attribute", "age=18..79", "--category", "age:young=18..39", "--category", "age:old=40..79"]
    words += ["--attribute", "sex=f,m", "--attribute", "car=yes,no"]
    for tables, due in (("pairs", ((0, 1), (0, 2), (1, 2))), ("single", ((0,), (1,), (2,)))):
        path = tmp_path / f"{tables}.toml"
        assert main([*words, "--tables", tables, "--out", str(path)]) == 0
        survey = Survey.load(path)
        assert survey.form.tables == due
        assert survey.form.shape == (3, 3, 3)
        assert max(part.classes for part in survey.channel.parts) == (3 if tables == "pairs" else 1)
