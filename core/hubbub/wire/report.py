"""The wire between a device and the gateway: reports, uploads, outcomes, survey lists.

Byte layouts are in docs/wire.md and are held by the golden files; a change of either is a new WIRE_VERSION.

A report has one encoding on the wire, and three more in which a gateway keeps many side by side::

    as sent   [digest + id, round, symbol] in MessagePack, of any length
              made by a device (`encode_report`), read one by one (`decode_report`)
    short     SHORT_REPORT, 37 bytes: as sent, where round and symbol are below 128
              cut out of an upload without decoding (`short_reports`)
    set       a form for each width of a packed set and length of a round's number: as sent, too
              cut out of an upload without decoding (`set_reports`)
    wide      WIDE_REPORT, 40 bytes: digest, id, and four bytes each for a larger round and a numeric symbol
              rewritten from an upload (`wide_reports`), never sent

A gateway tries short, set, wide, then one by one, upload by upload. Uploads of the first three are judged
together when their batch is written, in a few vector operations; the others, with malformed reports, or sets
beside numbers or sets of another width among them, are judged at once. In the log all of them are columns
(`record`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from hubbub.channels.symbols import MAX_SYMBOL_BYTES, Symbol
from hubbub.errors import ParameterError, WireError
from hubbub.wire import packing
from hubbub.wire.frames import Frame

WIRE_VERSION: Final = 1
DIGEST_BYTES: Final = 16
ID_BYTES: Final = 16
# Rounds and symbols are kept in 32 bits by every reader of the log; no schedule or channel comes near.
MAX_ROUND: Final = 2**31 - 1
MAX_SYMBOL: Final = 2**32 - 1
# One list of surveys; far more than an operator runs at once, few enough to hold in memory.
MAX_SURVEYS: Final = 4096
# One response answers one upload; no gateway accepts more reports in one body.
MAX_OUTCOMES: Final = 65536

# The longest form of an integer.
_NUMBER_BYTES: Final = 9
_IDENTITY: Final = DIGEST_BYTES + ID_BYTES
_REPORT_HEAD: Final = bytes([0x93, 0xC4, _IDENTITY])
# A report whose round and symbol are numbers below 128, as almost all are: its fields lie at fixed offsets.
SHORT_REPORT: Final = np.dtype(
    [
        ("head", "u1", len(_REPORT_HEAD)),
        ("digest", "u1", DIGEST_BYTES),
        ("id", "u1", ID_BYTES),
        ("round", "u1"),
        ("symbol", "u1"),
    ]
)
_SHORT_REPORT: Final = SHORT_REPORT.itemsize
# A wide row, for larger numbers: not as they are sent, but side by side all the same.
WIDE_REPORT: Final = np.dtype(
    [("digest", "u1", DIGEST_BYTES), ("id", "u1", ID_BYTES), ("round", ">u4"), ("symbol", ">u4")]
)
_FRAME_HEAD: Final = bytes([0x92, WIRE_VERSION])
_SHORT_REPORTS: Final = re.compile(
    b"(?:%s.{%d}[\x00-\x7f]{2})++" % (re.escape(_REPORT_HEAD), _IDENTITY), re.DOTALL
)
# Every form of a number below 2^31.
_NUMBER: Final = rb"([\x00-\x7f]|\xcc.|\xcd..|\xce[\x00-\x7f]...)"
_WIDE_REPORT: Final = re.compile(
    b"%s(.{%d})%s%s" % (re.escape(_REPORT_HEAD), _IDENTITY, _NUMBER, _NUMBER), re.DOTALL
)
_WIDE_REPORTS: Final = re.compile(b"(?:%s)++" % _WIDE_REPORT.pattern, re.DOTALL)
# Before a number of so many bytes, and before a set: what says its length. A round is below 2^31.
_ROUND_HEADS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4}
_SET_HEADS: Final = {0xC4: 1, 0xC5: 2}
_ROUND_AT: Final = len(_REPORT_HEAD) + _IDENTITY
_MOST_BEFORE_SET: Final = _ROUND_AT + 1 + max(_ROUND_HEADS.values()) + 1 + max(_SET_HEADS.values())

Outcome: TypeAlias = Literal["accepted", "invalid", "early", "late", "unknown", "over_quota"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)


@dataclass(slots=True, unsafe_hash=True)
class Report:
    """One perturbed answer of one device in one round; never changed.

    Not frozen: that would triple the time it takes to make one, and a gateway makes one of every report.

    Attributes:
        digest: Which compiled survey, 16 bytes.
        round: Which round of its schedule, 0 and up.
        id: 16 random bytes, fresh for every report; a retry repeats them.
        symbol: The channel's output: a number, 0..M-1, or a packed set of 1 to MAX_SYMBOL_BYTES bytes.
    """

    digest: bytes
    round: int
    id: bytes
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Malformed:
    """One element of an upload that is not a report, and the rule that it breaks."""

    reason: str


def encode_report(report: Report) -> bytes:
    """Return the bytes of one report: array [digest followed by id, round, symbol], 37 for small numbers.

    A symbol that is a number is an integer there, a packed set is binary.

    Raises:
        ParameterError: If a field has the wrong type, length or range.
    """
    digest, identifier = report.digest, report.id
    for name, value, length in (("digest", digest, DIGEST_BYTES), ("id", identifier, ID_BYTES)):
        if not isinstance(value, bytes) or len(value) != length:
            raise ParameterError(f"report {name} must be {length} bytes, got {type(value).__name__}")
    answer = encode_symbol(report.symbol)
    if type(report.round) is not int or not 0 <= report.round <= MAX_ROUND:
        raise ParameterError(f"report round must be an integer in [0, {MAX_ROUND}]")
    return b"".join((_REPORT_HEAD, digest, identifier, _number(report.round), answer))


def encode_symbol(symbol: Symbol) -> bytes:
    """Return the bytes of a symbol as a report has it.

    Raises:
        ParameterError: If it has the wrong type, length or range.
    """
    if isinstance(symbol, bytes):
        if not 1 <= len(symbol) <= MAX_SYMBOL_BYTES:
            raise ParameterError(
                f"report symbol must have 1 to {MAX_SYMBOL_BYTES} bytes if any, got {len(symbol)}"
            )
        return packing.pack(symbol)
    if type(symbol) is not int or not 0 <= symbol <= MAX_SYMBOL:
        # A symbol is not the true value, but there is no need to print it either.
        raise ParameterError(f"report symbol must be bytes or an integer in [0, {MAX_SYMBOL}]")
    return _number(symbol)


def _number(value: int) -> bytes:
    """Return a non-negative integer in its shortest MessagePack form."""
    return bytes((value,)) if value < 0x80 else packing.pack(value)


def decode_report(data: bytes) -> Report:
    """Return the report that `data` holds.

    Raises:
        WireError: If `data` is anything but one well-formed report.
    """
    # Almost every report is the short form: its fields lie at fixed offsets.
    if len(data) == _SHORT_REPORT and data[:3] == _REPORT_HEAD and data[-2] < 0x80 and data[-1] < 0x80:
        return Report(data[3:19], data[-2], data[19:35], data[-1])
    fields = packing.array(packing.unpack(data, "report"), "report", 3)
    identity = packing.binary(fields[0], "report digest and id", _IDENTITY)
    return Report(
        identity[:DIGEST_BYTES],
        packing.integer(fields[1], "report round", 0, MAX_ROUND),
        identity[DIGEST_BYTES:],
        _symbol(fields[2]),
    )


def _symbol(value: object) -> Symbol:
    if not isinstance(value, bytes):
        return packing.integer(value, "report symbol", 0, MAX_SYMBOL)
    if not 1 <= len(value) <= MAX_SYMBOL_BYTES:
        raise WireError(f"report symbol must have 1 to {MAX_SYMBOL_BYTES} bytes, got {len(value)}")
    return value


def encode_upload(reports: Sequence[bytes]) -> bytes:
    """Return the body of one upload: array [1, [report, ...]] of the encoded reports as they are."""
    return _frame(reports)


def _frame(elements: Sequence[bytes]) -> bytes:
    """Return array [1, [element, ...]] of elements that are encoded already."""
    return b"".join((_FRAME_HEAD, array_head(len(elements)), *elements))


def array_head(length: int) -> bytes:
    """Return the head of a MessagePack array of that many elements."""
    if length < 16:
        return bytes([0x90 | length])
    return b"\xdc" + struct.pack(">H", length) if length < 65536 else b"\xdd" + struct.pack(">I", length)


def decode_upload(data: bytes, *, max_reports: int) -> list[Report | Malformed]:
    """Return the reports of one upload, in order; an element that is no report is Malformed.

    Raises:
        WireError: If the frame itself is broken: not MessagePack, cut short, another version, bytes after the
            end, or more than `max_reports` elements.
    """
    cursor = _open(data, "upload")
    found: list[Report | Malformed] = []
    for _ in range(cursor.array("upload", max_reports)):
        element = cursor.element()
        try:
            found.append(decode_report(element))
        except WireError as error:
            found.append(Malformed(str(error)))
    cursor.finish()
    return found


def side_by_side(
    data: bytes, *, max_reports: int, set_bytes: Collection[int] = ()
) -> tuple[np.dtype[np.void], bytes] | None:
    """Return the form of an upload's reports, and them side by side; None where they are not of one form.

    Args:
        data: The body of an upload.
        max_reports: The most reports that it may have.
        set_bytes: The widths of sets that are looked for, in bytes. Others are left to `decode_upload`: else
            whoever sends could cause as many forms as there are widths, each judged by itself.
    """
    if (rows := short_reports(data, max_reports=max_reports)) is not None:
        return SHORT_REPORT, rows
    if set_bytes and (found := set_reports(data, max_reports=max_reports, set_bytes=set_bytes)) is not None:
        return found
    rows = wide_reports(data, max_reports=max_reports)
    return None if rows is None else (WIDE_REPORT, rows)


def short_reports(data: bytes, *, max_reports: int) -> bytes | None:
    """Return the reports of an upload side by side, if there are any and all are SHORT_REPORT.

    It is None for any other upload; `decode_upload` says whether the bytes are an upload at all.
    """
    n, start = _announced(data, max_reports)
    # A pattern takes any number of reports: the length must be that of the head.
    if not n or len(data) != start + n * _SHORT_REPORT or not _SHORT_REPORTS.fullmatch(data, start):
        return None
    return data[start:]


def wide_reports(data: bytes, *, max_reports: int) -> bytes | None:
    """Return the reports of an upload as WIDE_REPORT, if there are any and all their symbols are numbers."""
    n, start = _announced(data, max_reports)
    if not n or len(data) < start + n * _SHORT_REPORT or not _WIDE_REPORTS.fullmatch(data, start):
        return None
    found = _WIDE_REPORT.findall(data, start)
    if len(found) != n:
        return None
    return b"".join([identity + _four(number) + _four(symbol) for identity, number, symbol in found])


def set_reports(
    data: bytes, *, max_reports: int, set_bytes: Collection[int]
) -> tuple[np.dtype[np.void], bytes] | None:
    """Return the form of an upload's reports, and them side by side, if all are sets of one width.

    Their rounds must have numbers of one length, and their width must be among `set_bytes`. The first report
    says where the fields of all others lie.
    """
    n, start = _announced(data, max_reports)
    if not n:
        return None
    first = data[start : start + _MOST_BEFORE_SET].ljust(_MOST_BEFORE_SET, b"\0")
    round_bytes = _ROUND_HEADS.get(first[_ROUND_AT], 0)
    set_at = _ROUND_AT + 1 + round_bytes
    width_bytes = _SET_HEADS.get(first[set_at], 0)
    symbol_at = set_at + 1 + width_bytes
    width = int.from_bytes(first[set_at + 1 : symbol_at], "big")
    stride = symbol_at + width
    # As devices send it: the length of a set in its shortest form.
    if width not in set_bytes or (width < 2**8) != (width_bytes == 1) or len(data) != start + n * stride:
        return None
    # All reports' bytes at one place, place by place: what a report has before its fields must be alike.
    alike = [*range(len(_REPORT_HEAD)), *([_ROUND_AT] if round_bytes else []), *range(set_at, symbol_at)]
    if not first.startswith(_REPORT_HEAD) or any(
        data[start + place :: stride] != first[place : place + 1] * n for place in alike
    ):
        return None
    # A round of one byte is below 128, of four below 2^31.
    if round_bytes in (0, 4) and not data[start + set_at - max(1, round_bytes) :: stride].isascii():
        return None
    return _set_form(round_bytes, width), data[start:]


@lru_cache(maxsize=1024)
def _set_form(round_bytes: int, width: int) -> np.dtype[np.void]:
    """Return the form of reports of sets whose round has `round_bytes` after its head, 0 for a head alone."""
    digest_at = len(_REPORT_HEAD)
    round_at = _ROUND_AT + (1 if round_bytes else 0)
    symbol_at = round_at + max(1, round_bytes) + (2 if width < 2**8 else 3)
    return np.dtype(
        {
            "names": ["digest", "id", "round", "symbol"],
            "formats": [
                ("u1", DIGEST_BYTES),
                ("u1", ID_BYTES),
                f">u{max(1, round_bytes)}",
                ("u1", (width,)),
            ],
            "offsets": [digest_at, digest_at + DIGEST_BYTES, round_at, symbol_at],
            "itemsize": symbol_at + width,
        }
    )


def _announced(data: bytes, max_reports: int) -> tuple[int, int]:
    """Return how many reports an upload announces and where they begin; 0 of them if they are too many.

    Only the frame that devices send is looked for; what else may be an upload has 0, too.
    """
    if not data.startswith(_FRAME_HEAD):
        return 0, 0
    kind = data[2] if len(data) > 2 else 0
    begin = 3
    if 0x90 <= kind <= 0x9F:
        n = kind & 0x0F
    elif kind == 0xDC:
        begin = 5
        n = int.from_bytes(data[3:begin], "big")
    elif kind == 0xDD:
        begin = 7
        n = int.from_bytes(data[3:begin], "big")
    else:
        n = 0
    return (n, begin) if n <= max_reports else (0, 0)


def _four(number: bytes) -> bytes:
    """Return the four bytes of a number that is given as MessagePack."""
    # Below 128 a number is its own byte; larger ones have a byte of type before them.
    return (number if len(number) == 1 else number[1:]).rjust(4, b"\0")


def _open(data: bytes, subject: str) -> packing.Cursor:
    """Return a cursor past the frame's version, before its list."""
    cursor = packing.Cursor(data, subject)
    if (length := cursor.array(subject, 2)) != 2:
        raise WireError(f"{subject} must be [version, list], got {length} elements")
    version = cursor.element()
    if len(version) > _NUMBER_BYTES:  # whatever it is, it is not built
        raise WireError(f"{subject} version must be an integer, got {len(version)} bytes")
    packing.version(packing.unpack(version, f"{subject} version"), subject, (WIRE_VERSION,))
    return cursor


