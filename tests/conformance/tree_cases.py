"""The series of trees: trees of labels and heat maps, their answers and accounts."""

from __future__ import annotations

import msgpack
from case_changes import Case, pack
from random_channels import WORD, Chance, Spec
from series import Series

from hubbub.mechanisms import channel_from_spec


def survey(chance: Chance) -> bytes:
    """A tree of labels of two to five levels, or a heat map; now and then one that breaks a rule."""
    if chance.one_in(4):
        side = chance.pick([4, 8, 8, 8, 4, 8, 8, 6, 2])
        attributes = [[f"a{i}", "static", "integer", [7 * i, 7 * i + side - 1]] for i in range(2)]
        inputs, form = side * side + 1, ["tree", "quadtree"]
        levels, many = [], 4
        while many < side * side:
            levels.append([side * side // many] * many)
            many *= 4
        if side * side != many:  # no map: any levels that a channel may have
            levels = [[side, side * side - side]]
        sizes = [size for level in levels or [[side * side]] for size in (*level, 1)]
    else:
        size = chance.between(4, 20)
        levels = _levels(chance, size)
        attributes = [["a", "static", "label", [f"l{i}" for i in range(size)]]]
        named, above = [], {}
        for number, level in enumerate(levels):
            end, found, spans = 0, [], {}
            for place, each in enumerate(level):
                own = (
                    chance.pick(["n", "missing", f"n{place}"]) if chance.one_in(20) else f"n{number}-{place}"
                )
                name = above.get((end, end + each), own)
                spans[end, end + each] = name
                found.append([name, each])
                end += each
            named.append(found)
            above = spans
        order = list(range(size))
        for i in range(size - 1, 0, -1):
            j = chance.below(i + 1)
            order[i], order[j] = order[j], order[i]
        mapping = None if chance.one_in(2) else [*order, size]
        inputs, form = size + 1, ["tree", mapping, named]
        sizes = [each for level in levels for each in (*level, 1)]
    spec = _channel(chance, inputs, sizes)
    head = ["hubbub-survey", 2, f"s-{chance.below(10**6)}", 1, "Where?", attributes, 40.0]
    terms = [[chance.below(2**32), 86_400, 3], 3_600, 300, 100, 10**6, None]
    return pack([*head, dict(sorted(spec.items())), form, *terms])


def _levels(chance: Chance, size: int) -> list[list[int]]:
    """Sizes of categories that split level by level; each of several values is split or not by chance."""
    levels = [chance.cut(size, chance.between(2, 3))]
    while len(levels) < chance.between(1, 4):
        below: list[int] = []
        for many in levels[-1]:
            below += chance.cut(many, 2) if many > 2 and not chance.one_in(3) else [many]
        if below == levels[-1]:
            break
        levels.append(below)
    return levels


def _channel(chance: Chance, inputs: int, sizes: list[int]) -> Spec:
    counts, held = [0], 0
    for size in sizes:
        counts[-1] += 1
        held += size
        if held == inputs:
            counts, held = [*counts, 0], 0
    counts[-1] = inputs
    if chance.one_in(4):
        u = [chance.between(1, 2**20) for _ in counts]
        t = [each + chance.between(1, 2**22) for each in u]
        return {"kind": "levels", "inputs": inputs, "sizes": sizes, "t": t, "u": u}
    subset = [chance.between(1, max(1, cells // 2)) for cells in counts]
    least = [WORD * d // cells + 1 for d, cells in zip(subset, counts, strict=True)]
    return {
        "kind": chance.pick(["nested_levels"] * 12 + ["set_levels"]),
        "inputs": inputs,
        "sizes": sizes,
        "shares": chance.cut(WORD, len(counts)),
        "subset": subset,
        "held": [low + (WORD - low) * chance.between(1, 8) // 10 for low in least],
    }


def _value(chance: Chance, attribute: list[object]) -> object:
    kind, domain = attribute[2:]
    assert isinstance(domain, list)
    if chance.one_in(6):
        return chance.pick([None, True, "l99", 1.5, 2**63, []])
    return chance.pick(domain) if kind == "label" else chance.between(domain[0] - 1, domain[1] + 1)


def _values(chance: Chance, fields: list[list[list[object]]]) -> list[object]:
    return [_value(chance, attribute) for attribute in fields[5]]


def _symbol(chance: Chance, canonical: bytes) -> int | bytes:
    channel = channel_from_spec(msgpack.unpackb(canonical)[7])
    symbol: int | bytes = channel.perturb(chance.below(channel.inputs), source=chance)
    return symbol


def _life(chance: Chance, canonical: bytes) -> Case:
    keys = list(range(len(msgpack.unpackb(canonical)[5])))
    symbol = _symbol(chance, canonical)
    steps = [[0, [[keys, 0]]], [1, 0, symbol], [0, [[keys, 0]]], [2, 1], [3, 0]]
    return Case("filter", (pack(chance.pick([1.0, 40.0])), pack([canonical]), pack(steps)))


TREES = Series("trees", survey, _values, _symbol, _life)
