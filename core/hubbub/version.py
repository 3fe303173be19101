"""The version of what runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

DISTRIBUTION: Final = "hubbub"


def _installed() -> str:
    """Return the installed version, "" where the sources are run as they are."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


__version__: Final = _installed()


def version_line() -> str:
    """Return the name and version of what runs."""
    return f"{DISTRIBUTION} {__version__}" if __version__ else f"{DISTRIBUTION}, run from its sources"
