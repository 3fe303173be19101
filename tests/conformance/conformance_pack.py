"""The cases of the conformance pack: each follows from the pack's version and its number alone.

    python tests/conformance/conformance_pack.py            write the sample and the digest of the whole pack
    python tests/conformance/conformance_pack.py --all FILE write all cases, a line each

A line is the kind, the parts in hexadecimal, and the words of the result, with tabs between.
"""

from __future__ import annotations

import hashlib
import math
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgpack
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

sys.path.insert(0, str(Path(__file__).parent))
from case_changes import Case, altered, mutated, pack
from random_channels import FOR_TABLES, KINDS, Chance, Spec
from reference import result

from hubbub import wire
from hubbub.errors import HubbubError
from hubbub.filter import Box, Regression
from hubbub.mechanisms import channel_from_spec
from hubbub.survey import score_channel, signed_list

VERSION = 2
CASES = 10_000
SAMPLE = 300
SAMPLE_FILE = Path(__file__).with_name("sample.tsv")
DIGEST_FILE = Path(__file__).with_name("digest.txt")


def case(number: int) -> Case:
    """The case of a number."""
    chance = Chance(f"hubbub conformance {VERSION} {number}")
    turn = number % len(_TURNS)
    return _TURNS[turn](chance, number // len(_TURNS))


def lines(numbers: Iterable[int]) -> Iterator[str]:
    for number in numbers:
        found = case(number)
        yield f"{found.line}\t{result(found.kind, found.parts)}"


def read_cases(path: Path) -> list[tuple[Case, str]]:
    """The cases of a file of lines, with their words."""
    rows = [line.split("\t") for line in path.read_text(encoding="ascii").splitlines()]
    return [(Case(kind, tuple(map(bytes.fromhex, parts))), words) for kind, *parts, words in rows]


# Surveys.


def _epsilon(chance: Chance, certified: float) -> float:
    """The certified epsilon or a little more; now and then the float below it, which must be refused."""
    above = [certified, certified, math.nextafter(certified, math.inf), certified + 0.25, 8.0]
    return math.nextafter(certified, 0.0) if chance.one_in(12) else chance.pick(above)


def _survey(chance: Chance, attributes: object, epsilon: float, channel: Spec, asked: list[object]) -> bytes:
    schedule = [chance.below(2**32), chance.between(1, 10**6), chance.between(1, 400)]
    terms = [schedule, chance.below(10**6), chance.below(86_401), 1 + chance.below(10**6), 10**6]
    title = chance.pick(["Visits", "Wohnort", "Âge", "体温", "How do you feel? \N{SLIGHTLY SMILING FACE}"])
    head = ["hubbub-survey", 3 - len(asked), f"s-{chance.below(10**6)}", 1 + chance.below(99), title]
    quota = chance.pick([None, 10**9])
    spec = dict(sorted(channel.items()))
    return pack([*head, attributes, float(epsilon), spec, *asked, *terms, quota])


def _certified(spec: Spec) -> float | None:
    try:
        return float(channel_from_spec(spec).epsilon)
    except HubbubError:
        return None


def _inputs(spec: Spec) -> int:
    return channel_from_spec(spec).inputs


def _domain(chance: Chance, size: int, name: str = "a") -> list[object]:
    kind = chance.pick(["static", "evolving"])
    if chance.one_in(2):
        low = chance.pick([0, -3, 18, 10**15])
        return [name, kind, "integer", [low, low + size - 1]]
    return [name, kind, "label", [f"l{i}" for i in range(size)]]


def _categories(chance: Chance, spec: Spec, inputs: int) -> list[list[object]]:
    kind = spec["kind"]
    if kind in ("tree", "tree_node"):
        sizes = [inputs - 1, 1]
    elif kind in ("pbgrr", "category_grr"):
        sizes = [*spec["sizes"]]  # type: ignore[misc]  # a list
    elif kind in ("orbits", "short_orbits"):
        sizes = [*spec["sizes"], 1]  # type: ignore[misc]  # a list
    elif kind in ("levels", "set_levels") or chance.one_in(2):
        sizes = [1] * inputs
    else:
        sizes = [*chance.cut(inputs - 1, chance.between(1, inputs - 1)), 1]
    return [["missing" if i == len(sizes) - 1 else f"c{i}", size] for i, size in enumerate(sizes)]


def _map(chance: Chance, categories: list[list[object]], inputs: int) -> tuple[list[int] | None, int]:
    """A map of the values to inputs, nil where it is plain, and how many values there are."""
    if chance.one_in(2):
        return None, inputs - 1
    order = list(range(inputs - 1))
    for i in range(len(order) - 1, 0, -1):
        j = chance.below(i + 1)
        order[i], order[j] = order[j], order[i]
    first = 0
    for _, size in categories[:-1]:
        if size == 1 and chance.one_in(3):
            order.append(first)
        first += int(size)  # type: ignore[call-overload]  # an integer
    found = [*order, inputs - 1]
    return (None if found == list(range(len(found))) else found), len(order)


def single(chance: Chance, kind: str, inputs: int | None = None, values: int | None = None) -> bytes:
    """A survey of one attribute; of `values` values, each an input, where that is given."""
    while True:
        spec = KINDS[kind](chance, inputs or chance.between(3, 12))
        if (certified := _certified(spec)) is not None:
            break
    count = _inputs(spec)
    categories = _categories(chance, spec, count)
    epsilon = certified + 0.5 if values else _epsilon(chance, certified)
    if not values and kind != "category_grr" and chance.one_in(4):
        low, high = chance.pick([(0.0, 1.0), (-2.5, 7.75), (0.1, 1e9), (-1e-300, 1e300)])
        attribute = ["a", "static", "number", [low, high]]
        return _survey(chance, attribute, epsilon, spec, [None, categories])
    mapping, size = (None, count - 1) if values else _map(chance, categories, count)
    return _survey(chance, _domain(chance, size), epsilon, spec, [mapping, categories])


def table(chance: Chance, sizes: list[int] | None = None) -> bytes:
    """A survey of two or three attributes; of these sizes where they are given."""
    plain, sizes = sizes is not None, sizes or [chance.between(2, 4) for _ in range(chance.between(2, 3))]
    attributes = [_domain(chance, size, f"a{i}") for i, size in enumerate(sizes)]
    inputs, readings = 1, []
    for size in sizes:
        if plain or chance.one_in(2):
            readings.append([None, None])
            inputs *= size + 1
            continue
        many = chance.between(2, size)
        mapping = [*range(many), *(chance.below(many) for _ in range(size - many)), many]
        own = [f"r{i}" for i in range(many)]
        readings.append([None if mapping == list(range(len(mapping))) else mapping, own])
        inputs *= many + 1
    while True:
        spec = KINDS[chance.pick(FOR_TABLES)](chance, inputs)
        if (certified := _certified(spec)) is not None:
            break
    epsilon = certified + 0.5 if plain else _epsilon(chance, certified)
    return _survey(chance, attributes, epsilon, spec, [["table", readings]])


def score(chance: Chance) -> bytes:
    """A survey of a score."""
    count, kind = chance.between(1, 3), chance.pick(["linear", "truncated", "logistic"])
    attributes, pairs, box = [], [], []
    for i in range(count):
        low = float(chance.pick([0, -2, 5]))
        ends = [low, low + chance.between(1, 9)]
        whole = chance.one_in(2)
        attributes.append(
            [f"a{i}", "static", *(["integer", [*map(int, ends)]] if whole else ["number", ends])]
        )
        pairs.append([chance.pick([0.5, -1.0, 0.1, 3.0]), ends[chance.below(2)]])
        box.append(ends)
    intercept = chance.pick([0.0, -0.3, 2.0])
    low = intercept + math.fsum(min(a * x for x in ends) for (a, _), ends in zip(pairs, box, strict=True))
    high = intercept + math.fsum(max(a * x for x in ends) for (a, _), ends in zip(pairs, box, strict=True))
    reach = {"linear": (low, high + chance.pick([0.0, 0.5])), "truncated": (low / 2 - 1, high / 2 + 1)}
    output = reach.get(kind, (0.0, 1.0))
    epsilon = chance.pick([0.1, 0.5, 1.0, 3.5])
    numbers = Box(tuple(each[0] for each in box), tuple(each[1] for each in box))
    asked = Regression(kind, numbers, tuple(a for a, _ in pairs), intercept, epsilon, *output)  # type: ignore[arg-type]  # one of three words
    spec = score_channel(asked).to_spec()
    form = ["score", kind, pairs, intercept, [*output]]
    return _survey(chance, attributes, epsilon, dict(spec), [form])


def _any(chance: Chance, turn: int, without: str = "") -> bytes:
    kinds = [each for each in (*KINDS, "table", "score") if each != without]
    kind = kinds[turn % len(kinds)]
    return table(chance) if kind == "table" else score(chance) if kind == "score" else single(chance, kind)


# Cases.


def _value(chance: Chance, attribute: list[object]) -> object:
    domain = attribute[3]
    assert isinstance(domain, list)
    if chance.one_in(6):
        return chance.pick([None, True, "l99", "", b"l0", -1.5, math.inf, [], 2**63, float(2**60), {"a": 1}])
    if attribute[2] == "label":
        return chance.pick(domain)
    if attribute[2] == "integer":
        value = chance.between(domain[0] - 1, domain[1] + 1)
        return float(value) if chance.one_in(4) else value
    share = struct.unpack(">Q", chance.token_bytes(8))[0] / 2**64
    return chance.pick([domain[0], domain[1], domain[0] + (domain[1] - domain[0]) * share, share, 1])


def _answer(chance: Chance, turn: int) -> Case:
    # An orbit's draw is of the device's own making: no stream of bytes has one right symbol.
    canonical = _any(chance, turn, without="orbits")
    fields = msgpack.unpackb(canonical)
    listed = [fields[5]] if fields[1] == 1 else fields[5]
    values = pack([_value(chance, attribute) for attribute in listed])
    random = chance.token_bytes(chance.pick([32, 400, 400]))
    if chance.one_in(8):
        random = b"\xff" * 8 + random
    return Case("answer", (canonical, values, chance.token_bytes(16), pack(chance.below(200)), random))


def _certify(chance: Chance, turn: int) -> Case:
    return Case("survey", (_any(chance, turn),))


def _drawn(chance: Chance, canonical: bytes) -> int | bytes | None:
    """A symbol of a survey's channel."""
    channel = channel_from_spec(msgpack.unpackb(canonical)[7])
    return channel.perturb(chance.below(channel.inputs), source=chance)


def _weigh(chance: Chance, turn: int) -> Case:
    canonical = _any(chance, turn)
    return Case("weights", (canonical, pack(_drawn(chance, canonical))))


def _life(chance: Chance, turn: int) -> Case:
    """Some surveys of shared coordinates, and what is asked, answered, cancelled and closed."""
    kinds = [*KINDS]
    size = chance.between(3, 6)
    surveys = [single(chance, kinds[turn % len(kinds)], size + 1, values=size)]
    surveys.append(single(chance, chance.pick(kinds), size + 1, values=size))
    keys: list[list[int]] = [[0], [0]]
    if chance.one_in(2):
        other = chance.between(2, 3)
        surveys += [table(chance, [size, other]), single(chance, "grr", other + 1, values=other)]
        keys += [[0, 1], [1]]
    steps: list[object] = []
    open_: list[tuple[int, int]] = []
    tickets = 0
    for _ in range(chance.between(4, 12)):
        choice = chance.below(10)
        if choice < 5 or not open_:
            asked = [chance.below(len(surveys)) for _ in range(chance.pick([1, 1, 2, 3]))]
            steps.append([0, [[keys[i], i] for i in asked]])
            open_ += [(tickets + i, survey) for i, survey in enumerate(asked)]
            tickets += len(asked)
        elif choice < 9:
            ticket, survey = open_.pop(chance.below(len(open_)))
            steps.append([2, ticket] if chance.one_in(8) else [1, ticket, _drawn(chance, surveys[survey])])
        else:
            steps.append([3, chance.below(2)])
    budget = chance.pick([1.0, 4.0, 15.0, 40.0, 40.0, 500.0])
    kind = "simplified" if chance.one_in(3) else "filter"
    return Case(kind, (pack(budget), pack(surveys), pack(steps)))


def _report(chance: Chance) -> list[object]:
    symbol = chance.pick([chance.below(128), chance.below(2**32), chance.token_bytes(chance.between(1, 40))])
    return [chance.token_bytes(32), chance.pick([0, 5, 127, 128, 70_000]), symbol]


def _upload(chance: Chance, turn: int) -> Case:
    del turn
    reports: list[object] = [_report(chance) for _ in range(chance.between(0, 6))]
    if chance.one_in(3):
        reports.append(
            chance.pick([None, [], [b"", 0, 0], {"a": [1]}, [bytes(32), -1, 0], [bytes(32), 0, True]])
        )
    return Case("upload", (pack([1, reports]),))


def _segment(chance: Chance) -> list[object]:
    n, width = chance.between(0, 4), chance.pick([1, 1, 2, 4, -3])
    refused = [chance.below(5) for _ in range(4)]
    number = chance.pick([-1, 0]) if n == 0 else chance.below(300)
    column = chance.token_bytes(n * abs(width))
    return [
        chance.token_bytes(16),
        number,
        chance.token_bytes(16 * n),
        width,
        column,
        n + sum(refused),
        refused,
    ]


def _record(chance: Chance, turn: int) -> Case:
    kind = turn % 5
    if kind == 0:
        return Case("record", (pack([1, 0, chance.token_bytes(50)]),))
    if kind == 1:
        return Case("record", (pack([1, 2, chance.token_bytes(16), chance.below(1000)]),))
    segments = [_segment(chance) for _ in range(chance.between(0, 4))]
    return Case("record", (pack([1, 1, chance.below(2**32), chance.below(9), segments]),))


def _list(chance: Chance, turn: int) -> Case:
    if turn % 4 == 0:
        outcomes = [chance.pick(["accepted", *wire.OUTCOMES]) for _ in range(chance.between(0, 9))]
        return Case("response", (pack([1, outcomes]),))
    surveys = [chance.token_bytes(chance.between(0, 60)) for _ in range(chance.between(0, 4))]
    if turn % 4 == 1:
        return Case("list", (pack([1, surveys]),))
    issued = chance.below(2**31)
    expires = issued + chance.pick([1, 86_400, 86_400, 366 * 86_400, 366 * 86_400 + 1])
    cancelled = [chance.token_bytes(16) for _ in range(chance.between(0, 2))]
    payload = pack([1, chance.between(1, 2**53 - 1), issued, expires, surveys, cancelled])
    if turn % 4 == 2:
        return Case("payload", (payload,))
    key = Ed25519PrivateKey.from_private_bytes(chance.token_bytes(32))
    public, signature = key.public_key().public_bytes_raw(), key.sign(signed_list.DOMAIN + payload)
    if chance.one_in(8):
        # Anybody can sign for a point of small order: S = 0 and R such a point.
        public, signature = chance.pick([b"\x01", bytes(1)]).ljust(32, b"\0"), b"\x01".ljust(64, b"\0")
    return Case("signed", (public, pack([signed_list.MAGIC, payload, signature])))


def _changed(chance: Chance, turn: int) -> Case:
    change = mutated if chance.one_in(2) else altered
    return change(chance, _TURNS[turn % UNCHANGED](chance, turn // UNCHANGED))


_TURNS = (
    *[_answer] * 6,
    *[_certify] * 2,
    *[_weigh] * 2,
    *[_life] * 2,
    _upload,
    _record,
    *[_list] * 2,
    *[_changed] * 4,
)
UNCHANGED = len(_TURNS) - 4


def write_sample() -> None:
    """Write the sample, which is every so-many-th case, and the digest of the lines of all."""
    whole = hashlib.sha256()
    kept = []
    for number, line in enumerate(lines(range(CASES))):
        whole.update(f"{line}\n".encode())
        if number in sample_numbers():
            kept.append(line)
    SAMPLE_FILE.write_text("".join(f"{line}\n" for line in kept), encoding="ascii")
    DIGEST_FILE.write_text(f"{VERSION} {CASES} {whole.hexdigest()}\n", encoding="ascii")


def sample_numbers() -> range:
    """The numbers of the sample's cases: a step without a factor of the turns, so that all kinds are met."""
    return range(0, 33 * SAMPLE, 33)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--all"]:
        with Path(sys.argv[2]).open("w", encoding="ascii") as out:
            out.writelines(f"{line}\n" for line in lines(range(CASES)))
    else:
        write_sample()
