"""The headers of an answer with outcomes, padded so that its length does not tell how many there are."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

# Answers are as long as steps of this many bytes: else their lengths tell how many reports an upload had.
_ANSWER_STEP: Final = 128
_PADDING: Final = tuple(b"0" * length for length in range(_ANSWER_STEP))


def outcome_headers(length: int) -> list[tuple[bytes, bytes]]:
    """Return the headers of a body of outcomes that has `length` bytes."""
    digits = b"%d" % length
    # Nothing about caching: of a POST, nothing is kept that does not say that it may be.
    return [
        (b"content-type", b"application/msgpack"),
        (b"padding", _PADDING[-(length + len(digits)) % _ANSWER_STEP]),
        (b"content-length", digits),
    ]


# As many lengths as there are numbers of reports in usual uploads, for some mixtures of outcomes each.
@lru_cache(maxsize=1024)
def outcome_head(length: int) -> bytes:
    """Return the same headers as lines, and the empty line after them."""
    return b"".join(b"%s: %s\r\n" % header for header in outcome_headers(length)) + b"\r\n"
