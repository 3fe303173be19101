"""The cost of importing the agent on a device, beside that of an older commit, above its dependencies' own.

    python bench/device_import.py              beside the commit before the rooms
    python bench/device_import.py --than HEAD~50 --runs 31

Both trees are taken out of git, compiled once, and imported in turn by new processes that have loaded the
dependencies already; "with urllib3" counts urllib3 where the import loads it. Figures are medians: core
modules, processor time, resident memory. Without the older commit in the history it ends with 77, skipped.
"""

from __future__ import annotations

import argparse
import compileall
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
BEFORE_ROOMS = "57e82f84d3"
"""The last commit whose modules stood in no rooms."""
FOLDERS = ("core", "client", "topic", "collector", "aggregator", "deploy", "results", "authoring", "lab")
CODE = """
import sys, time
sys.path[:0] = {paths!r}
import cryptography.hazmat.primitives.asymmetric.ed25519, msgpack, numpy, sqlite3{more}
def memory():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
before, start = memory(), time.process_time()
from hubbub_client import Agent
took, grown = time.process_time() - start, memory() - before
print(sum(name.split(".")[0] == "hubbub" for name in sys.modules), took, grown / 1024)
"""


def tree(commit: str, folder: Path) -> list[str]:
    """Return the source roots of a commit, taken out of git into a folder and compiled."""
    command = ["git", "archive", commit, "--", *folders(commit)]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    compileall.compile_dir(folder, quiet=2)
    return [str(folder / each) for each in FOLDERS if (folder / each).exists()]


def folders(commit: str) -> list[str]:
    """Return the source roots that a commit has."""
    command = ["git", "ls-tree", "--name-only", commit]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [each for each in FOLDERS if each in names]


def cost(paths: list[str], more: str) -> list[float]:
    """Return core modules, processor seconds and MiB of one import in a new process."""
    command = [sys.executable, "-c", CODE.format(paths=paths, more=more)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main() -> int:
    """Print a row for each tree and way of counting, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--than", default=BEFORE_ROOMS, help="the older commit")
    parser.add_argument("--runs", type=int, default=21)
    options = parser.parse_args()
    known = ["git", "cat-file", "-e", f"{options.than}^{{commit}}"]
    if subprocess.run(known, cwd=ROOT, capture_output=True, check=False).returncode:
        print(f"the history must have {options.than}", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as place:
        trees = {
            name: tree(commit, Path(place, name))
            for name, commit in (("before", options.than), ("now", "HEAD"))
        }
        print("| | core modules | processor time | memory |\n|---|---|---|---|")
        for said, more in (("dependencies loaded", ", urllib3"), ("with urllib3", "")):
            runs = [{name: cost(paths, more) for name, paths in trees.items()} for _ in range(options.runs)]
            found = {
                name: [median(column) for column in zip(*(run[name] for run in runs), strict=True)]
                for name in trees
            }
            for name, (modules, seconds, memory) in found.items():
                print(f"| {name}, {said} | {modules:.0f} | {1e3 * seconds:.0f} ms | {memory:.1f} MiB |")
            ratios = [now / before for before, now in zip(found["before"], found["now"], strict=True)]
            print(f"| now over before, {said} | {ratios[0]:.2f} | {ratios[1]:.2f} | {ratios[2]:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
