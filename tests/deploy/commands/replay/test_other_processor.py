"""A replay on a processor that multiplies matrices in another order: the archive holds the same numbers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub_deploy.cli import main
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import LOG_FILE

FORMATS = Path(__file__).parents[3] / "golden" / "formats"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The golden log and archive, as a node's folder."""
    shutil.copy(FORMATS / "log.db", tmp_path / LOG_FILE)
    shutil.copy(FORMATS / "archive.db", tmp_path / ARCHIVE_FILE)
    return tmp_path


@pytest.mark.parametrize("kernel", ["Prescott", "SkylakeX"])
def test_the_arithmetic_of_another_processor_is_no_difference(node: Path, kernel: str) -> None:
    """OpenBLAS has its kernels by name; where NumPy has another library, both are one."""
    done = subprocess.run(
        [sys.executable, "-m", "hubbub_deploy", "replay", str(node)],
        env={**os.environ, "OPENBLAS_CORETYPE": kernel, "COLUMNS": "120"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "differs" not in done.stdout
    assert done.stdout.count("the same") == 12


def test_last_digits_are_no_difference_and_more_is_one(
    node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for moved, verdict, status in ((1e-13, "the same numbers", 0), (1e-10, "differs", 1)):
        with contextlib.closing(sqlite3.connect(node / ARCHIVE_FILE)) as db:
            for digest, number, data in db.execute("SELECT digest, round, document FROM release").fetchall():
                document = json.loads(data)
                for cell in document["values"]:
                    cell["error"] += moved
                edited = json.dumps(
                    document, sort_keys=True, ensure_ascii=False, separators=(",", ":")
                ).encode()
                checksum = hashlib.sha256(digest + number.to_bytes(8, "big") + edited).digest()
                db.execute(
                    "UPDATE release SET document = ?, checksum = ? WHERE digest = ? AND round = ?",
                    (edited, checksum, digest, number),
                )
            db.commit()
        assert main(["replay", str(node)]) == status
        assert capsys.readouterr().out.count(verdict) >= 11
