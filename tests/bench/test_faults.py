"""The matrix of faults: complete, every command exists, and a cell that fails is said to have failed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "bench" / "faults.py"
_spec = importlib.util.spec_from_file_location("faults", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
faults = importlib.util.module_from_spec(_spec)
sys.modules["faults"] = faults
_spec.loader.exec_module(faults)


def test_every_fault_of_every_part_is_a_cell() -> None:
    assert set(faults.CELLS) == {f"{fault}/{part}" for fault, part in product(faults.FAULTS, faults.PARTS)}
    for name, cell in faults.CELLS.items():
        assert bool(cell.command) == (cell.kind == "run"), name
        assert cell.says, name


def test_every_command_names_a_test_or_a_script_that_there_is() -> None:
    for cell in faults.CELLS.values():
        if not cell.command:
            continue
        file, *names = cell.command.split()[0].split("::")
        path = ROOT / ("bench" if file.startswith("chaos/") else "tests") / file
        text = path.read_text()
        for name in names:
            bases = f"class {name}" in text or f"def {name}(" in text
            # Tests of a contract stand in the harness.
            assert bases or name in (ROOT / "tests" / "harness" / "store_contract.py").read_text(), name


def test_a_test_that_fails_or_is_skipped_or_is_not_there_does_not_hold(tmp_path: Path) -> None:
    text = "import pytest\n{}\ndef test_it(): assert {}\n"
    skips = '@pytest.mark.skip(reason="no")'
    for name, mark, holds in (("held", "", True), ("failed", "", False), ("skipped", skips, True)):
        (tmp_path / f"test_{name}.py").write_text(text.format(mark, holds))
        found = faults.outcome(os.path.relpath(tmp_path / f"test_{name}.py", ROOT / "tests")).passed
        assert found == (name == "held"), name
    assert not faults.outcome("bench/test_faults.py::test_that_there_is_not").passed


def test_what_was_said_is_taken_from_the_run(tmp_path: Path) -> None:
    text = "import logging\ndef test_it():\n"
    text += "    for i in (1, 22): logging.getLogger('hubbub').warning('%d a|b', i)\n"
    (tmp_path / "test_it.py").write_text(text)
    found = faults.outcome(os.path.relpath(tmp_path / "test_it.py", ROOT / "tests"))
    assert (found.passed, found.said) == (True, ("N a/b",))
    assert faults.said("  said  page: still\nhappened  {}\nelse\n", is_script=True) == (
        "page: still",
        "happened  {}",
    )


def test_an_open_cell_and_a_failed_one_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "cut/log"
    for cell, ends in ((faults._cannot("no"), 0), (faults._open("none yet"), 1)):
        monkeypatch.setitem(faults.CELLS, name, cell)
        assert faults.main([name]) == ends
    assert "| OPEN |" in capsys.readouterr().out
    monkeypatch.setitem(faults.CELLS, name, faults.Cell("it holds", "command"))
    for passed in (True, False):
        # What a file keeps is not run again.
        keep = tmp_path / f"{passed}.jsonl"
        row = {"command": "command", "passed": passed, "seconds": 1.0, "last": "the end", "said": ["a word"]}
        keep.write_text(json.dumps(row) + "\n")
        assert faults.main([name, "--keep", str(keep)]) == (not passed)
        line = capsys.readouterr().out.splitlines()[-1]
        assert ("held" in line, "FAILED" in line, "a word" in line) == (passed, not passed, True)


@pytest.mark.long  # one in CI
@pytest.mark.integration
def test_a_few_cells_hold() -> None:
    """Seconds of the matrix: one of the log; with HUBBUB_TEST_LONG two, and the agent's and the sealer's."""
    cells = ["disk_full/log"]
    if "HUBBUB_TEST_LONG" in os.environ:
        cells += ["killed/log", "clock_behind/agent", "cut/sealer"]
    words = [sys.executable, str(SCRIPT), "--json", *cells]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["cell"] for row in rows] == cells
    assert {row["result"] for row in rows} == {"held"}, done.stdout
    assert done.returncode == 0
