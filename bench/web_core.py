"""The browser's device: its size, its speed in node, and how long an answer takes to be on disk in chromium.

    python bench/web_core.py [--answers 400]

A size is of the modules that a page loads for one survey, joined and zipped: without comments and indents,
and as they are written; no name is shortened. Surveys of the second table are the golden ones. A report is
a draw of the missing input with the report's bytes; a step of the filter is a new filter that reserves one
query and records its answer. In chromium an answer is compared with strict transactions of the same page,
in turns: one that writes nothing, and one that writes a number.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import quantiles

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("harness", "conformance")]
import page_devices  # noqa: E402
from browser import CHROMEDRIVER, CHROMIUM, running_browser  # noqa: E402
from surveys import LABELS, START_S  # noqa: E402
from web_device import FOLDER, NODE  # noqa: E402

from hubbub import Survey  # noqa: E402

SKIPPED = 77
IMPORT = re.compile(r"^import \{[^}]*\} from '([^']+)';", re.MULTILINE)
LOADED = {
    "no survey yet": (),
    "one attribute, randomised response": ("forms/single.js", "channels/tables.js"),
    "one attribute, subsets": ("forms/single.js", "channels/sets.js"),
    "one attribute, local hashing": ("forms/single.js", "channels/hashing.js"),
    "a text of a dictionary": ("forms/single.js", "channels/hashing.js", "agent/dictionary.js"),
    "one attribute, orbits": ("forms/single.js", "channels/orbits.js"),
    "a table": ("forms/table.js", "channels/tables.js"),
    "a tree": ("forms/tree.js", "channels/sets.js"),
    "sets of items": ("forms/set.js",),
    "a score": ("forms/score.js",),
    "the first, its titles beyond ASCII": ("forms/single.js", "channels/tables.js", "printable.js"),
    "the first, rotating": ("forms/single.js", "channels/tables.js", "rotation.js"),
}


def modules(*paths: Path) -> dict[Path, str]:
    """Return the texts of modules with all that they import."""
    found: dict[Path, str] = {}
    waiting = [*paths]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_text(encoding="utf-8")
            waiting += [(path.parent / other).resolve() for other in IMPORT.findall(found[path])]
    return found


def bare(text: str) -> str:
    """Return a module's text without comments, indents and empty lines."""
    text = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"(^|\s)// .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^\s+", "", text, flags=re.MULTILINE)


def sizes() -> None:
    print("| a page with an agent that answers | modules | bytes zipped | as written |\n|---|---|---|---|")
    for name, more in LOADED.items():
        texts = modules(*(FOLDER / "src" / each for each in ("agent/agent.js", *more))).values()
        short, whole = (len(gzip.compress("".join(each).encode(), 9)) for each in (map(bare, texts), texts))
        print(f"| {name} | {len(texts)} | {short:,} | {whole:,} |")


def speeds() -> None:
    surveys = sorted((ROOT / "tests" / "golden").glob("survey-*.bin"))
    surveys = [path for path in surveys if path.name != "survey-list.bin"]
    command = [str(NODE), str(FOLDER / "test" / "speed.js"), *map(str, surveys)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    print("\n| survey | read and certified, us | a report, us | a step of the filter, us |")
    print("|---|---|---|---|")
    for path, line in zip(surveys, lines, strict=True):
        row = json.loads(line)
        cells = [f"{row[name]:,.0f}" if name in row else "-" for name in ("read", "report", "filter")]
        print(f"| {path.stem.removeprefix('survey-')} | {' | '.join(cells)} |")


def transactions(answers: int) -> None:
    text = LABELS
    terms = {
        "version = 1": 'version = 1\nledgers = ["durable", "site-data"]',
        "rounds = 3": f"rounds = {answers}",
        "epsilon = 1.0": "epsilon = 0.01",
    }
    for old, new in terms.items():
        text = text.replace(old, new)
    given = {"start": START_S, "repetitions": answers, "budget": 0.01 * answers + 1}
    script = "import('/test/transactions.js').then(({compared}) => compared(arguments[0])).then(arguments[1])"
    with (
        page_devices.site([Survey.parse(text)]) as site,
        tempfile.TemporaryDirectory() as folder,
        running_browser(Path(folder)) as browser,
    ):
        browser.set_script_timeout(600)
        browser.get(site.url)
        found = browser.execute_async_script(script, given)
    print("\n| in chromium | p5, ms | p50, ms | p95, ms | p50 of an answer over it |\n|---|---|---|---|---|")
    cuts = {name: quantiles(took, n=20) for name, took in found.items()}
    for name, cut in cuts.items():
        print(f"| {name} | {cut[0]:.2f} | {cut[9]:.2f} | {cut[18]:.2f} | {cuts['answer'][9] / cut[9]:.2f} |")


def main() -> int:
    """Print the tables; 77 where node or chromium is not at hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--answers", type=int, default=400, help="answers in chromium")
    options = parser.parse_args()
    if NODE is None or not (CHROMIUM and CHROMEDRIVER):
        print("node 20 or newer, or chromium, is not at hand", file=sys.stderr)
        return SKIPPED
    sizes()
    speeds()
    transactions(options.answers)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
