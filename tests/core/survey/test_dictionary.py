"""A dictionary of texts: a file outside of every list, which a survey names by its digest alone."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from surveys import LABELS

from hubbub import Survey
from hubbub.errors import HubbubError, ParameterError, WireError
from hubbub.survey import Attribute, DictionaryDomain, attribute_from_spec, dictionary_of, in_list_order
from hubbub_client.surveys.schedule import MAX_LISTED, decode_listed_surveys

GOLDEN = Path(__file__).parents[2] / "golden"
TEXTS = ["mail", "maps", "music", "caf\u00e9", "news", "chess", "go"]
DATA, ORDER = dictionary_of(TEXTS)


def survey(size: int = 7, digest: bytes = hashlib.sha256(DATA).digest(), version: int = 1) -> Survey:
    """A survey of a dictionary, by hashes."""
    text = LABELS.replace('type = "label"\nlabels = ["excellent", "good", "fair", "poor"]', "{}")
    keys = f'type = "dictionary"\ntexts = {size}\ndigest = "{digest.hex()}"'
    text = (
        text.replace("{}", keys)
        .replace('id = "health"', 'id = "site"')
        .replace('"grr"', '"local_hashing"')
        .replace('"evolving"', '"static"')
    )
    return Survey.parse(text.replace("version = 1", f"version = {version}"))


def test_a_text_has_the_place_of_its_hash_in_whatever_spelling() -> None:
    # The truth by another way: sorted hexadecimal digits, a list's own search.
    digits = sorted(hashlib.sha256(text.encode()).hexdigest()[:16] for text in TEXTS)
    assert bytes.fromhex("".join(digits)) == DATA
    attribute = Attribute.dictionary("apps", DATA, kind="static")
    for text in TEXTS:
        assert attribute.index_of(text) == digits.index(hashlib.sha256(text.encode()).hexdigest()[:16])
        assert ORDER[attribute.index_of(text)] == text
    assert attribute.index_of("cafe\u0301") == ORDER.index("caf\u00e9")
    assert {attribute.index_of(each) for each in (None, "", "Mail", 3, b"mail", "\ud800")} == {7}


@pytest.mark.parametrize("data", [DATA[:-1], DATA[8:16] + DATA[:8], DATA[:8] * 2, DATA[:8], b""], ids=str)
def test_what_is_no_dictionary_is_refused(data: bytes) -> None:
    with pytest.raises(ParameterError, match="dictionary must have"):
        DictionaryDomain.of(data)


def test_one_text_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="must differ"):
        dictionary_of(["caf\u00e9", "cafe\u0301"])


def test_canonical_bytes_hold_its_digest_and_nothing_of_its_texts() -> None:
    made = survey()
    assert made.canonical == (GOLDEN / "dictionary.bin").read_bytes()
    assert hashlib.sha256(DATA).digest() in made.canonical and len(made.canonical) < 400
    read = Survey.from_canonical(made.canonical)
    assert read == made and read.attribute == Attribute.dictionary("site", DATA, kind="static")
    assert read.attribute != Attribute.dictionary("site", dictionary_of(TEXTS[:-1])[0], kind="static")
    assert read.input_labels == ("#1", "#2", "#3", "#4", "#5", "#6", "#7", "missing")
    assert read.attribute.index_of(None) == 7
    with pytest.raises(ParameterError, match="not at hand"):
        read.attribute.index_of("mail")
    assert in_list_order([made, Survey.parse(LABELS)])[-1] == made


@pytest.mark.parametrize("domain", [[7], [7, bytes(31)], [7, "0" * 32], [1, bytes(32)], [2**20, bytes(32)]])
def test_bytes_that_break_a_rule_are_refused(domain: list[object]) -> None:
    with pytest.raises((WireError, ParameterError)):
        attribute_from_spec(["apps", "static", "dictionary", domain])


def test_a_survey_looks_texts_up_in_its_own_dictionary_once_it_has_it() -> None:
    read = Survey.from_canonical(survey().canonical)
    domain = read.attribute.domain
    assert isinstance(domain, DictionaryDomain)
    with pytest.raises(ParameterError, match=r"must have 7 texts and digest [0-9a-f]{64}, got 6 and "):
        domain.take(DictionaryDomain.of(dictionary_of(TEXTS[:-1])[0]))
    domain.take(DictionaryDomain.of(DATA))
    assert [read.input_of(text) for text in (*ORDER, "elsewhere")] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_a_large_one_compiles_without_names_of_its_texts() -> None:
    assert "input_labels" not in vars(survey(2**20 - 1).form)


def test_large_dictionaries_push_nothing_out_of_a_list() -> None:
    many = [survey(2**20 - 1, bytes([version]) * 32, version) for version in range(1, 13)]
    assert MAX_LISTED == 2**20
    assert len(decode_listed_surveys([each.canonical for each in many])) == 12


def test_many_texts_are_looked_up_by_their_hashes() -> None:
    data, order = dictionary_of(f"site-{i}.example" for i in range(20_000))
    attribute = Attribute.dictionary("site", data, kind="static")
    assert attribute.size == 20_000 and len(data) == 160_000
    for place in np.random.default_rng(5).integers(0, attribute.size, 20).tolist():
        assert attribute.index_of(order[place]) == place


def test_the_command_writes_what_the_survey_names(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("\n".join(TEXTS) + "\n\n", encoding="utf-8")
    words = [sys.executable, "-m", "hubbub_deploy.cli", "survey", "dictionary", "texts", "--out", "d"]
    done = subprocess.run([*words, "--order", "o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "d").read_bytes() == DATA
    assert (tmp_path / "o").read_text(encoding="utf-8").splitlines() == ORDER
    assert done.stdout == f'type = "dictionary"\ntexts = 7\ndigest = "{hashlib.sha256(DATA).hexdigest()}"\n'


@pytest.mark.parametrize(
    "change",
    [
        ("texts = 7", "texts = 1"),
        ('digest = "', 'digest = "A'),
        ("]", ']\n[[category]]\nname = "a"\nvalues = ["mail"]'),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused(change: tuple[str, str]) -> None:
    text = LABELS.replace('type = "label"\nlabels = ["excellent", "good", "fair", "poor"]', "{}")
    text = text.replace("{}", f'type = "dictionary"\ntexts = 7\ndigest = "{"0" * 64}"')
    text = text.replace('"grr"', '"local_hashing"')
    Survey.parse(text)
    at = text.rindex(change[0])
    with pytest.raises(HubbubError):
        Survey.parse(text[:at] + change[1] + text[at + len(change[0]) :])
