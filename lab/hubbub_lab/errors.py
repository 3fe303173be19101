"""Errors of evaluation and simulation."""

from hubbub.errors import HubbubError


class LabError(HubbubError):
    """An error of data or options; the message says why in one line."""
