"""Every error that the reader raises, as one tree.

ResultsError
├── UnreachableError    no answer came: the address, the network or the server
├── UnauthorizedError   the server wants a token, or another one
├── NotFoundError       there is no such survey, round or cell
├── NotComparableError  two rounds ask different questions
├── MissingExtraError   pandas or matplotlib is not installed
└── BadAnswerError      the answer is not one of this API, or the server failed
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from hubbub.errors import AdvisedError


class ResultsError(AdvisedError):
    """An error of the reader of results."""


class UnreachableError(ResultsError):
    """The server gave no answer."""

    advice = "retry"


class UnauthorizedError(ResultsError):
    """The server wants a token, or another one."""


class NotFoundError(ResultsError):
    """The survey, round or cell does not exist."""


class NotComparableError(ResultsError):
    """Two rounds ask different questions."""


class MissingExtraError(ResultsError):
    """A package that this call needs is not installed."""


class BadAnswerError(ResultsError):
    """The answer is not one of this API."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Read an answer, which may come from anybody: without what is read in it, it is none of this API.

    Raises:
        BadAnswerError: If something is missing, or is of another type.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise BadAnswerError(f"{what} must be as the read API gives it, got {error!r:.80}") from error


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
