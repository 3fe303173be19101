"""Bytes of batches: keystream of fresh keys, never the same twice, an error rather than something weaker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from hubbub import mechanisms
from hubbub.mechanisms.tree import tree
from hubbub.numeric import randomness
from hubbub.numeric.randomness import EXPANDED, SYSTEM, batch_bytes
from hubbub.testing import RecordedSource, seeded

SIZES = [EXPANDED, EXPANDED + 1, 2**16 - 1, 2**16, 2**16 + 1, 300_001]
RFC_8439 = (  # appendix A.1, first test vector: the keystream of a key, a nonce and a counter of zeros
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
)


@pytest.fixture
def no_keystream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "_keystream", lambda: pytest.fail("a cipher was asked for"))


@pytest.fixture
def forgotten() -> Iterator[None]:
    randomness._keystream.cache_clear()
    yield
    randomness._keystream.cache_clear()


def blocks(data: bytes | memoryview) -> set[bytes]:
    return {bytes(data[i : i + 16]) for i in range(0, len(data) - 15, 16)}


def test_a_key_s_keystream_is_that_of_the_standard(monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", bytes)
    assert bytes(batch_bytes(EXPANDED)[:64]).hex() == RFC_8439


@pytest.mark.parametrize("size", SIZES)
def test_every_stretch_has_a_key_of_its_own_and_no_byte_is_left_out(size, monkeypatch):
    keys = []

    def counted(n):
        keys.append(n)
        return bytes([len(keys)]) * n

    monkeypatch.setattr(randomness.os, "urandom", counted)
    found = batch_bytes(size)
    assert len(found) == size
    assert keys == [32] * -(-size // 2**16)
    whole = np.frombuffer(found, dtype=np.uint8)
    for start in range(0, size - 64, 64):
        assert whole[start : start + 64].any()
    firsts = {bytes(found[start : start + 16]) for start in range(0, size, 2**16) if size - start >= 16}
    assert len(firsts) == len([start for start in range(0, size, 2**16) if size - start >= 16])


def test_the_bytes_cannot_be_changed_by_who_gets_them():
    with pytest.raises(TypeError):
        batch_bytes(EXPANDED)[0] = 1  # type: ignore[index]


def test_two_batches_share_no_block():
    """2 x 65,536 blocks of 128 bits: two equal ones by chance with probability below 2^-94."""
    first, second = blocks(batch_bytes(2**20)), blocks(batch_bytes(2**20))
    assert len(first) == len(second) == 2**16
    assert not first & second


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_s_batches_share_no_block_with_its_parent_s():
    """As above, below 2^-94. Control: a key that was kept before the fork gives both the same."""
    batch_bytes(2**16)  # the cipher is loaded, and nothing of it is kept
    keystream = randomness._keystream()
    assert keystream is not None
    kept = keystream(os.urandom(32))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(bytes(batch_bytes(2**18)) + kept.update(bytes(64)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    assert len(theirs) == 2**18 + 64
    assert not blocks(theirs[: 2**18]) & blocks(batch_bytes(2**18))
    assert theirs[2**18 :] == kept.update(bytes(64))


def test_a_system_without_random_bytes_is_an_error(monkeypatch):
    def fails(n):
        raise OSError("no entropy")

    monkeypatch.setattr(randomness.os, "urandom", fails)
    channel = mechanisms.subset_selection(91, epsilon=1.0)
    for draw in (lambda: batch_bytes(EXPANDED), lambda: batch_bytes(1), lambda: channel.perturb([3] * 5000)):
        with pytest.raises(OSError, match="no entropy"):
            draw()


@pytest.mark.parametrize("given", [0, 31, 33])
def test_a_key_of_another_length_is_an_error(given, monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda n, given=given: b"\1" * given)
    with pytest.raises(OSError, match=f"must give 32 bytes, got {given}"):
        batch_bytes(EXPANDED)


def test_a_cipher_that_gives_too_little_is_an_error(monkeypatch):
    class Short:
        def update_into(self, data, out):
            return len(data) - 1

    monkeypatch.setattr(randomness, "_keystream", lambda: lambda key: Short())
    with pytest.raises(OSError, match="as many bytes as it is asked for"):
        batch_bytes(EXPANDED)


def test_too_few_bytes_of_the_system_for_a_small_batch_are_an_error(monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda n: b"\1" * (n - 1))
    with pytest.raises(ValueError, match="buffer"):
        randomness.below_many(91, 10)


def test_without_the_package_a_batch_is_the_system_s(monkeypatch, forgotten):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    monkeypatch.setattr(randomness.os, "urandom", lambda n: b"\7" * n)
    assert batch_bytes(EXPANDED) == b"\7" * EXPANDED


def test_where_the_cipher_is_not_allowed_a_batch_is_the_system_s(monkeypatch, forgotten):
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.ciphers import algorithms

    def refused(key, nonce):
        raise UnsupportedAlgorithm("not in this build")

    monkeypatch.setattr(algorithms, "ChaCha20", refused)
    monkeypatch.setattr(randomness.os, "urandom", lambda n: b"\7" * n)
    assert batch_bytes(EXPANDED) == b"\7" * EXPANDED


def test_another_source_is_read_byte_by_byte_as_it_is(no_keystream):
    assert batch_bytes(2**17, seeded(3)) == seeded(3).token_bytes(2**17)
    source = RecordedSource(bytes(range(10)))
    assert batch_bytes(4, source) == bytes(range(4))
    assert source.left == bytes(range(4, 10))


def test_reports_drawn_one_at_a_time_are_of_the_system_s_own_bytes(no_keystream):
    """However large their domain is: a device never asks for the cipher."""
    for inputs in (91, 2_000):
        drawn = [
            mechanisms.subset_selection(inputs, epsilon=1.0),
            mechanisms.unary(inputs, epsilon=1.0),
            mechanisms.grr(inputs, epsilon=1.0),
            tree(inputs, epsilon=1.0),
        ]
        for channel in drawn:
            channel.perturb(5)


def test_system_bytes_up_to_the_least_stretch_are_not_expanded(no_keystream):
    assert len(batch_bytes(EXPANDED - 1)) == EXPANDED - 1
    assert len(batch_bytes(0, SYSTEM)) == 0
