"""The integration tests again and again beside busy processes: a race that load uncovers shows here.

    python bench/busy.py                                     five times, beside eight busy processes
    python bench/busy.py --times 1 --busy 2 tests/integration/test_gateway.py
    HUBBUB_TEST_LONG=1 python bench/busy.py                  with the long forms of tests

It goes on after failures: each run is a line with what passed and failed and how long it took; what failed
follows, with the file that holds all that the run said. It exits with 1 if a run was not green, or empty.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes busy; each ends with this one, whatever becomes of it."""
    # One that loses its parent is given to another, and ends.
    words = [sys.executable, "-c", f"import os\nwhile os.getppid() == {os.getpid()}: pass"]
    processes = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
        if lost := [process.pid for process in processes if process.poll() is not None]:
            raise RuntimeError(f"busy processes must run to the end, {len(lost)} of {count} did not")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(words: list[str]) -> tuple[bool, dict[str, int], list[str], float]:
    """Run the tests once; return whether they were green, counts, lines of what failed, and the seconds."""
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    began = time.monotonic()
    done = subprocess.run(
        line,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "300"},
    )
    lines = done.stdout.splitlines()
    found = {what.rstrip("s"): int(count) for count, what in _COUNT.findall("".join(lines[-1:]))}
    bad = [one for one in lines if one.startswith(("FAILED ", "ERROR "))]
    if bad:
        with tempfile.NamedTemporaryFile("w", prefix="busy-", suffix=".txt", delete=False) as file:
            file.write(done.stdout)
        bad.append(f"all that it said: {file.name}")
    return done.returncode == 0 and found.get("passed", 0) > 0, found, bad, time.monotonic() - began


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", default=["tests/integration"], help="default: %(default)s")
    parser.add_argument("--times", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--busy", type=int, default=8, help="processes (default: %(default)s)")
    options = parser.parse_args(words)
    greens = 0
    with busy(options.busy):
        for number in range(1, options.times + 1):
            green, found, bad, seconds = run(options.tests)
            greens += green
            counts = ", ".join(f"{count} {what}" for what, count in found.items())
            load = os.getloadavg()[0]
            print(f"run {number}: {counts or 'nothing ran'} in {seconds:.0f} s, load {load:.1f}", flush=True)
            for one in bad:
                print(f"  {one}", flush=True)
    print(f"green {greens} of {options.times} times beside {options.busy} busy processes")
    return int(greens < options.times)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
