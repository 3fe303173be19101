"""Reasons of failed requests, in words that a person can act on and that quote nothing of what was sent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def failure_words(error: BaseException) -> str:
    """Return why a request failed; of an unknown kind its name alone, as a message may quote what was sent.

    Args:
        error: What urllib3, the system or a deadline raised.
    """
    import ssl  # noqa: PLC0415 - at the first request

    import urllib3.exceptions as of  # noqa: PLC0415 - as above

    cause = error.args[0] if isinstance(error, of.SSLError) and error.args else error.__cause__
    if isinstance(error, of.NameResolutionError):
        return "its name is not known"
    if isinstance(cause, ssl.SSLError):
        return _tls_words(cause)
    for each in (error, cause):  # before timeouts, of which urllib3 makes a refused connection one
        if isinstance(each, OSError) and each.errno is not None:
            return os.strerror(each.errno).lower()
    if isinstance(error, of.TimeoutError | TimeoutError):
        return "no answer in time"
    return "the connection broke" if isinstance(error, of.ProtocolError) else type(error).__name__


def _tls_words(error: ssl.SSLError) -> str:
    refused = getattr(error, "verify_message", None)  # of a certificate's errors alone
    if refused is not None:
        return f"its certificate is not accepted: {refused}"
    return f"TLS failed: {(error.reason or 'no reason').replace('_', ' ').lower()}"
