"""The file of a compiled survey: its bytes, told from a text by how they begin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

# A file with as many labels as a domain may hold, and room for comments.
MAX_FILE_BYTES: Final = 2**24

_HEAD_BYTES: Final = 20
# An array of MessagePack, short or long, whose first element is the name of the layout.
_COMPILED: Final = re.compile(rb"(?:[\x90-\x9f]|\xdc..|\xdd....)\xadhubbub-survey", re.DOTALL)


def read_compiled(path: str | Path) -> bytes | None:
    """Return the bytes of a file that `hubbub survey compile` wrote, or None for any other file."""
    try:
        with Path(path).open("rb") as stream:
            if _COMPILED.match(stream.read(_HEAD_BYTES)) is None:
                return None
            stream.seek(0)
            return stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError):  # `read` says why
        return None
