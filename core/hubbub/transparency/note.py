"""Signed notes, checkpoints, cosignatures and proofs, as C2SP writes them.

Formats: c2sp.org/signed-note, tlog-checkpoint, tlog-cosignature (v1) and tlog-proof. Everything is read
strictly, in its one encoding: two texts that differ are never the same note.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from hubbub.errors import HubbubError
from hubbub.survey import is_key, signature_holds
from hubbub.transparency.tree import HASH_BYTES, leaf_hash, root_by

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KeyKind: TypeAlias = Literal[1, 4]
LogFault: TypeAlias = Literal["unlogged", "unwitnessed"]

LOG_KEY: Final[KeyKind] = 1
WITNESS_KEY: Final[KeyKind] = 4

MAX_NOTE_BYTES: Final = 65_536
"""The longest note that is read: a checkpoint of a hundred cosignatures has a fifth of it."""

_MOST_SIGNATURES: Final = 100
_MOST_SIZE: Final = 2**63 - 1
_ID_BYTES: Final = 4
_SIGNATURE_BYTES: Final = 64
_TIME_BYTES: Final = 8
_PROOF: Final = "c2sp.org/tlog-proof@v1"


class NotLoggedError(HubbubError):
    """The error of what is not in a log, or not seen by enough witnesses.

    Attributes:
        reason: Which of them.
    """

    def __init__(self, reason: LogFault, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class NoteKey:
    """The public key of a log or of a witness.

    Attributes:
        name: Its name; a log's is its origin, such as "example.org/hubbub".
        kind: LOG_KEY or WITNESS_KEY.
        public: The public key of Ed25519, 32 bytes.
    """

    name: str
    kind: KeyKind
    public: bytes

    @property
    def id(self) -> bytes:
        """The four bytes by which a signature names its key."""
        about = self.name.encode() + b"\n" + bytes([self.kind]) + self.public
        return hashlib.sha256(about).digest()[:_ID_BYTES]

    @property
    def text(self) -> str:
        """The key as it is handed on: name, id and key, joined by "+"."""
        return f"{self.name}+{self.id.hex()}+{_base64(bytes([self.kind]) + self.public)}"

    @classmethod
    def parse(cls, text: str) -> NoteKey:
        """Return the key of its text.

        Raises:
            NotLoggedError: If it is none.
        """
        name, _, rest = text.strip().partition("+")
        _, _, packed = rest.partition("+")
        data = _bytes(packed) or b""
        kind: KeyKind = WITNESS_KEY if data[:1] == bytes([WITNESS_KEY]) else LOG_KEY
        key = cls(name, kind, data[1:])
        if not is_name(name) or not is_key(key.public) or key.text != text.strip():
            raise NotLoggedError(
                "unlogged", f"a log's or witness's key must be NAME+ID+KEY, got {text[:80]!r}"
            )
        return key

    def sign(self, text: str, key: Ed25519PrivateKey, now_s: int = 0) -> str:
        """Return the signature line of a note's text; of a witness, with the second at which it saw it."""
        if self.kind == LOG_KEY:
            signature = key.sign(text.encode())
        else:
            signature = now_s.to_bytes(_TIME_BYTES, "big") + key.sign(_cosigned(text, now_s))
        return f"\N{EM DASH} {self.name} {_base64(self.id + signature)}\n"

    def signed_at(self, note: Note) -> int | None:
        """Return when this key signed a note, seconds since 1970, 0 for a log; None if it did not."""
        for name, found in note.signatures:
            signature = found[_ID_BYTES:]
            if name != self.name or found[:_ID_BYTES] != self.id:
                continue
            text, now_s = note.text.encode(), 0
            if self.kind == WITNESS_KEY:
                now_s = int.from_bytes(signature[:_TIME_BYTES], "big")
                text, signature = _cosigned(note.text, now_s), signature[_TIME_BYTES:]
            if len(signature) == _SIGNATURE_BYTES and signature_holds(self.public, text, signature):
                return now_s
        return None


