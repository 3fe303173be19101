"""Every series: what is stored is what this repository says, and so do two other implementations."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import msgpack
import numpy as np
import pytest
import second_implementation
import web_device
from browser import CHROMEDRIVER, CHROMIUM, running_browser
from case_changes import Case
from conformance_pack import read_cases
from form_cases import ALL, BUNDLES, DICTIONARIES, INTERACTIONS
from orbit_law import chance_of
from random_channels import Chance
from reference import REFUSED
from second_implementation import RUSTC
from series import STATED_FILE, Series
from web_device import in_browser, in_node, served

from hubbub import Survey

GOLDEN = Path(__file__).parents[1] / "golden"
needs_node = pytest.mark.skipif(web_device.NODE is None, reason="node 20 or newer is not at hand")
needs_rustc = pytest.mark.skipif(RUSTC is None, reason="rustc is not at hand")
needs_browser = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand")
every_series = pytest.mark.parametrize("series", ALL, ids=lambda series: series.name)


@cache
def made(series: Series) -> list[str]:
    return series.lines()


def cases(series: Series) -> tuple[list[str], list[str]]:
    parts = [line.rstrip("\n").rsplit("\t", 1) for line in made(series)]
    return [case for case, _ in parts], [words for _, words in parts]


def test_the_series_are_what_is_stored_of_them() -> None:
    assert "".join(series.stated(made(series)) for series in ALL) == STATED_FILE.read_text(encoding="ascii")
    for series in ALL:
        assert "".join(made(series)[: series.sample]) == series.file.read_text(encoding="ascii")
        assert len(read_cases(series.file)) == series.sample


@every_series
def test_a_series_has_enough_of_every_kind(series: Series) -> None:
    said = Counter(words.split()[0] for words in cases(series)[1])
    assert min(said[word] for word in ("certified", "answer", "weights", "filter")) >= 25
    assert said[REFUSED] >= 50


def test_their_surveys_have_what_a_form_can_have() -> None:
    trees, _, transitions, _, numbers, *_ = (" ".join(cases(series)[0]) for series in ALL)
    assert all(word.encode().hex() in trees for word in ("quadtree", "nested_levels"))
    assert all(word.encode().hex() in transitions for word in ("pairs", "changed", "direction"))
    told = ["absent", "key_value", "transition", "table", "bundle"]
    assert all(numbers.count(word.encode().hex()) > 20 for word in told)
    said = " ".join(words for words in cases(BUNDLES)[1] if words.startswith("filter"))
    assert said.count("joined:") > 50 and said.count("apart:") > 5
    certified = [case for case, words in zip(*cases(BUNDLES), strict=True) if words.startswith("certified")]
    channels = [msgpack.unpackb(bytes.fromhex(case.split("\t")[1]))[7] for case in certified]
    assert max(len(channel["orders"]) for channel in channels) > 256  # two bytes for a part
    assert max(math.prod(channel["readings"]) for channel in channels) == 2**62
    drawn = Counter()
    for case, words in zip(*cases(INTERACTIONS), strict=True):
        if words.startswith("answer"):
            channel = msgpack.unpackb(bytes.fromhex(case.split("\t")[1]))[7]
            drawn[channel.get("classes", [1] * 99)[int(words.split()[1].split(":")[0])]] += 1
    assert sum(many for classes, many in drawn.items() if classes > 1) > 20 and len(drawn) > 3
    pairs = [(case.split("\t"), words) for case, words in zip(*cases(DICTIONARIES), strict=True)]
    named = [msgpack.unpackb(bytes.fromhex(part[1])) for part, words in pairs if words[:9] == "certified"]
    assert sum(fields[7]["inputs"] > 2**17 for fields in named) >= 5
    said = Counter(words.split()[1] for part, words in pairs if part[0] == "looked-up" and words != REFUSED)
    assert len(said) > 20  # places of texts


@needs_node
@every_series
def test_the_browsers_device_says_the_same(series: Series) -> None:
    lines, words = cases(series)
    assert in_node(lines) == words


@pytest.mark.integration
@needs_browser
def test_in_chromium_it_says_the_same(tmp_path: Path) -> None:
    lines = [line for series in ALL for line in cases(series)[0]]
    words = [line for series in ALL for line in cases(series)[1]]
    with served() as address, running_browser(tmp_path) as browser:
        assert in_browser(browser, address, lines) == words


def law_of_large_sets_holds(results: Callable[[Sequence[str]], list[str]]) -> None:
    """900 answers of three items where two count: chi-square over the exact law, false alarm 1e-7.

    Which two is the device's own draw. The law of two of the three alone must fail. A seed gives the bytes.
    """
    survey = Survey.from_canonical((GOLDEN / "sets.bin").read_bytes())
    fields = msgpack.unpackb(survey.canonical)
    fields[6], fields[8][1] = 9.0, 2
    fields[7] |= {"most": 2, "size": 2, "held": 2**63 - 2**59}
    canonical, chance = msgpack.packb(fields), Chance("sets larger than what counts")
    channel = Survey.from_canonical(canonical).channel
    values = msgpack.packb([["mail", "music", "photos"]])
    lines = [
        Case("answer", (canonical, values, bytes(16), b"\0", chance.token_bytes(99))).line for _ in range(900)
    ]
    found = Counter(words.split()[2] for words in results(lines))
    symbols = [sum(1 << cell for cell in pair) for pair in itertools.combinations(range(channel.bins), 2)]
    seen = np.array([found[symbol.to_bytes(2, "little").hex()] for symbol in symbols])
    assert seen.sum() == 900
    meeting = math.comb(9, 2) - math.comb(7, 2)
    hit = channel.held / 2**63
    laws = [
        np.array([hit / meeting if symbol & own else (1 - hit) / math.comb(7, 2) for symbol in symbols])
        for own in (0b101, 0b100001, 0b100100)
    ]
    assert chance_of(seen, sum(laws) / 3) > 1e-7
    assert all(chance_of(seen, law) < 1e-7 for law in laws)


@needs_node
def test_the_browsers_device_draws_which_items_of_a_larger_set_count() -> None:
    law_of_large_sets_holds(in_node)


@needs_rustc
def test_the_second_implementation_draws_which_items_of_a_larger_set_count(program: Path) -> None:
    law_of_large_sets_holds(partial(second_implementation.results, program))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return second_implementation.build(tmp_path_factory.mktemp("rust"))


@needs_rustc
@every_series
def test_the_second_implementation_says_the_same(series: Series, program: Path) -> None:
    lines, words = cases(series)
    assert second_implementation.results(program, lines) == words
