"""Files that a command writes for its user, and never over another."""

from __future__ import annotations

import os
from pathlib import Path

from hubbub_deploy.errors import DeployError


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
