"""Any bytes in the place of a list of surveys are refused with a typed reason, and raise nothing else."""

import contextlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import Clock, Collector, opener
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import ListError
from hubbub.survey.signed_list import (
    DOMAIN,
    MAGIC,
    SurveyList,
    open_signed,
    public_key,
    public_text,
    read_unverified,
)
from hubbub.wire import packing
from hubbub_client import ListRefusedError

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
PINNED = public_key(public_text(KEY))
GOOD = SurveyList(3, 10, 20, (b"a", b"b" * 40), (bytes(16), b"c" * 16)).signed(KEY)

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(max_size=80),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def refused(data: bytes) -> None:
    with pytest.raises(ListError):
        open_signed(data, [PINNED])
    try:
        read_unverified(data)
    except ListError as error:
        assert error.reason == "unreadable"


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=300) | plain.map(packing.pack))
def test_any_bytes_are_refused_with_a_reason(data):
    refused(data)


@settings(max_examples=80, deadline=None)
@given(plain | st.binary(max_size=200), st.binary(min_size=60, max_size=68))
def test_any_payload_and_signature_are_refused_with_a_reason(payload, signature):
    refused(packing.pack([MAGIC, payload, signature]))


@settings(max_examples=80, deadline=None)
@given(plain.map(packing.pack) | st.binary(max_size=200))
def test_a_signed_payload_that_is_no_list_is_refused_with_a_reason(payload):
    refused(packing.pack([MAGIC, payload, KEY.sign(DOMAIN + payload)]))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_list_with_one_byte_changed_is_refused(place, change):
    refused(GOOD[:place] + bytes([GOOD[place] ^ change]) + GOOD[place + 1 :])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 2**53 - 1),
    st.integers(0, 2**39),
    st.integers(1, 366 * 86_400),
    st.lists(st.binary(max_size=60), unique=True, max_size=5),
    st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=5),
)
def test_every_list_reads_as_it_was_written(sequence, issued_s, life_s, surveys, cancelled):
    listed = SurveyList(sequence, issued_s, issued_s + life_s, tuple(surveys), tuple(cancelled))
    opened = open_signed(listed.signed(KEY), [PINNED])
    assert opened.listed == listed


def test_a_device_takes_no_bytes_for_a_list_and_raises_nothing_else(tmp_path):
    """Pinned or not: any bytes are a ListRefusedError or a list; nothing refused cancels or enrols."""
    with opener(tmp_path, Clock(15.0), Collector()) as make:
        agent = make(survey_key=PINNED.hex())
        before = agent.status()

        @settings(max_examples=60, deadline=None)
        @given(st.binary(max_size=200) | plain.map(packing.pack), st.booleans())
        def refused_by_the_device(data, sign):
            if sign:
                data = packing.pack([MAGIC, data, KEY.sign(DOMAIN + data)])
            with pytest.raises(ListRefusedError):
                agent.read_surveys(data)
            assert agent.status() == before

        refused_by_the_device()
        agent.close()
        agent = make()

        @settings(max_examples=60, deadline=None)
        @given(st.binary(max_size=200) | plain.map(packing.pack))
        def read_without_a_key(data):
            with contextlib.suppress(ListRefusedError):
                agent.read_surveys(data)

        read_without_a_key()
