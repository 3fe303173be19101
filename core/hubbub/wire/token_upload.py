"""An upload whose reports each carry a one-time token: array [2, [[report, token], ...]].

The report is encoded as in any upload, the token is binary of `hubbub.tokens.TOKEN_BYTES` bytes; this room
does not look into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hubbub.errors import WireError
from hubbub.wire import packing
from hubbub.wire.report import Malformed, Report, array_head, decode_report

TOKEN_UPLOAD_VERSION: Final = 2
_HEAD: Final = bytes([0x92, TOKEN_UPLOAD_VERSION])
# Far above any token; far below what a body may have.
_MAX_TOKEN_BYTES: Final = 4096


def is_token_upload(data: bytes) -> bool:
    """Return whether bytes begin as an upload with tokens does."""
    return data.startswith(_HEAD)


def encode_token_upload(reports: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the body of an upload of encoded reports, each with its token."""
    elements = [b"\x92" + report + packing.pack(token) for report, token in reports]
    return b"".join((_HEAD, array_head(len(elements)), *elements))


def decode_token_upload(data: bytes, *, max_reports: int) -> list[tuple[Report | Malformed, bytes]]:
    """Return the reports of an upload with their tokens, in order; the token of a Malformed is empty.

    Raises:
        WireError: If the frame itself is broken, as for `hubbub.wire.decode_upload`.
    """
    if not is_token_upload(data):
        raise WireError(f"upload with tokens must be of version {TOKEN_UPLOAD_VERSION}")
    cursor = packing.Cursor(data, "upload")
    cursor.array("upload", 2)
    cursor.element()
    found: list[tuple[Report | Malformed, bytes]] = []
    for _ in range(cursor.array("upload", max_reports)):
        element = cursor.element()
        try:
            found.append(_pair(element))
        except WireError as error:
            found.append((Malformed(str(error)), b""))
    cursor.finish()
    return found


def _pair(element: bytes) -> tuple[Report, bytes]:
    cursor = packing.Cursor(element, "report and token")
    if (length := cursor.array("report and token", 2)) != 2:
        raise WireError(f"report and token must be two elements, got {length}")
    report = decode_report(cursor.element())
    token = cursor.element()
    cursor.finish()
    if len(token) > _MAX_TOKEN_BYTES:
        raise WireError(f"token must have at most {_MAX_TOKEN_BYTES} bytes, got {len(token)}")
    return report, packing.binary(packing.unpack(token, "token"), "token")
