"""The browser's core: its size, and how long a survey, a report and a step of the filter take in node.

    python bench/web_core.py

Surveys are the golden ones. A report is a draw of the missing input with the report's bytes; a step of the
filter is a new filter that reserves one query and records its answer.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "harness"))
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
from web_device import FOLDER, NODE  # noqa: E402

SKIPPED = 77


def main() -> int:
    """Print the tables; 77 where node is not at hand."""
    if NODE is None:
        print("node 20 or newer is not at hand", file=sys.stderr)
        return SKIPPED
    sources = sorted((FOLDER / "src").rglob("*.js"))
    text = b"".join(path.read_bytes() for path in sources)
    zipped = len(gzip.compress(text, 9))
    print(f"{len(sources)} modules, {len(text):,} bytes as they are written, {zipped:,} by gzip\n")
    surveys = sorted((ROOT / "tests" / "golden").glob("survey-*.bin"))
    surveys = [path for path in surveys if path.name != "survey-list.bin"]
    command = [NODE, str(FOLDER / "test" / "speed.js"), *map(str, surveys)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    print("| survey | read and certified, us | a report, us | a step of the filter, us |\n|---|---|---|---|")
    for path, line in zip(surveys, lines, strict=True):
        row = json.loads(line)
        cells = [f"{row[name]:,.0f}" if name in row else "-" for name in ("read", "report", "filter")]
        print(f"| {path.stem.removeprefix('survey-')} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
