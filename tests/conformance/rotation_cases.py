"""The series of rotations beside the pack's cases: schedules of four elements, and the slots that seeds draw.

    python tests/conformance/rotation_cases.py   write rotation.tsv

A line is that of a case of the pack: of kind `survey`, or of kind `slots`, whose parts are a seed and an
array of rotation, first cycle and how many cycles, and whose words are the slot of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgpack

sys.path.insert(0, str(Path(__file__).parent))
from case_changes import Case, pack
from random_channels import Chance
from reference import result

ROTATION_FILE = Path(__file__).with_name("rotation.tsv")
_GOLDEN = Path(__file__).parents[1] / "golden" / "survey-rotating.bin"
_SLOTS = 60
_STATED = bytes(range(32))
_ROTATIONS = (2, 3, 7, 12, 52, 365, 2**16, 99_999, 100_000)
_REFUSED = ((_STATED, (1, 0, 1)), (_STATED, (100_001, 0, 1)), (_STATED[1:], (12, 0, 1)), (b"", (12, 0, 1)))


def cases() -> list[Case]:
    """Schedules, the two rows of docs/wire-survey.md, what is refused, and random seeds."""
    found = [(_STATED, (12, 0, 10)), (_STATED, (7, 0, 10)), *_REFUSED]
    for number in range(len(found), _SLOTS):
        chance = Chance(f"hubbub slots {number}")
        first = chance.pick([0, 0, chance.below(100), 2**32 - 100])
        found.append((chance.token_bytes(32), (chance.pick(_ROTATIONS), first, chance.between(1, 12))))
    return [*_schedules(), *(Case("slots", (seed, pack(list(drawn)))) for seed, drawn in found)]


def _schedules() -> list[Case]:
    """A survey of an evolving and of a static attribute, with and without a rotation that may be."""
    made = []
    for kind in ("evolving", "static"):
        for rotation in ([], [2], [53], [100_000], [1], [0], [100_001], [2**32 + 2], [None], ["2"], [2, 2]):
            fields = msgpack.unpackb(_GOLDEN.read_bytes())
            fields[5][1], fields[10] = kind, [*fields[10][:3], *rotation]
            made.append(Case("survey", (pack(fields),)))
    return made


def write() -> None:
    """Write the series."""
    lines = [f"{case.line}\t{result(*case)}\n" for case in cases()]
    ROTATION_FILE.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    write()
