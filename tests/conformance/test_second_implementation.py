"""This repository and the implementation in Rust, written from docs/wire.md, say the same of every case.

The committed sample is compared here, with mutations of it; `make evidence NAME=conformance` compares all
10,000 cases and as many mutations.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import conformance_pack
import msgpack
import numpy as np
import pytest
import second_implementation
from case_changes import Case, mutated, reencoded
from conformance_pack import CASES, DIGEST_FILE, SAMPLE, SAMPLE_FILE, VERSION, sample_numbers, single
from random_channels import Chance
from reference import REFUSED, result
from scipy.stats import chi2

from hubbub import Survey
from hubbub.errors import HubbubError

MUTATIONS = 400
DRAWS = 800
needs_rustc = pytest.mark.skipif(second_implementation.RUSTC is None, reason="rustc is not at hand")


@pytest.fixture(scope="module")
def sample() -> list[tuple[Case, str]]:
    rows = [line.split("\t") for line in SAMPLE_FILE.read_text(encoding="ascii").splitlines()]
    return [(Case(kind, tuple(map(bytes.fromhex, parts))), words) for kind, *parts, words in rows]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return second_implementation.build(tmp_path_factory.mktemp("rust"))


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


@needs_rustc
def test_it_certifies_the_golden_surveys(program: Path) -> None:
    golden = sorted((Path(__file__).parents[1] / "golden").glob("survey-*.bin"))
    cases = [Case("survey", (path.read_bytes(),)) for path in golden if path.name != "survey-list.bin"]
    found = second_implementation.results(program, [case.line for case in cases])
    assert found == [result(*case) for case in cases]
    assert len(found) >= 14 and all(words.startswith("certified ") for words in found)


def told(canonical: bytes) -> str:
    """The kind of channel in canonical bytes; nothing where a rule is broken or epsilon is small."""
    try:
        channel = Survey.from_canonical(canonical).channel
    except HubbubError:
        return ""
    return channel.kind if channel.epsilon > 0.9 else ""


def candidates(width: int) -> Iterable[bytes]:
    """All strings of bytes that could be symbols: a byte for small sets, or orbit, category and set."""
    return map(bytes, itertools.product(*([range(64)] if width == 1 else [range(4), range(6), range(64)])))


def chance_of(seen: np.ndarray, law: np.ndarray) -> float:
    """The chance of counts at least so far from a law; sets expected less than five times count as one."""
    assert abs(law.sum() - 1.0) < 1e-9
    expected = law * seen.sum()
    rare = expected < 5.0
    pairs = [*zip(seen[~rare], expected[~rare], strict=True), (seen[rare].sum(), expected[rare].sum())]
    statistic = sum((n - mean) ** 2 / mean for n, mean in pairs if mean > 0.0)
    return float(chi2.sf(statistic, len(pairs) - 1))


@needs_rustc
@pytest.mark.parametrize("kind", ["orbits", "short_orbits"])
def test_its_own_way_of_drawing_orbits_has_their_law(kind: str, program: Path) -> None:
    """800 sets of one input: chi-square by set over the exact law, at a false-alarm probability of 1e-7.

    The bytes follow from a text, and the law of the farthest other input must fail.
    """
    chance = Chance(f"the law of {kind}")
    drawn = (single(chance, "orbits", 6) for _ in range(600))
    survey = next(Survey.from_canonical(each) for each in drawn if told(each) == kind)
    channel, value = survey.channel, msgpack.unpackb(survey.canonical)[5][3][0]
    parts = (survey.canonical, msgpack.packb([value]), bytes(16), b"\0")
    lines = [Case("answer", (*parts, chance.token_bytes(160))).line for _ in range(DRAWS)]
    found = Counter(words.split()[2] for words in second_implementation.results(program, lines))
    symbols = [each for each in candidates(channel.width) if channel.admits(each)]
    assert set(found) <= {each.hex() for each in symbols}
    seen = np.array([found[each.hex()] for each in symbols])
    laws = np.exp([channel.log_likelihood(each) for each in symbols]).T
    own = survey.input_of(value)
    assert chance_of(seen, laws[own]) > 1e-7
    assert min(chance_of(seen, law) for x, law in enumerate(laws) if x != own) < 1e-7


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
