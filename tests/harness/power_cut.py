"""A disk that forgets: SQLite's writes recorded at its file layer, and what a power cut may leave of them.

`recorded` patches the open function of SQLite's default VFS, in this process, so that every write,
truncation, sync and deletion is noted as well as done. `after_cut` then lays out what a disk may hold if
power fails after some number of those: all that was synced, and of the rest nothing, everything, or any
part, torn at sectors.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SECTOR = 512

_Open = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,  # the name: a file keeps this very pointer
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_int),
)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_Close = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, as far as it is used."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
    )


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("close", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("truncate", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
        ("rest", ctypes.c_void_p * 13),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened: to a file, or (kind "sent") to the world."""

    kind: Literal["write", "truncate", "sync", "delete", "sent"]
    path: str = ""
    offset: int = 0
    data: bytes = b""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The SQLite that Python's own module has loaded; None where it cannot be reached."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    found = {line.split()[-1] for line in maps.splitlines() if "libsqlite3" in line}
    return ctypes.CDLL(found.pop()) if len(found) == 1 else None


@contextlib.contextmanager
def recorded(folder: Path, is_full: Callable[[str], bool] = lambda _: False) -> Iterator[list[Step]]:
    """The steps of all files in a folder, while the context lasts; files must be closed within it.

    Args:
        folder: The folder.
        is_full: Whether the disk of a file has no room: nothing is written to it then.
    """
    sqlite = library()
    assert sqlite is not None
    sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = sqlite.sqlite3_vfs_find(None).contents
    plain_open, plain_delete = _Open(vfs.open), _Delete(vfs.delete)
    steps, within = list[Step](), os.fsencode(folder)
    kept: list[object] = []  # what C points to must live
    names: dict[int, str] = {}
    tables: dict[int, _Methods] = {}

    def methods_of(file: int) -> _Methods:
        """A copy of a file's method table that notes what it does."""
        address = ctypes.c_void_p.from_address(file).value
        assert address is not None
        if address in tables:
            return tables[address]
        copy = _Methods.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(_Methods)))
        write, truncate, sync = _Write(copy.write), _Truncate(copy.truncate), _Sync(copy.sync)

        def on_write(file: int, data: int, size: int, offset: int) -> int:
            if is_full(names[file]):
                return sqlite3.SQLITE_FULL
            steps.append(Step("write", names[file], offset, ctypes.string_at(data, size)))
            return write(file, data, size, offset)

        def on_truncate(file: int, size: int) -> int:
            steps.append(Step("truncate", names[file], size))
            return truncate(file, size)

        def on_sync(file: int, flags: int) -> int:
            result = sync(file, flags)
            steps.append(Step("sync", names[file]))
            return result

        for name, function in (
            ("write", _Write(on_write)),
            ("truncate", _Truncate(on_truncate)),
            ("sync", _Sync(on_sync)),
        ):
            kept.append(function)
            setattr(copy, name, ctypes.cast(function, ctypes.c_void_p).value)
        tables[address] = copy
        return copy

    def on_open(vfs: int, name: int | None, file: int, flags: int, out: object) -> int:
        result = plain_open(vfs, name, file, flags, out)
        where, _, last = (b"" if name is None else ctypes.string_at(name)).rpartition(b"/")
        if result == 0 and where == within:
            names[file] = last.decode()
            ctypes.c_void_p.from_address(file).value = ctypes.addressof(methods_of(file))
        return result

    def on_delete(vfs: int, name: bytes, sync: int) -> int:
        where, _, last = name.rpartition(b"/")
        if where == within:
            steps.append(Step("delete", last.decode()))
            if sync:  # of the folder
                steps.append(Step("sync", last.decode()))
        return plain_delete(vfs, name, sync)

    ours = _Open(on_open), _Delete(on_delete)
    kept.extend(ours)
    before = vfs.open, vfs.delete
    vfs.open, vfs.delete = (ctypes.cast(function, ctypes.c_void_p).value for function in ours)
    try:
        yield steps
    finally:
        vfs.open, vfs.delete = before
        _FOREVER.append(kept)


_FOREVER: list[object] = []


@dataclass(slots=True)
class _File:
    """What is safely on disk of a file (None: it may not exist), and what happened since."""

    durable: bytearray | None
    since: list[Step] = field(default_factory=list)


def after_cut(
    start: dict[str, bytes],
    steps: list[Step],
    *,
    unsynced: Literal["lost", "kept", "torn"],
    chance: random.Random,
) -> dict[str, bytes]:
    """The files that a power cut after `steps` may leave.

    Args:
        start: Name to content, all of it on disk.
        steps: What happened since.
        unsynced: What becomes of steps that no sync followed.
        chance: Which of them, and how much of each, if torn.
    """
    files = {name: _File(bytearray(data)) for name, data in start.items()}
    for step in steps:
        if step.kind == "sent":
            continue
        file = files.setdefault(step.path, _File(None))
        if step.kind == "sync":
            is_new = file.durable is None or any(each.kind == "delete" for each in file.since)
            file.durable = _apply(file.durable, file.since)
            file.since = []
            if is_new:  # SQLite syncs the folder with a new journal: what was deleted there stays so
                for other in files.values():
                    gone = [i for i, each in enumerate(other.since) if each.kind == "delete"]
                    if gone:
                        other.durable, other.since = None, other.since[gone[-1] + 1 :]
        else:
            file.since.append(step)
    left: dict[str, bytes] = {}
    for name, file in files.items():
        kept = {"lost": [], "kept": file.since}.get(unsynced)
        data = _apply(file.durable, _torn(file.since, chance) if kept is None else kept)
        if data is not None:
            left[name] = bytes(data)
    return left


def _torn(steps: list[Step], chance: random.Random) -> list[Step]:
    """Some of the steps, in order, writes cut at a sector."""
    kept = []
    for step in steps:
        is_kept = chance.random() < 0.5
        if step.kind == "delete" and not is_kept:
            break  # what follows was written to another file of this name
        if is_kept:
            size = len(step.data)
            if step.kind == "write" and chance.random() < 0.5:
                size = chance.randrange(0, size + 1) // SECTOR * SECTOR
            kept.append(Step(step.kind, step.path, step.offset, step.data[:size]))
    return kept


def _apply(data: bytearray | None, steps: list[Step]) -> bytearray | None:
    """The content after some steps, changed in place."""
    for step in steps:
        if step.kind == "delete":
            data = None
            continue
        data = bytearray() if data is None else data
        if step.kind == "truncate":
            del data[step.offset :]
            data.extend(bytes(step.offset - len(data)))
        else:
            data.extend(bytes(max(0, step.offset - len(data))))
            data[step.offset : step.offset + len(step.data)] = step.data
    return data
