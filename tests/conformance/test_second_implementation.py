"""This repository and the implementation in Rust, written from docs/wire.md, say the same of every case.

The committed sample is compared here, with mutations of it; `make evidence NAME=conformance` compares all
10,000 cases and as many mutations.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path

import conformance_pack
import ledger_cases
import msgpack
import pytest
import rotation_cases
import second_implementation
from case_changes import CAST, Case, beyond_words, golden_surveys, mutated, reencoded
from conformance_pack import CASES, DIGEST_FILE, SAMPLE, SAMPLE_FILE, VERSION, read_cases, sample_numbers
from ledger_cases import LEDGER_FILE
from orbit_law import law_holds
from random_channels import Chance
from reference import REFUSED, result
from rotation_cases import ROTATION_FILE

MUTATIONS = 400
needs_rustc = pytest.mark.skipif(second_implementation.RUSTC is None, reason="rustc is not at hand")


@pytest.fixture(scope="module")
def sample() -> list[tuple[Case, str]]:
    return read_cases(SAMPLE_FILE)


@pytest.fixture(scope="module", params=[64, 32])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    narrow = request.param == 32
    if narrow and not second_implementation.narrow_at_hand():
        pytest.skip("rustc has no target of 32 bits")
    return second_implementation.build(tmp_path_factory.mktemp("rust"), narrow=narrow)


def test_the_stored_results_are_those_of_this_repository(sample: list[tuple[Case, str]]) -> None:
    assert len(sample) == SAMPLE
    assert [result(*case) for case, _ in sample] == [words for _, words in sample]
    refused = Counter(words == REFUSED for _, words in sample)
    assert 30 < refused[True] < SAMPLE // 3


def test_the_sample_and_its_numbers_follow_from_the_version(sample: list[tuple[Case, str]]) -> None:
    version, count, digest = DIGEST_FILE.read_text(encoding="ascii").split()
    assert (int(version), int(count), len(digest)) == (VERSION, CASES, 64)
    for place, number in list(enumerate(sample_numbers()))[::10]:
        assert conformance_pack.case(number) == sample[place][0]


@needs_rustc
def test_a_second_implementation_gives_every_result(sample: list[tuple[Case, str]], program: Path) -> None:
    found = second_implementation.results(program, [case.line for case, _ in sample])
    assert found == [words for _, words in sample]


def test_the_series_of_rotations_is_what_this_repository_makes_of_it() -> None:
    stored = read_cases(ROTATION_FILE)
    assert stored == [(case, result(*case)) for case in rotation_cases.cases()]
    assert stored[22][1] == "slots 0 5 7 11 0 4 3 6 1 2"  # the row of docs/wire-survey.md
    said = Counter(words.split()[0] for _, words in stored)
    assert said == {"certified": 5, "refused": 17 + 4, "slots": 56}


def test_the_series_of_ledgers_is_what_this_repository_makes_of_it() -> None:
    stored = read_cases(LEDGER_FILE)
    assert stored == [(case, result(*case)) for case in ledger_cases.cases()]
    said = Counter(words.split()[0] for _, words in stored)
    assert said == {"certified": 6 * 3, "refused": 6 * 22}


@needs_rustc
def test_a_second_implementation_reads_ledgers(program: Path) -> None:
    stored = read_cases(LEDGER_FILE)
    found = second_implementation.results(program, [case.line for case, _ in stored])
    assert found == [words for _, words in stored]


@needs_rustc
def test_a_second_implementation_reads_rotations_and_draws_their_slots(program: Path) -> None:
    stored = read_cases(ROTATION_FILE)
    found = second_implementation.results(program, [case.line for case, _ in stored])
    assert found == [words for _, words in stored]


@needs_rustc
def test_numbers_beyond_a_word_of_32_bits_are_refused(program: Path) -> None:
    cases = [conformance_pack.case(CAST), *beyond_words()]
    found = second_implementation.results(program, [each.line for each in cases])
    assert found == [result(*each) for each in cases]
    assert found[0].split()[-1].startswith(f"{REFUSED}:")
    assert set(found[3:]) == {REFUSED}


def test_nothing_is_cast_to_a_place_without_its_bound() -> None:
    """`fit` ends the program where a place does not hold a number, and `as` would wrap in silence."""
    sources = sorted((Path(__file__).parent / "rust").glob("*.rs"))
    assert len(sources) > 10
    assert [path.name for path in sources if re.search(r"\bas [ui]size\b", path.read_text("ascii"))] == []


@needs_rustc
def test_it_certifies_the_golden_surveys(program: Path) -> None:
    cases = [Case("survey", (path.read_bytes(),)) for path in golden_surveys()]
    found = second_implementation.results(program, [case.line for case in cases])
    assert found == [result(*case) for case in cases]
    assert len(found) >= 22 and all(words.startswith("certified ") for words in found)


@needs_rustc
@pytest.mark.parametrize("kind", ["orbits", "short_orbits"])
def test_its_own_way_of_drawing_orbits_has_their_law(kind: str, program: Path) -> None:
    law_holds(kind, partial(second_implementation.results, program))


@needs_rustc
def test_other_encodings_and_keys_of_small_order_are_refused(
    sample: list[tuple[Case, str]], program: Path
) -> None:
    chance = Chance("other encodings")
    surveys = [case.parts[0] for case, words in sample if words.startswith("certified ")]
    other = [Case("survey", (reencoded(chance, msgpack.unpackb(each), each),)) for each in surveys]
    # R = the neutral point, S = 0: such a signature holds for a key that is the neutral point.
    neutral, signature = b"\x01".ljust(32, b"\0"), b"\x01".ljust(64, b"\0")
    payloads = [case.parts[0] for case, words in sample if words.startswith("list ") and len(case.parts) == 1]
    signed = [msgpack.packb(["hubbub-survey-list", payload, signature]) for payload in payloads]
    cases = [*other, *(Case("signed", (neutral, each)) for each in signed)]
    assert len(surveys) > 9 and len(signed) > 2
    assert second_implementation.results(program, [case.line for case in cases]) == [REFUSED] * len(cases)
    assert [result(*case) for case in cases] == [REFUSED] * len(cases)


@needs_rustc
def test_one_byte_changed_gives_both_the_same(sample: list[tuple[Case, str]], program: Path) -> None:
    chance = Chance("mutations of the sample")
    changed = [mutated(chance, sample[i % SAMPLE][0]) for i in range(MUTATIONS)]
    wanted = [result(*case) for case in changed]
    found = second_implementation.results(program, [case.line for case in changed])
    different = [
        (case.line, mine, theirs)
        for case, mine, theirs in zip(changed, wanted, found, strict=True)
        if mine != theirs
    ]
    assert different == []
    assert MUTATIONS // 5 < wanted.count(REFUSED) < MUTATIONS * 9 // 10