def encode_response(outcomes: Sequence[Outcome]) -> bytes:
    """Return the answer to one upload: array [1, [outcome, ...]], one outcome per report and in its order."""
    return packing.pack([WIRE_VERSION, list(outcomes)])


def decode_response(data: bytes) -> list[Outcome]:
    """Return the outcomes of one upload.

    Raises:
        WireError: If the bytes are not a response, or name an outcome that this version does not know.
    """
    cursor = _open(data, "response")
    found: list[Outcome] = []
    for i in range(cursor.array("response", MAX_OUTCOMES)):
        outcome = packing.text(packing.unpack(cursor.element(), "outcome"), f"response[{i}]", 40)
        if outcome not in OUTCOMES:
            raise WireError(f"response[{i}] must be one of {', '.join(OUTCOMES)}, got {outcome!r}")
        found.append(outcome)
    cursor.finish()
    return found


def encode_surveys(canonicals: Sequence[bytes]) -> bytes:
    """Return the list of surveys that a gateway serves: array [1, [canonical bytes, ...]]."""
    return packing.pack([WIRE_VERSION, list(canonicals)])


def decode_surveys(data: bytes) -> list[bytes]:
    """Return the canonical bytes of each survey served, not yet validated: `Survey.from_canonical` does that.

    Raises:
        WireError: If the bytes are not such a list.
    """
    frame = Frame(data, "surveys")
    if (length := frame.array("surveys", 2)) != 2:
        raise WireError(f"surveys must be [version, list], got {length} elements")
    packing.version(frame.integer("surveys version", 0, 2**63), "surveys", (WIRE_VERSION,))
    found = [
        bytes(frame.binary(f"surveys[{i}]", len(data))) for i in range(frame.array("surveys", MAX_SURVEYS))
    ]
    frame.finish()
    return found
