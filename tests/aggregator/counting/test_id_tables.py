"""The choice of an id table on machines without numba, or with one that cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hubbub_aggregator import counting
from hubbub_aggregator.counting.dedup import IdTable
from hubbub_aggregator.counting.id_tables import id_table_of

COMPILED = ("compiled", "compiled.table", "compiled.loops", "compiled.instructions")


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in COMPILED:
        monkeypatch.delattr(counting, name, raising=False)
        monkeypatch.delitem(sys.modules, f"{counting.__name__}.{name}", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)


def test_without_numba_auto_is_numpys_and_the_compiled_one_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # as where it is not installed
    assert id_table_of("auto") is id_table_of("numpy") is IdTable
    with pytest.raises(ImportError) as refused:
        id_table_of("compiled")
    assert refused.value.name == "numba"
    assert not caplog.records


def test_numba_that_cannot_be_imported_is_logged_and_does_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
    monkeypatch.syspath_prepend(tmp_path)
    assert id_table_of("auto") is IdTable
    assert "Numba needs another NumPy" in caplog.text
