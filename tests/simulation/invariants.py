"""Invariants of every world, each found from what was seen outside, the log's bytes and the archive.

None asks the code that counted: ids and symbols are read from the log's records, and counted here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from independent_bound import ROUNDING, Told, largest_log_ratio
from phones import BUDGET
from world import RoundKey, Seen, World, reports_of

from hubbub.channels import Symbol
from hubbub.errors import WireError
from hubbub.wire import Report, ReportsRecord, SealRecord, decode_counts, decode_record


def violations(world: World, seen: Seen) -> list[str]:
    """Return what does not hold, a sentence each; nothing where all is well."""
    found = [*seen.wrong, *_of_phones(world)]
    released, all_counted = world.released(), counted(world.records())
    for survey in world.surveys:
        for key in ((survey.digest, index) for index in range(survey.rounds)):
            name, ids = world.called(key), all_counted.get(key, {})
            told = {each for each, of in seen.acknowledged.items() if of == key}
            if (lost := told - ids.keys()) and "I1" in world.asked:
                found.append(f"I1 {name}: {len(lost)} acknowledged reports are not counted before the seal")
            if key not in released:
                if seen.versions.get(key):
                    found.append(f"I4 {name}: its release was shown, and is gone")
                elif ids and "I9" in world.asked:
                    found.append(f"I9 {name}: {len(ids)} reports were counted, and nothing is released")
                continue
            document, data = json.loads(released[key]), world.counts(key)
            if lost and "I8" in world.asked and not document["lost"]:
                found.append(f"I8 {name}: {len(lost)} reports went, and its release does not say so")
            if document["devices"] != len(ids):
                found.append(f"I2 {name}: {document['devices']} devices, the log has {len(ids)}")
            elif data is not None and (cells := decode_counts(data).cells.tolist()) != [
                sum(map(partial(_holds, cell), ids.values())) for cell in range(len(cells))
            ]:
                found.append(f"I2 {name}: counts of symbols are not those of the log")
            tallies = document["accounting"]
            if tallies["attempts"] != sum(tallies[name] for name in tallies if name != "attempts"):
                found.append(f"I3 {name}: attempts are not the sum of what became of them")
            if len(versions := seen.versions.get(key, set()) | {released[key]}) > 1:
                found.append(f"I4 {name}: {len(versions)} versions of its release were shown")
            # What was shown before may be shown again, where a store came back older.
            steps = sorted(set(seen.steps.get(key, [])))
            least = max(survey.minimum_cohort, 1)
            if any(after - before < least for before, after in zip([0, *steps], steps, strict=False)):
                found.append(f"I6 {name}: shown at {steps} devices, steps must be {least} apart")
    if "I5" in world.asked:
        again, kept = (
            {key: _facts(data) for key, data in each.items()} for each in (world.replayed(), released)
        )
        if differ := [world.called(key) for key in world.rounds() if again.get(key) != kept.get(key)]:
            found.append(f"I5 a replay of the log makes other releases of {', '.join(differ)}")
    found += world.others(released)
    if missed := world.expected - seen.ended.keys():
        found.append(f"I9 nobody noticed what had to end a process by {sorted(missed)}")
    if other := seen.ended.keys() - world.bearable:
        found.append(f"I9 processes ended by {sorted(other)}")
    return found


def _of_phones(world: World) -> list[str]:
    found = []
    for phone in world.phones:
        said: dict[RoundKey, int] = {}
        for body in phone.told:
            for report in reports_of(body):
                assert isinstance(report, Report)
                slot = report.round if report.digest == world.survey.digest else -1
                if said.setdefault((report.digest, slot), report.symbol) != report.symbol:
                    found.append(f"I7 {phone.name}: round {report.round + 1} was answered with two symbols")
        spent = largest_log_ratio(
            [survey.canonical for survey in world.surveys],
            [Told(digest, max(number, 0), symbol) for (digest, number), symbol in said.items()],
        )
        if spent > BUDGET + ROUNDING:
            found.append(f"I7 {phone.name}: {spent:.3f} was given away, the budget is {BUDGET:g}")
    return list(dict.fromkeys(found))


def _facts(data: bytes) -> object:
    """Return a release without how issuers compare: that depends on what was shown while it was open."""
    document = json.loads(data)
    for line in document.get("issuers", ()):
        for name in ("share", "others_share", "p_value", "output"):
            del line[name]
    return document


def _holds(cell: int, symbol: Symbol) -> bool:
    """Return whether a symbol is that of a cell, or a set that has it."""
    if isinstance(symbol, int):
        return symbol == cell
    return bool(int.from_bytes(symbol, "little") >> cell & 1)


def counted(partitions: Mapping[int, list[tuple[int, bytes]]]) -> dict[RoundKey, dict[bytes, Symbol]]:
    """Return, by round, the first symbol of every id before the seal of its partition."""
    found: dict[RoundKey, dict[bytes, Symbol]] = {}
    for records in partitions.values():
        sealed: set[RoundKey] = set()
        for _, data in records:
            try:
                record = decode_record(data, broken=[])
            except WireError:
                continue
            if isinstance(record, SealRecord):
                sealed.add((record.digest, record.round))
            elif isinstance(record, ReportsRecord):
                for segment in record.segments:
                    key = segment.digest, segment.round
                    if key in sealed:
                        continue
                    ids = found.setdefault(key, {})
                    for place, symbol in enumerate(segment.symbols):
                        said = symbol.tobytes() if segment.symbols.ndim > 1 else int(symbol)
                        ids.setdefault(bytes(segment.ids[16 * place : 16 * place + 16]), said)
    return found
