"""The records of the log: surveys, batches of reports as columns, and seals.

A batch keeps ids and symbols of one (survey, round) as two columns and beside them the tally of everything
that was refused, so that the log alone proves: attempts = kept + refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.symbols import MAX_SYMBOL_BYTES
from hubbub.errors import ParameterError, WireError
from hubbub.wire import packing
from hubbub.wire.report import DIGEST_BYTES, ID_BYTES, MAX_ROUND, MAX_SYMBOL

RECORD_VERSION: Final = 1
# Rounds that no schedule has are tallied together, under a number that no round has.
NO_ROUND: Final = -1
# The order of a segment's refusals in its bytes.
REFUSALS: Final = ("invalid", "early", "late", "over_quota")
# All tallies of a record together, kept reports included: more than any gateway judges in a batch, and four
# million such records in a partition still add up to what every reader holds exactly, JavaScript included.
MAX_TALLIES: Final = 2**31
# A counter saves a record at once, and a round of it takes the store some 65 us in which it answers
# nobody else: a second for so many. No gateway's batch of the usual size can have as many.
MAX_SEGMENTS: Final = 2**14
# A segment names its issuer in so many characters at most, as the challenge of its tokens does.
MAX_ISSUER_NAME: Final = 255
# Minutes since 1970 that fit 32 bits: the year 10136.
MAX_MINUTE: Final = 2**32 - 1

_SURVEY, _REPORTS, _SEAL = 0, 1, 2
_NO_QUOTA: Final = -1
_SIGNATURE_BYTES: Final = 64
_NO_REFUSALS: Final[Mapping[str, int]] = MappingProxyType({})
_WIDTHS: Final[dict[int, np.dtype[np.unsignedinteger]]] = {
    1: np.dtype("u1"),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
}


@dataclass(frozen=True, slots=True)
class SurveyRecord:
    """The canonical bytes of a survey; in every partition it comes before the first report of its digest."""

    canonical: bytes


@dataclass(frozen=True, slots=True)
class SealRecord:
    """A record after which nothing in its partition counts towards a round.

    Attributes:
        digest: Which survey, 16 bytes.
        round: Which round.
        signature: The sealer's, 64 bytes; empty where seals are not signed.
    """

    digest: bytes
    round: int
    signature: bytes = b""


class Voucher(NamedTuple):
    """The issuer that vouches for the reports of a segment, as the gateway knew it then.

    Attributes:
        issuer: Its name, 1 to 255 printable ASCII characters.
        quota: The most of its reports that a round takes in all partitions together; None for any number.
    """

    issuer: str
    quota: int | None = None


@dataclass(slots=True, eq=False)
class Segment:
    """The reports of one survey and round within one batch, and what was refused beside them; never changed.

    Not frozen: that would double the time it takes to make one, and every record that is read makes one.

    Attributes:
        digest: Which survey, 16 bytes.
        round: Which round, or NO_ROUND (-1) where only refusals of impossible rounds are tallied.
        ids: The report ids side by side, 16 n bytes.
        symbols: The reports' symbols in the order of the ids: numbers, shape (n,), any unsigned dtype; or
            packed sets, shape (n, bytes of one), uint8.
        attempts: Everything that asked to be counted: n plus all that was refused.
        refused: How many were refused, by reason; a reason that is absent is zero.
        voucher: The issuer of the tokens that the reports came with; None where none were asked for.
    """

    digest: bytes
    round: int
    ids: bytes
    symbols: NDArray[np.unsignedinteger]
    attempts: int
    refused: Mapping[str, int] = field(default_factory=dict)
    voucher: Voucher | None = None

    def __len__(self) -> int:
        """Return n, the number of reports that it keeps."""
        return len(self.symbols)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Segment)
            and (self.digest, self.round, self.ids, self.attempts, self.voucher)
            == (other.digest, other.round, other.ids, other.attempts, other.voucher)
            and np.array_equal(self.symbols, other.symbols)
            and all(self.refused.get(reason, 0) == other.refused.get(reason, 0) for reason in REFUSALS)
        )

    __hash__ = None  # type: ignore[assignment]  # it holds an array: equal by content, so not a key


@dataclass(slots=True)
class ReportsRecord:
    """One batch: the gateway's minute, its segments, and how many reports named an unknown survey.

    Never changed, and not frozen, like its segments.

    Attributes:
        minute: Minutes since 1970-01-01T00:00Z at which the gateway received the batch, rounded down.
        segments: One per (digest, round).
        unknown: Reports of digests that the gateway does not serve.
    """

    minute: int
    segments: tuple[Segment, ...]
    unknown: int = 0


Record: TypeAlias = SurveyRecord | SealRecord | ReportsRecord


def encode_record(record: Record) -> bytes:
    """Return the bytes of one record; docs/wire.md gives the layout.

    Raises:
        ParameterError: If a field has the wrong type, length or range, or a tally does not add up: what is
            encoded always decodes.
    """
    try:
        if isinstance(record, SurveyRecord):
            return packing.pack([RECORD_VERSION, _SURVEY, packing.binary(record.canonical, "survey record")])
        if isinstance(record, SealRecord):
            packing.binary(record.digest, "seal digest", DIGEST_BYTES)
            packing.integer(record.round, "seal round", 0, MAX_ROUND)
            fields: list[object] = [RECORD_VERSION, _SEAL, record.digest, record.round]
            if record.signature:
                fields.append(packing.binary(record.signature, "seal signature", _SIGNATURE_BYTES))
            return packing.pack(fields)
        _few(len(record.segments))
        segments = [_segment_fields(segment) for segment in record.segments]
        packing.integer(record.minute, "record minute", 0, MAX_MINUTE)
        packing.integer(record.unknown, "record unknown", 0, MAX_TALLIES)
        _bounded(record)
    except WireError as error:
        raise ParameterError(str(error)) from None
    return packing.pack([RECORD_VERSION, _REPORTS, record.minute, record.unknown, segments])


def _segment_fields(segment: Segment) -> list[object]:
    width, column = _column(segment.symbols)
    if strange := set(segment.refused) - set(REFUSALS):
        raise WireError(f"segment refusals must be among {', '.join(REFUSALS)}, got {sorted(strange)}")
    refused = [segment.refused.get(reason, 0) for reason in REFUSALS]
    fields: list[object] = [
        segment.digest,
        segment.round,
        segment.ids,
        width,
        column,
        segment.attempts,
        refused,
    ]
    if segment.voucher is not None:
        issuer, quota = segment.voucher
        fields.append([issuer, _NO_QUOTA if quota is None else quota])
    _segment(fields)
    return fields


def _column(symbols: NDArray[np.unsignedinteger]) -> tuple[int, bytes]:
    """Return the width of a column of symbols as it is stored, and its bytes."""
    if symbols.ndim == 2 and symbols.dtype == np.uint8:
        return -symbols.shape[1], symbols.tobytes()
    if symbols.dtype.kind != "u" or symbols.ndim != 1:
        raise WireError(
            f"segment symbols must be a column of unsigned integers or of sets, got {symbols.dtype}"
        )
    highest = int(symbols.max()) if len(symbols) else 0
    width = 1 if highest < 2**8 else 2 if highest < 2**16 else 4
    if highest > MAX_SYMBOL:
        raise WireError(f"segment symbols must be at most {MAX_SYMBOL}")
    return width, symbols.astype(_WIDTHS[width]).tobytes()


# Every record that is counted comes through what follows: a field is looked at in place, and only one that is
# wrong is given to the function that says so.
def decode_record(data: bytes, *, broken: list[int] | None = None) -> Record:
    """Return the record that `data` holds, every field checked before anything is built on it.

    Symbols are views of `data`'s bytes in the width they were stored in; that they lie below the channel's M
    is for the reader to check, who knows the survey.

    Args:
        data: The bytes.
        broken: A list that receives the positions of segments that are not well-formed; the record then comes
            without them. Without such a list, one of them makes the whole record a WireError.

    Raises:
        WireError: If `data` is anything but one well-formed record, but for segments as above.
    """
    fields = packing.array(packing.unpack(data, "record"), "record")
    if len(fields) < 2:
        raise WireError(f"record must begin with version and kind, got {len(fields)} elements")
    kind = fields[1]
    if (
        type(fields[0]) is not int
        or fields[0] != RECORD_VERSION
        or type(kind) is not int
        or not 0 <= kind <= 2
    ):
        packing.version(fields[0], "record", (RECORD_VERSION,))
        kind = packing.integer(kind, "record kind", 0, 2)
    if kind == _SURVEY:
        packing.array(fields, "survey record", 3)
        return SurveyRecord(packing.binary(fields[2], "survey record"))
    if kind == _SEAL:
        if len(fields) != 5:
            packing.array(fields, "seal record", 4)
        return SealRecord(
            packing.binary(fields[2], "seal digest", DIGEST_BYTES),
            packing.integer(fields[3], "seal round", 0, MAX_ROUND),
            packing.binary(fields[4], "seal signature", _SIGNATURE_BYTES) if len(fields) == 5 else b"",
        )
    _, _, minute, unknown, segments = packing.array(fields, "reports record", 5)
    if type(minute) is not int or not 0 <= minute <= MAX_MINUTE:
        minute = packing.integer(minute, "record minute", 0, MAX_MINUTE)
    if type(unknown) is not int or not 0 <= unknown <= MAX_TALLIES:
        unknown = packing.integer(unknown, "record unknown", 0, MAX_TALLIES)
    items = packing.array(segments, "segments")
    _few(len(items))
    return _bounded(ReportsRecord(minute, _segments(items, broken), unknown))


def _few(segments: int) -> None:
    """Check the number of a record's segments.

    Raises:
        WireError: If there are more than MAX_SEGMENTS.
    """
    if segments > MAX_SEGMENTS:
        raise WireError(f"record must have at most {MAX_SEGMENTS} segments, got {segments}")


def _bounded(record: ReportsRecord) -> ReportsRecord:
    """Return the record.

    Raises:
        WireError: If its tallies are more than MAX_TALLIES together.
    """
    tallies = record.unknown + sum([segment.attempts for segment in record.segments])
    if tallies > MAX_TALLIES:
        raise WireError(f"record tallies must be at most {MAX_TALLIES} together, got {tallies}")
    return record


def _segments(items: list[object], broken: list[int] | None) -> tuple[Segment, ...]:
    found: list[Segment] = []
    for place, item in enumerate(items):
        try:
            fields = packing.array(item, "segment")
            found.append(_segment(fields if len(fields) == 8 else packing.array(fields, "segment", 7)))
        except WireError:
            if broken is None:
                raise
            broken.append(place)
    return tuple(found)


def _segment(fields: list[object]) -> Segment:
    """Return the segment of seven decoded fields, or eight with a voucher, every one of them checked."""
    digest, number, ids, kind, column, attempts, refused = fields[:7]
    if type(digest) is not bytes or len(digest) != DIGEST_BYTES:
        digest = packing.binary(digest, "segment digest", DIGEST_BYTES)
    if type(number) is not int or not NO_ROUND <= number <= MAX_ROUND:
        number = packing.integer(number, "segment round", NO_ROUND, MAX_ROUND)
    if type(ids) is not bytes:
        ids = packing.binary(ids, "segment ids")
    if type(kind) is not int or not -MAX_SYMBOL_BYTES <= kind <= 4:
        kind = packing.integer(kind, "segment symbol width", -MAX_SYMBOL_BYTES, 4)
    if kind not in _WIDTHS and kind >= 0:
        raise WireError(f"segment symbol width must be 1, 2, 4 or negative for sets, got {kind}")
    width = abs(kind)
    if type(column) is not bytes:
        column = packing.binary(column, "segment symbols")
    n, rest = divmod(len(column), width)
    if rest or len(ids) != ID_BYTES * n:
        raise WireError(
            f"segment must hold one {width}-byte symbol per {ID_BYTES}-byte id, "
            f"got {len(column)} and {len(ids)} bytes"
        )
    if number == NO_ROUND and n:
        raise WireError(f"segment of no round must keep no report, got {n}")
    if type(attempts) is not int or not 0 <= attempts <= MAX_TALLIES:
        attempts = packing.integer(attempts, "segment attempts", 0, MAX_TALLIES)
    tallies = packing.integers(refused, "segment refused", 0, MAX_TALLIES)
    if len(tallies) != len(REFUSALS) or attempts != n + sum(tallies):
        raise WireError(f"segment attempts must be kept {n} plus refused {tallies}, got {attempts}")
    return Segment(
        digest,
        number,
        ids,
        np.frombuffer(column, dtype=_WIDTHS[kind]) if kind > 0 else _sets(column, width),
        attempts,
        dict(zip(REFUSALS, tallies, strict=True)) if attempts > n else _NO_REFUSALS,
        _voucher(fields[7]) if len(fields) == 8 else None,
    )


def _voucher(item: object) -> Voucher:
    issuer, quota = packing.array(item, "segment voucher", 2)
    if (
        not isinstance(issuer, str)
        or not 1 <= len(issuer) <= MAX_ISSUER_NAME
        or not (issuer.isascii() and issuer.isprintable())
    ):
        raise WireError(f"segment issuer must be 1 to {MAX_ISSUER_NAME} printable ASCII characters")
    most = packing.integer(quota, "segment issuer quota", _NO_QUOTA, MAX_TALLIES)
    return Voucher(issuer, None if most == _NO_QUOTA else most)


def _sets(column: bytes, width: int) -> NDArray[np.unsignedinteger]:
    return np.frombuffer(column, dtype=np.uint8).reshape(-1, width)
