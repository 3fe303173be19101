"""The series of ledgers beside the pack's cases: surveys that say where a device may keep its account.

    python tests/conformance/ledger_cases.py   write ledgers.tsv

A line is a case of kind `survey`, as in the pack.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgpack

sys.path.insert(0, str(Path(__file__).parent))
from case_changes import Case, pack
from reference import result

LEDGER_FILE = Path(__file__).with_name("ledgers.tsv")
_GOLDEN = Path(__file__).parents[1] / "golden"
_SURVEYS = ("labels", "visits", "rotating", "table", "tree", "score")
BOTH = ["durable", "site-data"]
_NAMED = (
    *(BOTH, ["site-data"], ["durable"], [], BOTH[::-1], ["site-data"] * 2, ["durable"] * 2),
    *([*BOTH, "site-data"], ["cloud"], [*BOTH, "cloud"], ["Site-data"], [b"site-data"], [1], [None]),
    *(None, "site-data", {"site-data": 1}, [BOTH]),
)


def cases() -> list[Case]:
    """Every survey with every list of ledgers, and layouts whose field is missing or one too many."""
    made = []
    for name in _SURVEYS:
        plain = msgpack.unpackb((_GOLDEN / f"survey-{name}.bin").read_bytes())
        layout = plain[1]
        named = [[*plain[:1], layout + 2, *plain[2:], ledgers] for ledgers in _NAMED]
        others = [
            plain,
            [*plain[:1], layout + 2, *plain[2:]],
            [*plain, BOTH],
            *([*plain[:1], other, *plain[2:], BOTH] for other in (0, 5 - layout, 5, 2**32 + layout + 2)),
        ]
        made += [Case("survey", (pack(fields),)) for fields in (*named, *others)]
    return made


def write() -> None:
    """Write the series."""
    lines = [f"{case.line}\t{result(*case)}\n" for case in cases()]
    LEDGER_FILE.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    write()
