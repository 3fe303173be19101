"""Invariants of every world, each found from what was seen outside, the log's bytes and the archive.

None asks the code that counted: ids and symbols are read from the log's records, and counted here.
"""

from __future__ import annotations

import json
from collections import Counter

from node_world import PARTITIONS, NodeWorld, Seen

from hubbub.wire import ReportsRecord, SealRecord, decode_counts, decode_record

SYMBOLS = 4
BEARABLE = {"StoreConflictError"}
"""Errors by which a worker may end and be begun again."""


def violations(world: NodeWorld, seen: Seen) -> list[str]:
    """Return what does not hold, a sentence each; nothing where all is well."""
    found: list[str] = []
    released, counted = world.released(), _counted(world)
    for number in range(1, world.survey.rounds + 1):
        told = {name for name, (index, _) in seen.acknowledged.items() if index == number - 1}
        ids = counted.get(number - 1, {})
        if lost := told - ids.keys():
            found.append(
                f"I1 round {number}: {len(lost)} acknowledged reports are not counted before the seal"
            )
        if number not in released:
            if ids:
                found.append(f"I9 round {number}: {len(ids)} reports were counted, and nothing is released")
            continue
        document, data = json.loads(released[number]), world.counts(number)
        cells = Counter(ids.values())
        if document["devices"] != len(ids):
            found.append(f"I2 round {number}: {document['devices']} devices, the log has {len(ids)}")
        elif data is not None and decode_counts(data).cells.tolist() != [cells[k] for k in range(SYMBOLS)]:
            found.append(f"I2 round {number}: counts of symbols are not those of the log")
        tallies = document["accounting"]
        if tallies["attempts"] != sum(tallies[name] for name in tallies if name != "attempts"):
            found.append(f"I3 round {number}: attempts are not the sum of what became of them")
        if len(seen.versions.get(number, ())) > 1:
            found.append(
                f"I4 round {number}: {len(seen.versions[number])} versions of its release were shown"
            )
    if (again := world.replayed()) != released:
        found.append(
            f"I5 rounds {sorted(again)} of a replay of the log are not the archive's {sorted(released)}"
        )
    least = max(world.survey.minimum_cohort, 1)
    for number, steps in seen.steps.items():
        if any(after - before < least for before, after in zip([0, *steps], steps, strict=False)):
            found.append(f"I6 round {number}: shown at {steps} devices, steps must be {least} apart")
    if other := seen.ended.keys() - BEARABLE:
        found.append(f"I9 processes ended by {sorted(other)}")
    return found


def _counted(world: NodeWorld) -> dict[int, dict[bytes, int]]:
    """Return, by round's index, the first symbol of every id before the seal of its partition."""
    found: dict[int, dict[bytes, int]] = {}
    for partition in range(PARTITIONS):
        sealed: set[int] = set()
        for _, data in world.log.read(partition, 0, 10**6):
            record = decode_record(data)
            if isinstance(record, SealRecord):
                sealed.add(record.round)
            elif isinstance(record, ReportsRecord):
                for segment in record.segments:
                    if segment.round in sealed:
                        continue
                    ids = found.setdefault(segment.round, {})
                    for place, symbol in enumerate(segment.symbols):
                        ids.setdefault(bytes(segment.ids[16 * place : 16 * place + 16]), int(symbol))
    return found
