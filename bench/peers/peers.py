"""Other libraries for local differential privacy beside this one, in one run.

    make peers                                every section
    make peers ARGS="clients errors"          some: clients, binary, errors, filter, composition
    make peers ARGS=speed                     all of these but errors
    make peers ARGS="--adult FILE errors"     ages from a file of UCI Adult
    make peers ARGS=--audit                   an audit of their mechanisms and of ours
    make evidence NAME=peers                  the same, kept in evidence/

The libraries are in a virtual environment of their own (requirements-peers.lock), so that this file only
starts `measured.py` in there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
ROOMS = ("core", "authoring", "lab", "client", "topic", "collector", "aggregator", "deploy")
FOLDERS = (*ROOMS, "bench", "bench/papers", "bench/peers")
SKIPPED = 77


def run_there(script: str, arguments: list[str]) -> int:
    """Run a script of this folder with the peers' Python; return its status, or 77 where there is none."""
    if not PYTHON.exists():
        print(f"{script} needs {PYTHON.relative_to(ROOT)}, got none: `make peers` makes it", file=sys.stderr)
        return SKIPPED
    path = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    env = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [str(PYTHON), str(Path(__file__).parent / script), *arguments]
    return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(run_there("audited.py", []) if words == ["--audit"] else run_there("measured.py", words))
