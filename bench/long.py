"""The tests that are too long for every run of the suite, each with a shorter relative that always runs.

    python bench/long.py
    python bench/long.py tests/integration/test_page_devices.py

tests/conftest.py names them; a module that is given runs whole, in its long form. It prints a line per test,
and exits with 1 if one failed or none ran.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(modules: list[str]) -> int:
    """Run them one after the other, print what became of each, and return the exit status."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-rA",
            *(modules or ["-m", "long", "tests"]),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HUBBUB_TEST_LONG": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    lines = done.stdout.splitlines()
    found = [line for line in lines if line.startswith(("PASSED ", "FAILED ", "ERROR "))]
    print("\n".join([*found, *lines[-1:]]))
    return int(done.returncode != 0 or not found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
