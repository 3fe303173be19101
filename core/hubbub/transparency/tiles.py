"""Tiles: a log's hashes and entries in files of 256, as c2sp.org/tlog-tiles names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hubbub.errors import WireError

LOG_PATH: Final = "/log"
"""The path under which a server has its log."""

PROOF_SUFFIX: Final = ".tlog-proof"
"""The end of the name of a proof, which lies beside what it is about."""

TILE: Final = 256
"""The hashes of a tile, and the entries of a bundle."""

_LENGTH_BYTES: Final = 2
_PLACE: Final = re.compile(r"((?:x\d{3}/){0,5}\d{3})(?:\.p/([1-9]\d{0,2}))?", re.ASCII)


def tile_path(level: int | str, number: int, width: int) -> str:
    """Return the path of a tile of hashes, or of a bundle of entries.

    Args:
        level: The tile's level, or "entries".
        number: Its number in its level.
        width: How many there are of its hashes or entries, 1 to 256.
    """
    groups = f"{number:,}".split(",")
    groups[0] = groups[0].zfill(3)
    place = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
    return f"tile/{level}/{place}" + ("" if width == TILE else f".p/{width}")


def tile_place(path: str) -> tuple[int, int] | None:
    """Return the number and the width that the end of a tile's path names, or None."""
    found = _PLACE.fullmatch(path)
    if found is None:
        return None
    number, width = int(found[1].replace("/", "").replace("x", "")), int(found[2] or TILE)
    is_one = tile_path("0", number, width) == f"tile/0/{path}" and (width < TILE) == (found[2] is not None)
    return (number, width) if is_one else None


def bundle(entries: Sequence[bytes]) -> bytes:
    """Return the bytes of a bundle: each entry, of at most 65,535 bytes, after its length in two bytes."""
    return b"".join(len(entry).to_bytes(_LENGTH_BYTES, "big") + entry for entry in entries)


def entries_of(data: bytes) -> list[bytes]:
    """Return the entries of a bundle.

    Raises:
        WireError: If it is none.
    """
    found, start = [], 0
    while start < len(data):
        begin = start + _LENGTH_BYTES
        start = begin + int.from_bytes(data[start:begin], "big")
        found.append(data[begin:start])
    if start != len(data):
        raise WireError("a bundle of entries must end with its last entry, got one that is cut off")
    return found
