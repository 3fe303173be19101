"""Notes, cosignatures and proofs beside texts that are written out by hand."""

from __future__ import annotations

import base64
import contextlib
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given
from hypothesis import strategies as st

from hubbub import transparency as log
from hubbub.errors import WireError
from hubbub.survey import SurveyList

PRIVATE = [Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32) for place in range(1, 6)]
PUBLIC = [key.public_key().public_bytes_raw() for key in PRIVATE]
KEY = log.NoteKey("log.example/hubbub", log.LOG_KEY, PUBLIC[0])
WITNESSES = tuple(log.NoteKey(f"w{place}.example", log.WITNESS_KEY, PUBLIC[place]) for place in (1, 2, 3))
POLICY = log.LogPolicy(KEY, WITNESSES, 2)
ENTRIES = [log.Entry("erased", (bytes([place]) * 16,)).data for place in range(11)]
NOW_S = 1_764_104_400


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read(level: int, place: int) -> bytes:
    leaves = [hashlib.sha256(b"\0" + entry).digest() for entry in ENTRIES]
    for _ in range(level):
        leaves = [
            hashlib.sha256(b"\1" + a + b).digest() for a, b in zip(leaves[::2], leaves[1::2], strict=False)
        ]
    return leaves[place]


CHECKPOINT = log.Checkpoint(KEY.name, len(ENTRIES), log.root_of(read, len(ENTRIES)))


def note(seen: tuple[int, ...] = (0, 1), checkpoint: log.Checkpoint = CHECKPOINT, by: int = 0) -> str:
    """A checkpoint of the log's key and of some witnesses, written out."""
    text = f"{checkpoint.origin}\n{checkpoint.size}\n{b64(checkpoint.root)}\n"
    id_ = hashlib.sha256(b"log.example/hubbub\n\x01" + PUBLIC[0]).digest()[:4]
    lines = [f"— log.example/hubbub {b64(id_ + PRIVATE[by].sign(text.encode()))}\n"]
    for place in seen:
        name = f"w{place + 1}.example"
        id_ = hashlib.sha256(name.encode() + b"\n\x04" + PUBLIC[place + 1]).digest()[:4]
        signed = PRIVATE[place + 1].sign(f"cosignature/v1\ntime {NOW_S}\n{text}".encode())
        lines.append(f"— {name} {b64(id_ + NOW_S.to_bytes(8, 'big') + signed)}\n")
    return text + "\n" + "".join(lines)


def proof(index: int, signed: str) -> bytes:
    hashes = log.inclusion_path(read, index, len(ENTRIES))
    return (
        f"c2sp.org/tlog-proof@v1\nindex {index}\n" + "".join(f"{b64(h)}\n" for h in hashes) + "\n" + signed
    ).encode()


def test_what_is_signed_here_is_the_text_written_out() -> None:
    lines = [
        key.sign(CHECKPOINT.text, private, NOW_S)
        for key, private in zip((KEY, *WITNESSES), PRIVATE, strict=False)
    ]
    assert CHECKPOINT.text + "\n" + "".join(lines[:3]) == note()
    path = log.inclusion_path(read, 3, len(ENTRIES))
    assert log.proof_text(3, path, note()).encode() == proof(3, note())


def test_keys_travel_as_texts() -> None:
    for key in (KEY, *WITNESSES):
        assert log.NoteKey.parse(key.text) == key
        name, id_, packed = key.text.split("+", 2)
        assert (name, base64.b64decode(packed)) == (key.name, bytes([key.kind]) + key.public)
        assert (
            bytes.fromhex(id_) == hashlib.sha256(f"{name}\n".encode() + base64.b64decode(packed)).digest()[:4]
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "log.example",
        KEY.text + "A",
        KEY.text.replace("log.", "dog."),
        KEY.text.replace("+", "-", 1),
        log.NoteKey("weak.example", log.LOG_KEY, bytes(32)).text,
        log.NoteKey("one.example", log.WITNESS_KEY, b"\1" + bytes(31)).text,
        log.NoteKey("two words", log.LOG_KEY, PUBLIC[0]).text,
    ],
)
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(log.NotLoggedError, match="key must be NAME"):
        log.NoteKey.parse(text)


