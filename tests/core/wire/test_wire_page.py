"""docs/wire*.md show the golden bytes and tell how to draw: both are held to the code."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from hubbub import Survey
from hubbub.mechanisms.grr import GRR
from hubbub.mechanisms.hashing.local_hashing import LocalHashing
from hubbub.mechanisms.pbgrr import PBGRR
from hubbub.testing import RecordedSource

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("wire", "wire-survey", "wire-channels")]
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
GOLDEN = ROOT / "tests" / "golden"


def shown_blocks() -> list[bytes]:
    """The bytes of every indented block of the pages: the leading hex pairs of each of its lines."""
    blocks, lines = [], []
    for line in [*PAGE.splitlines(), ""]:
        if line.startswith("    "):
            pairs = re.match(r"\s*((?:[0-9a-f]{2} ?)+)(?:\s|$)", line)
            lines.append(pairs[1] if pairs else "")
        elif lines:
            blocks.append(bytes.fromhex("".join(lines)))
            lines = []
    return blocks


def test_bytes_on_the_page_are_those_of_the_golden_files():
    shown = shown_blocks()
    ending = shown.pop(1)
    for block, name in zip(shown, ("report", "record-reports", "survey-labels"), strict=True):
        stored = (GOLDEN / f"{name}.bin").read_bytes()
        assert len(block) > 30
        assert stored.startswith(block), name
    assert shown[0] == (GOLDEN / "report.bin").read_bytes()
    assert (GOLDEN / "report-set.bin").read_bytes() == shown[0][:-2] + ending


@pytest.mark.parametrize("name", ["survey-subset", "survey-unary", "survey-levels", "survey-tree"])
def test_sets_quoted_on_the_page_are_drawn_from_its_words(name):
    channel = Survey.from_canonical((GOLDEN / f"{name}.bin").read_bytes()).channel
    text = " ".join(PAGE.split())
    quoted = text[text.index(f"In `{name}.bin`") :]
    value = int(re.search(r"for input (\d+)", quoted)[1])
    draws = re.findall(
        r"(\d{9,10}(?: \d+){2,}|0(?: \d+){2,})(, twice,)? send ((?:[0-9a-f]{2}[ ,.])+)", quoted
    )
    told = 1 if name == "survey-unary" else 2
    assert len(draws) >= told
    for words, twice, symbol in draws[:told]:
        taken = [int(word) for word in words.split()] * (2 if twice else 1)
        source = RecordedSource(b"".join(word.to_bytes(4, "little") for word in taken))
        assert channel.perturb(value, source=source) == bytes.fromhex(re.sub("[,.]", "", symbol))
        assert not source.left
    for key in ("size", "held", "other"):
        if hasattr(channel, key):
            assert f"{'d' if key == 'size' else key} = {getattr(channel, key)}" in quoted[:200]
    if name == "survey-levels":
        assert f"there are {channel.bins} cells" in quoted[:60]


@pytest.mark.parametrize("name", ["survey-labels", "survey-visits", "survey-scattered", "survey-diseases"])
def test_numbers_quoted_on_the_page_are_those_of_the_surveys(name):
    survey = Survey.from_canonical((GOLDEN / f"{name}.bin").read_bytes())
    channel = survey.channel
    if name == "survey-labels":
        assert isinstance(channel, GRR)
        quoted = f"K = {channel.inputs}, t = {channel.t}, u = {channel.u}"
        assert 3_000_000_000 // channel.u == 4
        assert 3_200_000_000 // channel.u >= 5
        assert channel.total > 3_200_000_000
    elif name == "survey-visits":
        quoted = "row 1 begins " + ", ".join(map(str, channel.row(1)[:4].tolist()))
    elif name == "survey-scattered":
        assert [survey.input_of(value) for value in (20, 1, None)] == [1, 2, 21]
        quoted = "input 1, 1 is input 2, and missing is input 21"
    else:
        assert channel.total == 2**32
        quoted = f"K = {channel.inputs}, M = {channel.outputs}, T = 2^32"
    assert quoted in " ".join(PAGE.split())


def drawn_as_the_page_says(channel: PBGRR, x: int, d: int) -> int:
    """The page's way to draw by PB-GRR, word for word."""
    sizes, t, u, o = (array.tolist() for array in (channel.sizes, channel.t, channel.u, channel.o))
    firsts = [sum(sizes[:c]) for c in range(len(sizes))]
    c = max(i for i, first in enumerate(firsts) if first <= x)
    base = sum(s * w for s, w in zip(sizes, o, strict=True))
    assert channel.total == base + sizes[c] * (u[c] - o[c]) + (t[c] - u[c])
    if d < base:
        other = 0
        while d >= sizes[other] * o[other]:
            d -= sizes[other] * o[other]
            other += 1
        return firsts[other] + d // o[other]
    if d < base + sizes[c] * (u[c] - o[c]):
        return firsts[c] + (d - base) // (u[c] - o[c])
    return x


def hashed_as_the_page_says(channel: LocalHashing, x: int, d: int) -> int:
    """The page's way to draw by local hashing, word for word."""
    q, k, n = channel.pool.buckets, channel.pool.buckets.bit_length() - 1, 1
    while q**n < channel.inputs:
        n += 1
    modulus = int(re.search(r"of degree k \(([0-9, ]+)", " ".join(PAGE.split()))[1].split(", ")[k - 2])
    directions = [number for j in range(n) for number in range(q**j, 2 * q**j)]
    m = next(m for m in range(q**n) if 1000 * m >= 618 * q**n and math.gcd(m, q) == 1)
    point = x * m % q**n
    s, e = divmod(d, channel.t + (q - 1) * channel.u)
    if e // channel.u < q:
        return s * q + e // channel.u
    cell = 0
    for place in range(n):
        one, other = directions[s] // q**place % q, point // q**place % q
        if q % 2:
            cell = (cell + one * other) % q
            continue
        product = 0
        for bit in range(k):
            product ^= (one << bit) * (other >> bit & 1)
        for bit in range(2 * k, k - 1, -1):
            product ^= (modulus << bit - k) * (product >> bit & 1)
        cell ^= product
    return s * q + cell


@pytest.mark.parametrize(("inputs", "buckets"), [(10, 4), (10, 3), (20, 8), (7, 7)])
def test_hashed_draws_of_the_page_have_the_weights_of_the_channel(inputs, buckets):
    channel = LocalHashing(inputs, buckets, 5, 2)
    for x in range(inputs):
        counts = [0] * channel.outputs
        for d in range(channel.total):
            counts[hashed_as_the_page_says(channel, x, d)] += 1
        assert counts == channel.row(x).tolist()


def test_the_page_quotes_hashed_draws():
    channel = Survey.from_canonical((GOLDEN / "survey-hashing.bin").read_bytes()).channel
    quoted = f"K = {channel.inputs}, q = {channel.pool.buckets}, t = {channel.t}, u = {channel.u}"
    text = " ".join(PAGE.split())
    assert quoted in text
    for draw, symbol in re.findall(r"d = (\d+) sends symbol (\d+)", text[text.index(quoted) :])[:2]:
        assert channel.select(3, int(draw)) == int(symbol)


def test_draws_of_the_page_have_the_weights_of_the_channel():
    """Counted over every d, on a channel of the same kind whose total is small enough for that."""
    channel = PBGRR([1, 3, 2], [78, 53, 69], [11, 19, 16], [11, 8, 9])
    for x in range(channel.inputs):
        counts = [0] * channel.outputs
        for d in range(channel.total):
            counts[drawn_as_the_page_says(channel, x, d)] += 1
        assert counts == channel.row(x).tolist()
