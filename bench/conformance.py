"""All cases of the conformance pack and its series, and as many changed in a byte or a value, by all sides.

    python bench/conformance.py [--changed 10000] [--seed TEXT]

The sides are this repository, tests/conformance/rust, the same with places of 32 bits where rustc has such a
target, and client/web in node and in chromium where they are at hand. As many cases of the series are changed
as of the pack, and cases where numbers end are compared, too. Where a value is changed, the message is packed
in its one encoding again, so that rules are met that a changed byte would not get to.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "conformance"))
import edge_cases
import ledger_cases
import rotation_cases
import second_implementation
import web_device
from browser import CHROMEDRIVER, CHROMIUM, running_browser
from case_changes import Case, altered, mutated
from conformance_pack import CASES, DIGEST_FILE, VERSION, case
from form_cases import ALL
from random_channels import Chance
from reference import REFUSED, result

SKIPPED = 77
Side = tuple[str, Callable[[list[str]], list[str]]]


def others(folder: Path) -> list[Side]:
    """Return the other sides that can be had here, by name."""
    found: list[Side] = []
    for bits in (64, 32) if second_implementation.narrow_at_hand() else (64,):
        program = second_implementation.build(folder, fast=True, narrow=bits == 32)
        found.append((f"in Rust, {bits} bits", partial(second_implementation.results, program)))
    return [*found, *([] if web_device.NODE is None else [("in JavaScript", web_device.in_node)])]


def in_chromium(folder: Path, lines: list[str]) -> list[str]:
    """Return the words of the device in a page, a thousand lines at a time."""
    with web_device.served() as address, running_browser(folder) as browser:
        parts = [lines[at : at + 1000] for at in range(0, len(lines), 1000)]
        return [word for part in parts for word in web_device.in_browser(browser, address, part)]


def compared(sides: list[Side], name: str, cases: Sequence[Case]) -> tuple[list[str], bool]:
    """Return the words of the cases here, and whether all others had the same; print a row."""
    began = time.process_time()
    words = [result(*each) for each in cases]
    times = [time.process_time() - began]
    differ = []
    lines = [each.line for each in cases]
    for side, results in sides:
        began = time.perf_counter()
        found = results(lines)
        times.append(time.perf_counter() - began)
        for line, here, there in zip(lines, words, found, strict=True):
            if there not in (here, web_device.SKIPPED):
                differ.append(f"{line}\n  here    {here}\n  {side} {there}")
    if differ:
        print(*differ[:20], sep="\n", file=sys.stderr)
    kinds = Counter(each.kind for each in cases)
    refused = Counter(each.kind for each, word in zip(cases, words, strict=True) if word == REFUSED)
    each_kind = ", ".join(f"{kind} {count:,} ({refused[kind]:,})" for kind, count in sorted(kinds.items()))
    took = " | ".join(f"{each:.0f}" for each in times)
    print(f"| {name} | {len(cases):,} | {refused.total():,} | {len(differ)} | {took} | {each_kind} |")
    return words, not differ


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--changed", type=int, default=CASES, help="cases of each way of changing them")
    parser.add_argument("--seed", default="evidence", help="a text that the changes follow from")
    options = parser.parse_args()
    if second_implementation.RUSTC is None:
        print("rustc is not at hand", file=sys.stderr)
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        sides = others(Path(folder))
        if CHROMIUM and CHROMEDRIVER:
            sides.append(("in chromium", partial(in_chromium, Path(folder))))
        columns = ["cases", "refused", "differing results", "s here", *(f"s {name}" for name, _ in sides)]
        print("| |", " | ".join([*columns, "kinds (refused)"]), "|")
        print("|---" * (len(columns) + 2) + "|")
        cases = [case(number) for number in range(CASES)]
        words, good = compared(sides, "the pack", cases)
        chance = Chance(options.seed)
        listed = [series.case(number) for series in ALL for number in range(series.count)]
        good &= compared(sides, "the series", [*listed, *rotation_cases.cases(), *ledger_cases.cases()])[1]
        good &= compared(sides, "where numbers end", edge_cases.cases())[1]
        for name, base in (("", cases), ("of the series, ", listed)):
            for how, change in (("a byte changed", mutated), ("a value changed", altered)):
                changed = [change(chance, base[i % len(base)]) for i in range(options.changed)]
                good &= compared(sides, f"{name}{how}", changed)[1]
    text = "".join(f"{each.line}\t{found}\n" for each, found in zip(cases, words, strict=True))
    digest = hashlib.sha256(text.encode()).hexdigest()
    same = digest == DIGEST_FILE.read_text(encoding="ascii").split()[-1]
    print(f"\nVersion {VERSION}, SHA-256 {digest[:16]}..., {'as' if same else 'NOT as'} stored.")
    return int(not (good and same))


if __name__ == "__main__":
    raise SystemExit(main())