def test_a_quorum_of_pinned_witnesses_is_asked_for() -> None:
    assert POLICY.opened(note().encode()) == log.Witnessed(
        CHECKPOINT, {"w1.example": NOW_S, "w2.example": NOW_S}
    )
    for seen in ((), (0,), (0, 0)):  # one witness twice is one
        with pytest.raises(log.NotLoggedError, match="must be seen by 2 witnesses") as failed:
            POLICY.opened(note(seen).encode())
        assert failed.value.reason == "unwitnessed"
    with pytest.raises(log.NotLoggedError, match="must be signed by") as failed:
        POLICY.opened(note(by=4).encode())
    assert failed.value.reason == "unlogged"
    other = log.Checkpoint("log.example/other", CHECKPOINT.size, CHECKPOINT.root)
    with pytest.raises(log.NotLoggedError, match=r"must be of log\.example/hubbub"):
        POLICY.opened(note(checkpoint=other).encode())


def test_a_witness_cannot_stand_for_a_log_nor_for_two() -> None:
    for log_key, witnesses, quorum in (
        (WITNESSES[0], WITNESSES, 2),
        (KEY, (KEY,), 1),
        (KEY, WITNESSES[:1] * 2, 2),
        (KEY, WITNESSES, 4),
        (KEY, WITNESSES, 0),  # witnesses that need not sign are none
    ):
        with pytest.raises(log.NotLoggedError):
            log.LogPolicy(log_key, witnesses, quorum)


def test_every_entry_is_proven_and_no_other() -> None:
    for index, entry in enumerate(ENTRIES):
        assert POLICY.proves(entry, proof(index, note()))
        assert not POLICY.proves(entry, proof((index + 1) % len(ENTRIES), note()))
        assert not POLICY.proves(entry, proof(index, note((0,))))
    extra = proof(1, note()).replace(b"\nindex", b"\nextra Zm9v\nindex")
    assert POLICY.proves(ENTRIES[1], extra)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(b"")
@example(b"c2sp.org/tlog-proof@v1")
@example(b"c2sp.org/tlog-proof@v1\nextra a")
@example(b"c2sp.org/tlog-proof@v1\nindex 0\n\n")
def test_any_bytes_as_proof_give_a_bool(data: bytes) -> None:
    assert POLICY.proves(ENTRIES[0], data) is False
    assert log.Note.parse(data) is None or b"\n\n" in data


@given(st.integers(0, 3_000), st.integers(0, 255), st.integers(0, 3))
def test_a_proof_with_a_byte_changed_gives_a_bool(place: int, byte: int, how: int) -> None:
    """A change outside the signed and hashed bytes may pass: that of the name of a line that nobody needs."""
    whole = proof(4, note((0, 1, 2)))
    place %= len(whole)
    broken = whole[:place] + bytes([byte]) + whole[place + (how < 3) :] if how else whole[:place]
    assert POLICY.proves(ENTRIES[4], broken) in (True, False)
    assert not POLICY.proves(ENTRIES[5], broken)


def test_entries_have_one_encoding() -> None:
    listed = SurveyList(3, 100, 200, (b"canonical",), ()).signed(PRIVATE[0])
    entries = [
        log.survey_entry(b"canonical"),
        log.list_entry(listed),
        log.Entry("layout", (bytes(32), 0, bytes(32), 4)),
        log.Entry("release", (bytes(16), 1, bytes(32))),
        log.Entry("recount", (bytes(16), 1, bytes(32), bytes(32))),
        log.Entry("erased", (bytes(16),)),
    ]
    assert len({entry.key for entry in entries}) == len(entries)
    for entry in entries:
        assert log.Entry.decode(entry.data) == entry
        for broken in (entry.data + b"\0", entry.data[:-1], b"\x93" + entry.data[1:]):
            with pytest.raises(WireError):
                log.Entry.decode(broken)


@given(st.binary(max_size=100))
def test_any_bytes_are_an_entry_or_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(WireError):
        assert log.Entry.decode(data).data == data


def test_with_three_witnesses_no_two_views_have_a_quorum_of_two() -> None:
    """All ways to share three honest witnesses, each of which signs one of two views of one size."""
    other = log.Checkpoint(KEY.name, CHECKPOINT.size, bytes(32))
    for shared in range(8):
        one = tuple(place for place in range(3) if shared >> place & 1)
        rest = tuple(place for place in range(3) if place not in one)
        quorums = 0
        for seen, checkpoint in ((one, CHECKPOINT), (rest, other)):
            with contextlib.suppress(log.NotLoggedError):
                POLICY.opened(note(seen, checkpoint).encode())
                quorums += 1
        assert quorums == 1
