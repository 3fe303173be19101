"""Every error that the reader raises, as one tree.

ResultsError
├── Unreachable      no answer came: the address, the network or the server
├── Unauthorized     the server wants a token, or another one
├── NotFound         there is no such survey, round or cell
├── NotComparable    two rounds ask different questions
├── MissingExtra     pandas or matplotlib is not installed
└── BadAnswer        the answer is not one of this API, or the server failed
"""

from __future__ import annotations

from hubbub.errors import AdvisedError


class ResultsError(AdvisedError):
    """An error of the reader of results."""


class Unreachable(ResultsError):  # noqa: N818 - names the finding
    """The server gave no answer."""

    advice = "retry"


class Unauthorized(ResultsError):  # noqa: N818 - HTTP's word
    """The server wants a token, or another one."""


class NotFound(ResultsError):  # noqa: N818 - HTTP's word
    """The survey, round or cell does not exist."""


class NotComparable(ResultsError):  # noqa: N818 - names the finding
    """Two rounds ask different questions."""


class MissingExtra(ResultsError):  # noqa: N818 - names the finding
    """A package that this call needs is not installed."""


class BadAnswer(ResultsError):  # noqa: N818 - names the finding
    """The answer is not one of this API."""
