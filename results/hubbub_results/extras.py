"""The packages of the extra `results`, imported when something needs them."""

from __future__ import annotations

import importlib
from types import ModuleType

from hubbub_results.errors import MissingExtraError


def needed(package: str) -> ModuleType:
    """Return a package of the extra `results`.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        name = package.partition(".")[0]
        raise MissingExtraError(
            f"{name} must be installed for this: pip install 'hubbub[results]'"
        ) from error