@dataclass(frozen=True, slots=True)
class Note:
    """A text with signatures beneath it; nobody has looked at them.

    Attributes:
        text: The text, its last newline included.
        signatures: Of each line the name, and the key's id with the signature behind it.
    """

    text: str
    signatures: tuple[tuple[str, bytes], ...]

    @classmethod
    def parse(cls, data: bytes) -> Note | None:
        """Return the note of its bytes, or None."""
        try:
            whole = data.decode() if len(data) <= MAX_NOTE_BYTES else ""
        except (UnicodeDecodeError, AttributeError):
            return None
        text, parted, lines = whole.rpartition("\n\n")
        if (
            not text
            or not parted
            or not lines.endswith("\n")
            or any(letter < " " and letter != "\n" for letter in whole)
        ):
            return None
        found = tuple(map(_signature, lines[:-1].split("\n")))
        known = tuple(each for each in found if each is not None)
        return cls(text + "\n", known) if len(known) == len(found) <= _MOST_SIGNATURES else None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a log: its size and its root.

    Attributes:
        origin: The log's name.
        size: Entries.
        root: The root over all of them, 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that log and witnesses sign."""
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint | None:
        """Return the checkpoint of a note's text, or None; lines of others' extensions are passed over."""
        lines = text.split("\n")
        if len(lines) < 4 or lines[-1] or not all(lines[:-1]):
            return None
        size, root = number_of(lines[1]), _bytes(lines[2])
        return cls(lines[0], size, root) if size is not None and root and len(root) == HASH_BYTES else None


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A checkpoint that its log signed, and enough witnesses.

    Attributes:
        checkpoint: What they signed.
        seen: The name of each witness, and when it saw it, seconds since 1970 by its own clock.
    """

    checkpoint: Checkpoint
    seen: dict[str, int]


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """The keys that a reader believes: one log's, and those of so many witnesses.

    Two views of a log cannot both have a quorum if it is above (witnesses + dishonest ones) / 2.

    Attributes:
        log: The log's key.
        witnesses: The keys of witnesses.
        quorum: How many of them must have seen a checkpoint.

    Raises:
        NotLoggedError: If the keys are not of their kinds, are given twice, or are fewer than the quorum.
    """

    log: NoteKey
    witnesses: tuple[NoteKey, ...] = ()
    quorum: int = 0

    def __post_init__(self) -> None:
        kinds = [self.log.kind, *(each.kind for each in self.witnesses)]
        publics, names = ({getattr(each, of) for each in self.witnesses} for of in ("public", "name"))
        if kinds != [LOG_KEY] + [WITNESS_KEY] * len(self.witnesses):
            raise NotLoggedError("unlogged", "a log must be given by its own key, and witnesses by theirs")
        least = min(1, len(self.witnesses))  # witnesses that need not sign are none
        if not len(publics) == len(names) == len(self.witnesses) >= self.quorum >= least:
            raise NotLoggedError(
                "unwitnessed",
                f"witnesses must differ and be at least the quorum of {self.quorum}, got {len(publics)}",
            )

    def opened(self, data: bytes) -> Witnessed:
        """Return the checkpoint of a note, if the log and enough witnesses signed it.

        Raises:
            NotLoggedError: If they did not, or the bytes are no checkpoint of this log.
        """
        note = Note.parse(data)
        checkpoint = None if note is None else Checkpoint.parse(note.text)
        if note is None or checkpoint is None or checkpoint.origin != self.log.name:
            raise NotLoggedError("unlogged", f"a checkpoint must be of {self.log.name}, got other bytes")
        if self.log.signed_at(note) is None:
            raise NotLoggedError(
                "unlogged", f"a checkpoint must be signed by {self.log.name}, got one that is not"
            )
        signed = {each.name: each.signed_at(note) for each in self.witnesses}
        seen = {name: at_s for name, at_s in signed.items() if at_s is not None}
        if len(seen) < self.quorum:
            raise NotLoggedError(
                "unwitnessed", f"a checkpoint must be seen by {self.quorum} witnesses, got {len(seen)}"
            )
        return Witnessed(checkpoint, seen)

    def proven(self, entry: bytes, proof: bytes) -> Witnessed:
        """Return the checkpoint by which a proof shows an entry to be in the log.

        Raises:
            NotLoggedError: If it shows no such thing.
        """
        split = proof.partition(b"\n\n") if isinstance(proof, bytes) else (b"", b"", b"")
        lines = split[0].decode("ascii", "replace").split("\n")
        has_extra = len(lines) > 1 and lines[1].startswith("extra ")
        word, _, digits = (lines[1 + has_extra] if len(lines) > 1 + has_extra else "").partition(" ")
        index, path = number_of(digits), [_bytes(line) or b"" for line in lines[2 + has_extra :]]
        if lines[0] != _PROOF or word != "index" or index is None:
            raise NotLoggedError("unlogged", f"a proof must be a {_PROOF}, got other bytes")
        witnessed = self.opened(split[2])
        size, root = witnessed.checkpoint.size, witnessed.checkpoint.root
        if root_by(leaf_hash(entry), index, size, path) != root:
            raise NotLoggedError(
                "unlogged", f"an entry must be in {self.log.name} at {index}, got another tree"
            )
        return witnessed

    def proves(self, entry: bytes, proof: bytes) -> bool:
        """Return whether a proof shows an entry to be in the log, whatever its bytes are."""
        try:
            self.proven(entry, proof)
        except NotLoggedError:
            return False
        return True


def proof_text(index: int, path: Sequence[bytes], note: str) -> str:
    """Return the proof that the entry at `index` is in the tree of a signed checkpoint."""
    return "\n".join([_PROOF, f"index {index}", *map(_base64, path), "", note])


def path_text(path: Sequence[bytes]) -> str:
    """Return the lines of hashes by which a witness is shown that the log only grew."""
    return "".join(f"{_base64(each)}\n" for each in path)


def path_of(lines: Sequence[str]) -> list[bytes] | None:
    """Return the hashes of such lines, or None."""
    path = [_bytes(line) or b"" for line in lines]
    return path if all(len(each) == HASH_BYTES for each in path) else None


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a log or of a witness."""
    return 0 < len(text.encode("utf-8", "replace")) <= 255 and not any(
        letter < " " or letter.isspace() or letter == "+" for letter in text
    )


def number_of(text: str) -> int | None:
    """Return the number of decimal digits without leading zeros, or None."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    return int(text) if str(int(text)) == text and int(text) <= _MOST_SIZE else None


def _signature(line: str) -> tuple[str, bytes] | None:
    dash, _, rest = line.partition(" ")
    name, _, packed = rest.partition(" ")
    found = _bytes(packed)
    is_one = dash == "\N{EM DASH}" and is_name(name) and found is not None and len(found) > _ID_BYTES
    return (name, found) if is_one and found is not None else None


def _cosigned(text: str, now_s: int) -> bytes:
    return f"cosignature/v1\ntime {now_s}\n{text}".encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes | None:
    """Return the bytes of their one text in base64, or None."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if _base64(data) == text else None
