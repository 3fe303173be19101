"""The browser's device says of every case what this repository says: in node, and in chromium.

The committed sample is compared, and changes of it; `make evidence NAME=conformance` compares all cases and
as many changes.
"""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from pathlib import Path

import conformance_pack
import pytest
import web_device
from browser import CHROMEDRIVER, CHROMIUM, running_browser
from case_changes import CAST, Case, altered, beyond_words, golden_surveys, mutated
from conformance_pack import SAMPLE, SAMPLE_FILE, read_cases
from ledger_cases import LEDGER_FILE
from orbit_law import law_holds
from random_channels import Chance
from reference import REFUSED, result
from rotation_cases import ROTATION_FILE
from web_device import FOLDER, SKIPPED

CHANGES = 400
GOLDEN = Path(__file__).parents[1] / "golden"
needs_node = pytest.mark.skipif(web_device.NODE is None, reason="node 20 or newer is not at hand")
needs_browser = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand")


@pytest.fixture(scope="module")
def sample() -> list[tuple[Case, str]]:
    return read_cases(SAMPLE_FILE)


def different(cases: list[Case], wanted: list[str], found: list[str]) -> list[tuple[str, str, str]]:
    rows = zip(cases, wanted, found, strict=True)
    return [(case.line, here, there) for case, here, there in rows if there not in (here, SKIPPED)]


def in_devices(cases: list[tuple[Case, str]]) -> tuple[list[Case], list[str]]:
    of_devices = [(case, words) for case, words in cases if case.kind != "record"]
    return [case for case, _ in of_devices], [words for _, words in of_devices]


@needs_node
def test_in_node_every_case_of_a_device_has_its_result(sample: list[tuple[Case, str]]) -> None:
    cases, words = in_devices(sample)
    assert len(cases) > SAMPLE * 9 // 10
    assert web_device.in_node([case.line for case in cases]) == words


@needs_node
def test_in_node_rotations_are_read_and_their_slots_drawn() -> None:
    stored = read_cases(ROTATION_FILE)
    assert web_device.in_node([case.line for case, _ in stored]) == [words for _, words in stored]


@needs_node
def test_in_node_surveys_with_ledgers_are_read() -> None:
    stored = read_cases(LEDGER_FILE)
    assert web_device.in_node([case.line for case, _ in stored]) == [words for _, words in stored]


@needs_node
def test_in_node_a_survey_counts_in_a_list_by_what_reading_it_builds() -> None:
    # A bundle's inputs are a product that nobody builds: counted, it would push all after it out of the list.
    # Hashes list nothing: a dictionary of a million texts would push everything else out.
    names = ("bundle", "sets", "key-value", "survey-heat-map", "survey-scattered", "dictionary")
    script = """
      import {listedInputs, unhex} from './src/agent/schedule.js';
      import {Survey} from './src/survey.js';
      for (const each of process.argv.slice(1)) console.log(listedInputs(await Survey.read(unhex(each))));
    """
    assert web_device.NODE is not None
    canonicals = [(GOLDEN / f"{name}.bin").read_bytes().hex() for name in names]
    done = subprocess.run(
        [web_device.NODE, "--input-type=module", "-e", script, *canonicals],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["100", "7", "4", "65", "22", "0"]


@pytest.mark.integration
@needs_browser
def test_in_chromium_every_case_of_a_device_has_its_result(
    sample: list[tuple[Case, str]], tmp_path: Path
) -> None:
    cases, words = in_devices(sample)
    with web_device.served() as address, running_browser(tmp_path) as browser:
        found = web_device.in_browser(browser, address, [case.line for case in cases])
    assert found == words


@needs_node
@pytest.mark.parametrize("change", [mutated, altered])
def test_a_changed_case_gives_both_the_same(change, sample: list[tuple[Case, str]]) -> None:
    chance = Chance(f"the browser's device: {change.__name__}")
    cases = [change(chance, sample[i % SAMPLE][0]) for i in range(CHANGES)]
    wanted = [result(*case) for case in cases]
    assert different(cases, wanted, web_device.in_node([case.line for case in cases])) == []
    assert CHANGES // 5 < wanted.count(REFUSED) < CHANGES * 9 // 10


@needs_node
def test_it_certifies_the_golden_surveys() -> None:
    cases = [Case("survey", (path.read_bytes(),)) for path in golden_surveys()]
    found = web_device.in_node([case.line for case in cases])
    assert len(found) >= 22 and REFUSED not in found
    assert found == [result(*case) for case in cases]


@needs_node
def test_numbers_beyond_a_word_of_32_bits_are_refused() -> None:
    cases = [conformance_pack.case(CAST), *beyond_words()]
    wanted = [result(*case) for case in cases]
    assert different(cases, wanted, web_device.in_node([case.line for case in cases])) == []


@needs_node
@pytest.mark.parametrize("kind", ["orbits", "short_orbits"])
def test_its_own_way_of_drawing_orbits_has_their_law(kind: str) -> None:
    law_holds(kind, web_device.in_node)


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="this Python has another Unicode than 14")
def test_printable_characters_are_those_of_unicode_14() -> None:
    made = subprocess.run(
        [sys.executable, str(FOLDER / "tools" / "printable.py")], capture_output=True, text=True, check=True
    )
    assert made.stdout == (FOLDER / "src" / "printable.js").read_text(encoding="utf-8")
