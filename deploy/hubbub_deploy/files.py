"""The files that processes keep to themselves, and those that a command writes once for its user."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    from hubbub import Survey

ARCHIVE_FILE: Final = "archive.sqlite"
"""The file of sealed releases in the folder of a node or a dashboard."""


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Make the files and folders created within readable and writable by their owner alone.

    It holds for the whole process: enter it before threads are started. Files that exist keep their mode;
    SQLite gives a database's mode to the files that it makes beside it later.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def load_survey(path: Path) -> Survey:
    """Return the survey in a file, TOML or compiled; - is TOML from stdin.

    Raises:
        SurveyError: If it cannot be read, or is no valid survey.
        DeployError: If stdin holds no text.
    """
    from hubbub import Survey  # noqa: PLC0415 - commands that load none start without it

    if str(path) != "-":
        return Survey.load(path)
    try:
        return Survey.parse(sys.stdin.buffer.read().decode("utf-8"), file="stdin")
    except UnicodeDecodeError as error:
        raise DeployError(f"stdin must be TOML in UTF-8, got {error.reason}") from None


def create(path: Path, data: bytes, *, mode: int) -> None:
    """Write a file that must not be there yet; nobody else could ever read it, if the mode says so.

    Args:
        path: Where.
        data: All of it.
        mode: The file's permissions, before the process's umask.

    Raises:
        DeployError: If there is something of that name, or it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise DeployError(f"{path} is there already, and is not overwritten") from None
    except OSError as error:
        raise DeployError(f"{path}: cannot be written: {error.strerror}") from None
