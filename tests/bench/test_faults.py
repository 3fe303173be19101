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
        found = faults.outcome(os.path.relpath(tmp_path / f"test_{name}.py", ROOT / "tests"))[0]
        assert found == (name == "held"), name
    assert not faults.outcome("bench/test_faults.py::test_that_there_is_not")[0]


@pytest.mark.integration
def test_a_few_cells_hold() -> None:
    """Seconds of the matrix: one of the agent, the log, the aggregator and the sealer."""
    cells = ["killed/log", "disk_full/log", "clock_behind/agent", "half_cut/sealer", "cut/sealer"]
    words = [sys.executable, str(SCRIPT), "--json", *cells]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["cell"] for row in rows] == cells
    assert {row["result"] for row in rows} == {"held"}, done.stdout
    assert done.returncode == 0
