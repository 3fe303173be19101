"""A list costs memory in proportion to its bytes; what it holds costs none before its signature holds."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
import tracemalloc

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import small

from hubbub import Survey
from hubbub.errors import ListError, WireError
from hubbub.survey.canonical import MAX_ELEMENTS
from hubbub.survey.signed_list import DOMAIN, MAGIC, open_signed, public_key, public_text, read_unverified
from hubbub.wire import packing
from hubbub.wire.frames import check_elements
from hubbub_client.surveys.schedule import decode_listed_surveys

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PINNED = public_key(public_text(KEY))
SIZE = 4 * 2**20
NAME = packing.pack(MAGIC)


def empties(size: int) -> bytes:
    """An array of as many empty arrays as fit: 64 bytes of memory for each byte, if it is built."""
    return b"\xdd" + struct.pack(">I", size) + b"\x90" * size


def binary(data: bytes) -> bytes:
    return b"\xc6" + struct.pack(">I", len(data)) + data


def texts(size: int) -> bytes:
    return b"\xdd" + struct.pack(">I", size // 3) + b"\xa2zz" * (size // 3)


def maps(size: int) -> bytes:
    return b"\xdd" + struct.pack(">I", size) + b"\x80" * size


HOSTILE = {
    "the magic is a huge array": b"\x93" + empties(SIZE) + b"\xc4\x00" + b"\xc4\x40" + bytes(64),
    "the payload is a huge array": b"\x93" + NAME + empties(SIZE) + b"\xc4\x40" + bytes(64),
    "the payload holds a huge array": b"\x93" + NAME + binary(empties(SIZE)) + b"\xc4\x40" + bytes(64),
    "the signature is a huge array": b"\x93" + NAME + b"\xc4\x00" + empties(SIZE),
    "the signature announces gigabytes": b"\x93" + NAME + b"\xc4\x00" + b"\xc6\xff\xff\xff\xff",
    "the wire's version is a huge array": b"\x92" + empties(SIZE) + b"\x90",
    "a plain survey is a huge array": b"\x92\x01\x91" + empties(SIZE),
    "a plain survey holds a huge array": b"\x92\x01\x91" + binary(empties(SIZE)),
    "a plain survey holds maps": b"\x92\x01\x91" + binary(maps(SIZE)),
    "a plain survey holds texts": b"\x92\x01\x91" + binary(texts(SIZE)),
    "a plain survey's field is huge": b"\x92\x01\x91"
    + binary(b"\xdc\x00\x10" + packing.pack("hubbub-survey") + b"\x01" + empties(SIZE) + b"\xc0" * 13),
    "the list announces 2^32 surveys": b"\x92\x01\xdd\xff\xff\xff\xff" + bytes(SIZE),
    "nested headers announce what is not there": b"\x92\x01\x91" + binary(b"\xdd\x00\x01\x00\x00" * 2**16),
    "nothing but headers, nested": b"\x92\x01\x91" + binary(b"\x91" * SIZE),
}


def peak_of(data: bytes, keys: tuple[bytes, ...]) -> tuple[int, str]:
    """Memory reserved at most while a device reads a list, bytes, and what it says of it."""
    said = "read"
    tracemalloc.start()
    try:
        if keys:
            open_signed(data, keys)
        else:
            decode_listed_surveys(read_unverified(data)[1])
    except ListError as error:
        said = error.reason
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, said


@pytest.mark.parametrize("what", HOSTILE)
def test_an_unsigned_or_forged_list_reserves_no_more_than_a_copy_of_itself(what):
    data = HOSTILE[what]
    peak, said = peak_of(data, (PINNED,))
    assert said in ("unsigned", "unreadable", "wrong_signature")
    assert peak < 1.5 * len(data) + 2**18


@pytest.mark.parametrize("what", HOSTILE)
def test_a_list_that_is_taken_unsigned_reserves_a_few_times_its_bytes(what):
    data = HOSTILE[what]
    assert peak_of(data, ())[0] < 4 * len(data) + 2**18


def test_what_the_pinned_key_signed_is_read_by_its_headers_too():
    """A key may be stolen, and a list must then cost a device its budget at most, never its memory."""
    for payload in (empties(SIZE), b"\x96\x01\x07\x05\x06" + empties(SIZE) + b"\x90", texts(SIZE)):
        data = b"\x93" + NAME + binary(payload) + b"\xc4\x40" + KEY.sign(DOMAIN + payload)
        peak, said = peak_of(data, (PINNED,))
        assert said == "unreadable"
        assert peak < 1.5 * len(data) + 2**18


def test_a_survey_of_as_many_elements_as_any_may_have_takes_no_more_than_they_do():
    data = b"\x92\x01\x91" + binary(empties(MAX_ELEMENTS - 1))
    assert peak_of(data, ())[0] < 64 * MAX_ELEMENTS + 4 * len(data)


def elements_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(elements_of, value.values()))
    return 1 + sum(map(elements_of, value)) if isinstance(value, list) else 1


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(plain, st.integers(-2, 2), st.integers(0, 400))
def test_elements_are_counted_as_they_are_built(value, spare, cut):
    data = packing.pack(value)
    limit = elements_of(value) + spare
    if spare >= 0:
        check_elements(data, "value", limit)
    elif elements_of(value) > 1 and limit > 0:
        with pytest.raises(WireError, match="elements"):
            check_elements(data, "value", limit)
    for broken in (data[: min(cut, len(data) - 1)], data + b"\xc0"):
        with pytest.raises(WireError):
            check_elements(broken, "value", 10**9)


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\xd4\x05x", b"\xdd\xff\xff\xff\xff", b"\xc6\xff", b"\xcb\x00"]
)
def test_what_is_no_whole_plain_value_is_refused_without_building_it(data):
    with pytest.raises(WireError):
        check_elements(data, "value", 10**9)


def test_a_large_survey_is_still_read():
    """The bound on what a survey may hold lies above what the largest surveys hold."""
    n = 131_070
    labels = ",".join(f'"{i}"' for i in range(n))
    domain = f'type = "label"\nlabels = [{labels}]'
    survey = Survey.parse(
        small("large", domain, epsilon=2.0, kind="static", cohort=1, devices=1000, rounds=1)
    )
    assert Survey.from_canonical(survey.canonical) == survey


def test_a_process_with_little_memory_outlives_a_hostile_list():
    """32 MiB, the largest answer that a device reads, and 200 MiB above what the process has at its start."""
    program = """
        import resource, struct, sys
        from hubbub.errors import ListError
        from hubbub.survey.signed_list import open_signed, read_unverified
        from hubbub_client.surveys.schedule import decode_listed_surveys

        n = 32 * 2**20 - 64
        empties = b"\\xdd" + struct.pack(">I", n) + b"\\x90" * n
        pages = int(open("/proc/self/statm").read().split()[0])
        ceiling = pages * resource.getpagesize() + 200 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))
        for head in (b"\\x93", b"\\x92", b"\\x92\\x01\\x91", b"\\x93\\xb2hubbub-survey-list"):
            data = head + empties
            for read in (lambda: open_signed(data, [bytes(range(32))]),
                         lambda: decode_listed_surveys(read_unverified(data)[1])):
                try:
                    read()
                except ListError as error:
                    print(error.reason)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.split().count("unreadable") >= 6
