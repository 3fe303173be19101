from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.errors import ListError, ParameterError, WireError
from hubbub.survey.signed_list import (
    DOMAIN,
    MAGIC,
    SurveyList,
    digest_of,
    open_signed,
    public_key,
    public_text,
    read_unverified,
)
from hubbub.wire import packing
from hubbub.wire.report import encode_surveys

GOLDEN = Path(__file__).parents[2] / "golden"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PINNED = public_key(public_text(KEY))
LABELS = (GOLDEN / "survey-labels.bin").read_bytes()
VISITS = (GOLDEN / "survey-visits.bin").read_bytes()
LISTED = SurveyList(7, 1_767_225_600, 1_769_904_000, (LABELS,), (digest_of(VISITS),))


def test_the_golden_list_reads_and_writes_as_the_same_bytes():
    stored = (GOLDEN / "survey-list.bin").read_bytes()
    assert LISTED.signed(KEY) == stored
    opened = open_signed(stored, [PINNED])
    assert (opened.listed, opened.key) == (LISTED, PINNED)
    assert PINNED.hex() == "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"


def test_any_of_several_pinned_keys_opens_a_list():
    other = public_key(public_text(OTHER))
    assert open_signed(LISTED.signed(OTHER), [PINNED, other]).key == other


def refused(data: bytes) -> str:
    with pytest.raises(ListError) as caught:
        open_signed(data, [PINNED])
    return caught.value.reason


def test_what_is_not_signed_by_a_pinned_key_is_refused_with_its_reason():
    good = LISTED.signed(KEY)
    assert refused(LISTED.signed(OTHER)) == "wrong_signature"
    assert refused(encode_surveys([LABELS])) == "unsigned"
    payload = SurveyList(8, LISTED.issued_s, LISTED.expires_s, (LABELS,)).payload
    assert refused(packing.pack([MAGIC, payload, good[-64:]])) == "wrong_signature"
    bare = KEY.sign(LISTED.payload)  # signed for something else
    assert refused(packing.pack([MAGIC, LISTED.payload, bare])) == "wrong_signature"
    assert refused(b"") == refused(good[:-1]) == refused(good + b"\x00") == "unreadable"
    assert refused(packing.pack(["other", LISTED.payload, good[-64:]])) == "unreadable"


@pytest.mark.parametrize(
    "fields",
    [
        [2, 7, 5, 6, [], []],
        [1, 0, 5, 6, [], []],
        [1, 7, 6, 6, [], []],
        [1, 7, 5, 2**41, [], []],
        [1, True, 5, 6, [], []],
        [1, 7, 5, 6, ["text"], []],
        [1, 7, 5, 6, [], [b"short"]],
        [1, 7, 5, 6, [b"twice", b"twice"], []],
        [1, 7, 5, 6, [LABELS], [digest_of(LABELS)]],
        [1, 7, 5, 6, [], [], []],
        "nothing",
    ],
)
def test_a_signed_list_that_breaks_a_rule_is_unreadable(fields):
    payload = packing.pack(fields)
    assert refused(packing.pack([MAGIC, payload, KEY.sign(DOMAIN + payload)])) == "unreadable"


def test_a_payload_has_one_encoding():
    payload = LISTED.payload.replace(b"\x07", b"\xcc\x07", 1)  # seven, in a longer form
    assert packing.unpack(payload, "payload") == packing.unpack(LISTED.payload, "payload")
    assert refused(packing.pack([MAGIC, payload, KEY.sign(DOMAIN + payload)])) == "unreadable"


def test_a_reader_without_a_key_gets_the_surveys_of_either_form():
    assert read_unverified(encode_surveys([LABELS])) == (None, (LABELS,))
    assert read_unverified(LISTED.signed(OTHER)) == (LISTED, (LABELS,))
    with pytest.raises(ListError, match="list of surveys"):
        read_unverified(b"\xc0")


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, None])
def test_a_public_key_is_64_hexadecimal_digits(text):
    with pytest.raises(ParameterError, match="64 hexadecimal digits"):
        public_key(text)


def test_a_list_error_is_a_wire_error():
    with pytest.raises(WireError):
        open_signed(b"", [PINNED])
