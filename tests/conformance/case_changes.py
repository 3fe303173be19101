"""A case of the conformance pack, and what is made of one by a small change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgpack
from random_channels import Chance

CAST = 3439
"""A case of the pack with a step of ticket 2^32, which wraps to 0 in a word of 32 bits."""


class Case(NamedTuple):
    kind: str
    parts: tuple[bytes, ...]

    @property
    def line(self) -> str:
        return "\t".join([self.kind, *(part.hex() for part in self.parts)])


def golden_surveys() -> list[Path]:
    """The files of all golden surveys."""
    golden = Path(__file__).parents[1] / "golden"
    named = [path for path in golden.glob("survey-*.bin") if path.name != "survey-list.bin"]
    return sorted([*named, *(golden / f"{name}.bin" for name in ("sets", "bundle", "key-value"))])


def pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def mutated(chance: Chance, base: Case) -> Case:
    """A case with one byte of one part changed."""
    places = [(i, j) for i, part in enumerate(base.parts) for j in range(len(part))]
    i, j = chance.pick(places)
    part = bytearray(base.parts[i])
    part[j] = chance.pick([part[j] ^ 1 << chance.below(8), chance.below(256)])
    return Case(base.kind, (*base.parts[:i], bytes(part), *base.parts[i + 1 :]))


def altered(chance: Chance, base: Case) -> Case:
    """A case with one value of one part exchanged, doubled or dropped, in its one encoding again.

    Now and then nothing but the encoding changes.
    """
    places = [i for i, part in enumerate(base.parts) if _array(part)]
    if not places:
        return base
    i = chance.pick(places)
    value = _array(base.parts[i])
    if chance.one_in(8):
        part = reencoded(chance, value, base.parts[i])
        return Case(base.kind, (*base.parts[:i], part, *base.parts[i + 1 :]))
    if value[0] == "hubbub-survey" and chance.one_in(2):
        value[6] = 40.0  # else altered weights would nearly all be refused for their epsilon
    node = chance.pick([node for node in _nodes(value) if node])
    key = chance.pick(list(node) if isinstance(node, dict) else range(len(node)))
    if isinstance(node, list) and chance.one_in(3):
        node[key : key + 1] = chance.pick([[], [node[key], node[key]], [*reversed(node[key : key + 2])]])
    else:
        node[key] = _other(chance, node[key])
    return Case(base.kind, (*base.parts[:i], pack(value), *base.parts[i + 1 :]))


def reencoded(chance: Chance, value: list[object], part: bytes) -> bytes:
    """The bytes of an array in another encoding: a longer head, or a channel's keys the other way round."""
    if len(value) > 7 and isinstance(value[7], dict) and chance.one_in(2):
        return pack([*value[:7], dict(reversed(value[7].items())), *value[8:]])
    head = 1 if part[0] < 0xA0 else 3 if part[0] == 0xDC else 5
    return b"\xdd" + len(value).to_bytes(4, "big") + part[head:]


def _array(part: bytes) -> list[object]:
    """The array that a part is; an empty one for any other part."""
    try:
        value = msgpack.unpackb(part, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException):
        return []
    return value if isinstance(value, list) else []


def _nodes(value: object) -> Iterator[list[object] | dict[object, object]]:
    """The arrays and maps of a value, itself first; a map, which is a channel, stands for three."""
    if isinstance(value, list | dict):
        yield from [value] * (3 if isinstance(value, dict) else 1)
        for each in value.values() if isinstance(value, dict) else value:
            yield from _nodes(each)


def _other(chance: Chance, value: object) -> object:
    if not chance.one_in(8):
        if type(value) is int:
            power = 1 << chance.pick([5, 7, 8, 15, 16, 17, 18, 20, 31, 32, 40, 53, 62, 63])
            near = [value - 1, value + 1, -value, 2 * value, 0, 1, 2, -1, power - 1, power]
            near += [10**11, 366 * 86_400]
            return chance.pick([each for each in near if -(2**63) <= each < 2**64])
        if isinstance(value, float):
            steps = [math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
            steps += [-value, value * 2, value / 3]
            return chance.pick([*steps, 0.0, -0.0, 1e-6, 40.0, 1e150, math.inf, math.nan, 1e-12, 5e-324])
        if isinstance(value, str):
            long = ["a" * 64, "a" * 65, "\u00e9" * 200, "b" * 201]
            return chance.pick([*long, "", value + " ", value + "\n", "missing", "A", ".", "\u200b"])
        if isinstance(value, bytes):
            same = [bytes(len(value)), b"\xff" * len(value), value[::-1]]
            return chance.pick([*same, value[1:], value + b"\0", b""])
    return chance.pick([None, True, 0, 1, "static", "evolving", 1.0, b"", [], {}, "score", "table", [value]])


def beyond_words() -> list[Case]:
    """Numbers that a word of 32 bits cannot hold, where places and lengths are read."""
    steps = pack([[0, []], [2, 2**32], [1, 2**32, 0], [3, 2**32]])
    account = (pack(1.0), pack([]), steps)
    most, half = b"\xff" * 4, b"\x80\0\0\0"
    heads = [b"\xc6", b"\xc9", b"\xdb", b"\xdd", b"\xdf"]
    cut = [head + length for head in heads for length in (most, half)]
    kinds = ["survey", "upload", "list", "payload", "response", "record"]
    return [
        *(Case(kind, account) for kind in ("filter", "simplified")),
        *(Case("upload", (b"\x92\x01\x91" + each + end,)) for each in cut for end in (b"", b"\0")),
        *(Case(kind, (each,)) for kind in kinds for each in cut),
    ]
