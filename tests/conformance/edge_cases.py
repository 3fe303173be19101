"""Cases on both sides of 2^31, 2^32, 2^53 and 2^63, where numbers may end, for every kind of channel.

Orbits are not among them: their totals lie near 2^62 whatever the channel, and the pack has their surveys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgpack
from case_changes import Case, pack

_GOLDEN = Path(__file__).parents[1] / "golden"
TOTALS = (2**32 - 1, 2**32, 2**32 + 1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1)
Channel = dict[str, object]


def cases() -> list[Case]:
    """All of them."""
    return [
        *(case for total in TOTALS for case in _tables(total)),
        *_sets(),
        *_item_sets(),
        *_bundles(),
        *_interactions(),
        *_numbers(),
        *_scores(),
        *_domains(),
    ]


def _survey(channel: Channel, categories: list[int], attribute: list[object] | None = None) -> bytes:
    base = msgpack.unpackb((_GOLDEN / "survey-labels.bin").read_bytes())
    base[5] = attribute or [*base[5][:3], [f"l{i}" for i in range(sum(categories) - 1)]]
    names = [[f"c{i}", size] for i, size in enumerate(categories[:-1])]
    base[6], base[7], base[9] = 40.0, dict(sorted(channel.items())), [*names, ["missing", 1]]
    return pack(base)


def _formed(channel: Channel, attributes: list[object], form: list[object]) -> bytes:
    base = msgpack.unpackb((_GOLDEN / "sets.bin").read_bytes())
    base[5:9] = [attributes, 40.0, dict(sorted(channel.items())), form]
    return pack(base)


def _answer(survey: bytes, values: list[object], stream: bytes, number: int = 0) -> Case:
    return Case("answer", (survey, pack(values), bytes(16), pack(number), stream))


def _words(*words: int, width: int = 4) -> bytes:
    return b"".join(word.to_bytes(width, "little") for word in words)


def _tables(total: int) -> Iterator[Case]:
    """Words at the ends of the range and of every weight; one at the limit, which is dropped, before each."""
    for channel, own in _channels_of(total):
        width = 4 if own <= 2**32 else 8
        limit, tenth = 2 ** (8 * width) // own * own, own // 10
        survey = _survey(channel, [2, 1])
        yield Case("survey", (survey,))
        for place in (0, tenth - 1, tenth, 2 * tenth - 1, 2 * tenth, own // 2, own - tenth, own - 1):
            words = [limit, place] if limit < 2 ** (8 * width) else [place]
            for value in ("l0", "l1", None):
                yield _answer(survey, [value], _words(*words, width=width))
        yield from (Case("weights", (survey, pack(symbol))) for symbol in range(4))
        once = [[0, [[[0], 0]]], [1, 0, 0]]
        for budget in (1000.0, 1000.5, 4096.0, math.nextafter(4096.0, 5000.0)):
            yield Case("filter", (pack(budget), pack([survey]), pack(once)))


def _channels_of(total: int) -> Iterator[tuple[Channel, int]]:
    """A table of every kind over the categories [2, 1], and the sum of its rows: the total or near it."""
    tenth = total // 10
    rows = [[total - 2 * tenth if x == y else tenth for y in range(3)] for x in range(3)]
    weights = b"".join(_words(*row, width=4 if total <= 2**32 else 8) for row in rows)
    dense = {"inputs": 3, "outputs": 3, "total": total, "weights": weights}
    half = total // 2  # level 0 has two groups, level 1 three
    levels = {"inputs": 3, "t": [half - tenth, total - half - 2 * tenth], "u": [tenth, tenth]}
    three = {"sizes": [2, 1], "t": [total - 2 * tenth] * 2, "u": [tenth] * 2, "o": [tenth] * 2}
    found: list[Channel] = [
        {"kind": "grr", "inputs": 3, "t": total - 2 * tenth, "u": tenth},
        {"kind": "pbgrr", **three},
        {"kind": "category_grr", "sizes": [2, 1], "t": total - tenth, "o": tenth},
        {"kind": "dense", **dense},
        {"kind": "curve", **dense},
        {"kind": "weighted", **dense, "common": [1, 1, 2**31 - 1]},
        {"kind": "levels", "sizes": [2, 1], **levels},
        {"kind": "tree_node", "cells": [1, 2], **levels},
    ]
    yield from ((channel, total) for channel in found)
    for near in (total - total % 3, total - total % 3 + 3):  # two buckets: three seeds of t + u
        if near < 2**63:
            two = {"kind": "local_hashing", "inputs": 3, "buckets": 2}
            yield {**two, "t": near // 3 - tenth, "u": tenth}, near


def _sets() -> Iterator[Case]:
    """A share and words around it; words at their limits, which drop an attempt."""
    last = 2**32 - 1
    for held in (2**31 + 2**30, last - 1, last):
        three = {"shares": [held, last + 1 - held], "subset": [1, 2], "held": [held, held]}
        subset = {"kind": "subset", "inputs": 4, "size": 2, "held": held}
        channels: list[Channel] = [
            subset,
            {"kind": "set_levels", "inputs": 4, "sizes": [2, 1, 1], **three},
            {"kind": "tree", "inputs": 4, "cells": [2, 3], **three},
        ]
        surveys = [_survey(subset, [3, 1])]
        surveys += [_survey(channels[1], [2, 1, 1]), _survey(channels[2], [3, 1])]
        levels = {"kind": "nested_levels", "inputs": 5, "sizes": [2, 2, 1], **three}
        labels = ["a", "static", "label", [f"l{i}" for i in range(4)]]
        surveys.append(_formed(levels, [labels], ["tree", None, [[["n", 2], ["m", 2]]]]))
        for survey in surveys:
            yield Case("survey", (survey,))
            for word in (0, held - 1, held, last):
                for drawn in (0, 2**31, last - 1, last, last - last % 3 - 1, last - last % 3):
                    stream = _words(word, *[drawn] * 2, word, *[drawn] * 3, *[1] * 30)
                    yield _answer(survey, ["l1"], stream)
    for other in (1, 2**30, 2**31 - 2):
        unary = _survey({"kind": "unary", "inputs": 3, "held": other + 1, "other": other}, [2, 1])
        yield Case("survey", (unary,))
        for word in (other - 1, other, other + 1, 2**31 - 1, 2**31, 2**31 + other, 2**32 - 1):
            yield _answer(unary, ["l1"], _words(word, word, word))


def _item_sets() -> Iterator[Case]:
    """A coin and the number that picks what a set meets, at their ends; words at their limits; big odds."""
    for inputs, size in ((6, 4), (3, 2)):  # of the second, an end is three quarters exactly
        items = ["a", "static", "set", [f"l{i}" for i in range(inputs - 1)]]
        weights = [math.comb(3, i) * math.comb(inputs, size - i) for i in range(1, min(3, size) + 1)]
        ends = [(sum(weights[:i]) << 64) // sum(weights) for i in range(1, len(weights))]
        missed = math.comb(inputs, size)
        meeting = math.comb(inputs + 3, size) - missed
        least = 2**63 * meeting // (missed + meeting) + 1
        for held in (least - 1, least, 2**63 - 2**53 - 1, 2**63 - 2**53, 2**63 - 2**32, 2**63 - 2**10):
            channel: Channel = {"kind": "set", "inputs": inputs, "most": 3, "size": size, "held": held}
            survey = _formed(channel, [items], ["set", 3])
            yield Case("survey", (survey,))
            yield Case("weights", (survey, pack((2**size - 1).to_bytes((inputs + 10) // 8, "little"))))
            for number in (0, *(end + by for end in ends for by in (-1, 0, 1)), 2**64 - 1):
                for coin in (2 * held - 1, 2 * held, 2**64 - 1):
                    for byte in (b"", b"\x00", b"\xff"):
                        head = _words(number, width=8) + byte + _words(coin, width=8)
                        stream = head + _words(2**32 - 1, 2**32 - 4, 5, 2**32 - 1, 7, 2**32 - 2, *range(20))
                        yield _answer(survey, [["l0", "l1"]], stream)
    # Who has more items than count says so, and no item may have that name.
    for most, labels in ((3, "abcd"), (3, ["a", "b", "c", "more than 3"]), (1, "abcd"), (3, "abc")):
        told: Channel = {"kind": "set", "inputs": 6, "most": most, "size": 2, "held": 2**63 - 2**53}
        items = ["a", "static", "set", list(labels)]
        yield from (
            Case("survey", (_formed(told, [items], ["set", most, word]),)) for word in ("more", "less")
        )
        for value in ([], ["a", "b"], ["d", "a", "c"], None):
            yield _answer(_formed(told, [items], ["set", most, "more"]), [value], bytes(200))
    for inputs, most in ((2**13 - 256, 256), (2**13 - 255, 256)):
        names = ["a", "static", "set", [f"{i}" for i in range(inputs - 1)]]
        large: Channel = {"kind": "set", "inputs": inputs, "most": most, "size": 9, "held": 2**63 - 2**52}
        yield Case("survey", (_formed(large, [names], ["set", most]),))


def _bundles() -> Iterator[Case]:
    """A toss on both sides of a part's share; combinations on both sides of 2^53 and 2^62."""
    seed = bytes(range(32))
    pair = [[f"a{i}", kind, "integer", [0, 1]] for i, kind in enumerate(("static", "evolving"))]
    for number in (0, 1, 2**31 - 1):
        data = b"part" + (number + 1).to_bytes(8, "big")
        toss = int.from_bytes(blake2b(data, key=seed, digest_size=4).digest(), "big")
        for share in (toss, toss + 1):
            parts = {"readings": [3, 3], "orders": [1, 1], "members": [1, 2], "subset": [1, 1]}
            channel = {"kind": "parts", **parts, "shares": [share, 2**32 - share], "held": [2**31] * 2}
            survey = _formed(channel, pair, ["bundle", [[None, None]] * 2, [[0], [1]]])
            yield _answer(survey, [1, 0], seed + _words(2**31, 1, 2**31 - 1, 0), number)
    for many, values in ((26, 3), (27, 3), (31, 3), (32, 3), (2, 2**17 - 1), (2, 2**17)):
        attributes = [[f"a{i}", "static", "integer", [0, values - 1]] for i in range(many)]
        wide = {"orders": [1] * many, "members": list(range(1, many + 1)), "subset": [1] * many}
        shares = [2**32 - many + 1, *[1] * (many - 1)]
        channel = {"kind": "parts", "readings": [values + 1] * many, **wide}
        channel |= {"shares": shares, "held": [2**32 - 2**10] * many}
        asked = ["bundle", [[None, None]] * many, [[i] for i in range(many)]]
        survey = _formed(channel, attributes, asked)
        yield Case("survey", (survey,))
        yield _answer(survey, [values - 1] * many, seed + _words(2**32 - 1, *range(9)))


