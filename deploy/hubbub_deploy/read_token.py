"""The token that readers of page and API must know, from a file or from the environment."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Final

from hubbub_deploy.errors import DeployError

VARIABLE: Final = "HUBBUB_READ_TOKEN"
# Whoever may try 10,000 times a second needs longer than anybody lives for 16 random characters.
_TOKEN: Final = re.compile(r"[!-~]{16,512}")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command that serves the page."""
    parser.add_argument(
        "--read-token-file",
        type=Path,
        metavar="FILE",
        help=f"readers of page and API must know the token in it (or in {VARIABLE}); default: anyone reads",
    )


def read_token(options: argparse.Namespace) -> str | None:
    """Return the token, None where anyone may read.

    Raises:
        DeployError: If the file cannot be read, or the token is short or has spaces. The message does not
            hold it.
    """
    path: Path | None = options.read_token_file
    if path is not None:
        try:
            token, place = path.read_text(encoding="utf-8").strip(), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise DeployError(f"read token file {path} cannot be read: {error}") from error
    elif VARIABLE in os.environ:
        token, place = os.environ[VARIABLE].strip(), VARIABLE
    else:
        return None
    if _TOKEN.fullmatch(token) is None:
        raise DeployError(
            f"read token in {place} must be 16 to 512 visible ASCII characters without spaces, "
            f"got {len(token)} characters"
        )
    return token