def _interactions() -> Iterator[Case]:
    """Words on both sides of the limits of 3 and 5 places, and of what is left of a band of 2 in 5."""
    seed, shares = bytes(range(32)), [1, 1, 2**32 - 2]
    for size, classes, band in ((2, 3, 1), (4, 5, 2)):
        r, held = size + 1, 2**32 // classes * band + 2**28
        channel: Channel = {"kind": "parts", "readings": [r, r], "orders": [1, 1, 2], "members": [1, 2, 1, 2]}
        channel |= {"shares": shares, "subset": [1, 1, r * r // classes * band], "held": [2**31, 2**31, held]}
        attributes = [[f"a{i}", "static", "integer", [0, size - 1]] for i in range(2)]
        for own in ([1, 1, classes], [1, 1, classes + 1], [1, 1, 1], [1, 2, classes]):
            form = ["bundle", [[None, None]] * 2, [[0, 1]]]
            survey = _formed(channel | {"classes": own}, attributes, form)
            yield Case("survey", (survey,))
        survey = _formed(channel | {"classes": [1, 1, classes]}, attributes, form)
        bounds = [2**32, *range(r, 1, -1), *range(r, 1, -1), band * (classes - band)]
        limits = [2**32, *(2**32 - 2**32 % bound for bound in bounds[1:])]
        for coin in (0, held - 1, held, 2**32 - 1):
            for at in range(1, len(limits)):
                for by in (-1, 0):
                    words = [coin, *(limit - 1 for limit in limits[1:])]
                    words[at] = min(limits[at] + by, 2**32 - 1)
                    yield _answer(survey, [1, 0], seed + _words(*words, *range(3 * len(words))))


def _numbers() -> Iterator[Case]:
    """Numbers whose place between two points is a fraction of many denominators, drawn at its end."""
    attribute = ["a", "static", "number", [0.0, 1.0]]
    survey = _survey({"kind": "grr", "inputs": 3, "t": 3, "u": 1}, [2, 1], attribute)
    for power in (1, 31, 32, 33, 52, 53, 54, 62, 63, 64, 65, 300):
        for part in (1, 3):
            for drawn in (part - 1, part, 2**power - 1):
                size = max((power + 8) // 8, 8) if power >= 63 else 4 if power <= 32 else 8
                shifted = drawn << (8 * size - power - 1 if power >= 63 else 0)
                stream = (shifted % 2 ** (8 * size)).to_bytes(size, "little") + _words(2, 2, 2)
                yield _answer(survey, [math.ldexp(part, -power)], stream)


def _scores() -> Iterator[Case]:
    """The golden score, at both ends of its numbers, drawn at the ends of its weight."""
    survey = (_GOLDEN / "survey-score.bin").read_bytes()
    fields = msgpack.unpackb(survey)
    low, high = ([attribute[3][end] for attribute in fields[5]] for end in (0, 1))
    u = fields[7]["u"]
    for values in (low, high, [None] * len(low)):
        for word in (0, u - 1, u, u + 1, 2**62 - 1, 2**62, 2**63, 2**64 - 1):
            yield _answer(survey, values, _words(word, word, word, width=8))


def _domains() -> Iterator[Case]:
    """Whole numbers at the ends that a domain may have, as integers and as floats."""
    channel: Channel = {"kind": "grr", "inputs": 4, "t": 3, "u": 1}
    for high in (2**31, 2**32, 2**53 - 1, 2**53):
        survey = _survey(channel, [3, 1], ["a", "static", "integer", [high - 2, high]])
        yield Case("survey", (survey,))
        for value in (high - 3, high - 2, high, high + 1, float(high), float(high + 1), -high, 2**63 + high):
            yield _answer(survey, [value], _words(5))
